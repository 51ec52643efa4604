/* SPDX-License-Identifier: Apache-2.0 */
/* HBASE: ImportTsv.TsvParser. See columns.h. */
#include "transfer/columns.h"

#include "transfer/scan.h"

#include <errno.h>
#include <stdlib.h>

#define NONE SIZE_MAX

/* --- the list of columns ---------------------------------------------------------------------- */

static rq_slice trimmed(rq_slice s)
{
    while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\t'))
        s = rq_slice_of(s.ptr + 1, s.len - 1);
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static rq_err put_special(rq__columns *c, size_t at, rq__column_kind kind, size_t *slot,
                          const char *name, rq_error *why)
{
    if (*slot != NONE) return rq_fail(why, RQ_E_INVALID, "column %s is listed twice", name);
    *slot = at;
    c->list[at].kind = kind;
    return RQ_OK;
}

static rq_err put_cell(rq__columns *c, size_t at, rq_slice name, rq_error *why)
{
    const uint8_t *colon = name.len == 0 ? NULL : memchr(name.ptr, ':', name.len);
    size_t family_len = colon == NULL ? name.len : (size_t)(colon - name.ptr);
    if (family_len == 0 || family_len > RQ_FAMILY_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "column %zu: '%.*s' has no family", at + 1, (int)name.len,
                       (const char *)name.ptr);
    c->list[at].family = rq_slice_of(name.ptr, family_len);
    if (colon != NULL) c->list[at].qualifier = rq_slice_of(colon + 1, name.len - family_len - 1);
    return RQ_OK;
}

static rq_err put_column(rq__columns *c, size_t at, rq_slice name, rq_error *why)
{
    if (rq_slice_eq(name, RQ_SLICE_LIT("HBASE_ROW_KEY")))
        return put_special(c, at, RQ__COLUMN_ROW, &c->row, "HBASE_ROW_KEY", why);
    if (rq_slice_eq(name, RQ_SLICE_LIT("HBASE_TS_KEY")))
        return put_special(c, at, RQ__COLUMN_TIME, &c->time, "HBASE_TS_KEY", why);
    if (rq_slice_eq(name, RQ_SLICE_LIT("HBASE_CELL_TTL")))
        return put_special(c, at, RQ__COLUMN_TTL, &c->ttl, "HBASE_CELL_TTL", why);
    if (rq_slice_eq(name, RQ_SLICE_LIT("HBASE_ATTRIBUTES_KEY")))
        return put_special(c, at, RQ__COLUMN_ATTRIBUTES, &c->attributes, "HBASE_ATTRIBUTES_KEY",
                           why);
    if (rq_slice_eq(name, RQ_SLICE_LIT("HBASE_CELL_VISIBILITY")))
        return put_special(c, at, RQ__COLUMN_LABELS, &c->labels, "HBASE_CELL_VISIBILITY", why);
    return put_cell(c, at, name, why);
}

static int compare(rq_slice family, rq_slice qualifier, rq_slice other_family,
                   rq_slice other_qualifier)
{
    int c = rq_slice_compare(family, other_family);
    return c != 0 ? c : rq_slice_compare(qualifier, other_qualifier);
}

int rq__column_compare(const rq__column *column, const rq_cell *c)
{
    return compare(column->family, column->qualifier, rq_cell_family(c), rq_cell_qualifier(c));
}

static int by_name(const void *a, const void *b, void *ctx)
{
    const rq__column *list = ctx;
    const rq__column *x = &list[*(const size_t *)a], *y = &list[*(const size_t *)b];
    return compare(x->family, x->qualifier, y->family, y->qualifier);
}

static rq_err sort_columns(rq__columns *c, rq_error *why)
{
    c->by_name = rq_arena_calloc(&c->arena, c->count, sizeof *c->by_name);
    if (c->by_name == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].kind == RQ__COLUMN_CELL) c->by_name[c->cell_count++] = i;
    qsort_r(c->by_name, c->cell_count, sizeof *c->by_name, by_name, c->list);
    return RQ_OK;
}

static rq_err put_columns(rq__columns *c, rq_slice text, rq_error *why)
{
    size_t cells = 0;
    for (size_t at = 0; at < c->count; at++) {
        const uint8_t *comma = text.len == 0 ? NULL : memchr(text.ptr, ',', text.len);
        size_t len = comma == NULL ? text.len : (size_t)(comma - text.ptr);
        RQ_TRY(put_column(c, at, trimmed(rq_slice_of(text.ptr, len)), why));
        cells += c->list[at].kind == RQ__COLUMN_CELL;
        if (comma != NULL) text = rq_slice_of(comma + 1, text.len - len - 1);
    }
    if (c->row == NONE)
        return rq_fail(why, RQ_E_INVALID, "one of the columns must be HBASE_ROW_KEY");
    if (cells == 0)
        return rq_fail(why, RQ_E_INVALID,
                       "at least one column besides the row key and the timestamp is needed");
    return sort_columns(c, why);
}

rq_err rq__columns_parse(const rq_text_format *f, rq__columns *ret, rq_error *why)
{
    *ret = (rq__columns){.format = *f,
                         .count = 1,
                         .row = NONE,
                         .time = NONE,
                         .ttl = NONE,
                         .labels = NONE,
                         .attributes = NONE};
    rq_slice text = rq_arena_copy(&ret->arena, rq_slice_cstr(f->columns));
    if (text.ptr == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < text.len; i++)
        ret->count += text.ptr[i] == ',';
    ret->list = rq_arena_calloc(&ret->arena, ret->count, sizeof *ret->list);
    return ret->list == NULL ? rq_no_memory(why) : put_columns(ret, text, why);
}

void rq__columns_clear(rq__columns *c)
{
    rq_arena_clear(&c->arena);
    *c = (rq__columns){0};
}

/* --- lines ------------------------------------------------------------------------------------ */

rq_err rq__line_init(const rq__columns *c, rq__line *ret)
{
    *ret = (rq__line){.fields = calloc(c->count + 1, sizeof *ret->fields)};
    return ret->fields == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

void rq__line_clear(rq__line *l)
{
    free(l->fields);
    rq_buf_clear(&l->bytes);
    *l = (rq__line){0};
}

/* Reads a quoted field; its bytes go to l->bytes. False: it has no closing quote, or text follows
 * it. *at is then behind the field. */
static bool take_quoted(const rq__columns *c, rq_slice text, size_t *at, rq__line *l, rq_slice *ret)
{
    size_t begin = l->bytes.len;
    size_t i = *at + 1;
    for (;; i++) {
        if (i >= text.len) return false;
        if (text.ptr[i] == '"' && (++i >= text.len || text.ptr[i] != '"')) break;
        l->bytes.ptr[l->bytes.len++] = text.ptr[i];
    }
    *ret = rq_slice_of(l->bytes.ptr + begin, l->bytes.len - begin);
    *at = i;
    return i == text.len || text.ptr[i] == (uint8_t)c->format.separator;
}

static bool take_plain(const rq__columns *c, rq_slice text, size_t *at, rq_slice *ret)
{
    size_t begin = *at;
    const uint8_t *end =
        begin == text.len ? NULL : memchr(text.ptr + begin, c->format.separator, text.len - begin);
    *at = end == NULL ? text.len : (size_t)(end - text.ptr);
    *ret = rq_slice_of(text.ptr + begin, *at - begin);
    return true;
}

/* l->bytes has room for the whole line. */
static const char *split(const rq__columns *c, rq_slice text, rq__line *l)
{
    l->count = 0;
    for (size_t at = 0;; at++) {
        rq_slice field;
        bool quoted = c->format.has_quotes && at < text.len && text.ptr[at] == '"';
        if (quoted ? !take_quoted(c, text, &at, l, &field) : !take_plain(c, text, &at, &field))
            return "Unfinished quotes";
        if (l->count == c->count) return "Excessive columns";
        l->fields[l->count++] = field;
        if (at == text.len) return l->count == 1 ? "No delimiter" : NULL;
    }
}

static bool take_number(rq_slice s, int64_t *ret)
{
    char text[24];
    char *end;
    if (s.len == 0 || s.len >= sizeof text) return false;
    if (*s.ptr != '-' && *s.ptr != '+' && (*s.ptr < '0' || *s.ptr > '9')) return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && end == text + s.len && end[-1] >= '0' && end[-1] <= '9';
}

/* Decimal milliseconds; or 8 bytes, as HBase has it. */
static const char *take_ttl(rq_slice s, int64_t *ret)
{
    if (!take_number(s, ret)) {
        if (s.len != 8) return "Invalid TTL";
        *ret = (int64_t)rq_get_be64(s.ptr);
    }
    return *ret < 0 ? "Invalid TTL" : NULL;
}

static const char *check(const rq__columns *c, rq__line *l)
{
    if (c->row >= l->count) return "No row key";
    if (c->time != NONE && c->time >= l->count) return "No timestamp";
    if (c->attributes != NONE && c->attributes >= l->count) return "No attributes specified";
    if (c->labels != NONE && c->labels >= l->count) return "No cell visibility specified";
    if (c->ttl != NONE && c->ttl >= l->count) return "No cell TTL specified";
    l->row = l->fields[c->row];
    if (l->row.len == 0) return "Empty value for ROW KEY.";
    if (l->row.len > RQ_ROW_LEN_MAX) return "Row key of more than 32767 bytes";
    if (c->time != NONE && !take_number(l->fields[c->time], &l->timestamp))
        return "Invalid timestamp";
    if (c->time != NONE && l->timestamp < 0) return "Timestamp cannot be negative";
    l->attributes = c->attributes == NONE ? (rq_slice){0} : l->fields[c->attributes];
    l->labels = c->labels == NONE ? (rq_slice){0} : l->fields[c->labels];
    l->ttl_ms = 0;
    return c->ttl == NONE ? NULL : take_ttl(l->fields[c->ttl], &l->ttl_ms);
}

/* l->bytes has room for all of them. */
static void unescape(rq__line *l, rq_slice *field)
{
    size_t begin = l->bytes.len;
    if (field->len == 0 || memchr(field->ptr, '\\', field->len) == NULL) return;
    rq_err rc = rq_bytes_of_text(*field, &l->bytes);
    RQ_ASSERT(rc == RQ_OK);
    *field = rq_slice_of(l->bytes.ptr + begin, l->bytes.len - begin);
}

const char *rq__line_parse(const rq__columns *c, rq_slice text, rq__line *l, rq_err *rc)
{
    rq_buf_reset(&l->bytes);
    *rc = RQ_OK;
    if (c->format.has_quotes || c->format.has_escapes)
        *rc = rq_buf_reserve(&l->bytes, 2 * text.len);
    if (*rc != RQ_OK) return NULL;
    const char *problem = split(c, text, l);
    if (problem != NULL) return problem;
    for (size_t i = 0; c->format.has_escapes && i < l->count; i++)
        unescape(l, &l->fields[i]);
    return check(c, l);
}
