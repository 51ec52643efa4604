/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that list the catalog; see listing.h. */
#include "service/listing.h"

#include "rpc/long_reply.h"
#include "service/encode.h"
#include "service/master_priv.h"

/* Tables and regions that are listed on the loop: in about a tenth of a millisecond. */
#define LISTED_AT_ONCE 512

static bool catalog_is_large(const rq_catalog *c)
{
    const rq_catalog_table *const *tables;
    const rq_namespace *const *namespaces;
    size_t table_count, n;
    rq_catalog_tables(c, &tables, &table_count);
    rq_catalog_namespaces(c, &namespaces, &n);
    n += table_count;
    for (size_t i = 0; i < table_count && n <= LISTED_AT_ONCE; i++)
        n += tables[i]->region_count;
    return n > LISTED_AT_ONCE;
}

static rq_err copy_packed(rq_call *call, rq_buf *ret)
{
    const rq__listing *l = call->user;
    RQ_TRY(rq_arena_account(&call->arena, l->packed.len));
    return rq_buf_append(ret, l->packed.ptr, l->packed.len);
}

/* A long response (of 100,000 regions: tens of megabytes) is copied out of the arena on RQ_POOL_CODEC, which also
 * clears the arena; the loop sends the copy as it is. */
static void end(rq__listing *l)
{
    if (l->rc != RQ_OK) {
        rq_call_fail_why(l->call, l->rc, &l->why);
    } else if (l->packed.len > RQ__PACKED_AT_ONCE) {
        l->call->user = l;
        rq_call_reply_long(l->call, copy_packed);
    } else {
        rq_call_reply_packed(l->call, l->packed);
    }
}

static void list_apart(rq__apart *a)
{
    rq__listing *l = RQ_CONTAINER_OF(a, rq__listing, apart);
    rq_epoch *epoch = l->services->env.epoch;
    rq_epoch_member m = {0};
    rq_call_decoding(l->call, false); /* an answer is charged, and not refused like a request */
    rq_epoch_pin(epoch, &m);
    l->rc = l->list(l, &l->packed);
    rq_epoch_unpin(epoch, &m);
}

static void listed_apart(rq__apart *a)
{
    end(RQ_CONTAINER_OF(a, rq__listing, apart));
}

void rq__listing_start(rq__listing *l, rq_admin_services *a, rq_call *call,
                       rq_err (*list)(rq__listing *l, rq_slice *ret))
{
    l->services = a;
    l->call = call;
    l->list = list;
    if (l->is_long || catalog_is_large(a->catalog)) {
        rq__apart_start(&l->apart, a->env.executor, call, list_apart, listed_apart);
        return;
    }
    l->rc = list(l, &l->packed);
    end(l);
}

static void reply(rq_admin_services *a, rq_call *call, bool is_long,
                  rq_err (*list)(rq__listing *l, rq_slice *ret))
{
    rq__listing *l = rq_arena_calloc(&call->arena, 1, sizeof *l);
    if (l == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    l->is_long = is_long;
    rq__listing_start(l, a, call, list);
}

void rq__listing_reply(rq_admin_services *a, rq_call *call,
                       rq_err (*list)(rq__listing *l, rq_slice *ret))
{
    reply(a, call, false, list);
}

void rq__listing_reply_long(rq_admin_services *a, rq_call *call,
                            rq_err (*list)(rq__listing *l, rq_slice *ret))
{
    reply(a, call, true, list);
}

rq_err rq__listing_pack(rq__listing *l, const ProtobufCMessage *m, rq_slice *ret)
{
    *ret = rq__packed(&l->call->arena, m);
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}
