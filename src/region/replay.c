/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: the memstores of a region that opens get its records of the log that no file has. */
#include "region/engine_priv.h"
#include "region/opening.h"
#include "region/owned.h"

#include <stdlib.h>

/* A log holds cells in no particular order. They are collected, sorted and linked list by list,
 * because an insert into a large skip list is slow if its neighbours have not been touched
 * recently. */
#define REPLAY_FIRST 1024 /* until the segment knows the common prefix of its rows */
#define REPLAY_LIST 131072

typedef struct replay_list {
    rq_segment *segment;
    rq_segment_fresh *fresh; /* NULL: no memory for it; cells are linked one by one */
    size_t count;
    size_t full; /* the list is linked when it has this many cells; 0: no cell seen yet */
} replay_list;

typedef struct replay {
    rq_region *region;
    bool has_manifest;
    rq_error *why;
    uint64_t cells;
    replay_list *lists; /* one for each store */
} replay;

static void replay_link(replay_list *l)
{
    rq_segment_link_all(l->segment, l->fresh, l->count);
    l->count = 0;
}

/* After a full list; without memory for a longer one the short one goes on. */
static void replay_lengthen(replay_list *l)
{
    rq_segment_fresh *longer = malloc(REPLAY_LIST * sizeof *longer);
    if (longer == NULL) return;
    free(l->fresh);
    l->fresh = longer;
    l->full = REPLAY_LIST;
}

static rq_err replay_cell(replay_list *l, const rq_cell *cell)
{
    if (l->full == 0) { /* most openings have nothing to replay */
        l->fresh = malloc(REPLAY_FIRST * sizeof *l->fresh);
        l->full = REPLAY_FIRST;
    }
    if (l->fresh == NULL) return rq_segment_add(l->segment, cell);
    rq_segment_fresh *f = &l->fresh[l->count];
    RQ_TRY(rq_segment_prepare(l->segment, cell, &f->node));
    f->seqid = cell->seqid;
    if (++l->count < l->full) return RQ_OK;
    replay_link(l);
    if (l->full < REPLAY_LIST) replay_lengthen(l);
    return RQ_OK;
}

static rq_err replay_nonce(rq_region *r, const rq_wal_record *rec)
{
    rq__nonce_id id;
    if (rec->nonce == 0 || !r->engine->nonces_enabled) return RQ_OK;
    RQ_TRY(rq__nonce_list_reserve(&r->nonces));
    RQ_TRY(rq__nonces_add(r->engine->nonces, rec->nonce_group, rec->nonce, rec->sequence_id, &id));
    rq__nonce_list_add(&r->nonces, id);
    return RQ_OK;
}

static void raise_number(rq_region *r, uint64_t to)
{
    if (to > r->staged_seqid) r->staged_seqid = to;
}

static rq_err replay_record(void *ctx, const rq_wal_record *rec)
{
    replay *p = ctx;
    rq_region *r = p->region;
    size_t hint = 0;
    if (r->owned != NULL) {
        raise_number(r, rec->sequence_id); /* of all kinds */
        (void)rq__owned_stamp(r, rec->write_time_ms);
    }
    if (rec->kind != RQ_WAL_EDIT) return RQ_OK;
    rq_cursor c = rq_cursor_of(rec->payload);
    uint64_t cells_before = p->cells;
    for (;;) {
        rq_cell cell;
        rq_err rc = rq_cellblock_next_stored(&c, &cell, p->why);
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) return rc;
        rq__region_store *s = rq__region_store_of(r, rq_cell_family(&cell), &hint);
        if (s == NULL && !p->has_manifest)
            RQ_TRY(rq__check_family(r, rq_cell_family(&cell), p->why));
        /* Of a removed family, whose files are gone too. */
        if (s == NULL || rec->sequence_id <= s->flushed) continue;
        cell.seqid = rec->sequence_id;
        RQ_TRY(replay_cell(&p->lists[s - r->stores], &cell));
        p->cells++;
    }
    raise_number(r, rec->sequence_id);
    /* If none of its cells is only in memory, its nonce is in a file. */
    return p->cells > cells_before ? replay_nonce(r, rec) : RQ_OK;
}

rq_err rq__take_replay(rq_region *r, bool has_manifest, rq_error *why)
{
    replay p = {.region = r, .has_manifest = has_manifest, .why = why};
    p.lists = calloc(r->store_count, sizeof *p.lists);
    if (p.lists == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->store_count; i++)
        p.lists[i].segment = rq_store_active(r->stores[i].store);
    rq_err rc = r->owned != NULL
                    ? rq__recovery_take_logs(r, replay_record, &p, why)
                    : rq__recovery_take(r->engine, r->info.encoded, replay_record, &p, why);
    for (size_t i = 0; i < r->store_count; i++) {
        if (p.lists[i].count > 0) replay_link(&p.lists[i]);
        if (rq_segment_cell_count(p.lists[i].segment) > 0)
            rq_segment_note_write(p.lists[i].segment, r->env.executor->now_ms(r->env.executor));
        free(p.lists[i].fresh);
    }
    free(p.lists);
    if (rc != RQ_OK) return rq_fail(why, rc, "replay: %s", rq_err_text(rc));
    if (p.cells > 0)
        rq_log_info(r->env.log, "region", "region %s: replayed %llu cells", r->info.encoded,
                    (unsigned long long)p.cells);
    return RQ_OK;
}
