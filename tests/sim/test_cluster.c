/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers of a cluster without a master: each has an engine whose log and manifests are on shared
 * storage, and opens, writes, reads, flushes, compacts, closes and takes over regions at random.
 * Servers are paused, cut off, killed and restarted, and fence each other with or without a reason.
 * Both forms of shared_world.h; store files are on the simulated disk.
 *
 *  1. No acknowledged write is lost: a read that is answered sees it.
 *  2. None is applied twice: an increment with an unknown outcome is retried with its nonce, on any
 *     server.
 *  3. A write that is submitted after another server has opened the region is not acknowledged.
 *  4. No stale read: a server with a valid lease returns all writes acknowledged by any server.
 *  5. No MOB file that a region's manifest refers to is archived, whichever servers answer the cleaner (mob_cleaner.h).
 *  6. At the end, one server takes over all regions, finds all writes, and every log can be
 *     retired, unless an opening with an unknown outcome still needs it.
 *
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one.
 */
#include "shared_world.h"

#include "fixture.h"
#include "region/engine_priv.h"
#include "region/mob_cleaner.h"
#include "region/owned.h"
#include "store/mob_files.h"
#include "wal/head.h"

#include <inttypes.h>

#define REGIONS 3
#define ROWS 4
#define CLIENTS 2 /* per server */
#define LOGS_MAX 200
#define PENDING_MAX 400
#define NAME_MAX_LEN 40
#define MOB_WRITES_MAX 256

typedef struct row {
    uint32_t issued, acknowledged;
} row;

typedef struct pending {
    unsigned region;
    uint64_t nonce;
    bool busy;
} pending;

/* One region, with the effects of all servers. */
typedef struct model {
    row rows[ROWS];
    int64_t counted; /* number of acknowledged increments */
    int64_t unknown; /* number of increments in flight, or with an unknown outcome */
    /* the log (a name of h->logs) of the opening with the highest number */
    const char *opened_by;
    uint64_t open_number; /* number of that opening */
} model;

typedef struct server {
    struct history *h;
    world_node *node;
    const char *name; /* name of the incarnation */
    rq_env env;
    rq_tenure *tenure;
    rq_engine *engine;
    fixture regions[REGIONS]; /* region NULL: not open on this server */
    bool must_end;            /* the log has failed, or a region cannot be closed */
    bool closing;             /* the engine is being closed */
    unsigned busy;            /* client calls in progress */
    world_task manager, clients[CLIENTS];
} server;

typedef struct history {
    world w;
    server servers[WORLD_NODES];
    world_task faults;
    rq_config *config;
    model models[REGIONS];
    char logs[LOGS_MAX][NAME_MAX_LEN];
    bool gone[LOGS_MAX]; /* the process of this log ended without a close */
    unsigned log_count;
    pending pending[PENDING_MAX];
    unsigned pending_count;
    uint64_t nonces;
    bool done;
} history;

static uint32_t seen_writes, seen_refused, seen_reads, seen_held, seen_openings, seen_adoptions,
    seen_moves, seen_denied, seen_retried, seen_crashes, seen_lost, seen_retired, seen_rounds,
    seen_undecided, seen_spared, seen_archived;

/* --- an incarnation -------------------------------------------------------------------------- */

static void region_failed(void *ctx, rq_region *r, const rq_error *why)
{
    server *s = ctx;
    (void)r;
    if (why->code == RQ_E_CORRUPT) world_fail(&s->h->w, "%s", why->message);
    s->must_end = true;
    seen_lost++;
}

static bool begin_incarnation(server *s)
{
    history *h = s->h;
    if (h->log_count == LOGS_MAX) return false;
    s->name = h->logs[h->log_count];
    (void)snprintf(h->logs[h->log_count], NAME_MAX_LEN, "host%u,16020,%u", s->node->index,
                   h->log_count);
    h->log_count++;
    s->must_end = false;
    if (rq_tenure_begin(s->node->shared, s->name, &s->tenure, NULL) != RQ_OK) return false;
    rq_engine_options o = {.config = h->config, .tenure = s->tenure, .server_name = s->name};
    o.region_failed = region_failed;
    o.context = s;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_engine_open(&s->env, &o, &s->engine, &why);
    if (rc == RQ_E_CORRUPT) world_fail(&h->w, "%s", why.message);
    return rc == RQ_OK;
}

static unsigned log_index(const history *h, const char *name)
{
    unsigned i = 0;
    while (strcmp(h->logs[i], name) != 0)
        i++;
    return i;
}

static void end_incarnation(server *s, bool clean)
{
    history *h = s->h;
    if (s->engine != NULL) {
        if (!clean) rq_wal_abort(rq_engine_wal(s->engine));
        for (unsigned i = 0; i < REGIONS; i++) {
            rq_region *r = s->regions[i].region;
            s->regions[i].region = NULL;
            if (r == NULL) continue;
            if (clean && rq_region_close(r, false, NULL) != RQ_OK) clean = false;
            if (!clean) {
                rq_wal_abort(rq_engine_wal(s->engine));
                (void)!rq_region_close(r, true, NULL);
            }
            rq_region_unref(r);
        }
        while (s->busy > 0)
            world_sleep_ms(&h->w, 5);
        s->closing = true;
        if (rq_engine_close(s->engine, clean, NULL) != RQ_OK) clean = false;
        s->engine = NULL;
        s->closing = false;
    }
    if (s->tenure != NULL && clean) (void)!rq_tenure_end(s->tenure, NULL);
    rq_tenure_free(s->tenure);
    s->tenure = NULL;
    h->gone[log_index(h, s->name)] = true;
    seen_crashes += !clean;
}

/* --- regions ---------------------------------------------------------------------------------- */

static void adopt(server *s, const char *log)
{
    const char *encoded[REGIONS];
    size_t count = 0;
    for (unsigned i = 0; i < REGIONS; i++)
        if (s->regions[i].region == NULL) encoded[count++] = s->regions[i].info.encoded;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_engine_adopt(s->engine, log, encoded, count, &why);
    if (rc == RQ_E_CORRUPT) world_fail(&s->h->w, "%s", why.message);
    seen_adoptions += rc == RQ_OK;
}

/* Decides as a master would whether the owner is dead. *ret_log: the owner's log, or empty. */
static bool may_open(server *s, unsigned i, char ret_log[static NAME_MAX_LEN])
{
    history *h = s->h;
    rq_arena arena = {0};
    rq__manifest m = {0};
    uint64_t generation, quiet_ns;
    rq_err rc = rq__owned_read(s->engine->cluster, s->regions[i].info.encoded, &arena, &m,
                               &generation, NULL);
    (void)snprintf(ret_log, NAME_MAX_LEN, "%.*s", (int)m.owner.len, (const char *)m.owner.ptr);
    rq_arena_clear(&arena);
    if (rc == RQ_E_NOT_FOUND) {
        rc = rq_region_create(s->engine, &s->regions[i].info, s->regions[i].schema, NULL);
        return rc == RQ_OK;
    }
    if (rc != RQ_OK) return false;
    if (ret_log[0] == '\0' || strcmp(ret_log, s->name) == 0) return true;
    bool suspects = h->gone[log_index(h, ret_log)] || world_below(&h->w, 25) == 0;
    if (!suspects) return world_below(&h->w, 8) == 0; /* the opening must be refused */
    return rq_wal_fence(s->node->shared, ret_log, s->name, &quiet_ns, NULL) == RQ_OK;
}

static void open_region(server *s, unsigned i)
{
    history *h = s->h;
    char log[NAME_MAX_LEN];
    rq_error why = {.code = RQ_OK};
    if (!may_open(s, i, log)) return;
    if (log[0] != '\0' && strcmp(log, s->name) != 0 && world_below(&h->w, 2) == 0) adopt(s, log);
    rq_region *r;
    rq_err rc = rq_region_open(s->engine, &s->regions[i].info, s->regions[i].schema, &r, &why);
    if (rc == RQ_E_CORRUPT) world_fail(&h->w, "open: %s", why.message);
    seen_denied += rc == RQ_E_CONFLICT;
    if (rc != RQ_OK) return;
    world_stand_still(s->node);
    s->regions[i].region = r;
    seen_openings++;
    /* another server has opened the region since */
    if (r->owned->open_number <= h->models[i].open_number) return;
    h->models[i].opened_by = s->name;
    h->models[i].open_number = r->owned->open_number;
}

static void close_region(server *s, unsigned i)
{
    rq_region *r = s->regions[i].region;
    s->regions[i].region = NULL;
    rq_err rc = rq_region_close(r, false, NULL);
    if (rc != RQ_OK) {
        s->must_end = true;
        (void)!rq_region_close(r, true, NULL);
    }
    rq_region_unref(r);
    seen_moves += rc == RQ_OK;
}

/* A master's sweep: retires a log that has ended and that no region needs. */
static void sweep(server *s)
{
    history *h = s->h;
    const char *log = h->logs[world_below(&h->w, h->log_count)];
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_wal_retire(s->node->shared, log, &why);
    if (rc == RQ_E_CORRUPT) world_fail(&h->w, "%s", why.message);
}

/* --- the cleaner of MOB files ------------------------------------------------------------------ */

static bool answers(const server *s)
{
    return s->engine != NULL && !s->closing && !s->node->paused && !s->node->dead;
}

static bool is_swapping(const server *s, rq_arena *arena)
{
    rq_region **list;
    size_t count;
    bool is = false;
    assert_ok(rq_engine_regions(s->engine, arena, &list, &count));
    for (size_t i = 0; i < count; i++) {
        rq__gate *gate = &list[i]->commit_gate;
        pthread_mutex_lock(&gate->lock);
        is |= gate->busy;
        pthread_mutex_unlock(&gate->lock);
        rq_region_unref(list[i]);
    }
    return is;
}

/* A server answers after its current swaps have ended. Here its engine may end first. */
static bool answers_after_swaps(history *h, const server *s, rq_arena *arena)
{
    for (int tries = 0; tries < 100 && answers(s); tries++) {
        if (!is_swapping(s, arena)) return true;
        world_sleep_ms(&h->w, 1);
    }
    return false;
}

static void add_names(rq_mob_writers *w, const rq_slice *files, size_t count)
{
    assert_true(w->file_count + count <= MOB_WRITES_MAX);
    for (size_t i = 0; i < count; i++)
        w->files[w->file_count++] = files[i];
    seen_spared += (uint32_t)count;
}

/* Asks one server after the other; some that run do not answer. Names are listed before and after the swaps, because
 * most files are being written only during a swap. */
static rq_err ask_others(void *ctx, rq_arena *arena, rq_mob_writers *ret, rq_error *why)
{
    server *s = ctx;
    history *h = s->h;
    (void)why;
    *ret = (rq_mob_writers){.servers = rq_arena_calloc(arena, WORLD_NODES, sizeof(rq_slice)),
                            .files = rq_arena_calloc(arena, MOB_WRITES_MAX, sizeof(rq_slice))};
    assert_true(ret->servers != NULL && ret->files != NULL);
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        const server *o = &h->servers[i];
        rq_slice *files;
        size_t count;
        world_sleep_ms(&h->w, world_below(&h->w, 10));
        if (o == s || !answers(o) || world_below(&h->w, 10) == 0) continue;
        assert_ok(rq_mob_files_list_written(o->engine->mob_files, arena, &files, &count));
        add_names(ret, files, count);
        if (!answers_after_swaps(h, o, arena) ||
            rq_mob_writes(o->engine, arena, &files, &count, NULL) != RQ_OK)
            continue;
        add_names(ret, files, count);
        ret->servers[ret->server_count++] = rq_slice_cstr(o->name);
    }
    return RQ_OK;
}

/* A round of the cleaner, as a master runs it. A deposed master may run one at the same time. */
static void clean_mob(server *s)
{
    rq_table_schema *const tables[] = {s->regions[0].schema};
    const rq_mob_cleaning what = {
        .tables = tables, .table_count = 1, .now_ms = INT64_MAX / 2, .ask = ask_others, .ctx = s};
    size_t archived = 0;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_mob_clean(s->engine, &what, &archived, &why);
    if (rc == RQ_E_CORRUPT) world_fail(&s->h->w, "the cleaner: %s", why.message);
    seen_rounds += rc == RQ_OK;
    seen_undecided += rc == RQ_E_STATE;
    seen_archived += (uint32_t)archived;
}

/* --- the manager ------------------------------------------------------------------------------- */

static void manage(world_task *t)
{
    server *s = RQ_CONTAINER_OF(t, server, manager);
    history *h = s->h;
    while (!h->done && !s->node->dead) {
        bool up = begin_incarnation(s);
        while (up && !h->done && !s->node->dead && !s->must_end) {
            unsigned i = (unsigned)world_below(&h->w, REGIONS);
            world_sleep_ms(&h->w, world_below(&h->w, 150));
            world_stand_still(s->node);
            if (s->regions[i].region == NULL)
                open_region(s, i);
            else if (world_below(&h->w, 12) == 0)
                close_region(s, i);
            if (world_below(&h->w, 6) == 0) sweep(s);
            if (world_below(&h->w, 8) == 0) clean_mob(s);
            if (world_below(&h->w, 400) == 0) break; /* end by a crash or a clean stop */
        }
        end_incarnation(s, up && !s->must_end && !s->node->dead && world_below(&h->w, 3) == 0);
        if (!up) world_sleep_ms(&h->w, 200);
    }
}

/* --- clients ---------------------------------------------------------------------------------- */

static bool owns(const server *s, unsigned i, const char *name)
{
    const char *by = s->h->models[i].opened_by;
    return by != NULL && strcmp(by, name) == 0;
}

static void check_late(server *s, unsigned i, bool owned, const char *name)
{
    if (!owned)
        world_fail(&s->h->w, "region %u: %s acknowledges a write that came after %s opened it", i,
                   name, s->h->models[i].opened_by);
}

static void put_row(server *s, fixture *f, unsigned i)
{
    history *h = s->h;
    unsigned n = (unsigned)world_below(&h->w, ROWS);
    row *r = &h->models[i].rows[n];
    uint32_t k = ++r->issued;
    char name[8], value[12];
    const char *incarnation = s->name;
    bool owned = owns(s, i, incarnation);
    (void)snprintf(name, sizeof name, "r%u", n);
    (void)snprintf(value, sizeof value, "%u", k);
    rq_err rc = put(f, name, k % 2 == 0 ? "a" : "b", "v", k, value);
    if (rc != RQ_OK) {
        seen_refused++;
        return;
    }
    check_late(s, i, owned, incarnation);
    if (k > r->acknowledged) r->acknowledged = k;
    seen_writes++;
}

/* Retries an increment of this region with an unknown outcome, or makes a new one. */
static void count_up(server *s, fixture *f, unsigned i)
{
    history *h = s->h;
    model *m = &h->models[i];
    pending *p = NULL;
    const char *incarnation = s->name;
    for (unsigned k = 0; k < h->pending_count && p == NULL; k++)
        if (h->pending[k].region == i && !h->pending[k].busy && h->pending[k].nonce != 0)
            p = &h->pending[k];
    bool again = p != NULL;
    if (p == NULL && h->pending_count == PENDING_MAX) return;
    if (p == NULL) {
        p = &h->pending[h->pending_count++];
        *p = (pending){.region = i, .nonce = ++h->nonces};
        m->unknown++;
    }
    p->busy = true;
    bool owned = owns(s, i, incarnation);
    rq_err rc = increment(f, "c", "a", "n", 1, p->nonce, NULL);
    p->busy = false;
    if (rc != RQ_OK) return;
    /* A retry that was already applied is acknowledged without a write, because it is durable. */
    if (!again) check_late(s, i, owned, incarnation);
    m->unknown--;
    m->counted++;
    p->nonce = 0;
    seen_retried += again;
}

static void check_row(history *h, unsigned i, unsigned n, fixture *f)
{
    const row *r = &h->models[i].rows[n];
    uint32_t found = 0;
    char name[8];
    (void)snprintf(name, sizeof name, "r%u", n);
    for (unsigned k = 0; k < 2; k++) {
        const char *text = get(f, name, k == 0 ? "a" : "b", "v");
        uint32_t value = text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
        if (value > found) found = value;
    }
    if (found < r->acknowledged)
        world_fail(&h->w, "region %u, row %u: %u is read, %u was acknowledged", i, n, found,
                   r->acknowledged);
    if (found > r->issued) world_fail(&h->w, "row %u: %u was never written", n, found);
}

static void check_counter(history *h, unsigned i, fixture *f)
{
    const model *m = &h->models[i];
    int64_t value = get_long(f, "c", "a", "n");
    if (value == INT64_MIN) value = 0;
    if (value < m->counted || value > m->counted + m->unknown)
        world_fail(&h->w,
                   "region %u: counter %" PRId64 ", acknowledged %" PRId64 ", unknown %" PRId64, i,
                   value, m->counted, m->unknown);
}

/* Rule 4: checking the lease and answering are one step here. */
static void read_rows(server *s, fixture *f, unsigned i)
{
    if (s->node->paused || s->node->dead) return;
    if (rq_shared_now_ns(s->node->shared) >= rq_tenure_valid_until(s->tenure)) {
        seen_held++;
        return;
    }
    check_row(s->h, i, (unsigned)world_below(&s->h->w, ROWS), f);
    check_counter(s->h, i, f);
    seen_reads++;
}

static void call(server *s, unsigned i)
{
    fixture f = s->regions[i];
    unsigned kind = (unsigned)world_below(&s->h->w, 100);
    rq_region_ref(f.region);
    f.arena = (rq_arena){0};
    if (kind < 45)
        put_row(s, &f, i);
    else if (kind < 70)
        count_up(s, &f, i);
    else if (kind < 94)
        read_rows(s, &f, i);
    else if (kind < 99)
        (void)!rq_region_flush(f.region, (rq_slice){0}, NULL, NULL);
    else
        (void)!rq_region_compact(f.region, (rq_slice){0}, true, NULL);
    rq_region_unref(f.region);
    rq_arena_clear(&f.arena);
}

static void client(world_task *t)
{
    world *w = t->world;
    history *h = RQ_CONTAINER_OF(w, history, w);
    server *s = &h->servers[t->node->index];
    while (!h->done && !s->node->dead) {
        unsigned i = (unsigned)world_below(w, REGIONS);
        world_sleep_ms(w, 1 + world_below(w, 60));
        world_stand_still(s->node);
        if (s->regions[i].region == NULL || s->must_end || s->node->dead) continue;
        s->busy++;
        call(s, i);
        s->busy--;
    }
}

/* --- what happens to the nodes ---------------------------------------------------------------- */

static void faults(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, faults);
    world *w = t->world;
    for (unsigned rounds = 20; rounds > 0; rounds--) {
        world_node *n = &w->nodes[world_below(w, WORLD_NODES)];
        const server *s = &h->servers[n->index];
        bool killed = world_fault(n, (world_chances){.pause = 12, .cut = 8, .kill = 1});
        /* Calls that wait for the log return, as if the process had ended. */
        if (killed && s->engine != NULL && !s->closing) rq_wal_abort(rq_engine_wal(s->engine));
    }
    h->done = true;
}

/* --- a history -------------------------------------------------------------------------------- */

static void open_at_last(server *s, unsigned i)
{
    history *h = s->h;
    rq_error why = {.code = RQ_OK};
    fixture *f = &s->regions[i];
    rq_err rc = RQ_E_IO;
    for (int tries = 0; rc != RQ_OK && tries < 60; tries++) {
        rq_error_clear(&why);
        rc = rq_region_create(s->engine, &f->info, f->schema, &why);
        if (rc == RQ_OK) rc = rq_region_open(s->engine, &f->info, f->schema, &f->region, &why);
        if (rc == RQ_E_CORRUPT) break;
    }
    if (rc != RQ_OK) world_fail(&h->w, "the last opening: %s", why.message);
    h->models[i].opened_by = s->name;
}

static void fence_all(server *s)
{
    history *h = s->h;
    for (unsigned k = 0; k < h->log_count; k++) {
        uint64_t quiet_ns;
        rq_err rc = RQ_E_IO;
        if (h->logs[k] == s->name) continue;
        while (rc != RQ_OK)
            rc = rq_wal_fence(s->node->shared, h->logs[k], s->name, &quiet_ns, NULL);
        if (world_below(&h->w, 2) == 0) adopt(s, h->logs[k]);
    }
}

static rq_err check_mob_file(void *ctx, rq_slice table, rq_slice file, rq_error *why)
{
    server *s = ctx;
    rq_arena arena = {0};
    rq_stat st;
    const char *dir = rq_mob_family_dir(&arena, table, RQ_SLICE_LIT("a"));
    const char *path =
        rq_arena_printf(&arena, "%s/%.*s", dir, (int)file.len, (const char *)file.ptr);
    if (rq_vfs_stat(s->env.vfs, path, &st, why) != RQ_OK)
        world_fail(&s->h->w, "a region refers to %s, which is not there", path);
    rq_arena_clear(&arena);
    return RQ_OK;
}

static void add_mob_refs(server *s, const char *encoded, const rq__manifest *m, rq_mob_refs *refs)
{
    rq_arena arena = {0};
    const rq__manifest_family *f = rq__manifest_family_of(m, RQ_SLICE_LIT("a"));
    const char *dir = rq_arena_printf(&arena, "data/default/t/%s/a", encoded);
    for (size_t i = 0; f != NULL && i < f->file_count; i++)
        assert_ok(rq_mob_refs_of_store_file(s->env.vfs, dir, rq_arena_cstr(&arena, f->files[i]),
                                            refs, NULL));
    rq_arena_clear(&arena);
}

/* No other server runs any more. */
static void check_mob(server *s)
{
    rq_arena arena = {0};
    rq_mob_refs refs = {0};
    for (unsigned i = 0; i < REGIONS; i++) {
        const char *encoded = s->regions[i].info.encoded;
        rq__manifest m;
        uint64_t generation;
        rq_err rc = RQ_E_IO;
        while (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
            rc = rq__owned_read(s->engine->cluster, encoded, &arena, &m, &generation, NULL);
        if (rc == RQ_OK) add_mob_refs(s, encoded, &m, &refs);
    }
    assert_ok(rq_mob_refs_each(&refs, check_mob_file, s, NULL));
    rq_mob_refs_clear(&refs);
    rq_arena_clear(&arena);
}

static void check_all(server *s)
{
    history *h = s->h;
    for (unsigned i = 0; i < REGIONS; i++) {
        fixture *f = &s->regions[i];
        open_at_last(s, i);
        for (unsigned n = 0; n < ROWS; n++)
            check_row(h, i, n, f);
        check_counter(h, i, f);
        for (unsigned k = 0; k < h->pending_count; k++) {
            pending *p = &h->pending[k];
            if (p->region != i || p->nonce == 0) continue;
            if (increment(f, "c", "a", "n", 1, p->nonce, NULL) != RQ_OK) continue;
            h->models[i].unknown--;
            h->models[i].counted++;
        }
        check_counter(h, i, f);
    }
}

static void retire_all(server *s)
{
    history *h = s->h;
    for (unsigned k = 0; k < h->log_count; k++) {
        rq_error why = {.code = RQ_OK};
        rq_err rc = RQ_E_IO;
        if (h->logs[k] == s->name) continue;
        for (int tries = 0; rc == RQ_E_IO && tries < 60; tries++) {
            rq_error_clear(&why);
            rc = rq_wal_retire(s->node->shared, h->logs[k], &why);
        }
        /* STATE: the key of an opening with an unknown outcome, which a master's sweep removes. */
        if (rc != RQ_OK && rc != RQ_E_STATE) world_fail(&h->w, "retire: %s", why.message);
        seen_retired += rc == RQ_OK;
    }
}

static void take_everything_over(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t->world, history, w);
    server *s = &h->servers[1];
    for (int tries = 0; !begin_incarnation(s) && tries < 60; tries++)
        end_incarnation(s, false);
    if (s->engine == NULL) world_fail(&h->w, "no engine at the end");
    fence_all(s);
    check_mob(s);
    check_all(s);
    for (unsigned i = 0; i < REGIONS; i++) {
        rq_err rc = RQ_E_IO;
        for (int tries = 0; rc == RQ_E_IO && tries < 60; tries++)
            rc = rq_region_close(s->regions[i].region, false, NULL);
        if (rc != RQ_OK) world_fail(&h->w, "the last close: %d", rc);
        rq_region_unref(s->regions[i].region);
        s->regions[i].region = NULL;
    }
    retire_all(s);
    end_incarnation(s, true);
}

static void server_init(history *h, server *s, unsigned index)
{
    static const family_def families[] = {{"a", {"IS_MOB", "true", "MOB_THRESHOLD", "0", NULL}},
                                          {"b", {NULL}}};
    s->h = h;
    s->node = &h->w.nodes[index];
    s->env = *rq_sim_env(h->w.sim);
    for (unsigned i = 0; i < REGIONS; i++) {
        fixture *f = &s->regions[i];
        char start[2] = {(char)('a' + i), 0};
        f->env = &s->env;
        f->schema = make_schema("default", "t", families, 2);
        assert_ok(rq_region_info_make(&f->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      i == 0 ? (rq_slice){0} : rq_slice_cstr(start), (rq_slice){0},
                                      1700000000000 + (int)i, 0, &f->info));
    }
}

static void server_clear(server *s)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        rq_table_schema_unref(s->regions[i].schema);
        rq_arena_clear(&s->regions[i].arena);
    }
}

static void run_seed(world_form form, uint64_t seed)
{
    static const char *const settings[] = {
        "rorqual.memory=33554432", "rorqual.wal.file.size=16384", "rorqual.wal.max=65536",
        "hbase.hregion.memstore.flush.size=65536", "hbase.hstore.compaction.min.size=1048576"};
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    world_open(&h->w, form, seed, (unsigned)(seed % 3) * 5);
    assert_ok(rq_config_new(&h->config));
    for (size_t i = 0; i < RQ_ARRAY_LEN(settings); i++)
        assert_ok(rq_config_set_pair(h->config, settings[i], NULL));
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        server *s = &h->servers[i];
        server_init(h, s, i);
        world_start(&s->manager, &h->w, s->node, manage);
        for (unsigned k = 0; k < CLIENTS; k++)
            world_start(&s->clients[k], &h->w, s->node, client);
    }
    world_start(&h->faults, &h->w, NULL, faults);
    world_run(&h->w);
    /* Messages still in transit have arrived by then, and changed nothing. */
    rq_sim_advance(h->w.sim, UINT64_C(10000000000));
    world_start(&h->servers[1].manager, &h->w, &h->w.nodes[1], take_everything_over);
    world_run(&h->w);
    rq_sim_run(h->w.sim);
    for (unsigned i = 0; i < WORLD_NODES; i++)
        server_clear(&h->servers[i]);
    rq_config_free(h->config);
    world_close(&h->w);
    free(h);
}

static void run_form(world_form form)
{
    /* with twelve seeds a bug was missed that 1.6 % of the seeds show */
    seeds_range seeds = seeds_wanted(40);
    seen_writes = seen_refused = seen_reads = seen_held = seen_openings = seen_adoptions = 0;
    seen_moves = seen_denied = seen_retried = seen_crashes = seen_lost = seen_retired = 0;
    seen_rounds = seen_undecided = seen_spared = seen_archived = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        run_seed(form, seed);
    printf(
        "writes %u, refused %u, reads %u, held %u, openings %u, denied %u, adoptions %u, moves %u, "
        "increments repeated %u, crashes %u, regions lost %u, logs retired %u, MOB files: rounds "
        "%u, "
        "undecided %u, spared %u, archived %u\n",
        seen_writes, seen_refused, seen_reads, seen_held, seen_openings, seen_denied,
        seen_adoptions, seen_moves, seen_retried, seen_crashes, seen_lost, seen_retired,
        seen_rounds, seen_undecided, seen_spared, seen_archived);
    if (seeds.last - seeds.first < 11) return;
    /* Events that never happen are not tested. */
    assert_true(seen_writes > 1000 && seen_refused > 0 && seen_reads > 500 && seen_openings > 50);
    assert_true(seen_denied > 0 && seen_adoptions > 0 && seen_moves > 0 && seen_retried > 0);
    assert_true(seen_crashes > 0 && seen_lost > 0 && seen_retired > 0 && seen_held > 0);
    assert_true(seen_rounds > 0 && seen_undecided > 0 && seen_spared > 0 && seen_archived > 0);
}

static void promises_hold_by_messages(void **state)
{
    (void)state;
    run_form(FORM_MESSAGES);
}

static void promises_hold_in_a_folder(void **state)
{
    (void)state;
    run_form(FORM_FOLDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_hold_by_messages),
        cmocka_unit_test(promises_hold_in_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
