/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a master in the host's own process: they are executed and report before they return. */
#include "host/calls.h"

#include "base/parallel.h"
#include "host/split_policy.h"
#include "region/mob_cleaner.h"

#include <stdlib.h>

void rq_region_call_report(rq_region_call *call, rq_err rc, const rq_error *why)
{
    call->rc = rc;
    if (rc != RQ_OK && why != NULL && why->code != RQ_OK) {
        call->why = malloc(sizeof *call->why);
        if (call->why != NULL) *call->why = *why;
    }
    call->done(call); /* the call is its owner's now */
}

/* --- what each kind does; `r` NULL: it works without ------------------------------------------- */

typedef rq_err work_fn(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why);

static rq_err do_open(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)r;
    return rq__host_open(h, call->info, call->schema, &call->open_seqnum, why);
}

static rq_err do_close(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    int64_t seqnum = 0;
    (void)r;
    rq_err rc = rq_host_close(h, call->info, call->abandon, &seqnum, why);
    if (rc == RQ_OK && call->moves_to != NULL)
        rq__host_moved(h, call->info->encoded, call->moves_to, seqnum);
    return rc;
}

/* The files are in this process's reach already. */
static rq_err do_warm(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)h;
    (void)r;
    (void)call;
    (void)why;
    return RQ_OK;
}

static rq_err do_flush(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)h;
    if (call->family_count == 0) return rq_region_flush(r, (rq_slice){NULL, 0}, NULL, why);
    for (size_t i = 0; i < call->family_count; i++)
        RQ_TRY(rq_region_flush(r, call->families[i], NULL, why));
    return RQ_OK;
}

static rq_err do_look(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    call->mergeable = !rq_region_has_references(r);
    call->splittable = rq_host_splittable(h, r);
    if (!call->splittable || !call->flush) return RQ_OK;
    return rq_host_split_point(h, r, true, call->arena, &call->split_row, why);
}

static rq_err do_compact(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)h;
    if (rq_region_is_closing(r)) return RQ_OK; /* another time */
    for (size_t i = 0; i < call->family_count; i++)
        RQ_TRY(rq_region_compact(r, call->families[i], true, why));
    return RQ_OK;
}

static rq_err do_drop_references(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)h;
    (void)call;
    return rq_region_drop_stale_references(r, why);
}

static rq_err do_list_files(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)h;
    return rq_region_files_take(r, call->flush, call->arena, &call->files, why);
}

static rq_err do_list_mob_writes(rq_host *h, rq_region *r, rq_region_call *call, rq_error *why)
{
    (void)r;
    return rq_mob_writes(rq_host_engine(h), call->arena, &call->mob_writes, &call->mob_write_count,
                         why);
}

/* How a call ends if the region is not open here. */
typedef enum closed { WORKS, FAILS, DOES_NOTHING } closed;

static const struct {
    work_fn *work;
    closed closed;
} kinds[RQ_CALL_KINDS] = {
    [RQ_CALL_OPEN] = {do_open, WORKS},
    [RQ_CALL_CLOSE] = {do_close, WORKS},
    [RQ_CALL_WARM] = {do_warm, WORKS},
    [RQ_CALL_FLUSH] = {do_flush, FAILS},
    [RQ_CALL_LOOK] = {do_look, FAILS},
    [RQ_CALL_COMPACT] = {do_compact, DOES_NOTHING},
    [RQ_CALL_DROP_REFERENCES] = {do_drop_references, DOES_NOTHING},
    [RQ_CALL_LIST_FILES] = {do_list_files, FAILS},
    [RQ_CALL_LIST_MOB_WRITES] = {do_list_mob_writes, WORKS},
};

/* --- the table -------------------------------------------------------------------------------- */

static rq_err fail_closed(const rq_host *h, const rq_region_info *info, rq_error *why)
{
    char name[600];
    rq_bytes_to_string(info->name, name, sizeof name);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is not online on %s", name,
                   rq_host_name(h)->text);
}

static rq_err run(rq_host *h, rq_region_call_kind kind, rq_region_call *call, rq_error *why)
{
    if (kinds[kind].closed == WORKS) return kinds[kind].work(h, NULL, call, why);
    rq_region *r = rq_host_ref(h, call->info);
    if (r == NULL && kinds[kind].closed == DOES_NOTHING) return RQ_OK;
    if (r == NULL) return fail_closed(h, call->info, why);
    rq_err rc = kinds[kind].work(h, r, call, why);
    rq_region_unref(r);
    return rc;
}

typedef struct sending {
    rq_host *host;
    rq_region_call_kind kind;
    rq_region_call *list;
} sending;

static void send_one(void *ctx, size_t i)
{
    const sending *s = ctx;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = run(s->host, s->kind, &s->list[i], &why);
    rq_region_call_report(&s->list[i], rc, &why);
}

static void send_all(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    sending s = {.host = ctx, .kind = kind, .list = list};
    rq_executor *ex = rq_engine_env(rq_host_engine(s.host))->executor;
    rq_parallel(ex, count, send_one, &s);
}

static bool load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret)
{
    rq_region *r = rq_host_ref(ctx, info);
    (void)server;
    if (r == NULL) return false;
    rq_region_get_load(r, ret);
    rq_region_unref(r);
    return true;
}

static const rq_server_name *place(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last)
{
    (void)info;
    (void)last;
    return rq_server_name_ref(rq_host_name(ctx));
}

/* No call is outstanding: send returns when all have reported. */
static void stop(void *ctx)
{
    (void)ctx;
}

rq_region_calls rq_host_calls(rq_host *h)
{
    return (rq_region_calls){
        .send = send_all, .load = load, .place = place, .stop = stop, .ctx = h};
}
