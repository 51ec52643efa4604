/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys are written when: a sample of a schema's rows, made part by part as text (what a person
 * could write on the command line), each with the number of writes that it stands for. The plan of a remedy has the
 * same rows, with keys of another format.
 */
#include "design/plan_priv.h"

#include "load/draw.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 512, BUCKETS_MOST = 256, TALLY = 4096 };
#define BEGIN_S 1700000000.0 /* the period begins in November 2023 */

typedef enum form {
    FORM_UINT,
    FORM_INT,
    FORM_REAL,
    FORM_BOOL,
    FORM_UUID,
    FORM_GEOHASH,
    FORM_TEXT
} form;

/* How a part's values are written. */
typedef struct maker {
    form form;
    unsigned bits;      /* of integers */
    double most;        /* the largest integer */
    double units_per_s; /* of times */
    unsigned length;    /* of texts */
    const rq_values *values;
    rq_zipf zipf;
} maker;

/* --- parts ------------------------------------------------------------------------------------ */

/* The type behind its modifiers, and behind ob- and raw-. */
static const char *base_of(const char *type)
{
    static const char *const before[] = {"desc-", "asc-", "opt-", "rev-", "ob-", "raw-"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(before);) {
        size_t len = strlen(before[i]);
        if (strncmp(type, before[i], len) != 0) {
            i++;
            continue;
        }
        type += len;
        i = 0;
    }
    return type;
}

static double units_of(const char *base)
{
    if (strcmp(base, "us") == 0) return 1e6;
    if (strcmp(base, "ns") == 0) return 1e9;
    if (strcmp(base, "s") == 0 || strcmp(base, "u32") == 0 || strcmp(base, "i32") == 0) return 1;
    return 1e3;
}

static void maker_init(maker *m, const char *type, const rq_values *values)
{
    const char *base = base_of(type);
    const char *digits = base + strcspn(base, "0123456789");
    unsigned n = (unsigned)strtoul(digits, NULL, 10);
    *m = (maker){.form = FORM_UINT,
                 .bits = 63,
                 .values = values,
                 .units_per_s = units_of(base),
                 .length = 12};
    if (strncmp(base, "digits", 6) == 0)
        m->bits = (unsigned)(n * 3.3219); /* 10^n values */
    else if (strcmp(base, "s") == 0)
        m->bits = 32;
    else if (base[0] == 'u' && isdigit((unsigned char)base[1]))
        m->bits = n;
    else if (base[0] == 'i' && isdigit((unsigned char)base[1]))
        m->form = FORM_INT, m->bits = n;
    else if (base[0] == 'f' || strcmp(base, "num") == 0)
        m->form = FORM_REAL;
    else if (strcmp(base, "bool") == 0)
        m->form = FORM_BOOL;
    else if (strcmp(base, "uuid") == 0)
        m->form = FORM_UUID;
    else if (strncmp(base, "geohash", 7) == 0)
        m->form = FORM_GEOHASH;
    else if (strncmp(base, "text", 4) == 0 || strncmp(base, "bytes", 5) == 0 ||
             strncmp(base, "blob", 4) == 0)
        m->form = FORM_TEXT, m->length = n > 0 ? n : 12;
    if (m->length > 400) m->length = 400;
    if (values->kind == RQ_VALUES_ZIPF) rq_zipf_init(&m->zipf, values->count, values->skew);
}

/* --- values ----------------------------------------------------------------------------------- */

static double unit(rq_random *r)
{
    return (double)(rq_random_next(r) >> 11) / 9007199254740992.0;
}

/* Ranks become ids all over the range: popular ids are not neighbours. */
static uint64_t scatter(uint64_t rank, uint64_t count)
{
    return (uint64_t)((unsigned __int128)rank * UINT64_C(0x9e3779b97f4a7c15) % count);
}

/* An integer drawn from the distribution; `row` and `now_s` are the write's. */
static uint64_t draw_integer(const maker *m, rq_random *r, double row, double now_s)
{
    const rq_values *v = m->values;
    switch (v->kind) {
    case RQ_VALUES_UNIFORM:
        return (uint64_t)(v->low + unit(r) * (v->high - v->low + 1));
    case RQ_VALUES_ZIPF:
        return scatter(rq_zipf_draw(&m->zipf, r), v->count);
    case RQ_VALUES_SEQUENCE:
        return (uint64_t)row;
    case RQ_VALUES_NOW:
        return (uint64_t)((BEGIN_S + now_s) * m->units_per_s);
    default:
        return m->bits == 0 ? 0 : rq_random_next(r) >> (64 - (m->bits > 64 ? 64 : m->bits));
    }
}

static void write_uuid(uint64_t high, uint64_t low, char *text)
{
    snprintf(text, TEXT_MAX, "%016" PRIx64 "%016" PRIx64, high, low);
}

static void write_random_text(const maker *m, rq_random *r, char *text)
{
    for (unsigned i = 0; i < m->length; i++)
        text[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rq_random_below(r, 36)];
    text[m->length] = '\0';
}

static void write_value(const maker *m, rq_random *r, double row, double now_s, char *text)
{
    const rq_values *v = m->values;
    bool random = v->kind == RQ_VALUES_RANDOM;
    if (v->kind == RQ_VALUES_CHOICE) {
        snprintf(text, TEXT_MAX, "%s", v->choices[rq_random_below(r, v->count)]);
        return;
    }
    if (m->form == FORM_TEXT && random) {
        write_random_text(m, r, text);
        return;
    }
    uint64_t n = draw_integer(m, r, row, now_s);
    switch (m->form) {
    case FORM_UUID:
        write_uuid(random ? n : n * UINT64_C(0x9e3779b97f4a7c15), n, text);
        break;
    case FORM_BOOL:
        snprintf(text, TEXT_MAX, "%s", n % 2 == 0 ? "false" : "true");
        break;
    case FORM_REAL:
        snprintf(text, TEXT_MAX, "%.9g", random ? unit(r) : (double)n);
        break;
    case FORM_GEOHASH:
        snprintf(text, TEXT_MAX, "%.7f,%.7f", asin(2 * unit(r) - 1) * 57.29577,
                 360 * unit(r) - 180);
        break;
    case FORM_INT:
        snprintf(text, TEXT_MAX, "%" PRId64,
                 random ? (int64_t)(n << (64 - m->bits)) >> (64 - m->bits) : (int64_t)n);
        break;
    case FORM_TEXT:
        snprintf(text, TEXT_MAX, "%0*" PRIu64, m->length < 20 ? (int)m->length : 12, n);
        break;
    default:
        snprintf(text, TEXT_MAX, "%" PRIu64, n);
    }
}

/* --- remedies --------------------------------------------------------------------------------- */

static uint64_t buckets_for(const rq_schema *s)
{
    uint64_t n = 2;
    while (n < 2 * s->servers && n < BUCKETS_MOST)
        n *= 2;
    return n;
}

/* "id:u64 …" with rev- before the type, if that type can be reversed. */
static char *reversed_key(const rq_schema *s, const char *type, rq_arena *a)
{
    const char *colon = strchr(s->key, ':');
    const char *base = base_of(type);
    bool number =
        (base[0] == 'u' && isdigit((unsigned char)base[1])) || strncmp(base, "digits", 6) == 0;
    if (!number || colon == NULL || strstr(type, "rev-") != NULL) return NULL;
    return rq_arena_printf(a, "%.*s:rev-%s", (int)(colon - s->key), s->key, colon + 1);
}

/* The format of a remedy; NULL: it does not fit. */
static char *remedy_key(const rq_schema *s, rq_remedy remedy, rq_arena *a)
{
    rq_key_part first = {.size = sizeof first};
    bool computed = s->key[0] != '\'' && strchr(s->key, '(') != NULL &&
                    strchr(s->key, '(') < strchr(s->key, ':');
    if (rq_key_part_at(s->format, 0, &first, NULL) != RQ_OK) return NULL;
    switch (remedy) {
    case RQ_REMEDY_SALT:
        return computed ? NULL : rq_arena_printf(a, "salt(%" PRIu64 ") %s", buckets_for(s), s->key);
    case RQ_REMEDY_HASH:
        if (computed || s->values[0].kind == RQ_VALUES_NOW)
            return NULL; /* ranges of time would be lost */
        return rq_arena_printf(a, "md5(2,%s) %s", first.name, s->key);
    case RQ_REMEDY_REVERSE:
        return computed ? NULL : reversed_key(s, first.type, a);
    default:
        return rq_arena_printf(a, "%s", s->key);
    }
}

static void describe(const rq_schema *s, rq_remedy remedy, rq_plan *p)
{
    static const char *const names[RQ_REMEDIES] = {"as designed", "presplit", "salt", "hash prefix",
                                                   "reversed"};
    static const char *const costs[RQ_REMEDIES] = {
        "",
        "the split keys must be known before",
        "a range is a scan of each bucket (rq_salted_scan)",
        "ranges over several values of the first part are lost",
        "ranges over several values of the first part are lost",
    };
    p->name = names[remedy];
    p->cost = costs[remedy];
    p->scans = remedy == RQ_REMEDY_SALT ? buckets_for(s) : 1;
    p->servers = s->servers;
    p->regions = s->regions;
    if (remedy != RQ_REMEDY_NONE && p->regions < buckets_for(s)) p->regions = buckets_for(s);
    p->period_s = s->period_s;
    p->region_bytes = s->region_bytes;
    p->writes = s->writes_s * s->period_s;
    p->reads = s->reads_s * s->period_s;
    p->read_window_s = s->read_window_s;
}

/* --- sampling --------------------------------------------------------------------------------- */

/* e^(k cos x) over a day is never 0 and has its peak once; its mean is the Bessel function I0(k). */
static double peak_of(double k)
{
    double mean = 1, term = 1;
    for (int i = 1; i < 400 && term > 1e-12 * mean; i++) {
        term *= k / 2 / i * (k / 2 / i);
        mean += term;
    }
    return exp(k) / mean;
}

/* The k with which the peak is so many times the mean. */
static double sharpness_of(double peak)
{
    double low = 0, high = 300;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (peak_of(middle) < peak)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A step's share of the writes. */
static double share_of(const rq_schema *s, double sharpness, unsigned step)
{
    double at = (step + 0.5) / RQ_DESIGN_STEPS, days = s->period_s / 86400;
    if (s->arrival == RQ_ARRIVAL_DAILY)
        return exp(sharpness * (cos(2 * M_PI * (at * (days < 1 ? 1 : days) - 0.5)) - 1));
    if (s->arrival == RQ_ARRIVAL_BURSTS)
        return step % 10 == 5 ? s->peak : s->peak >= 10 ? 0 : (10 - s->peak) / 9;
    return 1;
}

typedef struct sampler {
    const rq_schema *schema;
    rq_key_format *format;
    size_t parts;
    maker makers[RQ_DESIGN_PARTS_MAX];
    rq_random random;
    char texts[RQ_DESIGN_PARTS_MAX][TEXT_MAX];
    const char *pointers[RQ_DESIGN_PARTS_MAX];
    double tally[TALLY]; /* weights of the first part's values, by hash */
} sampler;

uint64_t rq__plan_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (const char *c = text; *c != '\0'; c++)
        h = (h ^ (uint8_t)*c) * 1099511628211u;
    return h ^ h >> 32;
}

static rq_err sample_row(sampler *m, rq_plan *p, uint32_t step, double row, double now_s,
                         double weight, rq_error *why)
{
    uint8_t key[4096];
    size_t len;
    rq_failure failure = {.size = sizeof failure};
    for (size_t i = 0; i < m->parts; i++)
        write_value(&m->makers[i], &m->random, row, now_s, m->texts[i]);
    if (rq_key_encode_text(m->format, m->pointers, m->parts, key, sizeof key, &len, &failure) !=
        RQ_OK)
        return rq_fail(why, RQ_E_INVALID, "cannot build a row key from the schema: %s",
                       failure.message);
    m->tally[rq__plan_hash(m->texts[0]) % TALLY] += weight;
    p->key_length += (double)len * weight;
    rq_err rc = rq__plan_add(p, rq_slice_of(key, len), step, weight);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

static rq_err sample_all(sampler *m, rq_plan *p, size_t samples, rq_error *why)
{
    const rq_schema *s = m->schema;
    double sharpness = s->arrival == RQ_ARRIVAL_DAILY ? sharpness_of(s->peak) : 0;
    double shares = 0, row = 0, step_s = s->period_s / RQ_DESIGN_STEPS;
    size_t per_step = samples / RQ_DESIGN_STEPS;
    for (unsigned step = 0; step < RQ_DESIGN_STEPS; step++)
        shares += share_of(s, sharpness, step);
    for (uint32_t step = 0; step < RQ_DESIGN_STEPS; step++) {
        double weight = p->writes * share_of(s, sharpness, step) / shares / (double)per_step;
        for (size_t i = 0; i < per_step && weight > 0; i++, row += weight)
            RQ_TRY(sample_row(m, p, step, row, (step + (double)i / (double)per_step) * step_s,
                              weight, why));
    }
    for (size_t i = 0; i < TALLY; i++)
        if (m->tally[i] / p->writes > p->hottest_first) p->hottest_first = m->tally[i] / p->writes;
    p->key_length /= p->writes;
    p->row_bytes = rq__schema_row_bytes(s, p->key_length).all;
    return RQ_OK;
}

void rq__plan_splits(const rq_schema *s, rq_remedy remedy, const rq_key_format *format, rq_plan *p)
{
    bool wanted = remedy != RQ_REMEDY_NONE || s->presplit;
    if (!wanted || p->regions < 2) {
        p->splits_by_sample = s->regions > 1;
        return;
    }
    if (remedy == RQ_REMEDY_PRESPLIT ||
        rq_split_format(format, p->regions, &p->splits, NULL) != RQ_OK)
        p->splits_by_sample = true;
}

rq_err rq__plan_begin(const rq_schema *s, rq_remedy remedy, rq_plan *ret,
                      rq_key_format **ret_format, rq_error *why)
{
    rq_failure failure = {.size = sizeof failure};
    *ret = (rq_plan){0};
    describe(s, remedy, ret);
    char *key = remedy_key(s, remedy, (rq_arena *)(uintptr_t)&s->arena);
    if (key == NULL || (remedy == RQ_REMEDY_PRESPLIT && (s->presplit || s->regions > 1)))
        return rq_fail(why, RQ_E_UNSUPPORTED, "remedy %s is not possible for this key", ret->name);
    ret->key = key;
    rq_err rc = rq_key_format_parse(key, ret_format, &failure);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, RQ_E_UNSUPPORTED, "%s", failure.message);
}

static rq_err make_makers(sampler *m)
{
    const rq_schema *s = m->schema;
    m->parts = rq_key_part_count(s->format);
    for (size_t i = 0; i < m->parts; i++) {
        rq_key_part part = {.size = sizeof part};
        RQ_TRY(rq_key_part_at(s->format, i, &part, NULL));
        maker_init(&m->makers[i], part.type, &s->values[i]);
        m->pointers[i] = m->texts[i];
    }
    return RQ_OK;
}

rq_err rq_plan_of_schema(const rq_schema *s, rq_remedy remedy, size_t samples, uint64_t seed,
                         rq_plan *ret, rq_error *why)
{
    sampler *m = calloc(1, sizeof *m);
    if (m == NULL) return rq_no_memory(why);
    m->schema = s;
    rq_random_seed(&m->random, seed);
    rq_err rc = rq__plan_begin(s, remedy, ret, &m->format, why);
    if (rc == RQ_OK) rc = make_makers(m);
    if (rc == RQ_OK) rc = sample_all(m, ret, samples, why);
    if (rc == RQ_OK) rq__plan_splits(s, remedy, m->format, ret);
    rq_key_format_free(m->format);
    free(m);
    return rc;
}

/* --- plans ------------------------------------------------------------------------------------ */

rq_err rq__plan_add_again(rq_plan *p, uint32_t offset, uint32_t length, uint32_t step,
                          double weight)
{
    if ((p->count & (p->count - 1)) == 0) { /* a power of two: twice as many fit */
        size_t cap = p->count == 0 ? 1 : 2 * p->count;
        rq_plan_key *keys = realloc(p->keys, cap * sizeof *keys);
        if (keys == NULL) return RQ_E_NO_MEMORY;
        p->keys = keys;
    }
    p->keys[p->count++] = (rq_plan_key){offset, length, step, (float)weight, false};
    return RQ_OK;
}

rq_err rq__plan_add(rq_plan *p, rq_slice key, uint32_t step, double weight)
{
    uint32_t offset = (uint32_t)p->bytes.len;
    if (p->bytes.len + key.len > UINT32_MAX) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_buf_append(&p->bytes, key.ptr, key.len));
    return rq__plan_add_again(p, offset, (uint32_t)key.len, step, weight);
}

static int by_step(const void *a, const void *b)
{
    const rq_plan_key *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void rq__plan_sort(rq_plan *p)
{
    if (p->count > 0) qsort(p->keys, p->count, sizeof *p->keys, by_step);
}

void rq_plan_clear(rq_plan *p)
{
    rq_buf_clear(&p->bytes);
    rq_key_list_free(p->splits);
    free(p->keys);
    free(p->known);
    p->keys = NULL;
    p->known = NULL;
    p->splits = NULL;
}
