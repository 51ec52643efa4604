/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a descriptor; contract in schema.h.
 *
 * HBase stores a descriptor as a map of byte strings and parses numbers when it needs them, and a
 * client reads back the strings it wrote. So here too the maps are authoritative, and the parsed
 * fields beside them are filled once.
 *
 * The whole descriptor, including its protobuf form, is in one arena that is freed with the last
 * reference. */
#include "descriptor/descriptor_priv.h"

#include "base/pb_arena.h"

#include <stdatomic.h>
#include <stdlib.h>

#define SCHEMA_BYTES_MAX ((size_t)64 * 1024 * 1024) /* a larger message is not a descriptor */

typedef struct holder {
    rq_table_schema schema; /* first: the public pointer */
    _Atomic unsigned refs;
    rq_arena arena;
    rq_slice pb;
} holder;

static holder *holder_of(const rq_table_schema *s)
{
    return (holder *)(uintptr_t)s;
}

static void holder_free(holder *h)
{
    rq_arena_clear(&h->arena);
    free(h);
}

rq_err rq_table_schema_parse(rq_slice pb, rq_table_schema **ret, rq_error *why)
{
    if (pb.len > SCHEMA_BYTES_MAX)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor of %zu bytes", pb.len);
    holder *h = calloc(1, sizeof *h);
    if (h == NULL) return rq_no_memory(why);
    atomic_init(&h->refs, 1);
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &h->arena);
    Pb__TableSchema *m = pb__table_schema__unpack(&memory.allocator, pb.len, pb.ptr);
    rq_err rc;
    if (m == NULL && memory.exhausted)
        rc = RQ_E_NO_MEMORY;
    else if (m == NULL)
        rc = rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor is not a TableSchema message");
    else
        rc = rq__schema_take(&h->arena, m, &h->schema, why);
    if (rc == RQ_OK) rc = rq__schema_pack(&h->arena, &h->schema, &h->pb);
    if (rc != RQ_OK) {
        holder_free(h);
        return rq_fail(why, rc, "%s", rq_err_text(rc)); /* keeps an earlier message */
    }
    *ret = &h->schema;
    return RQ_OK;
}

rq_slice rq_table_schema_pb(const rq_table_schema *s)
{
    return holder_of(s)->pb;
}

rq_table_schema *rq_table_schema_ref(rq_table_schema *s)
{
    atomic_fetch_add_explicit(&holder_of(s)->refs, 1, memory_order_relaxed);
    return s;
}

void rq_table_schema_unref(rq_table_schema *s)
{
    if (s == NULL) return;
    if (atomic_fetch_sub_explicit(&holder_of(s)->refs, 1, memory_order_acq_rel) == 1)
        holder_free(holder_of(s));
}

rq_slice rq_table_name_join(rq_arena *a, rq_slice ns, rq_slice qualifier)
{
    if (rq_slice_eq(ns, RQ_SLICE_LIT("default")))
        return qualifier.len > 0 ? qualifier : RQ_SLICE_LIT("");
    size_t len = ns.len + 1 + qualifier.len;
    uint8_t *p = rq_arena_alloc(a, len);
    if (p == NULL) return (rq_slice){NULL, 0};
    if (ns.len > 0) memcpy(p, ns.ptr, ns.len);
    p[ns.len] = ':';
    if (qualifier.len > 0) memcpy(p + ns.len + 1, qualifier.ptr, qualifier.len);
    return rq_slice_of(p, len);
}

const rq_family_schema *rq_table_schema_family(const rq_table_schema *s, rq_slice name)
{
    size_t lo = 0;
    size_t hi = s->family_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = rq_slice_compare(s->families[mid].name, name);
        if (c == 0) return &s->families[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
