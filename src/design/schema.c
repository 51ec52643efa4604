/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a schema, a line each; "#" at the begin of a line or behind a blank begins a comment:
 *
 *     table NAME
 *     key FORMAT                                       rorqual/rowkey.h
 *     value PART random | uniform LOW HIGH | zipf COUNT SKEW | sequence | now | choice TEXT TEXT …
 *     family NAME columns COUNT qualifier BYTES value BYTES
 *     servers COUNT        regions COUNT [presplit]
 *     period TIME          region-size SIZE
 *     writes RATE          reads RATE [within TIME]
 *     arrival constant | daily PEAK | bursts PEAK      PEAK: multiple of the mean
 *
 * TIME: 90s 15m 24h 30d; RATE: 5000/s, 2/m; SIZE and counts: 10k, 10M, 10G. Times (s, ms, us, ns,
 * msdigits) are "now" and other parts "random" unless told.
 */
#include "design/design.h"

#include <ctype.h>
#include <stdlib.h>

enum { WORDS_MAX = 64, TEXT_MAX = 1 << 20 };

typedef struct line {
    size_t number;
    size_t count;
    char *words[WORDS_MAX];
    const char *rest; /* behind the first word */
} line;

static rq_err wrong(const line *l, rq_error *why, const char *what)
{
    return rq_fail(why, RQ_E_INVALID, "line %zu: %s %s: %s", l->number, l->words[0],
                   l->rest == NULL ? "" : l->rest, what);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static bool number(const char *text, double *ret, const char **rest)
{
    char *end;
    *ret = strtod(text, &end);
    *rest = end;
    return end != text && isdigit((unsigned char)text[text[0] == '-']) && *ret < 1e18;
}

/* The multiple that a unit of `units` stands for; units and multiples alternate with blanks. */
static bool with_unit(const char *text, const char *units, const double *multiples, double *ret)
{
    const char *rest;
    if (!number(text, ret, &rest) || *ret < 0) return false;
    if (*rest == '\0') return true;
    const char *at = strchr(units, *rest);
    if (at == NULL || rest[1] != '\0') return false;
    *ret *= multiples[at - units];
    return true;
}

static bool amount(const char *text, double *ret)
{
    static const double multiples[] = {1e3, 1e6, 1e9, 1e12};
    return with_unit(text, "kMGT", multiples, ret);
}

static bool size(const char *text, double *ret)
{
    static const double multiples[] = {1024., 1048576., 1073741824., 1099511627776.};
    return with_unit(text, "kMGT", multiples, ret);
}

static bool duration(const char *text, double *ret)
{
    static const double multiples[] = {1, 60, 3600, 86400};
    return with_unit(text, "smhd", multiples, ret);
}

/* "5000/s" */
static bool rate(char *text, double *ret)
{
    char *slash = strchr(text, '/');
    double per;
    if (slash == NULL || slash[1] == '\0') return false;
    char one[4] = {'1', slash[1], '\0', '\0'};
    *slash = '\0';
    bool ok = amount(text, ret) && slash[2] == '\0' && duration(one, &per);
    *slash = '/';
    if (ok) *ret /= per;
    return ok;
}

/* --- lines ------------------------------------------------------------------------------------ */

static rq_err take_count(const line *l, uint64_t most, uint64_t *ret, rq_error *why)
{
    double v;
    if (l->count < 2 || !amount(l->words[1], &v) || v < 1 || v > (double)most)
        return rq_fail(why, RQ_E_INVALID, "line %zu: %s: expected a number from 1 to %llu",
                       l->number, l->words[0], (unsigned long long)most);
    *ret = (uint64_t)v;
    return RQ_OK;
}

static rq_err take_key(const line *l, rq_schema *s, rq_error *why)
{
    rq_failure failure = {.size = sizeof failure};
    if (s->format != NULL) return wrong(l, why, "the schema has a key already");
    s->key = l->rest;
    rq_err rc = rq_key_format_parse(l->rest == NULL ? "" : l->rest, &s->format, &failure);
    return rc == RQ_OK ? RQ_OK : wrong(l, why, failure.message);
}

static rq_err take_family(const line *l, rq_schema *s, rq_error *why)
{
    rq_design_family f = {.columns = 1, .qualifier = 1, .value = 100};
    if (l->count < 2 || l->count % 2 != 0)
        return wrong(l, why, "expected NAME columns COUNT qualifier BYTES value BYTES");
    if (s->family_count == RQ_DESIGN_FAMILIES_MAX) return wrong(l, why, "too many families");
    f.name = l->words[1];
    for (size_t i = 2; i < l->count; i += 2) {
        double *to = strcmp(l->words[i], "columns") == 0     ? &f.columns
                     : strcmp(l->words[i], "qualifier") == 0 ? &f.qualifier
                     : strcmp(l->words[i], "value") == 0     ? &f.value
                                                             : NULL;
        if (to == NULL) return wrong(l, why, "expected columns, qualifier or value");
        if (!size(l->words[i + 1], to) || *to > 1e12) return wrong(l, why, "not a number");
    }
    s->families[s->family_count++] = f;
    return RQ_OK;
}

static rq_err take_distribution(const line *l, rq_schema *s, rq_values *v, rq_error *why)
{
    const char *kind = l->count > 2 ? l->words[2] : "";
    double count = 0;
    if (strcmp(kind, "random") == 0 && l->count == 3) {
        v->kind = RQ_VALUES_RANDOM;
    } else if (strcmp(kind, "sequence") == 0 && l->count == 3) {
        v->kind = RQ_VALUES_SEQUENCE;
    } else if (strcmp(kind, "now") == 0 && l->count == 3) {
        v->kind = RQ_VALUES_NOW;
    } else if (strcmp(kind, "uniform") == 0 && l->count == 5) {
        v->kind = RQ_VALUES_UNIFORM;
        if (!amount(l->words[3], &v->low) || !amount(l->words[4], &v->high) || v->low > v->high)
            return wrong(l, why, "expected uniform LOW HIGH with LOW up to HIGH");
    } else if (strcmp(kind, "zipf") == 0 && l->count == 5) {
        const char *rest;
        v->kind = RQ_VALUES_ZIPF;
        if (!amount(l->words[3], &count) || count < 1 || !number(l->words[4], &v->skew, &rest) ||
            *rest != '\0' || !(v->skew > 0) || v->skew > 10)
            return wrong(l, why, "expected zipf COUNT SKEW with a skew above 0, up to 10");
        v->count = (uint64_t)count;
    } else if (strcmp(kind, "choice") == 0 && l->count > 3) {
        v->kind = RQ_VALUES_CHOICE;
        v->count = l->count - 3;
        v->choices = rq_arena_calloc(&s->arena, v->count, sizeof *v->choices);
        if (v->choices == NULL) return rq_no_memory(why);
        for (size_t i = 3; i < l->count; i++)
            v->choices[i - 3] = l->words[i];
    } else {
        return wrong(l, why,
                     "expected PART random | uniform LOW HIGH | zipf COUNT SKEW | sequence | now | "
                     "choice TEXT…");
    }
    return RQ_OK;
}

static rq_err take_value(const line *l, rq_schema *s, rq_error *why)
{
    if (s->format == NULL) return wrong(l, why, "the key line must come first");
    for (size_t i = 0; i < rq_key_part_count(s->format) && l->count > 1; i++) {
        rq_key_part part = {.size = sizeof part};
        RQ_TRY(rq_key_part_at(s->format, i, &part, NULL));
        if (strcmp(part.name, l->words[1]) == 0) return take_distribution(l, s, &s->values[i], why);
    }
    return wrong(l, why, "the key has no part of this name");
}

static rq_err take_arrival(const line *l, rq_schema *s, rq_error *why)
{
    static const char *const names[] = {"constant", "daily", "bursts"};
    const char *rest;
    for (unsigned i = 0; i < RQ_ARRAY_LEN(names) && l->count > 1; i++) {
        if (strcmp(names[i], l->words[1]) != 0) continue;
        s->arrival = (rq_arrival)i;
        s->peak = 1;
        if (l->count == 2 && i == 0) return RQ_OK;
        if (l->count == 3 && i > 0 && number(l->words[2], &s->peak, &rest) && *rest == '\0' &&
            s->peak >= 1 && s->peak <= 1000)
            return RQ_OK;
    }
    return wrong(l, why, "expected constant, daily PEAK or bursts PEAK");
}

static rq_err take_reads(const line *l, rq_schema *s, rq_error *why)
{
    if ((l->count != 2 && l->count != 4) || !rate(l->words[1], &s->reads_s))
        return wrong(l, why, "expected RATE [within TIME]");
    if (l->count == 4 && (strcmp(l->words[2], "within") != 0 ||
                          !duration(l->words[3], &s->read_window_s) || s->read_window_s <= 0))
        return wrong(l, why, "expected RATE within TIME");
    return RQ_OK;
}

static rq_err take_line(const line *l, rq_schema *s, rq_error *why)
{
    const char *word = l->words[0];
    bool two = l->count == 2;
    if (strcmp(word, "table") == 0) {
        s->table = l->words[l->count - 1];
        return two ? RQ_OK : wrong(l, why, "expected one name");
    }
    if (strcmp(word, "key") == 0) return take_key(l, s, why);
    if (strcmp(word, "value") == 0) return take_value(l, s, why);
    if (strcmp(word, "family") == 0) return take_family(l, s, why);
    if (strcmp(word, "arrival") == 0) return take_arrival(l, s, why);
    if (strcmp(word, "reads") == 0) return take_reads(l, s, why);
    if (strcmp(word, "servers") == 0) return take_count(l, 10000, &s->servers, why);
    if (strcmp(word, "regions") == 0) {
        s->presplit = l->count == 3 && strcmp(l->words[2], "presplit") == 0;
        if (l->count > 2 && !s->presplit) return wrong(l, why, "expected COUNT [presplit]");
        return take_count(l, 1000000, &s->regions, why);
    }
    if (strcmp(word, "period") == 0)
        return two && duration(l->words[1], &s->period_s) && s->period_s >= 1
                   ? RQ_OK
                   : wrong(l, why, "expected a time such as 24h");
    if (strcmp(word, "writes") == 0)
        return two && rate(l->words[1], &s->writes_s) && s->writes_s > 0
                   ? RQ_OK
                   : wrong(l, why, "expected a rate such as 5000/s");
    if (strcmp(word, "region-size") == 0)
        return two && size(l->words[1], &s->region_bytes) && s->region_bytes >= 1048576
                   ? RQ_OK
                   : wrong(l, why, "expected a size such as 10G, at least 1M");
    return wrong(l, why,
                 "unknown word; expected table, key, value, family, servers, regions, period, "
                 "region-size, writes, reads or arrival");
}

/* --- the text --------------------------------------------------------------------------------- */

/* Cuts the line into words; `rest` keeps the uncut text. */
static rq_err cut(rq_schema *s, char *text, line *l, rq_error *why)
{
    l->count = 0;
    l->rest = NULL;
    for (char *p = text; *p != '\0';) {
        p += strspn(p, " \t\r");
        if (*p == '\0') break;
        if (l->count == 1 && l->rest == NULL) {
            l->rest = rq_arena_printf(&s->arena, "%s", p);
            if (l->rest == NULL) return rq_no_memory(why);
        }
        if (l->count == WORDS_MAX)
            return rq_fail(why, RQ_E_INVALID, "line %zu: too many words", l->number);
        l->words[l->count++] = p;
        p += strcspn(p, " \t\r");
        if (*p != '\0') *p++ = '\0';
    }
    return RQ_OK;
}

static rq_err set_defaults(rq_schema *s, rq_error *why)
{
    if (s->format == NULL) return rq_fail(why, RQ_E_INVALID, "the schema has no key line");
    if (s->family_count == 0) s->families[s->family_count++] = (rq_design_family){"cf", 1, 1, 100};
    return RQ_OK;
}

/* Before the lines are read: what they need not say. */
static void begin(rq_schema *s)
{
    *s = (rq_schema){.table = "table",
                     .key = "",
                     .servers = 10,
                     .regions = 1,
                     .period_s = 86400,
                     .writes_s = 10000,
                     .peak = 1,
                     .region_bytes = 10737418240.};
}

/* Times are "now" unless the schema says otherwise. */
static rq_err choose_times(rq_schema *s)
{
    for (size_t i = 0; i < rq_key_part_count(s->format); i++) {
        rq_key_part part = {.size = sizeof part};
        RQ_TRY(rq_key_part_at(s->format, i, &part, NULL));
        const char *type = strrchr(part.type, '-');
        type = type == NULL ? part.type : type + 1;
        if (strcmp(type, "s") == 0 || strcmp(type, "ms") == 0 || strcmp(type, "us") == 0 ||
            strcmp(type, "ns") == 0 || strcmp(type, "msdigits") == 0)
            s->values[i].kind = RQ_VALUES_NOW;
    }
    return RQ_OK;
}

static void cut_comment(char *text)
{
    bool quoted = false;
    for (char *c = text; *c != '\0'; c++) {
        quoted ^= *c == '\'';
        if (*c != '#' || quoted || (c > text && c[-1] != ' ' && c[-1] != '\t')) continue;
        *c = '\0';
        return;
    }
}

/* The words of a line keep no blanks at their end. */
static void cut_blanks(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
        text[--len] = '\0';
}

static rq_err parse_into(char *text, rq_schema *s, rq_error *why)
{
    line l = {0};
    for (char *next = text; next != NULL; text = next) {
        l.number++;
        next = strchr(text, '\n');
        if (next != NULL) *next++ = '\0';
        bool had_key = s->format != NULL;
        cut_comment(text);
        cut_blanks(text);
        RQ_TRY(cut(s, text, &l, why));
        if (l.count > 0) RQ_TRY(take_line(&l, s, why));
        if (!had_key && s->format != NULL) RQ_TRY(choose_times(s));
    }
    return set_defaults(s, why);
}

rq_err rq_schema_parse(const char *text, rq_schema *ret, rq_error *why)
{
    begin(ret);
    if (strlen(text) > TEXT_MAX)
        return rq_fail(why, RQ_E_INVALID, "the schema is longer than 1 MiB");
    char *copy = rq_arena_printf(&ret->arena, "%s", text);
    return copy == NULL ? rq_no_memory(why) : parse_into(copy, ret, why);
}

void rq_schema_clear(rq_schema *s)
{
    rq_key_format_free(s->format);
    rq_arena_clear(&s->arena);
}

/* A cell in a file: lengths of key and value, row length and row, family length and family,
 * qualifier, timestamp, type, value, sequence id. */
rq_row_bytes rq__schema_row_bytes(const rq_schema *s, double key_length)
{
    rq_row_bytes b = {0};
    for (size_t i = 0; i < s->family_count; i++) {
        const rq_design_family *f = &s->families[i];
        double family = (double)strlen(f->name);
        b.cells += f->columns;
        b.keys += f->columns * key_length;
        b.names += f->columns * (family + f->qualifier);
        b.all += f->columns *
                 (4 + 4 + 2 + key_length + 1 + family + f->qualifier + 8 + 1 + f->value + 1);
    }
    return b;
}
