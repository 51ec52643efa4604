/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace is text, an access a line, fields separated by tabs, in any order of time:
 *
 *     TIME  r|w  KEY  [BYTES]       1700000000123	w	user7\x00\x01	212
 *
 * TIME is in milliseconds since 1970; KEY is text with \xNN for other bytes, as the shell and the logs
 * show keys; BYTES are those of a written row. Lines that are empty or begin with # do not count.
 *
 * A remedy is another format: a key is taken apart by the schema's, and its values are put together by
 * the remedy's.
 */
#include "design/trace.h"
#include "design/plan_priv.h"

#include <errno.h>
#include <stdlib.h>

enum { TALLY = 4096 };

/* A line; the key is in it, unescaped. */
typedef struct access_line {
    int64_t time_ms;
    bool is_read;
    rq_slice key;
    double bytes; /* of a write; 0: not told */
} access_line;

/* --- lines ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In its place; the length. */
static size_t unescape(char *text)
{
    size_t n = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool escaped = text[i] == '\\' && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 &&
                       hex_digit(text[i + 3]) >= 0;
        text[n++] =
            escaped ? (char)(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3])) : text[i];
        if (escaped) i += 3;
    }
    return n;
}

/* Returns the field at *at and moves *at behind it; NULL: there is none. */
static char *field(char **at)
{
    char *begin = *at;
    if (begin == NULL) return NULL;
    char *tab = strchr(begin, '\t');
    if (tab != NULL) *tab = '\0';
    *at = tab == NULL ? NULL : tab + 1;
    return begin;
}

static bool whole_number(const char *text, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = text == NULL || text[0] < '0' || text[0] > '9' ? -1 : strtoll(text, &end, 10);
    if (v < 0 || errno != 0 || *end != '\0') return false;
    *ret = v;
    return true;
}

/* Splits a line in place. *ret_empty: it is empty or a comment. */
static rq_err parse_line(char *text, access_line *ret, bool *ret_empty, rq_error *why)
{
    int64_t bytes = 0;
    text[strcspn(text, "\r\n")] = '\0';
    *ret_empty = text[0] == '\0' || text[0] == '#';
    if (*ret_empty) return RQ_OK;
    char *at = text;
    char *time = field(&at), *kind = field(&at), *key = field(&at), *size = field(&at);
    if (!whole_number(time, &ret->time_ms))
        return rq_fail(why, RQ_E_INVALID, "the time is not a number of milliseconds");
    if (kind == NULL || (strcmp(kind, "r") != 0 && strcmp(kind, "w") != 0))
        return rq_fail(why, RQ_E_INVALID, "the second field must be r or w");
    if (key == NULL || key[0] == '\0') return rq_fail(why, RQ_E_INVALID, "the key is missing");
    if ((size != NULL && !whole_number(size, &bytes)) || at != NULL)
        return rq_fail(why, RQ_E_INVALID, "the last field must be a number of bytes");
    ret->is_read = kind[0] == 'r';
    ret->key = rq_slice_of((uint8_t *)key, unescape(key));
    ret->bytes = (double)bytes;
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void count(rq_trace *t, const access_line *a)
{
    if (t->reads + t->writes == 0) t->first_ms = t->last_ms = a->time_ms;
    if (a->time_ms < t->first_ms) t->first_ms = a->time_ms;
    if (a->time_ms > t->last_ms) t->last_ms = a->time_ms;
    t->reads += a->is_read;
    t->writes += !a->is_read;
    t->sized += !a->is_read && a->bytes > 0;
    t->bytes += a->is_read ? 0 : a->bytes;
}

/* Reservoir sampling: the n-th access replaces one with the chance most ÷ n. */
static rq_err keep(rq_trace *t, const access_line *a)
{
    uint64_t seen = t->reads + t->writes;
    size_t at = t->count < t->most ? t->count : (size_t)rq_random_below(&t->random, seen);
    if (at >= t->most) return RQ_OK;
    uint8_t *key = malloc(a->key.len);
    if (key == NULL) return RQ_E_NO_MEMORY;
    memcpy(key, a->key.ptr, a->key.len);
    if (at == t->count)
        t->count++;
    else
        free(t->rows[at].key);
    t->rows[at] = (rq_traced){a->time_ms, a->is_read, (uint32_t)a->key.len, key};
    return RQ_OK;
}

static rq_err take_line(rq_trace *t, char *line, size_t number, rq_error *why)
{
    access_line a;
    bool empty;
    rq_error wrong = {.code = RQ_OK};
    rq_err rc = parse_line(line, &a, &empty, &wrong);
    if (rc == RQ_OK && !empty && a.key.len > 32767)
        rc = rq_fail(&wrong, RQ_E_INVALID, "the key has more than 32767 bytes");
    if (rc != RQ_OK) return rq_fail(why, rc, "line %zu: %s", number, wrong.message);
    if (empty) return RQ_OK;
    count(t, &a);
    return keep(t, &a) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq_trace_read(FILE *from, size_t most, uint64_t seed, rq_trace *ret, rq_error *why)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t len;
    *ret = (rq_trace){.most = most};
    rq_random_seed(&ret->random, seed);
    ret->rows = calloc(most, sizeof *ret->rows);
    rq_err rc = ret->rows == NULL ? rq_no_memory(why) : RQ_OK;
    while (rc == RQ_OK && (len = getline(&line, &cap, from)) >= 0) {
        number++;
        rc = memchr(line, 0, (size_t)len) == NULL
                 ? take_line(ret, line, number, why)
                 : rq_fail(why, RQ_E_INVALID, "line %zu is not text", number);
    }
    free(line);
    if (rc == RQ_OK && ferror(from)) rc = rq_fail(why, RQ_E_IO, "cannot be read: %m");
    if (rc == RQ_OK && ret->count == 0)
        rc = rq_fail(why, RQ_E_NOT_FOUND, "the trace has no accesses");
    for (size_t i = 0; i < ret->count; i++)
        *(ret->rows[i].is_read ? &ret->kept_reads : &ret->kept_writes) += 1;
    return rc;
}

void rq_trace_clear(rq_trace *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->rows[i].key);
    free(t->rows);
    *t = (rq_trace){0};
}

/* --- the plan --------------------------------------------------------------------------------- */

typedef struct replay {
    const rq_schema *schema;
    const rq_trace *trace;
    rq_key_format *format;
    rq_plan *plan;
    double tally[TALLY]; /* writes of the first part's values, by hash */
} replay;

/* A key of the trace under the remedy's format. */
static rq_err translate(replay *r, const rq_traced *row, uint8_t out[4096 + 32767], size_t *ret_len,
                        rq_error *why)
{
    rq_key_values *values;
    rq_failure failure = {.size = sizeof failure};
    char text[120];
    rq_err rc =
        rq_key_decode(r->schema->format, rq_bytes_of(row->key, row->key_len), &values, &failure);
    if (rc == RQ_OK) {
        if (!row->is_read && values->count > 0)
            r->tally[rq__plan_hash(values->texts[0]) % TALLY] += 1;
        rc = rq_key_encode(r->format, values->items, values->count, out, 4096 + 32767, ret_len,
                           &failure);
        rq_key_values_free(values);
    }
    if (rc == RQ_OK) return RQ_OK;
    rq_bytes_to_string(rq_slice_of(row->key, row->key_len), text, sizeof text);
    return rq_fail(why, rc == RQ_E_NO_MEMORY ? rc : RQ_E_INVALID, "key %s: %s", text,
                   failure.message);
}

static uint32_t step_of(const rq_trace *t, int64_t time_ms)
{
    double span = (double)t->last_ms - (double)t->first_ms + 1;
    double at = ((double)time_ms - (double)t->first_ms) / span * RQ_DESIGN_STEPS;
    return at >= RQ_DESIGN_STEPS ? RQ_DESIGN_STEPS - 1 : (uint32_t)at;
}

static rq_err replay_all(replay *r, rq_error *why)
{
    static const size_t most = 4096 + 32767;
    const rq_trace *t = r->trace;
    uint8_t *key = malloc(most);
    size_t len;
    rq_err rc = key == NULL ? rq_no_memory(why) : RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < t->count; i++) {
        const rq_traced *row = &t->rows[i];
        rc = translate(r, row, key, &len, why);
        if (rc != RQ_OK) break;
        double weight = row->is_read ? (double)t->reads / (double)t->kept_reads
                                     : (double)t->writes / (double)t->kept_writes;
        r->plan->key_length += (double)len / (double)t->count;
        rc = rq__plan_add(r->plan, rq_slice_of(key, len), step_of(t, row->time_ms), weight);
        if (rc != RQ_OK) rc = rq_no_memory(why);
        if (rc == RQ_OK) r->plan->keys[i].is_read = row->is_read;
    }
    free(key);
    return rc;
}

static void finish(replay *r)
{
    const rq_trace *t = r->trace;
    rq_plan *p = r->plan;
    for (size_t i = 0; i < TALLY && t->kept_writes > 0; i++)
        if (r->tally[i] / (double)t->kept_writes > p->hottest_first)
            p->hottest_first = r->tally[i] / (double)t->kept_writes;
    p->row_bytes = t->sized > 0 ? t->bytes / (double)t->sized
                                : rq__schema_row_bytes(r->schema, p->key_length).all;
    rq__plan_sort(p);
}

rq_err rq_plan_of_trace(const rq_schema *s, rq_remedy remedy, const rq_trace *t, rq_plan *ret,
                        rq_error *why)
{
    replay *r = calloc(1, sizeof *r);
    *ret = (rq_plan){0};
    if (r == NULL) return rq_no_memory(why);
    *r = (replay){.schema = s, .trace = t, .plan = ret};
    rq_err rc = rq__plan_begin(s, remedy, ret, &r->format, why);
    if (rc == RQ_OK) {
        ret->period_s = ((double)t->last_ms - (double)t->first_ms + 1) / 1000;
        ret->writes = (double)t->writes;
        ret->reads = (double)t->reads;
        ret->has_reads = true;
        rc = replay_all(r, why);
    }
    if (rc == RQ_OK) {
        finish(r);
        rq__plan_splits(s, remedy, r->format, ret);
    }
    rq_key_format_free(r->format);
    free(r);
    return rc;
}
