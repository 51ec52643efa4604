/* SPDX-License-Identifier: Apache-2.0 */
/* The list of replication peers and its rows in master:store; see peers.h. */
#include "catalog/catalog_priv.h"
#include "catalog/peers_priv.h"

#include "wal/image.h"
#include "wal/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY "state"
#define CONFIG RQ_SLICE_LIT("config")
#define STATE RQ_SLICE_LIT("state")
#define POSITION RQ_SLICE_LIT("position")
#define LOST RQ_SLICE_LIT("lost")
#define ROOM_PAUSE_NS ((uint64_t)20 * 1000 * 1000)
#define ROOM_LOOKS 250
#define ENABLED 0 /* ReplicationState.State */

static rq_wal *wal_of(const rq_catalog *c)
{
    return rq_engine_wal(c->engine);
}

static bool in_cluster(const rq_catalog *c)
{
    return rq_engine_in_cluster(c->engine);
}

/* --- the list --------------------------------------------------------------------------------- */

static rq__peer *find(rq_catalog *c, rq_slice id)
{
    rq__peer *p = c->peers.first;
    while (p != NULL && !rq_slice_eq(rq_slice_cstr(p->id), id))
        p = p->next;
    return p;
}

static rq__peer *peer_new(rq_slice id)
{
    rq__peer *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    rq_arena_init(&p->arena);
    p->id = rq_arena_cstr(&p->arena, id);
    if (p->id != NULL) return p;
    free(p);
    return NULL;
}

static void peer_free(rq__peer *p)
{
    if (p == NULL) return;
    rq_holder_release(p->holder);
    rq_arena_clear(&p->arena);
    free(p);
}

/* REQUIRES: the lock. */
static void insert(rq_catalog *c, rq__peer *p)
{
    rq__peer **at = &c->peers.first;
    while (*at != NULL && strcmp((*at)->id, p->id) < 0)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
}

/* REQUIRES: the lock. */
static void notify(rq_catalog *c)
{
    if (c->peers.changed != NULL) c->peers.changed(c->peers.changed_ctx);
}

static rq_err copy_peer(const rq__peer *p, rq_arena *arena, rq_peer_info *ret)
{
    *ret = (rq_peer_info){.id = rq_arena_cstr(arena, rq_slice_cstr(p->id)),
                          .config = rq_arena_copy(arena, p->config),
                          .enabled = p->enabled,
                          .position = p->position,
                          .lost_ms = p->lost_ms,
                          .version = p->version};
    return ret->id == NULL || ret->config.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq_catalog_peers(rq_catalog *c, rq_arena *arena, rq_peer_info **ret, size_t *ret_count)
{
    rq_err rc = RQ_OK;
    size_t count = 0;
    pthread_mutex_lock(&c->peers.lock);
    for (const rq__peer *p = c->peers.first; p != NULL; p = p->next)
        count++;
    rq_peer_info *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    *ret_count = 0;
    for (const rq__peer *p = c->peers.first; p != NULL && rc == RQ_OK; p = p->next)
        rc = copy_peer(p, arena, &list[(*ret_count)++]);
    pthread_mutex_unlock(&c->peers.lock);
    *ret = list;
    return rc;
}

rq_err rq_catalog_peer(rq_catalog *c, rq_slice id, rq_arena *arena, rq_peer_info *ret)
{
    pthread_mutex_lock(&c->peers.lock);
    const rq__peer *p = find(c, id);
    rq_err rc = p == NULL ? RQ_E_NOT_FOUND : copy_peer(p, arena, ret);
    pthread_mutex_unlock(&c->peers.lock);
    return rc;
}

bool rq_catalog_peer_is_current(rq_catalog *c, const char *id, uint64_t version)
{
    pthread_mutex_lock(&c->peers.lock);
    const rq__peer *p = find(c, rq_slice_cstr(id));
    bool current = p != NULL && p->enabled && p->version == version;
    pthread_mutex_unlock(&c->peers.lock);
    return current;
}

void rq_catalog_on_peer_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&c->peers.lock);
    c->peers.changed = changed;
    c->peers.changed_ctx = ctx;
    pthread_mutex_unlock(&c->peers.lock);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The columns of a peer's row that are to be written. */
typedef struct row {
    rq_slice id;
    rq_slice config; /* empty: the config is not changed */
    bool has_state, enabled;
    bool has_position;
    rq_lsn position;
    bool has_lost;
    int64_t lost_ms;
} row;

static rq_slice pair(rq_arena *a, const void *magic, size_t magic_len, rq_slice rest)
{
    uint8_t *p = rq_arena_alloc(a, magic_len + rest.len);
    if (p == NULL) return (rq_slice){0};
    memcpy(p, magic, magic_len);
    if (rest.len > 0) memcpy(p + magic_len, rest.ptr, rest.len);
    return rq_slice_of(p, magic_len + rest.len);
}

static rq_err fill(rq__batch *b, rq_arena *a, const rq_catalog *c, const row *w)
{
    rq_slice key = pair(a, RQ_PEER_LOCK_PREFIX, strlen(RQ_PEER_LOCK_PREFIX), w->id);
    uint8_t *numbers = rq_arena_alloc(a, 24);
    if (key.ptr == NULL || numbers == NULL) return RQ_E_NO_MEMORY;
    if (w->config.ptr != NULL) {
        rq_slice value = pair(a, "PBUF", 4, w->config);
        if (value.ptr == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq__batch_put(b, key, FAMILY, CONFIG, value));
    }
    if (w->has_state) {
        const uint8_t state[] = {8, w->enabled ? ENABLED : ENABLED + 1};
        rq_slice value = pair(a, "PBUF", 4, rq_slice_of(state, sizeof state));
        if (value.ptr == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq__batch_put(b, key, FAMILY, STATE, value));
    }
    rq_put_be64(numbers, rq_wal_epoch(wal_of(c)));
    rq_put_be64(numbers + 8, w->position);
    rq_put_be64(numbers + 16, (uint64_t)w->lost_ms);
    if (w->has_position) RQ_TRY(rq__batch_put(b, key, FAMILY, POSITION, rq_slice_of(numbers, 16)));
    if (!w->has_lost) return RQ_OK;
    return rq__batch_put(b, key, FAMILY, LOST, rq_slice_of(numbers + 16, 8));
}

/* `w` NULL: deletes the row of `id`. */
static rq_err write_row(rq_catalog *c, rq_slice id, const row *w, rq_error *why)
{
    rq_region *store;
    rq_arena a;
    rq__batch b;
    RQ_TRY(rq__store_ref(c, &store, why));
    rq_arena_init(&a);
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    b.vital = true;
    rq_slice key = pair(&a, RQ_PEER_LOCK_PREFIX, strlen(RQ_PEER_LOCK_PREFIX), id);
    rq_err rc = key.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (rc == RQ_OK && w != NULL) rc = fill(&b, &a, c, w);
    if (rc == RQ_OK && w == NULL) rc = rq__batch_delete_family(&b, key, FAMILY);
    if (rc == RQ_OK) rc = rq__batch_commit(&b, store, true, why);
    rq_arena_clear(&a);
    rq_region_unref(store);
    return rc;
}

/* --- the start -------------------------------------------------------------------------------- */

static bool message_of(rq_slice value, rq_slice *ret)
{
    if (value.len < 4 || memcmp(value.ptr, "PBUF", 4) != 0) return false;
    *ret = rq_slice_of(value.ptr + 4, value.len - 4);
    return true;
}

/* A position of another log (of another history of this folder) says nothing about this one. */
static void take_position(const rq_catalog *c, rq__peer *p, rq_slice value)
{
    if (value.len != 16) return;
    p->position = p->recorded = rq_get_be64(value.ptr + 8);
    if (in_cluster(c)) return;
    if (rq_get_be64(value.ptr) <= rq_wal_epoch(wal_of(c)) &&
        p->position <= rq_wal_durable(wal_of(c)))
        return;
    rq_log_error(c->env->log, "replication",
                 "peer %s is disabled and needs a resync: its recorded position belongs to another "
                 "write-ahead log",
                 p->id);
    p->lost_ms = rq__catalog_wall_ms(c);
    p->enabled = false;
}

static rq_err take_cell(rq_catalog *c, rq__peer *p, const rq_cell *cell)
{
    rq_slice name = rq_cell_qualifier(cell);
    rq_slice value = rq_cell_value(cell);
    rq_slice message;
    rq__catalog_saw_ms(c, cell->timestamp);
    if (rq_slice_eq(name, CONFIG) && message_of(value, &message)) {
        p->config = rq_arena_copy(&p->arena, message);
        return p->config.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    }
    if (rq_slice_eq(name, STATE) && message_of(value, &message))
        p->enabled = message.len == 2 && message.ptr[1] == ENABLED;
    else if (rq_slice_eq(name, LOST) && value.len == 8)
        p->lost_ms = (int64_t)rq_get_be64(value.ptr);
    return RQ_OK;
}

static rq_err load_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    rq_catalog *c = ctx;
    rq_slice prefix = RQ_SLICE_LIT(RQ_PEER_LOCK_PREFIX);
    rq_slice key = count == 0 ? (rq_slice){0} : rq_cell_row(&cells[0]);
    if (!rq_slice_starts_with(key, prefix)) return RQ_OK;
    rq__peer *p = peer_new(rq_slice_of(key.ptr + prefix.len, key.len - prefix.len));
    if (p == NULL) return rq_no_memory(why);
    p->position = rq_wal_durable(wal_of(c));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT(FAMILY)))
            rc = take_cell(c, p, &cells[i]);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (rq_slice_eq(rq_cell_qualifier(&cells[i]), POSITION))
            take_position(c, p, rq_cell_value(&cells[i]));
    /* A position that was written while the peer was removed is a row without a configuration. */
    if (rc != RQ_OK || p->config.ptr == NULL) {
        peer_free(p);
        return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
    }
    insert(c, p);
    return RQ_OK;
}

static rq_err hold(rq_catalog *c, rq__peer *p, rq_error *why)
{
    char name[256];
    (void)snprintf(name, sizeof name, RQ_PEER_LOCK_PREFIX "%s", p->id);
    rq_err rc =
        rq_retention_hold(rq_engine_retention(c->engine), name, rq__catalog_wall_ms(c), &p->holder);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    rq_holder_keep_log(p->holder, p->position);
    rq_holder_narrow(p->holder);
    return RQ_OK;
}

void rq__peers_init(rq_catalog *c)
{
    pthread_mutex_init(&c->peers.row_lock, NULL);
    pthread_mutex_init(&c->peers.lock, NULL);
}

rq_err rq__peers_load(rq_catalog *c, rq_error *why)
{
    RQ_TRY(rq__store_each_row(c, load_row, why));
    for (rq__peer *p = c->peers.first; p != NULL; p = p->next) {
        p->version = ++c->peers.version;
        if (p->lost_ms == 0 && !in_cluster(c)) RQ_TRY(hold(c, p, why));
    }
    return RQ_OK;
}

void rq__peers_close(rq_catalog *c)
{
    uint64_t from = RQ_RETENTION_NO_LOG;
    for (const rq__peer *p = c->peers.first; p != NULL; p = p->next)
        if (p->holder != NULL && p->position < from) from = p->position;
    if (c->peers.first != NULL && !in_cluster(c)) rq_wal_keep_from(wal_of(c), from);
    for (rq__peer *p = c->peers.first, *next; p != NULL; p = next) {
        next = p->next;
        peer_free(p);
    }
    c->peers.first = NULL;
    pthread_mutex_destroy(&c->peers.lock);
    pthread_mutex_destroy(&c->peers.row_lock);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Replaces the configuration. The old bytes stay in the arena until there is much of that. */
static rq_err set_config(rq__peer *p, rq_slice config)
{
    rq_slice copy = rq_arena_copy(&p->arena, config);
    if (copy.ptr == NULL) return RQ_E_NO_MEMORY;
    p->config = copy;
    return RQ_OK;
}

/* The peer as it will be: a copy of the listed one, or a new one. */
static rq_err make_next(rq_catalog *c, rq_slice id, rq_slice config, bool enabled, rq__peer **ret)
{
    rq__peer *p = peer_new(id);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p->enabled = enabled;
    pthread_mutex_lock(&c->peers.lock);
    const rq__peer *old = find(c, id);
    p->begins = old == NULL || (old->lost_ms != 0 && enabled);
    if (!p->begins) {
        p->position = old->position;
        p->recorded = old->recorded;
        p->lost_ms = old->lost_ms;
    }
    pthread_mutex_unlock(&c->peers.lock);
    if (p->begins)
        p->position = p->recorded =
            in_cluster(c) ? (uint64_t)rq__catalog_now_ms(c) : rq_wal_durable(wal_of(c));
    rq_err rc = set_config(p, config);
    if (rc == RQ_OK)
        *ret = p;
    else
        peer_free(p);
    return rc;
}

/* Puts it into the list in place of the old one, whose holder it takes. */
static void publish(rq_catalog *c, rq__peer *p)
{
    pthread_mutex_lock(&c->peers.lock);
    rq__peer **at = &c->peers.first;
    while (*at != NULL && strcmp((*at)->id, p->id) != 0)
        at = &(*at)->next;
    rq__peer *old = *at;
    if (old != NULL) *at = old->next;
    if (old != NULL && !p->begins) {
        p->holder = old->holder;
        p->position = old->position; /* it may have moved on */
        p->recorded = old->recorded;
        old->holder = NULL;
    }
    p->version = ++c->peers.version;
    insert(c, p);
    notify(c);
    pthread_mutex_unlock(&c->peers.lock);
    peer_free(old);
}

/* REQUIRES: row_lock. */
static rq_err put_peer(rq_catalog *c, rq_slice id, rq_slice config, bool enabled, rq_error *why)
{
    rq__peer *p;
    rq_err rc = make_next(c, id, config, enabled, &p);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    /* Before its position is known to anybody. */
    if (p->begins && !in_cluster(c)) rc = hold(c, p, why);
    row w = {.id = id,
             .config = config,
             .has_state = true,
             .enabled = enabled,
             .has_position = p->begins,
             .position = p->position,
             .has_lost = true,
             .lost_ms = p->lost_ms};
    if (rc == RQ_OK) rc = write_row(c, id, &w, why);
    if (rc == RQ_OK)
        publish(c, p);
    else
        peer_free(p);
    return rc;
}

rq_err rq__peer_put(rq_catalog *c, rq_slice id, rq_slice config, bool enabled, rq_error *why)
{
    pthread_mutex_lock(&c->peers.row_lock);
    rq_err rc = put_peer(c, id, config, enabled, why);
    pthread_mutex_unlock(&c->peers.row_lock);
    return rc;
}

/* REQUIRES: row_lock. */
static rq_err remove_peer(rq_catalog *c, rq_slice id, rq_error *why)
{
    RQ_TRY(write_row(c, id, NULL, why));
    pthread_mutex_lock(&c->peers.lock);
    rq__peer **at = &c->peers.first;
    while (*at != NULL && !rq_slice_eq(rq_slice_cstr((*at)->id), id))
        at = &(*at)->next;
    rq__peer *old = *at;
    if (old != NULL) *at = old->next;
    c->peers.version++;
    notify(c);
    pthread_mutex_unlock(&c->peers.lock);
    peer_free(old);
    return RQ_OK;
}

rq_err rq__peer_remove(rq_catalog *c, rq_slice id, rq_error *why)
{
    pthread_mutex_lock(&c->peers.row_lock);
    rq_err rc = remove_peer(c, id, why);
    pthread_mutex_unlock(&c->peers.row_lock);
    if (rc == RQ_OK) rq_wal_let_go(wal_of(c));
    return rc;
}

/* Moves the position, or gives the log up. */
static void moved(rq_catalog *c, rq_slice id, rq_lsn position, int64_t lost_ms)
{
    pthread_mutex_lock(&c->peers.lock);
    rq__peer *p = find(c, id);
    rq_holder *dropped = NULL;
    if (p != NULL && lost_ms != 0) {
        dropped = p->holder;
        p->holder = NULL;
        p->lost_ms = lost_ms;
        p->enabled = false;
        p->version = ++c->peers.version;
        notify(c);
    } else if (p != NULL && p->holder != NULL && position > p->position) {
        p->position = position;
        rq_holder_keep_log(p->holder, position);
    }
    pthread_mutex_unlock(&c->peers.lock);
    rq_holder_release(dropped);
    rq_wal_let_go(wal_of(c));
}

static bool is_listed(rq_catalog *c, rq_slice id)
{
    pthread_mutex_lock(&c->peers.lock);
    bool listed = find(c, id) != NULL;
    pthread_mutex_unlock(&c->peers.lock);
    return listed;
}

bool rq__peer_make_room(rq_catalog *c, rq_slice id)
{
    rq_executor *ex = c->env->executor;
    if (!rq_wal_lacks_space(wal_of(c)) || !is_listed(c, id)) return false;
    rq_log_warn(c->env->log, "replication",
                "the disk is full: releasing the write-ahead log kept for peer %.*s, which is "
                "being removed",
                (int)id.len, (const char *)id.ptr);
    moved(c, id, 0, ex->now_ms(ex));
    for (int i = 0; i < ROOM_LOOKS && rq_wal_lacks_space(wal_of(c)); i++)
        ex->sleep(ex, ROOM_PAUSE_NS);
    return true;
}

static void note_recorded(rq_catalog *c, rq_slice id, rq_lsn position)
{
    pthread_mutex_lock(&c->peers.lock);
    rq__peer *p = find(c, id);
    if (p != NULL) p->recorded = position;
    pthread_mutex_unlock(&c->peers.lock);
}

/* RQ_OK, or with a full disk also an error after the log was released. REQUIRES: row_lock. */
static rq_err record_position(rq_catalog *c, rq_slice name, rq_lsn position, rq_error *why)
{
    row w = {.id = name, .has_position = true, .position = position};
    rq_error full = {.code = RQ_OK};
    rq_err rc = write_row(c, name, &w, &full);
    if (rc != RQ_OK && !rq_wal_lacks_space(wal_of(c))) return rq_fail(why, rc, "%s", full.message);
    moved(c, name, position, 0);
    /* If the log has filled the disk, releasing the peer's part of the log (moved) makes room for
     * the record. After a crash between the two the recorded position is before the beginning of
     * the log, and the peer is marked as needing a resync although it lacks nothing. */
    if (rc != RQ_OK) rc = write_row(c, name, &w, why);
    if (rc == RQ_OK) note_recorded(c, name, position);
    return rc;
}

rq_err rq_catalog_peer_advance(rq_catalog *c, const char *id, rq_lsn position, rq_error *why)
{
    rq_slice name = rq_slice_cstr(id);
    pthread_mutex_lock(&c->peers.row_lock);
    pthread_mutex_lock(&c->peers.lock);
    const rq__peer *p = find(c, name);
    rq_err rc = p == NULL ? RQ_E_NOT_FOUND : RQ_OK;
    bool is_later = p != NULL && position > p->recorded;
    pthread_mutex_unlock(&c->peers.lock);
    if (is_later) rc = record_position(c, name, position, why);
    pthread_mutex_unlock(&c->peers.row_lock);
    return rc;
}

/* REQUIRES: row_lock. */
static rq_err record_loss(rq_catalog *c, rq_slice name, rq_error *why)
{
    int64_t now = rq__catalog_wall_ms(c);
    row w = {.id = name, .has_state = true, .has_lost = true, .lost_ms = now};
    RQ_TRY(write_row(c, name, &w, why));
    moved(c, name, 0, now);
    return RQ_OK;
}

rq_err rq_catalog_peer_give_up(rq_catalog *c, const char *id, uint64_t version, rq_error *why)
{
    rq_slice name = rq_slice_cstr(id);
    pthread_mutex_lock(&c->peers.row_lock);
    pthread_mutex_lock(&c->peers.lock);
    const rq__peer *p = find(c, name);
    bool is_same = p != NULL && p->version == version;
    pthread_mutex_unlock(&c->peers.lock);
    rq_err rc = is_same ? record_loss(c, name, why) : RQ_E_NOT_FOUND;
    pthread_mutex_unlock(&c->peers.row_lock);
    return rc;
}
