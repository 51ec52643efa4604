/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of records; contract in recover.h. A record in a bucket:
 *
 *    be64 sequence id | be64 write time | be64 nonce group | be64 nonce | be32 length | payload
 *
 * The log has verified the bytes; the cells inside are parsed strictly. */
#include "region/engine_priv.h"
#include "region/owned.h"

#include <stdlib.h>

#define RECORD_HEADER (8 * 4 + 4)

void rq__recovery_init(rq__recovery *v, size_t bytes_max)
{
    *v = (rq__recovery){.bytes_max = bytes_max};
    pthread_mutex_init(&v->lock, NULL);
}

void rq__bucket_free(rq__bucket *b)
{
    rq_buf_clear(&b->table);
    rq_buf_clear(&b->records);
    while (b->adopted != NULL) {
        rq__adopted *a = b->adopted;
        b->adopted = a->next;
        free(a);
    }
    rq_arena_clear(&b->arena);
    free(b);
}

void rq__recovery_clear(rq__recovery *v)
{
    for (size_t i = 0; i < RQ__BUCKET_CHAINS; i++) {
        rq__bucket *next;
        for (rq__bucket *b = v->chains[i]; b != NULL; b = next) {
            next = b->next;
            rq__bucket_free(b);
        }
    }
    pthread_mutex_destroy(&v->lock);
}

static rq__bucket **chain_of(rq__recovery *v, rq_slice encoded)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < encoded.len; i++)
        h = (h ^ encoded.ptr[i]) * 16777619u;
    return &v->chains[h % RQ__BUCKET_CHAINS];
}

/* REQUIRES: lock. */
static rq__bucket **find(rq__recovery *v, rq_slice encoded)
{
    rq__bucket **at = chain_of(v, encoded);
    while (*at != NULL && !rq_slice_eq(rq_slice_cstr((*at)->encoded), encoded))
        at = &(*at)->next;
    return at;
}

rq_err rq__bucket_new(rq_engine *e, rq_slice encoded, rq_slice table, rq__bucket **ret,
                      rq_error *why)
{
    if (encoded.len > RQ_WAL_REGION_NAME_MAX)
        return rq_fail(why, RQ_E_CORRUPT,
                       "a record of the write-ahead log has an encoded region name of %zu bytes",
                       encoded.len);
    rq__bucket *b = calloc(1, sizeof *b);
    if (b == NULL) return rq_no_memory(why);
    memcpy(b->encoded, encoded.ptr, encoded.len);
    rq_err rc = rq_buf_append(&b->table, table.ptr, table.len);
    if (rc == RQ_OK) {
        uint64_t generation;
        rq_error inner = {0};
        rc = rq__manifest_read_any(e, b->encoded, &b->arena, &b->manifest, &generation, &inner);
        /* No manifest: the region was never flushed, and all its records are needed; or it was
         * removed, and rq_engine_recovered drops them. Manifest damaged: all its records are needed
         * until the manifest is repaired; the region's opening reports it, and other regions are
         * not affected. */
        b->by_index = rc == RQ_E_CORRUPT;
        b->has_manifest = rc != RQ_E_NOT_FOUND;
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND && rc != RQ_E_CORRUPT)
            (void)rq_fail(why, rc, "%s", inner.message);
        else
            rc = RQ_OK;
    }
    if (rc != RQ_OK) {
        rq__bucket_free(b);
        return rc;
    }
    *ret = b;
    return RQ_OK;
}

/* --- reading the log at start ----------------------------------------------------------------- */

/* Whether some cell of the record is in no file yet. */
static rq_err is_needed(const rq__bucket *b, const rq_wal_record *r, bool *ret, rq_error *why)
{
    *ret = false;
    rq_cursor c = rq_cursor_of(r->payload);
    while (!*ret) {
        rq_cell cell;
        rq_err rc = rq_cellblock_next_stored(&c, &cell, why);
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) return rc;
        const rq__manifest_family *f = rq__manifest_family_of(&b->manifest, rq_cell_family(&cell));
        /* A family missing in the manifest was removed after the record was written. */
        *ret = f == NULL ? !b->has_manifest : r->sequence_id > f->flushed;
    }
    return RQ_OK;
}

static rq_err append_record(rq_buf *out, const rq_wal_record *r)
{
    RQ_TRY(rq_buf_reserve(out, RECORD_HEADER + r->payload.len));
    RQ_TRY(rq_buf_append_be64(out, r->sequence_id));
    RQ_TRY(rq_buf_append_be64(out, (uint64_t)r->write_time_ms));
    RQ_TRY(rq_buf_append_be64(out, r->nonce_group));
    RQ_TRY(rq_buf_append_be64(out, r->nonce));
    RQ_TRY(rq_buf_append_be32(out, (uint32_t)r->payload.len));
    return rq_buf_append(out, r->payload.ptr, r->payload.len);
}

/* Classes of buckets by size: class c contains the buckets of 2^(c-1) to 2^c - 1 bytes, class 0 the empty ones. */
#define CLASSES 65

static unsigned class_of(const rq__bucket *b)
{
    return b->records.len == 0 ? 0 : 64 - (unsigned)__builtin_clzll(b->records.len);
}

/* The greatest class c for which the buckets of class c and above have at least `bytes` bytes together. *rest: how many
 * of these bytes are to be taken from buckets of class c itself. */
static unsigned find_class(const rq__recovery *v, size_t bytes, size_t *rest)
{
    size_t sums[CLASSES] = {0};
    for (size_t i = 0; i < RQ__BUCKET_CHAINS; i++)
        for (const rq__bucket *b = v->chains[i]; b != NULL; b = b->next)
            sums[class_of(b)] += b->records.len;
    unsigned c = CLASSES - 1;
    for (; c > 0 && sums[c] < bytes; c--)
        bytes -= sums[c];
    *rest = bytes;
    return c;
}

/* Drops the records of the largest buckets; their regions will read the log themselves. At least an eighth of the
 * memory becomes free, so that not every further record makes this function visit all buckets. */
static void spill(rq__recovery *v)
{
    size_t rest;
    unsigned least = find_class(v, v->bytes - (v->bytes_max - v->bytes_max / 8), &rest);
    for (size_t i = 0; i < RQ__BUCKET_CHAINS; i++)
        for (rq__bucket *b = v->chains[i]; b != NULL; b = b->next) {
            size_t len = b->records.len;
            unsigned c = class_of(b);
            if (len == 0 || c < least || (c == least && rest == 0)) continue;
            if (c == least) rest -= rest < len ? rest : len;
            v->bytes -= len;
            rq_buf_clear(&b->records);
            b->by_index = true;
        }
}

typedef struct collector {
    rq_engine *engine;
    rq_error *why;
} collector;

/* Takes the nonces of all records, in log order; a region's replay determines which of them are in
 * the log only. */
rq_err rq__recovery_take_nonce(rq_engine *e, const rq_wal_record *r, rq_error *why)
{
    rq__nonce_id id;
    if (r->nonce == 0 || !e->nonces_enabled) return RQ_OK;
    rq_err rc = rq__nonces_add(e->nonces, r->nonce_group, r->nonce, r->sequence_id, &id);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "nonces: %s", rq_err_text(rc));
}

rq_err rq__bucket_add(rq__bucket *b, const rq_wal_record *r, bool *ret_needed, rq_error *why)
{
    RQ_TRY(is_needed(b, r, ret_needed, why));
    b->count += *ret_needed;
    return *ret_needed && !b->by_index ? append_record(&b->records, r) : RQ_OK;
}

static rq_err collect(void *ctx, const rq_wal_record *r)
{
    collector *c = ctx;
    rq__recovery *v = &c->engine->recovery;
    if (r->kind != RQ_WAL_EDIT) return RQ_OK;
    RQ_TRY(rq__recovery_take_nonce(c->engine, r, c->why));
    rq__bucket **at = find(v, r->region);
    if (*at == NULL) RQ_TRY(rq__bucket_new(c->engine, r->region, r->table, at, c->why));
    rq__bucket *b = *at;
    bool needed;
    size_t before = b->records.len;
    RQ_TRY(rq__bucket_add(b, r, &needed, c->why));
    v->recovered += needed;
    v->bytes += b->records.len - before;
    if (v->bytes > v->bytes_max) spill(v);
    return RQ_OK;
}

rq_err rq__recovery_collect(rq_engine *e, rq_error *why)
{
    collector c = {e, why};
    rq_err rc = rq_wal_replay(e->wal, collect, &c, why);
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "cannot read the write-ahead log: %s", rq_err_text(rc));
}

/* --- opening regions -------------------------------------------------------------------------- */

rq_err rq__bucket_deliver(const rq__bucket *b,
                          rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&b->records));
    while (rq_cursor_left(&c) > 0) {
        rq_wal_record r = {.kind = RQ_WAL_EDIT, .region = rq_slice_cstr(b->encoded)};
        uint64_t write_time;
        uint32_t len;
        bool ok = rq_cursor_be64(&c, &r.sequence_id) && rq_cursor_be64(&c, &write_time) &&
                  rq_cursor_be64(&c, &r.nonce_group) && rq_cursor_be64(&c, &r.nonce) &&
                  rq_cursor_be32(&c, &len) && rq_cursor_bytes(&c, len, &r.payload);
        RQ_ASSERT(ok); /* our own bytes */
        r.write_time_ms = (int64_t)write_time;
        RQ_TRY(callback(ctx, &r));
    }
    return RQ_OK;
}

rq__bucket *rq__recovery_detach(rq__recovery *v, const char *encoded)
{
    pthread_mutex_lock(&v->lock);
    rq__bucket **at = find(v, rq_slice_cstr(encoded));
    rq__bucket *b = *at;
    if (b != NULL) {
        *at = b->next;
        v->bytes -= b->records.len;
    }
    pthread_mutex_unlock(&v->lock);
    return b;
}

bool rq__recovery_attach_first(rq__recovery *v, rq__bucket *b)
{
    pthread_mutex_lock(&v->lock);
    rq__bucket **at = find(v, rq_slice_cstr(b->encoded));
    bool first = *at == NULL;
    if (first) {
        b->next = NULL;
        *at = b;
        v->bytes += b->records.len;
    }
    pthread_mutex_unlock(&v->lock);
    return first;
}

/* REQUIRES: the region has none. */
static void attach(rq__recovery *v, rq__bucket *b)
{
    bool first = rq__recovery_attach_first(v, b);
    RQ_ASSERT(first);
    (void)first;
}

rq_err rq__recovery_take(rq_engine *e, const char *encoded,
                         rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                         rq_error *why)
{
    rq__bucket *b = rq__recovery_detach(&e->recovery, encoded);
    if (b == NULL)
        return atomic_load(&e->recovery.reread_all)
                   ? rq_wal_replay_region(e->wal, encoded, callback, ctx, why)
                   : RQ_OK;
    rq_err rc = b->by_index ? rq_wal_replay_region(e->wal, encoded, callback, ctx, why)
                            : rq__bucket_deliver(b, callback, ctx);
    if (rc == RQ_OK)
        rq__bucket_free(b);
    else
        attach(&e->recovery, b); /* the next opening begins again */
    return rc;
}

void rq__recovery_reread(rq_engine *e, const char *encoded)
{
    rq__bucket *old = rq__recovery_detach(&e->recovery, encoded);
    rq__bucket *b = old != NULL ? old : calloc(1, sizeof *b);
    if (b == NULL) {
        atomic_store(&e->recovery.reread_all, true);
        return;
    }
    rq_buf_clear(&b->records);
    memcpy(b->encoded, encoded, strlen(encoded));
    b->by_index = true;
    b->has_manifest = true;
    attach(&e->recovery, b);
}

void rq__recovery_drop(rq_engine *e, const char *encoded)
{
    rq__bucket *b = rq__recovery_detach(&e->recovery, encoded);
    if (b != NULL) rq__bucket_free(b);
    rq_wal_forget(e->wal, encoded);
}

/* --- what nobody took ------------------------------------------------------------------------- */

uint64_t rq_engine_recovered(rq_engine *e,
                             rq_leftover_fate (*decide)(void *context, const rq_leftover *left),
                             void *context)
{
    rq__recovery *v = &e->recovery;
    uint64_t dropped = 0;
    rq__bucket *all = NULL;
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < RQ__BUCKET_CHAINS; i++) {
        rq__bucket *next;
        for (rq__bucket *b = v->chains[i]; b != NULL; b = next) {
            next = b->next;
            b->next = all;
            all = b;
        }
        v->chains[i] = NULL;
    }
    v->bytes = 0;
    pthread_mutex_unlock(&v->lock);
    while (all != NULL) {
        rq__bucket *b = all;
        all = b->next;
        rq_leftover left = {
            .table = rq_buf_slice(&b->table), .records = b->count, .has_manifest = b->has_manifest};
        memcpy(left.encoded, b->encoded, sizeof left.encoded - 1);
        /* All records of the region are in files, so the bucket can be dropped. */
        bool drop = b->count == 0 && !b->by_index;
        if (!drop && decide(context, &left) == RQ_LEFTOVER_DROP) {
            drop = true;
            dropped += b->count;
        }
        if (drop) {
            rq_wal_forget(e->wal, b->encoded);
            rq__bucket_free(b);
        } else {
            attach(v, b);
        }
    }
    atomic_fetch_add_explicit(&e->dropped_records, dropped, memory_order_relaxed);
    return dropped;
}
