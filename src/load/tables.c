/* SPDX-License-Identifier: Apache-2.0 */
/* The tables a workload needs: their names, how they are split, made and dropped. */
#include "load/load_priv.h"

#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>

rq__table_names rq__table_names_of(const rq__bench *b)
{
    static const char *const tails[] = {"", "_content", "_relations"};
    rq__table_names n = {.count = b->workload->kind == RQ__LOAD_TIMELINE ? 3 : 1};
    for (int i = 0; i < n.count; i++)
        snprintf(n.name[i], sizeof n.name[i], "%.200s%s", b->o->table, tails[i]);
    return n;
}

/* Where region i of n begins: even parts of what the keys cover. */
static void split_key(const rq__bench *b, unsigned i, unsigned n, char out[RQ_ROW_DIGITS + 1])
{
    rq_rows plain = {.hashed = false};
    if (rq__is_app(b)) {
        snprintf(out, RQ_ROW_DIGITS + 1, "%08llu",
                 (unsigned long long)(b->o->records * i / n % 100000000));
        return;
    }
    uint64_t at = b->rows.hashed ? (uint64_t)((double)UINT64_MAX / n * i)
                                 : (uint64_t)((double)b->o->records / n * i);
    rq_rows_digits(&plain, at, out);
}

static rq_err make_table(rq__bench *b, const char *name, bool relations, rq_error *why)
{
    const rq_load_options *o = b->o;
    rq_client_family families[16];
    char(*keys)[RQ_ROW_DIGITS + 1] = calloc(o->regions, sizeof *keys);
    rq_slice *splits = calloc(o->regions, sizeof *splits);
    size_t family_count = rq__is_app(b) ? 1 : o->families;
    rq_error ignored = {0};
    rq_err rc = RQ_OK;
    if (keys == NULL || splits == NULL) rc = rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < family_count; i++)
        families[i] = (rq_client_family){.name = rq__is_app(b) ? "cf" : b->rows.family_names[i],
                                         .versions = rq__is_app(b) ? 1000 : 1,
                                         .compression = o->compression,
                                         .encoding = o->encoding,
                                         .bloom = o->bloom,
                                         .block_bytes = o->block_bytes};
    if (relations) families[0].name = "fans";
    for (unsigned i = 1; rc == RQ_OK && i < o->regions; i++) {
        split_key(b, i, o->regions, keys[i]);
        splits[i - 1] = rq_slice_cstr(keys[i]);
    }
    if (rc == RQ_OK) {
        rc = rq_client_drop_table(b->client, name, &ignored);
        if (rc == RQ_E_TABLE_NOT_FOUND) rc = RQ_OK;
        if (rc != RQ_OK) rc = rq_fail(why, rc, "%s", ignored.message);
    }
    if (rc == RQ_OK)
        rc = rq_client_create_table(b->client, name, families, family_count, splits, o->regions - 1,
                                    why);
    free(keys);
    free(splits);
    return rc;
}

rq_err rq__make_tables(rq__bench *b, rq_error *why)
{
    rq_client_table **tables[] = {&b->table, &b->content, &b->relations};
    rq__table_names n = rq__table_names_of(b);
    for (int i = 0; i < n.count; i++) {
        if (!b->o->existing) RQ_TRY(make_table(b, n.name[i], i == 2, why));
        RQ_TRY(rq_client_table_open(b->client, n.name[i], tables[i], why));
    }
    return RQ_OK;
}

rq_err rq__drop_tables(rq__bench *b, rq_error *why)
{
    rq__table_names n = rq__table_names_of(b);
    for (int i = 0; i < n.count; i++)
        RQ_TRY(rq_client_drop_table(b->client, n.name[i], why));
    return RQ_OK;
}
