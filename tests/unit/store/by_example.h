/* SPDX-License-Identifier: Apache-2.0 */
/* One store whose cells and results are described by text:
 * "row/family:qualifier@timestamp=value", for markers D (Delete), DC (DeleteColumn), DF (DeleteFamily),
 * DFV (DeleteFamilyVersion) instead of the value. */
#ifndef RQ_TESTS_STORE_BY_EXAMPLE_H
#define RQ_TESTS_STORE_BY_EXAMPLE_H

#include "by_hand.h"

typedef struct fixture {
    by_hand world;
    uint64_t seqid; /* sequence id of the last cell */
    rq_read_ctx ctx;
    char text[4096];
} fixture;

/* Five versions, blocks of 64 KB, a ROW bloom. */
rq_family_schema family(const char *name);
fixture *make(const rq_family_schema *families, size_t count);
void drop(fixture *f);

/* --- writes, each with the next sequence id --------------------------------------------------- */
void add(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type,
         const char *value);
void put(fixture *f, const char *row, const char *qualifier, int64_t ts, const char *value);
void put_ttl(fixture *f, const char *row, const char *qualifier, int64_t ts, int64_t ttl_ms);
void del(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type);
void flush(fixture *f);
void compact(fixture *f, bool major);

/* --- reads ------------------------------------------------------------------------------------ */
rq_scan everything(void);
rq_scan get_row(const char *row);
/* The texts are valid until the next call. */
const char *describe(fixture *f, const rq_cellblock *out);
const char *read_all(fixture *f, const rq_scan *scan);
const char *raw(fixture *f);
const char *all(fixture *f);

#endif
