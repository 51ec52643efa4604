/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a region: manifests on shared storage. Rules: owned.h. */
#include "region/owned.h"

#include <stdio.h>
#include <stdlib.h>

#include "region/engine_priv.h"

void rq__owned_name(const char *encoded, char ret[static RQ__OWNED_NAME_SIZE])
{
    (void)snprintf(ret, RQ__OWNED_NAME_SIZE, "region:%s", encoded);
}

static bool is_me(const rq__cluster *c, rq_slice name)
{
    return rq_slice_eq(name, rq_slice_cstr(c->server_name));
}

static rq_err decode(const char *encoded, rq_slice bytes, rq_arena *arena, rq__manifest *ret,
                     rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__manifest_decode(bytes, arena, ret, &detail);
    if (rc == RQ_OK && !ret->is_owned)
        rc = rq_fail(&detail, RQ_E_CORRUPT, "the manifest belongs to a standalone server");
    return rc == RQ_OK ? rc : rq_fail(why, rc, "region:%s: %s", encoded, detail.message);
}

rq_err rq__owned_read(const rq__cluster *c, const char *encoded, rq_arena *arena, rq__manifest *ret,
                      uint64_t *ret_generation, rq_error *why)
{
    char name[RQ__OWNED_NAME_SIZE];
    rq_slice bytes;
    rq__owned_name(encoded, name);
    RQ_TRY(rq_object_get(c->shared, name, arena, &bytes, ret_generation, why));
    return decode(encoded, bytes, arena, ret, why);
}

rq_err rq__manifest_read_any(const rq_engine *e, const char *encoded, rq_arena *arena,
                             rq__manifest *ret, uint64_t *ret_generation, rq_error *why)
{
    return e->cluster != NULL
               ? rq__owned_read(e->cluster, encoded, arena, ret, ret_generation, why)
               : rq__manifest_read(e->env.vfs, encoded, arena, ret, ret_generation, why);
}

/* --- swaps ------------------------------------------------------------------------------------ */

typedef struct mine {
    const rq__cluster *cluster;
    uint64_t open_number;
    bool given_up; /* the region may have been given up by this opening */
} mine;

/* Whether this opening has written the manifest that was found instead of the expected one. It has if the
 * manifest has the opening's number and this server as owner. If the manifest has the number but no owner,
 * there are two cases. If the opening had taken the region before (given_up), its own swap that gave the
 * region up has arrived late. Otherwise another server took the same number first, and has already given
 * the region up. */
static bool is_mine(void *ctx, rq_slice bytes)
{
    const mine *own = ctx;
    rq_arena arena = {0};
    rq__manifest m;
    bool yes = rq__manifest_decode(bytes, &arena, &m, NULL) == RQ_OK && m.is_owned &&
               m.open_number == own->open_number &&
               ((own->given_up && m.owner.len == 0) || is_me(own->cluster, m.owner));
    rq_arena_clear(&arena);
    return yes;
}

/* `own` NULL: not of an opening. */
static rq_err swap(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                   uint64_t *generation, mine *own, rq_error *why)
{
    char name[RQ__OWNED_NAME_SIZE];
    rq_buf bytes = {0};
    rq__owned_name(encoded, name);
    rq_err rc = rq__manifest_encode(m, &bytes);
    if (rc == RQ_OK)
        rc = rq_object_swap(c->shared, name, generation, rq_buf_slice(&bytes),
                            own == NULL ? NULL : is_mine, own, why);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq__owned_swap_taking(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                             uint64_t *generation, rq_error *why)
{
    mine own = {c, m->open_number, false};
    return swap(c, encoded, m, generation, &own, why);
}

rq_err rq__owned_swap_closed(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                             uint64_t *generation, rq_error *why)
{
    return swap(c, encoded, m, generation, NULL, why);
}

/* Of an opening that has the region. */
static rq_err swap_having(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                          uint64_t *generation, rq_error *why)
{
    mine own = {c, m->open_number, true};
    return swap(c, encoded, m, generation, &own, why);
}

rq_err rq__owned_create(const rq__cluster *c, const char *encoded, const rq__manifest *m,
                        rq_error *why)
{
    rq__manifest first = *m;
    uint64_t generation = 0;
    rq_error detail = {.code = RQ_OK};
    first.is_owned = true;
    first.in_use = true;
    rq_err rc = rq__owned_swap_closed(c, encoded, &first, &generation, &detail);
    return rc == RQ_OK || rc == RQ_E_CONFLICT ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq__owned_swap(rq_region *r, const rq__manifest *m, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc =
        swap_having(r->engine->cluster, r->info.encoded, m, &r->manifest.generation, &detail);
    r->manifest.in_doubt = rc != RQ_OK;
    if (rc == RQ_OK) return RQ_OK;
    (void)rq_fail(why, rc, "%s", detail.message);
    if (rc == RQ_E_CONFLICT) rq__region_fail(r, &detail);
    return rc;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A repeated fence tells when the lease has ended by this server's clock. */
rq_err rq__owned_check_owner(const rq__cluster *c, rq_slice owner, uint64_t *ret_quiet_ns,
                             rq_error *why)
{
    if (owner.len == 0 || is_me(c, owner)) return RQ_OK;
    char name[RQ_SHARED_NAME_MAX + 1] = {0};
    rq_wal_state state;
    memcpy(name, owner.ptr, owner.len);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_state_of(c->shared, name, &state, &detail);
    if (rc == RQ_OK && state == RQ_WAL_OPEN)
        return rq_fail(why, RQ_E_STATE, "the region is open at %s, which is not fenced", name);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    return rq_wal_fence(c->shared, name, c->server_name, ret_quiet_ns, why);
}

/* An opening of this server may have failed; but the log cannot be read while this server writes it. */
static rq_err check_owner(rq_region *r, rq_slice owner, rq_error *why)
{
    const rq_engine *e = r->engine;
    if (is_me(e->cluster, owner) && rq_wal_holds(e->wal, r->info.encoded))
        return rq_fail(why, RQ_E_STATE,
                       "this server's own write-ahead log has edits of the region");
    rq_err rc = rq__owned_check_owner(e->cluster, owner, &r->owned->quiet_ns, why);
    if (rc != RQ_E_STATE) return rc;
    /* The former owner may be fenced later: a later attempt succeeds. */
    if (why != NULL) why->code = RQ_E_CONFLICT;
    return RQ_E_CONFLICT;
}

/* The listed logs of others, and this server's behind them. */
static rq_err take_logs(rq_region *r, const rq__manifest *m)
{
    const rq__cluster *c = r->engine->cluster;
    rq__owned *o = r->owned;
    rq_wal_stats stats;
    o->logs = calloc(m->log_count + 1, sizeof *o->logs);
    if (o->logs == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->log_count; i++) {
        if (is_me(c, m->logs[i].name)) continue; /* of a failed opening, without edits */
        rq__owned_log *l = &o->logs[o->log_count++];
        memcpy(l->name, m->logs[i].name.ptr, m->logs[i].name.len);
        l->from = m->logs[i].from;
        l->opening = m->logs[i].opening;
    }
    rq_wal_get_stats(r->engine->wal, &stats);
    rq__owned_log *own = &o->logs[o->log_count++];
    memcpy(own->name, c->server_name, sizeof own->name);
    own->from = stats.staged;
    own->opening = o->open_number;
    return RQ_OK;
}

static rq_err give_logs(const rq__owned *o, rq_arena *arena, rq__manifest *m)
{
    m->log_count = 0;
    m->logs = rq_arena_calloc(arena, o->log_count, sizeof *m->logs);
    if (m->logs == NULL) return RQ_E_NO_MEMORY;
    for (; m->log_count < o->log_count; m->log_count++) {
        const rq__owned_log *l = &o->logs[m->log_count];
        m->logs[m->log_count].from = l->from;
        m->logs[m->log_count].opening = l->opening;
        m->logs[m->log_count].name = rq_arena_copy(arena, rq_slice_cstr(l->name));
        if (m->logs[m->log_count].name.ptr == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

rq_err rq__owned_take(rq_region *r, rq_arena *arena, rq__manifest *ret, rq_error *why)
{
    const rq__cluster *c = r->engine->cluster;
    uint64_t generation;
    r->owned = calloc(1, sizeof *r->owned);
    if (r->owned == NULL) return rq_no_memory(why);
    RQ_TRY(rq__owned_read(c, r->info.encoded, arena, ret, &generation, why));
    RQ_TRY(check_owner(r, ret->owner, why));
    RQ_TRY(rq__owned_archive_removed(r->env.vfs, &r->info, ret, why));
    ret->removed_count = 0;
    r->owned->truncations = ret->truncations;
    uint64_t opening = ret->open_number + 1;
    RQ_TRY(rq_wal_need(c->shared, c->server_name, r->info.encoded, opening, why));
    ret->open_number = r->owned->open_number = opening;
    if (take_logs(r, ret) != RQ_OK || give_logs(r->owned, arena, ret) != RQ_OK)
        return rq_no_memory(why);
    ret->owner = rq_slice_cstr(c->server_name);
    RQ_TRY(rq__owned_swap_taking(c, r->info.encoded, ret, &generation, why));
    atomic_init(&r->owned->last_stamp_ms, ret->last_stamp_ms);
    r->manifest.generation = generation;
    r->manifest.in_use = true;
    return RQ_OK;
}

/* Whether the manifest names this server's log for the opening, or may come to name it: the opening's swap
 * may still arrive while the manifest has an older open number. */
static bool may_need_own_log(const rq_region *r, const rq__manifest *m)
{
    uint64_t opening = r->owned->open_number;
    if (m->open_number < opening) return true;
    for (size_t i = 0; i < m->log_count; i++)
        if (is_me(r->engine->cluster, m->logs[i].name) && m->logs[i].opening == opening)
            return true;
    return false;
}

/* Out of the manifest, if it has this opening. */
static rq_err give_back(rq_region *r, rq_arena *arena, bool *ret_key_goes)
{
    const rq__cluster *c = r->engine->cluster;
    rq__manifest m;
    uint64_t generation;
    *ret_key_goes = false;
    rq_err rc = rq__owned_read(c, r->info.encoded, arena, &m, &generation, NULL);
    if (rc == RQ_OK && is_me(c, m.owner) && m.open_number == r->owned->open_number) {
        m.owner = (rq_slice){0};
        m.log_count--; /* this server's own log, the last one: it has no edits of this opening */
        rc = swap_having(c, r->info.encoded, &m, &generation, NULL);
    }
    *ret_key_goes = rc == RQ_E_NOT_FOUND || (rc == RQ_OK && !may_need_own_log(r, &m));
    return rc == RQ_E_NOT_FOUND ? RQ_OK : rc; /* it was removed meanwhile */
}

void rq__owned_give_back(rq_region *r)
{
    const rq__cluster *c = r->engine->cluster;
    rq_arena arena = {0};
    bool key_goes;
    if (r->owned == NULL || r->owned->open_number == 0) return;
    rq_err rc = give_back(r, &arena, &key_goes);
    if (key_goes)
        rc = rq_wal_need_no_more(c->shared, c->server_name, r->info.encoded, r->owned->open_number,
                                 NULL);
    if (rc != RQ_OK)
        rq_log_warn(r->env.log, "region",
                    "region %s: cannot release its ownership in the manifest: %s; the next server "
                    "must fence this one",
                    r->info.encoded, rq_err_text(rc));
    rq_arena_clear(&arena);
}

void rq__owned_abandon(rq_region *r)
{
    rq_wal *wal = r->engine->wal;
    if (rq_wal_failed(wal)) return;
    if (!rq_wal_holds(wal, r->info.encoded)) {
        rq__owned_give_back(r);
        return;
    }
    rq_error why = {.code = RQ_OK};
    (void)rq_fail(&why, RQ_E_STATE,
                  "closed with edits that are only in this server's write-ahead log, which is "
                  "still being written");
    rq__region_fail(r, &why);
}

void rq__owned_wait_for_lease(const rq_region *r)
{
    rq_executor *ex = r->env.executor;
    for (;;) {
        uint64_t now = rq_shared_now_ns(r->engine->cluster->shared);
        if (now >= r->owned->quiet_ns) return;
        ex->sleep(ex, r->owned->quiet_ns - now);
    }
}

/* --- commits ---------------------------------------------------------------------------------- */

rq_err rq__owned_fill(rq_region *r, rq_arena *arena, rq__manifest *m)
{
    const rq__owned *o = r->owned;
    m->is_owned = true;
    m->open_number = o->open_number;
    m->truncations = o->truncations;
    m->last_stamp_ms = atomic_load(&o->last_stamp_ms);
    if (o->closes) return RQ_OK;
    m->owner = rq_slice_cstr(r->engine->cluster->server_name);
    return give_logs(o, arena, m);
}

/* The manifest no longer names these logs. */
static void need_no_more(const rq_region *r, const rq__owned_log *logs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rq_err rc = rq_wal_need_no_more(r->engine->cluster->shared, logs[i].name, r->info.encoded,
                                        logs[i].opening, NULL);
        if (rc != RQ_OK)
            rq_log_warn(r->env.log, "region",
                        "region %s: the write-ahead log of %s is kept longer than needed: %s",
                        r->info.encoded, logs[i].name, rq_err_text(rc));
    }
}

void rq__owned_flushed(rq_region *r, uint64_t seqid)
{
    rq__owned *o = r->owned;
    if (o->log_count <= 1 || seqid < o->replayed_seqid) return;
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq__owned_log *all = o->logs;
    size_t count = o->log_count;
    o->logs = &all[count - 1];
    o->log_count = 1;
    rq_err rc = rq__region_commit(r, NULL, 0, NULL);
    o->logs = all;
    if (rc == RQ_OK) {
        need_no_more(r, all, count - 1);
        all[0] = all[count - 1];
    } else {
        o->log_count = count; /* the next flush tries again */
    }
    rq__gate_leave(&r->commit_gate, r->env.executor);
}

rq_err rq__owned_release(rq_region *r, rq_error *why)
{
    rq__owned *o = r->owned;
    o->closes = true;
    rq_err rc = rq__region_commit(r, NULL, 0, why);
    o->closes = rc == RQ_OK;
    if (rc == RQ_OK) need_no_more(r, o->logs, o->log_count);
    return rc;
}

int64_t rq__owned_stamp(rq_region *r, int64_t now_ms)
{
    rq__owned *o = r->owned;
    int64_t last = atomic_load_explicit(&o->last_stamp_ms, memory_order_relaxed);
    if (now_ms <= last) return last;
    atomic_store_explicit(&o->last_stamp_ms, now_ms, memory_order_relaxed);
    return now_ms;
}

void rq__owned_free(rq__owned *o)
{
    if (o == NULL) return;
    free(o->logs);
    free(o);
}
