/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: each connection has a list of its own, with checksums of each node's data and children. They are
 * compared with the nodes when the catalog's view number has changed: before a request is answered, so that no
 * client sees a new state before the event about it, and by a task that each change posts to loops
 * with watching connections. Clients decide how many watches there are, so they are compared in slices; a request
 * waits until all watches of its connection were compared. As in a real server, exists and getData set the same kind
 * of watch, and a client that watches both data and children of a node gets one event when the node is deleted. */
#include "registry/zk_priv.h"

#include "base/checksum.h"
#include "base/meter.h"

#include <search.h>
#include <stdlib.h>

#define WATCH_STEPS 8 /* of base/meter.h, for a comparison; the children of a node count one each */
#define NODE_BYTES 64 /* memory of the tree and the allocator per watch */

typedef struct rq__zk_watch {
    struct rq__zk_watch *next, *previous;
    rq__zk_watch_kind kind;
    bool existed;
    uint32_t data_crc;
    uint32_t children_crc;
    size_t path_len;
    const uint8_t *path; /* behind it */
} watch;

static int watch_order(const void *a, const void *b)
{
    const watch *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return rq_slice_compare(rq_slice_of(x->path, x->path_len), rq_slice_of(y->path, y->path_len));
}

static size_t bytes_of(const watch *w)
{
    return sizeof *w + w->path_len + NODE_BYTES;
}

static watch *find(const rq__zk_connection *c, rq__zk_watch_kind kind, rq_slice path)
{
    watch key = {.kind = kind, .path_len = path.len, .path = path.ptr};
    watch *const *found = tfind(&key, &c->watch_tree, watch_order);
    return found == NULL ? NULL : *found;
}

bool rq__zk_is_watched(const rq__zk_connection *c, rq__zk_watch_kind kind, rq_slice path)
{
    return find(c, kind, path) != NULL;
}

static uint32_t children_crc(const rq__znode *n)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < n->child_count; i++) {
        crc = rq_crc32c(crc, n->children[i].ptr, n->children[i].len);
        crc = rq_crc32c(crc, "/", 1);
    }
    return crc;
}

static rq__zk_watchers *watchers_of(const rq__zk_connection *c)
{
    return &c->registry->watchers[rq_loop_index(rq_stream_loop(c->stream))];
}

static void begin_watching(rq__zk_connection *c)
{
    rq__zk_watchers *all = watchers_of(c);
    c->watching = true;
    c->previous_watching = NULL;
    c->next_watching = all->first;
    if (all->first != NULL) all->first->previous_watching = c;
    all->first = c;
    atomic_fetch_add(&all->count, 1);
    /* A change between the lookup for this watch and this line did not post to the loop. */
    if (rq_catalog_view_number(c->registry->catalog) != c->view_seen &&
        !atomic_exchange(&all->posted, true))
        rq_lane_post(all->lane, &all->task);
}

static void end_watching(rq__zk_connection *c)
{
    rq__zk_watchers *all = watchers_of(c);
    c->watching = false;
    if (all->at == c) all->at = c->next_watching;
    if (c->next_watching != NULL) c->next_watching->previous_watching = c->previous_watching;
    if (c->previous_watching != NULL)
        c->previous_watching->next_watching = c->next_watching;
    else
        all->first = c->next_watching;
    atomic_fetch_sub(&all->count, 1);
}

rq_err rq__zk_watch_add(rq__zk_connection *c, rq__zk_watch_kind kind, rq_slice path,
                        const rq__znode *node)
{
    if (rq__zk_is_watched(c, kind, path)) return RQ_OK;
    watch *w = malloc(sizeof *w + path.len);
    if (w == NULL) return RQ_E_NO_MEMORY;
    uint8_t *bytes = (uint8_t *)(w + 1);
    *w = (watch){.next = c->watches,
                 .kind = kind,
                 .existed = node != NULL,
                 .path_len = path.len,
                 .path = bytes};
    if (path.len > 0) memcpy(bytes, path.ptr, path.len);
    if (!rq__zk_charge(c, bytes_of(w))) {
        free(w);
        return RQ_E_NO_MEMORY;
    }
    if (tsearch(w, &c->watch_tree, watch_order) == NULL) {
        rq__zk_give(c, bytes_of(w));
        free(w);
        return RQ_E_NO_MEMORY;
    }
    if (node != NULL) {
        w->data_crc = rq_crc32c(0, node->data.ptr, node->data.len);
        if (kind == RQ__ZK_WATCH_CHILD) w->children_crc = children_crc(node);
    }
    if (!c->watching) begin_watching(c);
    if (c->watches != NULL) c->watches->previous = w;
    c->watches = w;
    return RQ_OK;
}

rq_err rq__zk_send_event(rq__zk_connection *c, enum rq__zk_event event, rq_slice path)
{
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq__zk_reply_header(out, RQ__ZK_XID_WATCH, -1, RQ__ZK_OK));
    RQ_TRY(rq_buf_append_be32(out, event));
    RQ_TRY(rq_buf_append_be32(out, RQ__ZK_STATE_SYNC_CONNECTED));
    RQ_TRY(rq__zk_write_buffer(out, path));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

/* The event the watch must fire for the node's current state; 0: none. */
static int event_of(const watch *w, const rq__znode *node)
{
    if (node == NULL) return w->existed ? RQ__ZK_NODE_DELETED : 0;
    if (!w->existed) return RQ__ZK_NODE_CREATED;
    if (w->kind == RQ__ZK_WATCH_CHILD)
        return children_crc(node) == w->children_crc ? 0 : RQ__ZK_NODE_CHILDREN_CHANGED;
    return rq_crc32c(0, node->data.ptr, node->data.len) == w->data_crc ? 0
                                                                       : RQ__ZK_NODE_DATA_CHANGED;
}

static void drop_watch(rq__zk_connection *c, watch *w)
{
    tdelete(w, &c->watch_tree, watch_order);
    if (c->compare_at == w) c->compare_at = w->next;
    if (w->next != NULL) w->next->previous = w->previous;
    if (w->previous != NULL)
        w->previous->next = w->next;
    else
        c->watches = w->next;
    rq__zk_give(c, bytes_of(w));
    free(w);
}

/* Sends an event if the node has changed, and removes the watch. If the node was deleted, its watch of the
 * other kind is removed too. Adds to *steps. */
static rq_err fire(rq__zk_connection *c, watch *w, size_t *steps)
{
    rq__znode node = {0};
    rq_slice path = rq_slice_of(w->path, w->path_len);
    rq_arena_reset(&c->arena);
    rq_err rc =
        rq__znode_get(&c->registry->znodes, path, w->kind == RQ__ZK_WATCH_CHILD, &c->arena, &node);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    if (w->kind == RQ__ZK_WATCH_CHILD) *steps += node.child_count;
    int event = event_of(w, rc == RQ_OK ? &node : NULL);
    if (event == 0) return RQ_OK;
    RQ_TRY(rq__zk_send_event(c, (enum rq__zk_event)event, path));
    watch *other = event != RQ__ZK_NODE_DELETED   ? NULL
                   : w->kind == RQ__ZK_WATCH_DATA ? find(c, RQ__ZK_WATCH_CHILD, path)
                                                  : find(c, RQ__ZK_WATCH_DATA, path);
    if (other != NULL) drop_watch(c, other);
    drop_watch(c, w);
    return RQ_OK;
}

/* A slice of the comparison that is under way. */
static rq_err fire_some(rq__zk_connection *c, rq_meter *slice)
{
    while (c->compare_at != NULL) {
        watch *w = c->compare_at;
        size_t steps = WATCH_STEPS;
        c->compare_at = w->next;
        RQ_TRY(fire(c, w, &steps));
        if (rq_meter_spent(slice, c->registry->env.executor, steps)) return RQ_E_AGAIN;
    }
    return RQ_OK;
}

/* RQ_E_AGAIN: the slice is over. */
static rq_err compare(rq__zk_connection *c, rq_meter *slice)
{
    uint64_t view;
    while (c->comparing || (view = rq_catalog_view_number(c->registry->catalog)) != c->view_seen) {
        if (!c->comparing) {
            c->comparing = true;
            c->compared_view = view;
            c->compare_at = c->watches;
        }
        rq_err rc = fire_some(c, slice);
        rq_arena_clear(&c->arena);
        if (rc != RQ_OK) return rc;
        c->comparing = false;
        c->view_seen = c->compared_view;
    }
    if (c->watches == NULL && c->watching) end_watching(c);
    return RQ_OK;
}

rq_err rq__zk_watches_look(rq__zk_connection *c)
{
    rq_meter slice = {0};
    rq_err rc = compare(c, &slice);
    if (rc != RQ_E_AGAIN) return rc;
    rq__zk_watchers *all = watchers_of(c);
    if (!atomic_exchange(&all->posted, true)) rq_loop_defer(rq_stream_loop(c->stream), &all->task);
    return RQ_E_AGAIN;
}

/* --- between two slices of a setWatches ------------------------------------------------------- */

void rq__zk_go_on_later(rq__zk_connection *c)
{
    rq__zk_watchers *all = watchers_of(c);
    if (!c->paused) {
        c->paused = true;
        c->next_paused = NULL;
        c->previous_paused = all->last_paused;
        *(all->last_paused == NULL ? &all->first_paused : &all->last_paused->next_paused) = c;
        all->last_paused = c;
    }
    if (!atomic_exchange(&all->posted, true)) rq_loop_defer(rq_stream_loop(c->stream), &all->task);
}

static void end_pause(rq__zk_watchers *all, rq__zk_connection *c)
{
    rq__zk_connection *next = c->next_paused, *previous = c->previous_paused;
    c->paused = false;
    *(previous == NULL ? &all->first_paused : &previous->next_paused) = next;
    *(next == NULL ? &all->last_paused : &next->previous_paused) = previous;
}

/* One connection goes on, so that the task is short. */
static void end_first_pause(rq__zk_watchers *all)
{
    rq__zk_connection *c = all->first_paused;
    if (c == NULL) return;
    end_pause(all, c);
    if (all->first_paused != NULL) rq__zk_go_on_later(all->first_paused);
    rq__zk_go_on(c);
}

void rq__zk_watches_clear(rq__zk_connection *c)
{
    if (c->paused) end_pause(watchers_of(c), c);
    if (c->watching) end_watching(c);
    while (c->watches != NULL)
        drop_watch(c, c->watches);
}

/* Compares the connections' watches with the view for the time of a slice. */
static void compare_some(rq__zk_watchers *all)
{
    rq_meter slice = {0};
    while (all->at != NULL) {
        rq__zk_connection *c = all->at;
        rq_err rc = compare(c, &slice);
        if (rc == RQ_E_AGAIN) return;
        if (all->at == c) all->at = c->next_watching;
        if (rc != RQ_OK)
            rq_stream_close(c->stream, rc);
        else if (c->waits)
            rq__zk_go_on(c);
        if (rq_meter_spent(&slice, c->registry->env.executor, 1)) return;
    }
}

void rq__zk_watchers_run(rq_task *task)
{
    rq__zk_watchers *all = RQ_CONTAINER_OF(task, rq__zk_watchers, task);
    atomic_store(&all->posted, false); /* before the comparison: later changes post again */
    end_first_pause(all);
    if (all->first == NULL) return;
    uint64_t view = rq_catalog_view_number(all->first->registry->catalog);
    if (all->at == NULL || all->view != view) all->at = all->first;
    all->view = view;
    rq_loop *loop = rq_stream_loop(all->first->stream);
    compare_some(all);
    if (all->at != NULL && !atomic_exchange(&all->posted, true)) rq_loop_defer(loop, &all->task);
}

void rq__zk_on_change(void *ctx)
{
    rq_registry *r = ctx;
    atomic_thread_fence(memory_order_seq_cst); /* the view is published before the counts are
                                                * read */
    for (unsigned i = 0; i < rq_loops_count(r->loops); i++) {
        rq__zk_watchers *all = &r->watchers[i];
        if (atomic_load(&all->count) > 0 && !atomic_exchange(&all->posted, true))
            rq_lane_post(all->lane, &all->task);
    }
}
