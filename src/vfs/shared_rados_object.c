/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are swapped. The extended attribute `generation` is compared in the operation that
 * replaces bytes and attribute: not the version that RADOS keeps, because a pool that was restored
 * has other versions.
 *
 * An answer may be lost, and librados then sends the operation again. The OSD recognizes it, unless
 * some thousand other operations came in between: then our own success looks like another server's
 * swap. So a record has the tokens of its last writers (shared_format.c), and a swap that seems to
 * have failed is decided by reading. A removed object keeps its generation, and its name in the
 * pool.
 */
#include "vfs/shared_rados_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ATTRIBUTE "generation"
#define RECORD_OVERHEAD 1024

static void object_name(const char *name, char ret[static RQ__RADOS_NAME_MAX])
{
    snprintf(ret, RQ__RADOS_NAME_MAX, "object/%s", name);
}

/* ret->generation 0: the name was never used. */
static rq_err newest(rq__rados *r, const char *object, rq_arena *arena, rq__object_record *ret,
                     rq_error *why)
{
    rq_slice file;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__rados_read_all(r, object, arena, &file, &detail);
    *ret = (rq__object_record){.generation = 0};
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    rc = rq__object_decode(file, ret, &detail);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", object, detail.message);
}

static uint64_t generation_of(const rq__object_record *record)
{
    return record->removed ? 0 : record->generation;
}

rq_err rq__rados_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                            uint64_t *ret_generation, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    rq__object_record record;
    object_name(name, object);
    RQ_TRY(newest(rq__rados_of(s), object, arena, &record, why));
    if (generation_of(&record) == 0)
        return rq_fail(why, RQ_E_NOT_FOUND, "object %s does not exist", name);
    *ret = record.bytes;
    *ret_generation = record.generation;
    return RQ_OK;
}

/* Replaces generation `from`; 0: creates the object. */
static int replace(rq__rados *r, const char *object, uint64_t from, rq_slice file)
{
    char was[24], is[24];
    snprintf(was, sizeof was, "%llu", (unsigned long long)from);
    snprintf(is, sizeof is, "%llu", (unsigned long long)from + 1);
    rados_write_op_t op = rados_create_write_op();
    if (from == 0)
        rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    else
        rados_write_op_cmpxattr(op, ATTRIBUTE, LIBRADOS_CMPXATTR_OP_EQ, was, strlen(was));
    rados_write_op_write_full(op, (const char *)file.ptr, file.len);
    rados_write_op_setxattr(op, ATTRIBUTE, is, strlen(is));
    return rq__rados_write(r, object, op);
}

/* Finds the outcome of our swap to `generation`, which ended with the error `rc`. While the object
 * is at a lower generation, our swap may still be executed: returns `rc`. Afterwards it cannot, and
 * the history shows whose swap made this generation. */
static rq_err outcome_of_swap(rq__rados *r, const char *object, uint64_t generation, uint64_t token,
                              int rc, rq_arena *arena, rq_error *why)
{
    rq__object_record now;
    RQ_TRY(newest(r, object, arena, &now, why));
    if (now.generation < generation) return rq__rados_result(rc, "replace", object, why);
    uint64_t since = now.generation - generation;
    if (since >= now.history_count)
        return rq_fail(why, RQ_E_IO, "it is unknown whether generation %llu was written",
                       (unsigned long long)generation);
    if (now.history[since] == token) return RQ_OK;
    return rq_fail(why, RQ_E_CONFLICT, "the object is at generation %llu",
                   (unsigned long long)now.generation);
}

static rq_err swap(rq__rados *r, const char *object, uint64_t expected, const rq_slice *bytes,
                   rq_arena *arena, uint64_t *ret_generation, rq_error *why)
{
    rq__object_record record;
    rq_slice file;
    uint64_t token = r->executor->random(r->executor);
    RQ_TRY(newest(r, object, arena, &record, why));
    if (generation_of(&record) != expected)
        return rq_fail(why, RQ_E_CONFLICT, "the object is at generation %llu, not %llu",
                       (unsigned long long)generation_of(&record), (unsigned long long)expected);
    uint64_t from = record.generation;
    record.generation++;
    record.removed = bytes == NULL;
    record.bytes = bytes == NULL ? (rq_slice){NULL, 0} : *bytes;
    if (record.history_count < RQ__HISTORY_MAX) record.history_count++;
    memmove(record.history + 1, record.history,
            (record.history_count - 1) * sizeof record.history[0]);
    record.history[0] = token;
    if (rq__object_encode(arena, &record, &file) != RQ_OK) return rq_no_memory(why);
    int rc = replace(r, object, from, file);
    if (rc < 0) RQ_TRY(outcome_of_swap(r, object, record.generation, token, rc, arena, why));
    *ret_generation = record.generation;
    return RQ_OK;
}

rq_err rq__rados_object_cas(rq_shared *s, const char *name, uint64_t expected,
                            const rq_slice *bytes, uint64_t *ret_generation, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    rq_arena arena = {0};
    rq_error detail = {.code = RQ_OK};
    if (bytes != NULL && bytes->len > RQ__RADOS_BYTES_MAX - RECORD_OVERHEAD)
        return rq_fail(why, RQ_E_INVALID, "object %s of %zu bytes is too long for Ceph", name,
                       bytes->len);
    object_name(name, object);
    rq_err rc = swap(rq__rados_of(s), object, expected, bytes, &arena, ret_generation, &detail);
    rq_arena_clear(&arena);
    if (rc == RQ_OK) return RQ_OK;
    return rq_fail(why, rc, "cannot replace object %s: %s", name, detail.message);
}
