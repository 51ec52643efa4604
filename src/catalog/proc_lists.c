/* SPDX-License-Identifier: Apache-2.0 */
/* The two lists of procedures: `active`, in order of arrival, and `finished`, the results, newest
 * first; indexes of both by id and by nonce; and queries about them.
 *
 * procedures.lock guards both: rq__procs_ functions require it, functions declared in procedure.h
 * and catalog.h take it themselves. */
#include "catalog/proc_priv.h"

#include <stdlib.h>
#include <string.h>

/* HBASE: CompletedProcedureCleaner: evict.ttl, acked.evict.ttl. */
#define KEEP_RESULT_MS (15 * 60 * 1000)
#define KEEP_ACKNOWLEDGED_MS (5 * 60 * 1000)
#define KEEP_RESULTS_MAX 10000
/* A small budget keeps fewer, but at least: */
#define KEEP_RESULTS_MIN 256
/* Failures beside successes. Calls that are refused cost their client nothing, and a failure that is forgotten is harmless:
 * the repeated call is checked again. */
#define FAILURES_PART 8
#define RESULT_BYTES (sizeof(rq__proc) + 1024)
#define EVICT_EVERY_MS (30 * 1000)

/* --- indexes ---------------------------------------------------------------------------------- */

enum { BY_ID, BY_NONCE };

#define INDEX_MIN 64

static size_t bucket_of(const rq__procedures *ps, const rq__proc *p, int index)
{
    /* Those without a nonce are spread by id; otherwise they would all share a bucket. */
    uint64_t h = index == BY_ID || p->nonce == 0 ? p->id : p->nonce ^ (p->nonce_group << 1);
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & ps->index_mask;
}

rq_err rq__procs_init(rq__procedures *ps)
{
    for (int i = 0; i < 2; i++) {
        ps->index[i] = calloc(INDEX_MIN, sizeof *ps->index[i]);
        if (ps->index[i] == NULL) return RQ_E_NO_MEMORY;
    }
    ps->index_mask = INDEX_MIN - 1;
    ps->ready_end = &ps->ready;
    return rq__lock_table_new(&ps->locks);
}

static void index_put(rq__procedures *ps, rq__proc *p)
{
    for (int i = 0; i < 2; i++) {
        rq__proc **bucket = &ps->index[i][bucket_of(ps, p, i)];
        p->index_next[i] = *bucket;
        *bucket = p;
    }
}

/* If there is no memory for more buckets, the chains get longer. */
static void index_grow(rq__procedures *ps)
{
    size_t old = ps->index_mask + 1, count = old * 2;
    rq__proc **more[2] = {calloc(count, sizeof *more[0]), calloc(count, sizeof *more[1])};
    if (more[0] == NULL || more[1] == NULL) {
        free(more[0]);
        free(more[1]);
        return;
    }
    rq__proc **by_id = ps->index[BY_ID];
    free(ps->index[BY_NONCE]);
    ps->index[BY_ID] = more[BY_ID];
    ps->index[BY_NONCE] = more[BY_NONCE];
    ps->index_mask = count - 1;
    for (size_t i = 0; i < old; i++) {
        while (by_id[i] != NULL) {
            rq__proc *p = by_id[i];
            by_id[i] = p->index_next[BY_ID];
            index_put(ps, p);
        }
    }
    free(by_id);
}

static void index_add(rq__procedures *ps, rq__proc *p)
{
    if (ps->indexed++ > ps->index_mask) index_grow(ps);
    index_put(ps, p);
}

static void index_remove(rq__procedures *ps, rq__proc *p)
{
    ps->indexed--;
    for (int i = 0; i < 2; i++) {
        rq__proc **at = &ps->index[i][bucket_of(ps, p, i)];
        while (*at != p)
            at = &(*at)->index_next[i];
        *at = p->index_next[i];
    }
}

/* NULL: none of that id, finished or not. */
static rq__proc *find_proc(const rq__procedures *ps, uint64_t id)
{
    rq__proc *p = ps->index[BY_ID][bucket_of(ps, &(rq__proc){.id = id}, BY_ID)];
    while (p != NULL && p->id != id)
        p = p->index_next[BY_ID];
    return p;
}

rq__proc *rq__procs_active(rq__procedures *ps, uint64_t id)
{
    rq__proc *p = find_proc(ps, id);
    return p == NULL || p->finished ? NULL : p;
}

rq__proc *rq__procs_by_nonce(rq__procedures *ps, uint64_t group, uint64_t nonce)
{
    if (nonce == 0) return NULL;
    const rq__proc key = {.nonce = nonce, .nonce_group = group};
    rq__proc *p = ps->index[BY_NONCE][bucket_of(ps, &key, BY_NONCE)];
    while (p != NULL && !(p->nonce == nonce && p->nonce_group == group))
        p = p->index_next[BY_NONCE];
    return p;
}

/* --- lists ------------------------------------------------------------------------------------ */

void rq__procs_append(rq__procedures *ps, rq__proc *p)
{
    p->next = NULL;
    p->prev = ps->active_last;
    if (p->prev == NULL)
        ps->active = p;
    else
        p->prev->next = p;
    ps->active_last = p;
    rq__procs_charge(ps, p);
    index_add(ps, p);
}

void rq__procs_remove(rq__procedures *ps, rq__proc *p)
{
    if (p->prev == NULL)
        ps->active = p->next;
    else
        p->prev->next = p->next;
    if (p->next == NULL)
        ps->active_last = p->prev;
    else
        p->next->prev = p->prev;
    p->next = p->prev = NULL;
    rq__procs_release(ps, p);
    index_remove(ps, p);
}

void rq__procs_keep(rq__procedures *ps, rq__proc *p)
{
    p->next = ps->finished;
    ps->finished = p;
    ps->finished_count++;
    index_add(ps, p);
}

/* Successes and failures are counted apart, so that failures displace no success. */
enum { SUCCESSES, FAILURES, CLASSES };

static int class_of(const rq__proc *p)
{
    return p->rc == RQ_OK ? SUCCESSES : FAILURES;
}

/* Results take as much memory as unfinished procedures may. */
static size_t room_of(const rq__procedures *ps, int class)
{
    size_t room = ps->bytes_max / RESULT_BYTES;
    if (room > KEEP_RESULTS_MAX) room = KEEP_RESULTS_MAX;
    if (room < KEEP_RESULTS_MIN) room = KEEP_RESULTS_MIN;
    return class == SUCCESSES ? room : room / FAILURES_PART;
}

/* Looking for results to evict costs a walk over all of them, so it is not done at each end of a
 * procedure: only when an eighth more than there is room for are kept, and every EVICT_EVERY_MS. */
static bool eviction_is_due(const rq__procedures *ps, int64_t now_ms)
{
    size_t room = room_of(ps, SUCCESSES) + room_of(ps, FAILURES);
    return ps->finished_count > room + room / 8 || now_ms - ps->evicted_ms >= EVICT_EVERY_MS ||
           now_ms < ps->evicted_ms;
}

static bool is_old(const rq__proc *p, int64_t now_ms)
{
    return now_ms - p->updated_ms > KEEP_RESULT_MS ||
           (p->acknowledged_ms != 0 && now_ms - p->acknowledged_ms > KEEP_ACKNOWLEDGED_MS);
}

/* Numbers of results, by client. */
typedef struct result_counts {
    size_t of[RQ__PROC_CLIENTS];
    size_t share; /* of each client */
} result_counts;

static size_t *count_of(result_counts *counts, const rq__proc *p)
{
    return &counts[class_of(p)].of[p->client % RQ__PROC_CLIENTS];
}

/* The largest share with which the results of all clients fit into the room: clients with fewer results keep them all,
 * however many the others have. At least one. */
static size_t share_for(const result_counts *c, size_t room)
{
    size_t least = 1, most = room;
    while (least < most) {
        size_t share = least + (most - least + 1) / 2, sum = 0;
        for (size_t i = 0; i < RQ__PROC_CLIENTS; i++)
            sum += c->of[i] < share ? c->of[i] : share;
        if (sum <= room)
            least = share;
        else
            most = share - 1;
    }
    return least;
}

static void find_shares(const rq__procedures *ps, int64_t now_ms, result_counts counts[CLASSES])
{
    memset(counts, 0, CLASSES * sizeof *counts);
    for (const rq__proc *p = ps->finished; p != NULL; p = p->next)
        if (!is_old(p, now_ms)) ++*count_of(counts, p);
    for (int i = 0; i < CLASSES; i++) {
        counts[i].share = share_for(&counts[i], room_of(ps, i));
        memset(counts[i].of, 0, sizeof counts[i].of);
    }
}

/* The newest results are kept: `kept` in all, and a share of each client. */
static bool has_room(const rq__procedures *ps, const rq__proc *p, result_counts counts[CLASSES],
                     size_t kept[CLASSES])
{
    size_t *own = count_of(counts, p);
    int class = class_of(p);
    if (*own >= counts[class].share || kept[class] >= room_of(ps, class)) return false;
    ++*own;
    kept[class]++;
    return true;
}

rq__proc *rq__procs_take_evicted(rq__procedures *ps, int64_t now_ms)
{
    rq__proc *list = NULL;
    result_counts counts[CLASSES];
    size_t kept[CLASSES] = {0};
    if (!eviction_is_due(ps, now_ms)) return NULL;
    ps->evicted_ms = now_ms;
    find_shares(ps, now_ms, counts);
    for (rq__proc **at = &ps->finished; *at != NULL;) {
        rq__proc *p = *at;
        if (!is_old(p, now_ms) && has_room(ps, p, counts, kept)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = list;
        list = p;
        ps->finished_count--;
        index_remove(ps, p);
    }
    return list;
}

/* --- what others may know --------------------------------------------------------------------- */

bool rq__procedures_own(rq_catalog *c, const rq_region_info *info)
{
    bool own = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !own; p = p->next)
        own = p->prepared && !p->ops->holds && !p->ops->leaves_regions &&
              p->ops->lock != RQ_LOCK_NAMESPACE && rq_slice_eq(p->ns, info->ns) &&
              rq_slice_eq(p->qualifier, info->qualifier) &&
              (!p->parked || rq__proc_holds_closed(p)) &&
              (p->ops->lock == RQ_LOCK_TABLE ||
               rq__proc_names_region(p, rq_slice_cstr(info->encoded)));
    pthread_mutex_unlock(&c->procedures.lock);
    return own;
}

bool rq__procedures_splitting(rq_catalog *c, const rq_region_info *info)
{
    bool found = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !found; p = p->next)
        found = p->ops->kind == RQ_DDL_SPLIT_REGION &&
                rq_slice_eq(p->of.split.region, rq_slice_cstr(info->encoded));
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
}

typedef struct region_names {
    rq_arena *arena;
    rq_procedure *to;
    size_t cap;
} region_names;

static rq_err add_region_name(void *ctx, rq_slice encoded)
{
    region_names *n = ctx;
    rq_procedure *p = n->to;
    if (p->region_count == n->cap) {
        size_t cap = n->cap == 0 ? 4 : n->cap * 2;
        rq_slice *more = rq_arena_alloc(n->arena, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (p->region_count > 0) memcpy(more, p->regions, p->region_count * sizeof *more);
        p->regions = more;
        n->cap = cap;
    }
    rq_slice name = rq_arena_copy(n->arena, encoded);
    if (name.ptr == NULL) return RQ_E_NO_MEMORY;
    p->regions[p->region_count++] = name;
    return RQ_OK;
}

static bool add_region_names(const rq__proc *p, rq_arena *arena, rq_procedure *ret)
{
    region_names n = {.arena = arena, .to = ret};
    return p->finished || p->ops->lock != RQ_LOCK_REGIONS ||
           rq__proc_each_region(p, add_region_name, &n) == RQ_OK;
}

/* REQUIRES: lock held. */
static bool describe(const rq__proc *p, rq_arena *a, rq_procedure *ret)
{
    bool failed = p->finished || p->parked || p->retrying;
    *ret = (rq_procedure){
        .id = p->id,
        .kind = p->ops->kind,
        .java_class = rq_arena_cstr(a, rq_slice_cstr(p->java_class)),
        .ns = rq_arena_copy(a, p->ns),
        .qualifier = rq_arena_copy(a, p->qualifier),
        .user = rq_arena_copy(a, p->user),
        .nonce_group = p->nonce_group,
        .nonce = p->nonce,
        .submitted_ms = p->submitted_ms,
        .updated_ms = p->finished ? p->updated_ms : p->submitted_ms,
        .finished = p->finished,
        .waiting = !p->finished && !p->running,
        .holds = p->ops->holds && p->retrying,
        .level = p->ops->lock,
        .parked = p->parked,
        .step = rq__proc_step_name(p, p->step),
        .rc = failed ? p->rc : RQ_OK,
    };
    if (ret->rc != RQ_OK) ret->message = rq_arena_cstr(a, rq_slice_cstr(p->why.message));
    return add_region_names(p, a, ret) && ret->java_class != NULL && ret->ns.ptr != NULL &&
           ret->qualifier.ptr != NULL && ret->user.ptr != NULL &&
           (ret->rc == RQ_OK || ret->message != NULL);
}

bool rq_catalog_procedure(rq_catalog *c, uint64_t proc_id, rq_arena *arena, rq_procedure *ret)
{
    pthread_mutex_lock(&c->procedures.lock);
    const rq__proc *p = find_proc(&c->procedures, proc_id);
    bool found = p != NULL && describe(p, arena, ret);
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
}

static int id_order(const void *a, const void *b)
{
    const rq_procedure *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* REQUIRES: the lock. */
static rq_err copy_list(const rq__proc *first, size_t count, rq_arena *arena, rq_procedure *list)
{
    for (size_t i = 0; i < count; i++, first = first->next)
        if (!describe(first, arena, &list[i])) return RQ_E_NO_MEMORY;
    return RQ_OK;
}

/* REQUIRES: the lock. Room for `more` behind the active ones. */
static rq_err copy_active(const rq__procedures *ps, size_t more, rq_arena *arena,
                          rq_procedure **ret, size_t *ret_count)
{
    size_t active = 0;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        active++;
    *ret = rq_arena_calloc(arena, active + more, sizeof **ret);
    *ret_count = active;
    return *ret == NULL ? RQ_E_NO_MEMORY : copy_list(ps->active, active, arena, *ret);
}

/* REQUIRES: the lock. */
static rq_err finished_ids(const rq__procedures *ps, rq_arena *arena, uint64_t **ret,
                           size_t *ret_count)
{
    uint64_t *id = *ret = rq_arena_calloc(arena, ps->finished_count, sizeof *id);
    *ret_count = ps->finished_count;
    if (id == NULL) return RQ_E_NO_MEMORY;
    for (const rq__proc *p = ps->finished; p != NULL; p = p->next)
        *id++ = p->id;
    return RQ_OK;
}

/* Copied at a time with the lock, for which procedures that begin and end wait. */
#define COPIES_AT_A_TIME 32

/* Those that were evicted meanwhile are left out. */
static rq_err copy_some(rq_catalog *c, const uint64_t *ids, size_t count, rq_arena *arena,
                        rq_procedure *list, size_t *list_count)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&c->procedures.lock);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const rq__proc *p = find_proc(&c->procedures, ids[i]);
        if (p == NULL) continue;
        rc = describe(p, arena, &list[*list_count]) ? RQ_OK : RQ_E_NO_MEMORY;
        ++*list_count;
    }
    pthread_mutex_unlock(&c->procedures.lock);
    return rc;
}

rq_err rq_catalog_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count)
{
    rq__procedures *ps = &c->procedures;
    uint64_t *ids;
    size_t finished;
    pthread_mutex_lock(&ps->lock);
    rq_err rc = finished_ids(ps, arena, &ids, &finished);
    if (rc == RQ_OK) rc = copy_active(ps, finished, arena, ret, ret_count);
    pthread_mutex_unlock(&ps->lock);
    for (size_t i = 0, n; i < finished && rc == RQ_OK; i += n) {
        n = finished - i < COPIES_AT_A_TIME ? finished - i : COPIES_AT_A_TIME;
        rc = copy_some(c, ids + i, n, arena, *ret, ret_count);
    }
    if (rc == RQ_OK && *ret_count > 1) qsort(*ret, *ret_count, sizeof **ret, id_order);
    return rc;
}

rq_err rq_catalog_unfinished_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret,
                                        size_t *ret_count)
{
    pthread_mutex_lock(&c->procedures.lock);
    rq_err rc = copy_active(&c->procedures, 0, arena, ret, ret_count);
    pthread_mutex_unlock(&c->procedures.lock);
    if (rc == RQ_OK && *ret_count > 1) qsort(*ret, *ret_count, sizeof **ret, id_order);
    return rc;
}

void rq_catalog_procedure_counts(rq_catalog *c, rq_procedure_counts *ret)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    *ret = (rq_procedure_counts){.succeeded = ps->succeeded, .failed = ps->failed};
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        *(p->parked ? &ret->parked : p->running ? &ret->running : &ret->waiting) += 1;
    pthread_mutex_unlock(&ps->lock);
}

void rq_catalog_procedure_forget(rq_catalog *c, uint64_t proc_id)
{
    pthread_mutex_lock(&c->procedures.lock);
    rq__proc *p = find_proc(&c->procedures, proc_id);
    if (p != NULL && p->finished && p->acknowledged_ms == 0)
        p->acknowledged_ms = rq__catalog_wall_ms(c);
    pthread_mutex_unlock(&c->procedures.lock);
}

const char *rq_ddl_java_class(rq_ddl_kind kind)
{
    const rq__proc_kind *k = rq__proc_kind_of(kind);
    return k == NULL ? "" : k->java_class;
}
