/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes keys that keep the log of an ended server although no manifest names the log for them (wal/head.h): the key's put
 * took effect late, or its deletion was lost. Contract in engine.h.
 *
 * A manifest names a log for an opening only from the swap of that opening on, and this swap raises the open number to the
 * opening's. So the key of an opening is not needed, now or later, once the region's manifest is gone, or has that open number
 * or a higher one and does not name the log for this opening. While the open number is lower, the swap may still arrive: the
 * key stays until the region is opened again.
 */
#include "region/owned.h"

#include "region/engine_priv.h"

#include <errno.h>
#include <stdlib.h>

typedef struct key {
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    uint64_t opening;
} key;

static bool parse(const char *text, key *ret)
{
    const char *dot = strchr(text, '.');
    char *end;
    if (dot == NULL || (size_t)(dot - text) != RQ_ENCODED_NAME_LEN || dot[1] < '0' || dot[1] > '9')
        return false;
    memcpy(ret->encoded, text, RQ_ENCODED_NAME_LEN);
    ret->encoded[RQ_ENCODED_NAME_LEN] = '\0';
    errno = 0;
    ret->opening = strtoull(dot + 1, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool names(const rq__manifest *m, const char *server, uint64_t opening)
{
    for (size_t i = 0; i < m->log_count; i++)
        if (rq_slice_eq(m->logs[i].name, rq_slice_cstr(server)) && m->logs[i].opening == opening)
            return true;
    return false;
}

static rq_err is_late(const rq__cluster *c, const char *server, const key *k, bool *ret,
                      rq_error *why)
{
    rq_arena arena = {0};
    rq__manifest m;
    uint64_t generation;
    rq_error own = {.code = RQ_OK};
    rq_err rc = rq__owned_read(c, k->encoded, &arena, &m, &generation, &own);
    *ret = rc == RQ_E_NOT_FOUND ||
           (rc == RQ_OK && m.open_number >= k->opening && !names(&m, server, k->opening));
    rq_arena_clear(&arena);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

static rq_err sweep(const rq__cluster *c, const char *server, rq_arena *arena, size_t *ret,
                    rq_error *why)
{
    const char **keys;
    size_t count;
    rq_wal_state state;
    RQ_TRY(rq_wal_state_of(c->shared, server, &state, why));
    if (state == RQ_WAL_OPEN)
        return rq_fail(why, RQ_E_STATE, "the log of %s has not ended", server);
    RQ_TRY(rq_wal_needed_by(c->shared, server, arena, &keys, &count, why));
    for (size_t i = 0; i < count; i++) {
        key k;
        bool late;
        if (!parse(keys[i], &k)) continue;
        RQ_TRY(is_late(c, server, &k, &late, why));
        if (!late) continue;
        RQ_TRY(rq_wal_need_no_more(c->shared, server, k.encoded, k.opening, why));
        ++*ret;
    }
    return RQ_OK;
}

rq_err rq_engine_sweep_late_keys(rq_engine *e, const char *server_name, size_t *ret, rq_error *why)
{
    rq_arena arena = {0};
    *ret = 0;
    rq_err rc = sweep(e->cluster, server_name, &arena, ret, why);
    rq_arena_clear(&arena);
    return rc;
}
