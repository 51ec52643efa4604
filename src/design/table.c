/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live table as a plan: a sample of its rows, each written at the time of its newest cell.
 * The server picks rows at random (RandomRowFilter); of these at most SAMPLE_MAX are kept, each
 * with equal chance (reservoir sampling), so that the sample does not favour the beginning of
 * the table.
 */
#include "design/table.h"
#include "design/plan_priv.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLE_MAX = 200000 };

typedef struct picked {
    uint8_t *key;
    uint32_t length;
    int64_t timestamp;
} picked;

typedef struct sample {
    rq_random random;
    picked *rows;
    size_t count;
    uint64_t seen;
    double bytes; /* of all rows seen */
} sample;

/* --- reading ---------------------------------------------------------------------------------- */

/* HBase's message Filter with a RandomRowFilter: name 1, serialized filter 2 (chance 1, a float). */
static size_t random_filter(float chance, uint8_t out[80])
{
    static const char name[] = "org.apache.hadoop.hbase.filter.RandomRowFilter";
    size_t n = 0;
    uint32_t bits;
    memcpy(&bits, &chance, 4);
    out[n++] = 0x0a;
    out[n++] = (uint8_t)(sizeof name - 1);
    memcpy(out + n, name, sizeof name - 1);
    n += sizeof name - 1;
    out[n++] = 0x12;
    out[n++] = 5;
    out[n++] = 0x0d;
    for (int i = 0; i < 4; i++)
        out[n++] = (uint8_t)(bits >> 8 * i);
    return n;
}

static rq_err take_row(sample *s, const rq_row *row)
{
    rq_bytes key = row->cells[0].row;
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        s->bytes += (double)(21 + c->row.len + c->family.len + c->qualifier.len + c->value.len);
        if (c->timestamp > newest) newest = c->timestamp;
    }
    size_t at = s->seen++ < SAMPLE_MAX ? s->count++ : (size_t)rq_random_below(&s->random, s->seen);
    if (at >= SAMPLE_MAX) return RQ_OK;
    uint8_t *copy = malloc(key.len + 1);
    if (copy == NULL) return RQ_E_NO_MEMORY;
    memcpy(copy, key.data, key.len);
    free(s->rows[at].key);
    s->rows[at] = (picked){copy, (uint32_t)key.len, newest};
    return RQ_OK;
}

static rq_err read_rows(rq_table *table, const rq_from_table *from, sample *s, rq_error *why)
{
    uint8_t filter[80];
    rq_failure failure = {.size = sizeof failure};
    rq_scan_request scan = {.size = sizeof scan, .no_block_cache = true};
    rq_scanner *scanner;
    if (from->chance < 1)
        scan.filter = (rq_bytes){filter, random_filter((float)from->chance, filter)};
    rq_err rc = rq_table_scan(table, &scan, &scanner, &failure);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", failure.message);
    for (bool ended = false; rc == RQ_OK && !ended;) {
        rq_row *row = NULL;
        rc = rq_scanner_next(scanner, &row, &failure);
        if (rc != RQ_OK) rc = rq_fail(why, rc, "%s", failure.message);
        ended = row == NULL;
        if (row != NULL && row->count > 0 && take_row(s, row) != RQ_OK) rc = rq_no_memory(why);
        rq_row_free(row);
    }
    rq_scanner_close(scanner);
    return rc;
}

/* --- the plan --------------------------------------------------------------------------------- */

static rq_err make_plan(const sample *s, const rq_from_table *from, rq_plan *p, rq_error *why)
{
    int64_t oldest = INT64_MAX, newest = INT64_MIN;
    for (size_t i = 0; i < s->count; i++) {
        oldest = s->rows[i].timestamp < oldest ? s->rows[i].timestamp : oldest;
        newest = s->rows[i].timestamp > newest ? s->rows[i].timestamp : newest;
    }
    if (s->count == 0) return rq_fail(why, RQ_E_NOT_FOUND, "the table has no rows");
    double span = (double)newest - (double)oldest + 1;
    p->name = "as it is";
    p->key = "";
    p->cost = "";
    p->writes = (double)s->seen / from->chance;
    p->row_bytes = s->bytes / (double)s->seen;
    p->scans = 1;
    p->servers = from->servers;
    p->regions = from->regions;
    p->splits_by_sample = from->regions > 1;
    p->period_s = span / 1000;
    p->region_bytes = 10737418240.;
    for (size_t i = 0; i < s->count; i++) {
        const picked *row = &s->rows[i];
        double at = ((double)row->timestamp - (double)oldest) / span * RQ_DESIGN_STEPS;
        p->key_length += (double)row->length / (double)s->count;
        if (rq__plan_add(p, rq_slice_of(row->key, row->length), (uint32_t)at,
                         p->writes / (double)s->count) != RQ_OK)
            return rq_no_memory(why);
    }
    return RQ_OK;
}

rq_err rq_plan_of_table(rq_table *table, const rq_from_table *from, rq_plan *ret, rq_error *why)
{
    sample s = {0};
    *ret = (rq_plan){0};
    rq_random_seed(&s.random, 1);
    s.rows = calloc(SAMPLE_MAX, sizeof *s.rows);
    rq_err rc = s.rows == NULL ? rq_no_memory(why) : read_rows(table, from, &s, why);
    if (rc == RQ_OK) rc = make_plan(&s, from, ret, why);
    if (rc == RQ_OK) rq__plan_sort(ret);
    for (size_t i = 0; i < s.count; i++)
        free(s.rows[i].key);
    free(s.rows);
    return rc;
}
