/* SPDX-License-Identifier: Apache-2.0 */
/* Passes replicated entries on; contract in sink_router.h. */
#include "replication/sink_router.h"

#include "base/clock.h"
#include "base/pb.h"
#include "catalog/catalog.h"
#include "replication/entries.h"
#include "replication/region_locator.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW_BYTES ((size_t)1 << 20)
#define WINDOW_EDITS 1024
#define WINDOW_TABLES 64
#define COPIES 3                     /* of a window's cells: in part, connection, socket */
#define KEY_BYTES 128                /* of an encoded entry without table and clusters */
#define CLUSTER_BYTES 24             /* of an encoded cluster id, at most */
#define PAUSE_NS UINT64_C(100000000) /* HBASE: hbase.client.pause */
#define PAUSE_NS_MAX UINT64_C(1000000000)
#define IDLE_MAX 5 /* jobs that run at a time: THREADS_OF_METHOD of service/blocking.c */

/* Field numbers of proto/admin.proto and proto/wal.proto. */
enum { REQUEST_ENTRY = 1, ENTRY_KEY = 1, ENTRY_CELLS = 3 };
enum { KEY_REGION = 1, KEY_TABLE = 2, KEY_NUMBER = 3, KEY_TIME = 4, KEY_CLUSTERS = 8 };

struct rq_sink_router {
    rq_sink_router_options o;
    pthread_mutex_t lock; /* guards the fields below, and `sent` of jobs */
    pthread_cond_t changed;
    bool stopping;
    rq__locator *idle[IDLE_MAX];
    size_t idle_count;
    size_t waiting; /* jobs between two attempts */
};

/* A mutation of the window. */
typedef struct edit {
    rq_slice cells, row;
    const Pb__WALKey *key;
    uint32_t count; /* cells */
    uint32_t table; /* in job.tables */
    bool done;
    rq__location at; /* set by each attempt */
} edit;

typedef struct window_table {
    rq_slice name;
    rq__located_table *located;
    bool is_needed; /* in this attempt */
} window_table;

/* A part of the window, for one server. */
typedef struct part {
    rq_sink_part sent; /* the first field: see rq_sink_part_sent */
    struct job *job;
    size_t first, count; /* in job.order */
    rq_buf message, cells;
    rq_err rc;
    rq_error why;
} part;

typedef struct job {
    rq_sink_router *s;
    rq_arena *arena;
    rq_error *why;
    size_t charged;
    rq__locator *locator;
    rq_entries entries;
    const rq_sink_request *request;
    /* The window. */
    edit *edits;
    size_t edit_count, bytes;
    window_table tables[WINDOW_TABLES];
    size_t table_count;
    /* The attempt. */
    edit **order;
    part *parts;
    size_t part_count;
    size_t in_flight; /* parts; guarded by the router's lock once parts are sent */
    rq_error last;    /* the last temporary error */
} job;

/* --- errors -------------------------------------------------------------------------------------- */

/* Keeps a temporary error: the job's error if no attempt succeeds. */
static void note(job *j, rq_err rc, const rq_error *why)
{
    rq_error_clear(&j->last);
    if (why != NULL && why->code != RQ_OK)
        j->last = *why;
    else
        (void)rq_fail(&j->last, rc, "%s", rq_err_text(rc));
}

/* Ends the job with this error. */
static rq_err give_up(job *j, rq_err rc, const rq_error *why)
{
    if (j->why->code == RQ_OK) *j->why = *why;
    return rc;
}

/* --- clients of this cluster -------------------------------------------------------------------- */

static rq__locator *take_idle(rq_sink_router *s)
{
    pthread_mutex_lock(&s->lock);
    rq__locator *p = s->idle_count == 0 ? NULL : s->idle[--s->idle_count];
    pthread_mutex_unlock(&s->lock);
    return p;
}

/* The client of a failed job is not used again: it keeps an entry for each table that the request named, even if the
 * table does not exist. */
static void end_locator(job *j, bool is_reusable)
{
    rq_sink_router *s = j->s;
    rq__locator *p = j->locator;
    j->locator = NULL;
    if (p == NULL) return;
    pthread_mutex_lock(&s->lock);
    bool keeps = is_reusable && s->idle_count < IDLE_MAX;
    if (keeps) s->idle[s->idle_count++] = p;
    pthread_mutex_unlock(&s->lock);
    if (!keeps) rq__locator_close(p);
}

static rq_err need_places(job *j)
{
    if (j->locator == NULL) j->locator = take_idle(j->s);
    if (j->locator != NULL) return RQ_OK;
    rq_error why = {0};
    rq_err rc = rq__locator_open(j->s->o.bootstrap, &j->locator, &why);
    if (rc != RQ_OK) note(j, rc, &why);
    return rc;
}

/* --- the window --------------------------------------------------------------------------------- */

/* Charges the memory of the window's copies to the call. The charge is that of the largest window so far. */
static rq_err charge(job *j)
{
    size_t wanted = COPIES * j->bytes;
    if (wanted <= j->charged) return RQ_OK;
    RQ_TRY(rq_arena_account(j->arena, wanted - j->charged));
    j->charged = wanted;
    return RQ_OK;
}

/* Refuses hbase:meta: only the master may change its rows. Its families have no replication scope, so no source sends
 * it. */
static rq_err check_table(rq_slice name, rq_error *why)
{
    rq_slice ns, qualifier;
    char text[600];
    bool is_valid = rq_table_name_parse(name, &ns, &qualifier, NULL) == RQ_OK &&
                    !rq_slice_eq(name, RQ_SLICE_LIT("hbase:meta"));
    if (is_valid) return RQ_OK;
    rq_bytes_to_string(name, text, sizeof text);
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "'%s'", text);
}

/* The window's table of this name. RQ_E_AGAIN: the window has too many tables. */
static rq_err find_table(job *j, rq_slice name, uint32_t *ret)
{
    size_t i = 0;
    while (i < j->table_count && !rq_slice_eq(j->tables[i].name, name))
        i++;
    if (i == WINDOW_TABLES) return RQ_E_AGAIN;
    if (i == j->table_count) {
        RQ_TRY(check_table(name, j->why));
        j->tables[j->table_count++] = (window_table){.name = name};
    }
    *ret = (uint32_t)i;
    return RQ_OK;
}

/* Bulk loads are refused: they name files in the source's folder, which each server would have to read. */
static rq_err take_event(job *j, const rq_cell *c, rq_cursor behind)
{
    if (rq_entries_is_bulk_load(c))
        return rq_fail(j->why, RQ_E_UNSUPPORTED,
                       "replicated bulk loads are not supported in a cluster");
    rq_entries_take(&j->entries, behind);
    return RQ_OK;
}

/* Upper bound of the mutation's bytes in a message: its cells, and an entry that contains only them. */
static size_t size_of(const Pb__WALKey *key, size_t cells)
{
    return cells + KEY_BYTES + key->table_name.len + key->n_cluster_ids * CLUSTER_BYTES;
}

/* RQ_E_AGAIN: the window has no room for the mutation, which is left for the next one. */
static rq_err take_edit(job *j, const rq_cell *first, rq_cursor behind)
{
    uint32_t table;
    rq_entries_edit taken;
    const rq_entries before = j->entries;
    const Pb__WALKey *key = rq_entries_key(&j->entries);
    RQ_TRY(find_table(j, rq_entries_table(&j->entries), &table));
    RQ_TRY(rq_entries_check_clusters(&j->entries, j->why));
    RQ_TRY(rq_entries_take_edit(&j->entries, first, behind, &taken, j->why));
    size_t len = rq_cursor_left(&taken.cells), size = size_of(key, len);
    if (j->edit_count > 0 && j->bytes + size > WINDOW_BYTES) {
        j->entries = before;
        return RQ_E_AGAIN;
    }
    j->edits[j->edit_count++] = (edit){.cells = {taken.cells.ptr, len},
                                       .row = rq_cell_row(first),
                                       .key = key,
                                       .count = (uint32_t)taken.count,
                                       .table = table};
    j->bytes += size;
    return RQ_OK;
}

/* Takes mutations until the window is full. At the end of the request the window stays empty. */
static rq_err fill_window(job *j)
{
    rq_err rc = RQ_OK;
    j->edit_count = j->bytes = j->table_count = 0;
    while (rc == RQ_OK && j->edit_count < WINDOW_EDITS && j->bytes < WINDOW_BYTES) {
        rq_cursor behind;
        rq_cell c;
        rc = rq_entries_peek(&j->entries, &behind, &c, j->why);
        if (rc != RQ_OK) break;
        rc = rq_entries_is_event(&c) ? take_event(j, &c, behind) : take_edit(j, &c, behind);
    }
    if (rc == RQ_E_END || rc == RQ_E_AGAIN) rc = RQ_OK;
    return rc == RQ_OK ? charge(j) : rc;
}

/* --- regions ------------------------------------------------------------------------------------- */

/* Reads the regions of the tables that are needed, unless they were read at `since_ns` or later. RQ_E_AGAIN: a
 * temporary error. */
static rq_err read_tables(job *j, int64_t since_ns)
{
    rq_error why = {0};
    rq_err rc = need_places(j);
    if (rc != RQ_OK) return RQ_E_AGAIN;
    for (size_t i = 0; i < j->table_count && rc == RQ_OK; i++)
        if (j->tables[i].is_needed)
            rc = rq__locator_read(j->locator, j->tables[i].name, since_ns, &j->tables[i].located,
                                  &why);
    if (rc == RQ_OK) return RQ_OK;
    if (rc == RQ_E_TABLE_NOT_FOUND) return give_up(j, rc, &why);
    note(j, rc, &why);
    return RQ_E_AGAIN;
}

static void look_up(job *j, edit *e, size_t *count)
{
    rq_err rc = rq__locator_find(j->tables[e->table].located, e->row, &e->at);
    if (rc == RQ_OK)
        j->order[(*count)++] = e;
    else
        note(j, rc, NULL);
}

static int by_server(const void *a, const void *b)
{
    const edit *x = *(edit *const *)a, *y = *(edit *const *)b;
    int c = strcmp(x->at.host, y->at.host);
    if (c == 0) c = (x->at.port > y->at.port) - (x->at.port < y->at.port);
    if (c == 0) c = (x->at.start_code > y->at.start_code) - (x->at.start_code < y->at.start_code);
    return c;
}

/* By server; the mutations for one server in the request's order. */
static int by_part(const void *a, const void *b)
{
    const edit *x = *(edit *const *)a, *y = *(edit *const *)b;
    int c = by_server(a, b);
    return c != 0 ? c : (x > y) - (x < y);
}

/* --- parts -------------------------------------------------------------------------------------- */

static rq_err put_clusters(rq_buf *b, const Pb__WALKey *key)
{
    for (size_t i = 0; i < key->n_cluster_ids; i++) {
        size_t at;
        RQ_TRY(rq_pb_begin(b, KEY_CLUSTERS, &at));
        RQ_TRY(rq_pb_put_number(b, 1, key->cluster_ids[i]->least_sig_bits));
        RQ_TRY(rq_pb_put_number(b, 2, key->cluster_ids[i]->most_sig_bits));
        RQ_TRY(rq_pb_end(b, at));
    }
    return RQ_OK;
}

static rq_err put_entry(rq_buf *b, const edit *e, rq_slice table, uint64_t cells)
{
    size_t entry, key;
    RQ_TRY(rq_pb_begin(b, REQUEST_ENTRY, &entry));
    RQ_TRY(rq_pb_begin(b, ENTRY_KEY, &key));
    RQ_TRY(rq_pb_put_bytes(b, KEY_REGION, e->at.encoded));
    RQ_TRY(rq_pb_put_bytes(b, KEY_TABLE, table));
    RQ_TRY(rq_pb_put_number(b, KEY_NUMBER, e->key->log_sequence_number));
    RQ_TRY(rq_pb_put_number(b, KEY_TIME, e->key->write_time));
    RQ_TRY(put_clusters(b, e->key));
    RQ_TRY(rq_pb_end(b, key));
    RQ_TRY(rq_pb_put_number(b, ENTRY_CELLS, cells));
    return rq_pb_end(b, entry);
}

static bool share_an_entry(const edit *a, const edit *b)
{
    return a->key == b->key && rq_slice_eq(a->at.encoded, b->at.encoded);
}

/* Consecutive mutations of one region that come from one entry of the source make one entry. */
static rq_err encode(part *p)
{
    job *j = p->job;
    edit **list = j->order + p->first;
    for (size_t i = 0; i < p->count;) {
        const edit *first = list[i];
        uint64_t cells = 0;
        for (; i < p->count && share_an_entry(first, list[i]); i++) {
            cells += list[i]->count;
            RQ_TRY(rq_buf_append(&p->cells, list[i]->cells.ptr, list[i]->cells.len));
        }
        RQ_TRY(put_entry(&p->message, first, j->tables[first->table].name, cells));
    }
    return RQ_OK;
}

static rq_err make_part(job *j, size_t first, size_t count)
{
    const edit *e = j->order[first];
    const rq_server_name to = {
        .host = e->at.host, .port = e->at.port, .start_code = e->at.start_code};
    part *p = &j->parts[j->part_count++];
    *p = (part){.job = j, .first = first, .count = count};
    p->sent.to = rq_server_name_new(&to);
    return p->sent.to == NULL ? RQ_E_NO_MEMORY : encode(p);
}

static void free_parts(job *j)
{
    for (size_t i = 0; i < j->part_count; i++) {
        rq_server_name_unref(j->parts[i].sent.to);
        rq_buf_clear(&j->parts[i].message);
        rq_buf_clear(&j->parts[i].cells);
    }
    free(j->parts);
    j->parts = NULL;
    j->part_count = 0;
}

/* Sorts the mutations in `order` by server, and makes one part for each server. */
static rq_err make_parts(job *j, size_t found)
{
    size_t servers = 0;
    rq_err rc = RQ_OK;
    qsort(j->order, found, sizeof *j->order, by_part);
    for (size_t i = 0; i < found; i++)
        servers += i == 0 || by_server(&j->order[i - 1], &j->order[i]) != 0;
    j->parts = calloc(servers + 1, sizeof *j->parts);
    if (j->parts == NULL) return RQ_E_NO_MEMORY;
    for (size_t from = 0, to; from < found && rc == RQ_OK; from = to) {
        to = from + 1;
        while (to < found && by_server(&j->order[from], &j->order[to]) == 0)
            to++;
        rc = make_part(j, from, to - from);
    }
    return rc;
}

/* --- sending ------------------------------------------------------------------------------------ */

void rq_sink_part_sent(rq_sink_part *sent, rq_err rc, const rq_error *why)
{
    part *p = RQ_CONTAINER_OF(sent, part, sent);
    job *j = p->job;
    rq_sink_router *s = j->s;
    pthread_mutex_lock(&s->lock);
    p->rc = rc;
    if (why != NULL) p->why = *why;
    if (--j->in_flight == 0) pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static rq_err check_runs(job *j)
{
    pthread_mutex_lock(&j->s->lock);
    bool runs = !j->s->stopping;
    pthread_mutex_unlock(&j->s->lock);
    if (runs) return RQ_OK;
    return rq_fail(j->why, RQ_E_SERVER_STOPPED, "%s", rq_err_text(RQ_E_SERVER_STOPPED));
}

/* Sends all parts and waits until each is answered or has failed. */
static rq_err send_parts(job *j)
{
    rq_sink_router *s = j->s;
    RQ_TRY(check_runs(j));
    j->in_flight = j->part_count;
    for (size_t i = 0; i < j->part_count; i++) {
        part *p = &j->parts[i];
        p->sent.message = rq_buf_slice(&p->message);
        p->sent.cells = rq_buf_slice(&p->cells);
        s->o.send(s->o.ctx, &p->sent);
    }
    pthread_mutex_lock(&s->lock);
    while (j->in_flight > 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return RQ_OK;
}

/* RQ_E_AGAIN: a part has failed with a temporary error. */
static rq_err take_ends(job *j)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < j->part_count; i++) {
        const part *p = &j->parts[i];
        for (size_t k = 0; k < p->count && p->rc == RQ_OK; k++)
            j->order[p->first + k]->done = true;
        if (p->rc == RQ_OK) continue;
        note(j, p->rc, &p->why);
        if (rq_err_do_not_retry(p->rc)) return give_up(j, p->rc, &j->last);
        rc = RQ_E_AGAIN;
    }
    return rc;
}

/* --- attempts ----------------------------------------------------------------------------------- */

/* Sends the mutations that are not applied yet. RQ_E_AGAIN: some of them failed with a temporary error. */
static rq_err attempt(job *j, int64_t since_ns)
{
    size_t found = 0, left = 0;
    RQ_TRY(check_runs(j)); /* at a stop: reading hbase:meta may take seconds for each job */
    for (size_t i = 0; i < j->table_count; i++)
        j->tables[i].is_needed = false;
    for (size_t i = 0; i < j->edit_count; i++)
        if (!j->edits[i].done) j->tables[j->edits[i].table].is_needed = true;
    RQ_TRY(read_tables(j, since_ns));
    for (size_t i = 0; i < j->edit_count; i++) {
        if (j->edits[i].done) continue;
        look_up(j, &j->edits[i], &found);
        left++;
    }
    rq_err rc = make_parts(j, found);
    if (rc == RQ_OK) rc = send_parts(j);
    if (rc == RQ_OK) rc = take_ends(j);
    free_parts(j);
    return rc == RQ_OK && found < left ? RQ_E_AGAIN : rc;
}

/* REQUIRES: lock held. Returns false if the router is stopped. */
static bool pause_until(rq_sink_router *s, const struct timespec *until)
{
    int rc = 0;
    s->waiting++;
    while (!s->stopping && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, until);
    s->waiting--;
    return !s->stopping;
}

/* False: the job must end. Few jobs may wait: the regions of a disabled table may have no server for hours, and jobs of
 * other tables need the threads. The source repeats a failed batch. */
static bool wait_for(rq_sink_router *s, uint64_t ns)
{
    uint64_t end = rq_clock_ns(CLOCK_MONOTONIC) + ns;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&s->lock);
    bool goes_on = s->waiting < s->o.waiting_max && pause_until(s, &until);
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* HBASE: RpcServer drops calls whose deadline has passed; the client's connection stays open. */
static rq_err check_wanted(job *j)
{
    const rq_sink_request *r = j->request;
    if (r->gone != NULL && atomic_load(r->gone))
        return rq_fail(j->why, RQ_E_CLOSED, "the source has closed its connection");
    if (rq_clock_ns(CLOCK_MONOTONIC) >= r->deadline_ns)
        return rq_fail(j->why, RQ_E_CLOSED, "the source does not wait for the response any more");
    return RQ_OK;
}

/* The first attempt uses the regions that the client knows; later attempts read them again. */
static rq_err apply_window(job *j)
{
    uint64_t end = rq_clock_ns(CLOCK_MONOTONIC) + j->s->o.limit_ns, pause = PAUSE_NS;
    rq_err rc = attempt(j, INT64_MIN);
    while (rc == RQ_E_AGAIN && rq_clock_ns(CLOCK_MONOTONIC) + pause < end &&
           wait_for(j->s, pause)) {
        RQ_TRY(check_wanted(j));
        pause = 2 * pause < PAUSE_NS_MAX ? 2 * pause : PAUSE_NS_MAX;
        rc = attempt(j, rq__locator_now_ns());
    }
    if (rc != RQ_E_AGAIN) return rc;
    RQ_ASSERT(j->last.code != RQ_OK); /* a job must not succeed before all is applied */
    return give_up(j, j->last.code, &j->last);
}

/* --- jobs --------------------------------------------------------------------------------------- */

static rq_err run(job *j)
{
    rq_err rc;
    do {
        RQ_TRY(check_wanted(j));
        rc = fill_window(j);
        if (rc == RQ_OK && j->edit_count > 0) rc = apply_window(j);
    } while (rc == RQ_OK && j->edit_count > 0);
    return rc;
}

rq_err rq_sink_router_entries(rq_sink_router *s, const rq_sink_request *request, rq_arena *arena,
                              rq_error *why)
{
    job *j = rq_arena_calloc(arena, 1, sizeof *j);
    if (j == NULL) return RQ_E_NO_MEMORY;
    j->s = s;
    j->arena = arena;
    j->why = why;
    j->request = request;
    j->edits = rq_arena_calloc(arena, WINDOW_EDITS, sizeof *j->edits);
    j->order = rq_arena_calloc(arena, WINDOW_EDITS, sizeof *j->order);
    if (j->edits == NULL || j->order == NULL) return RQ_E_NO_MEMORY;
    rq_entries_begin(&j->entries, request->entries, request->cells);
    rq_err rc = run(j);
    end_locator(j, rc == RQ_OK);
    return rc;
}

rq_err rq_sink_router_new(const rq_sink_router_options *o, rq_sink_router **ret)
{
    rq_sink_router *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->o = *o;
    rq_clock_cond_init(&s->changed);
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return RQ_OK;
}

void rq_sink_router_stop(rq_sink_router *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void rq_sink_router_free(rq_sink_router *s)
{
    if (s == NULL) return;
    for (size_t i = 0; i < s->idle_count; i++)
        rq__locator_close(s->idle[i]);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
