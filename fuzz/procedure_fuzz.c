/* SPDX-License-Identifier: Apache-2.0 */
/* A procedure's record: a record that decodes can be encoded, and decodes to the same procedure. */
#include "catalog/procedure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(rq_slice a, rq_slice b)
{
    RQ_ASSERT(rq_slice_eq(a, b));
}

static void again(const rq__proc *p)
{
    rq_arena arena = {0};
    rq_slice bytes;
    rq__proc q = {0};
    rq_error why = {0};
    RQ_ASSERT(rq__proc_encode(p, &arena, &bytes) == RQ_OK);
    RQ_ASSERT(rq__proc_decode(bytes, &q, &why) == RQ_OK);
    RQ_ASSERT(q.ops == p->ops && q.id == p->id && q.ended == p->ended);
    same(q.ns, p->ns);
    same(q.qualifier, p->qualifier);
    if (!p->ended) {
        same(q.descriptor, p->descriptor);
        RQ_ASSERT(q.region_count == p->region_count && q.prepared == p->prepared);
        RQ_ASSERT(q.old_region_count == p->old_region_count);
        rq_slice more;
        RQ_ASSERT(rq__proc_encode(&q, &arena, &more) == RQ_OK);
        same(more, bytes);
    }
    rq_arena_clear(&q.arena);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq__proc p = {0};
    rq_error why = {0};
    rq_err rc = rq__proc_decode(rq_slice_of(data, size), &p, &why);
    if (rc == RQ_OK)
        again(&p);
    else
        RQ_ASSERT(why.code != RQ_OK || rc == RQ_E_NO_MEMORY);
    rq_arena_clear(&p.arena);
    return 0;
}
