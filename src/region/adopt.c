/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of a cluster's ended servers. A log is read once for all regions that will be opened here
 * (rq_engine_adopt): their records wait in buckets, as those of a standalone server's log do
 * (recover.c). A region that is opened reads by itself the logs whose records are in no bucket: logs
 * that were not adopted, and those of a bucket that became too large.
 */
#include "region/engine_priv.h"
#include "region/owned.h"
#include "wal/sealed.h"

#include <stdlib.h>

/* --- adopting a log ------------------------------------------------------------------------------ */

typedef struct adoption {
    rq_engine *engine;
    rq__bucket **buckets; /* sorted by name */
    size_t count;
    size_t bytes;                      /* of their records */
    size_t others_bytes, looked_bytes; /* of other records in memory; `bytes` when it looked */
    uint64_t recovered;
} adoption;

#define LOOK_EVERY ((size_t)1024 * 1024)

static int compare_buckets(const void *a, const void *b)
{
    return strcmp((*(rq__bucket *const *)a)->encoded, (*(rq__bucket *const *)b)->encoded);
}

static rq__bucket *bucket_of(const adoption *a, rq_slice encoded)
{
    size_t low = 0, high = a->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = rq_slice_compare(rq_slice_cstr(a->buckets[middle]->encoded), encoded);
        if (c == 0) return a->buckets[middle];
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Memory is short: these records are read again by their region. */
static void drop_records(adoption *a, rq__bucket *b)
{
    a->bytes -= b->records.len;
    a->looked_bytes = 0;
    rq_buf_clear(&b->records);
    b->by_index = true;
}

/* At what other regions hold; from time to time, so that the lock is not taken for each record. */
static void look(adoption *a)
{
    rq__recovery *v = &a->engine->recovery;
    pthread_mutex_lock(&v->lock);
    a->others_bytes = v->bytes;
    pthread_mutex_unlock(&v->lock);
    a->looked_bytes = a->bytes;
}

static bool is_too_much(adoption *a)
{
    if (a->bytes >= a->looked_bytes + LOOK_EVERY) look(a);
    return a->others_bytes + a->bytes > a->engine->recovery.bytes_max;
}

static rq_err add_record(adoption *a, const rq_wal_record *r, rq_error *why)
{
    rq__bucket *b = bucket_of(a, r->region);
    bool needed;
    if (b == NULL) return RQ_OK;
    if (r->sequence_id > b->highest) b->highest = r->sequence_id;
    if (r->kind != RQ_WAL_EDIT) return RQ_OK;
    RQ_TRY(rq__recovery_take_nonce(a->engine, r, why));
    size_t before = b->records.len;
    RQ_TRY(rq__bucket_add(b, r, &needed, why));
    a->bytes += b->records.len - before;
    a->recovered += needed;
    if (is_too_much(a)) drop_records(a, b);
    return RQ_OK;
}

static rq_err read_log(adoption *a, const char *server_name, rq_error *why)
{
    rq_wal_sealed *log;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_sealed_open(a->engine->cluster->shared, server_name, 0, &log, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK; /* nobody needs it */
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    rq_wal_record r;
    while ((rc = rq_wal_sealed_next(log, &r, why)) == RQ_OK)
        if ((rc = add_record(a, &r, why)) != RQ_OK) break;
    rq_wal_sealed_close(log);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* A new bucket, or the one left by the adoption of another log. */
static rq_err bucket_take(rq_engine *e, const char *encoded, const char *server_name,
                          rq__bucket **ret, rq_error *why)
{
    rq__adopted *a = calloc(1, sizeof *a);
    if (a == NULL) return rq_no_memory(why);
    memcpy(a->name, server_name, strlen(server_name) + 1);
    rq__bucket *b = rq__recovery_detach(&e->recovery, encoded);
    rq_err rc = RQ_OK;
    if (b == NULL) rc = rq__bucket_new(e, rq_slice_cstr(encoded), (rq_slice){0}, &b, why);
    if (rc != RQ_OK) {
        free(a);
        return rc;
    }
    a->next = b->adopted;
    b->adopted = a;
    *ret = b;
    return RQ_OK;
}

/* If the adoption of another log has put in a bucket of the region meanwhile, this bucket is freed, and the
 * region reads its logs itself. */
static void put_in(adoption *a)
{
    rq__recovery *v = &a->engine->recovery;
    for (size_t i = 0; i < a->count; i++)
        if (!rq__recovery_attach_first(v, a->buckets[i])) rq__bucket_free(a->buckets[i]);
    pthread_mutex_lock(&v->lock);
    v->recovered += a->recovered;
    pthread_mutex_unlock(&v->lock);
}

rq_err rq_engine_adopt(rq_engine *e, const char *server_name, const char *const *encoded,
                       size_t count, rq_error *why)
{
    RQ_ASSERT(e->cluster != NULL);
    adoption a = {.engine = e, .buckets = calloc(count + 1, sizeof(rq__bucket *))};
    rq_err rc = a.buckets == NULL ? rq_no_memory(why) : RQ_OK;
    if (strlen(server_name) > RQ_SHARED_NAME_MAX)
        rc = rq_fail(why, RQ_E_INVALID, "the server name is too long");
    for (; a.count < count && rc == RQ_OK; a.count += rc == RQ_OK)
        rc = bucket_take(e, encoded[a.count], server_name, &a.buckets[a.count], why);
    for (size_t i = 0; i < a.count; i++)
        a.bytes += a.buckets[i]->records.len;
    if (rc == RQ_OK && count > 0) {
        qsort(a.buckets, a.count, sizeof *a.buckets, compare_buckets);
        look(&a);
        rc = read_log(&a, server_name, why);
    }
    if (rc == RQ_OK) put_in(&a);
    for (size_t i = 0; i < a.count && rc != RQ_OK; i++)
        rq__bucket_free(a.buckets[i]); /* its region reads the logs itself */
    free(a.buckets);
    return rc;
}

/* --- a region's records -------------------------------------------------------------------------- */

static bool has_adopted(const rq__bucket *b, const char *name)
{
    if (b == NULL || b->by_index) return false;
    const rq__adopted *a = b->adopted;
    while (a != NULL && strcmp(a->name, name) != 0)
        a = a->next;
    return a != NULL;
}

/* The region's records of one log. */
static rq_err read_alone(rq_region *r, const rq__owned_log *l,
                         rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                         rq_error *why)
{
    rq_wal_sealed *log;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_sealed_open(r->engine->cluster->shared, l->name, l->from, &log, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    rq_slice encoded = rq_slice_cstr(r->info.encoded);
    rq_wal_record record;
    while ((rc = rq_wal_sealed_next(log, &record, why)) == RQ_OK)
        if (rq_slice_eq(record.region, encoded) && (rc = callback(ctx, &record)) != RQ_OK) break;
    rq_wal_sealed_close(log);
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__recovery_take_logs(rq_region *r, rq_err (*callback)(void *ctx, const rq_wal_record *r),
                              void *ctx, rq_error *why)
{
    const rq__owned *o = r->owned;
    rq__bucket *b = rq__recovery_detach(&r->engine->recovery, r->info.encoded);
    rq_err rc = RQ_OK;
    for (size_t i = 0; i + 1 < o->log_count && rc == RQ_OK; i++)
        if (!has_adopted(b, o->logs[i].name)) rc = read_alone(r, &o->logs[i], callback, ctx, why);
    if (rc == RQ_OK && b != NULL && !b->by_index) rc = rq__bucket_deliver(b, callback, ctx);
    if (b != NULL && b->highest > r->staged_seqid) r->staged_seqid = b->highest;
    /* If this failed, the next opening reads the logs itself. */
    if (b != NULL) rq__bucket_free(b);
    return rc;
}
