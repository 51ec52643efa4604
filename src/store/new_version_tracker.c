/* SPDX-License-Identifier: Apache-2.0 */
/* See new_version_tracker.h. */
#include "store/new_version_tracker.h"

/* Sequence ids, descending: in the order in which the cells of a column mostly come. */
typedef struct seq_set {
    uint64_t *items;
    uint32_t count;
    uint32_t cap;
} seq_set;

/* The puts counted before a version marker, or before the end of the epoch (UINT64_MAX). */
typedef struct puts_before {
    uint64_t seqid;
    seq_set puts;
} puts_before;

typedef struct version_marker {
    int64_t ts;
    uint64_t seqid;
} version_marker;

typedef struct version_markers {
    version_marker *items; /* descending by timestamp, then by sequence id */
    uint32_t count;
    uint32_t cap;
} version_markers;

typedef struct epoch {
    uint64_t seqid; /* of the range marker that ends the epoch; UINT64_MAX: none */
    int64_t ts;     /* the marker deletes versions of this timestamp and older ones */
    version_markers of_family, of_column;
    puts_before *counts; /* descending by seqid; the first has seqid UINT64_MAX */
    uint32_t count_count, count_cap;
} epoch;

typedef struct epochs {
    rq_arena arena; /* for the memory they point to */
    epoch *items;   /* descending by seqid */
    uint32_t count, cap;
    uint64_t steps; /* elements moved or looked at one by one */
} epochs;

typedef struct family_markers {
    epochs ranges;
    version_markers versions; /* in the arena of `ranges` */
} family_markers;

struct rq__new_version_tracker {
    const rq__column_tracker *columns;
    int32_t max_versions;
    int32_t wanted;
    family_markers family; /* the row's */
    epochs column;         /* family's, and the column's own */
    rq_arena *arena;
    size_t accounted;         /* to `arena`: the most that the epochs had */
    rq__kept_bytes qualifier; /* the column at hand */
    bool has_column;
    int32_t taken; /* versions of it */
    uint8_t last_type;
    int64_t last_ts;
    uint64_t last_seqid;
};

/* --- lists ------------------------------------------------------------------------------------ */

/* Makes room for one more item; the items may move. */
static rq_err grow(epochs *e, void **items, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) return RQ_OK;
    uint32_t more = *cap == 0 ? 4 : 2 * *cap;
    void *p = rq_arena_alloc(&e->arena, more * size);
    if (p == NULL) return RQ_E_NO_MEMORY;
    if (count != 0) memcpy(p, *items, count * size);
    *items = p;
    *cap = more;
    return RQ_OK;
}

/* A place in a list in descending order; ids have no timestamp. */
typedef struct place {
    int64_t ts;
    uint64_t seqid;
} place;

/* The number of items before the place; the first `low` items are known to be before it. Inlined together with
 * the comparison. */
RQ_INLINE uint32_t count_in_front(const void *items, uint32_t low, uint32_t high, place at,
                                  bool (*is_in_front)(const void *items, uint32_t i, place at))
{
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (is_in_front(items, mid, at))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static inline bool id_is_greater(const void *items, uint32_t i, place at)
{
    return ((const uint64_t *)items)[i] > at.seqid;
}

/* The number of ids greater than this one. */
static uint32_t greater_in(const seq_set *s, uint64_t seqid)
{
    return count_in_front(s->items, 0, s->count, (place){.seqid = seqid}, id_is_greater);
}

static rq_err set_add(epochs *e, seq_set *s, uint64_t seqid)
{
    uint32_t i = greater_in(s, seqid);
    if (i < s->count && s->items[i] == seqid) return RQ_OK;
    RQ_TRY(grow(e, (void **)&s->items, s->count, &s->cap, sizeof(*s->items)));
    memmove(&s->items[i + 1], &s->items[i], (s->count - i) * sizeof(*s->items));
    e->steps += s->count - i;
    s->items[i] = seqid;
    s->count++;
    return RQ_OK;
}

static inline bool marker_is_upto(const void *items, uint32_t i, place at)
{
    const version_marker *m = (const version_marker *)items + i;
    return m->ts > at.ts || (m->ts == at.ts && m->seqid >= at.seqid);
}

/* The number of markers in front of the place of (ts, seqid), itself included. */
static uint32_t markers_upto(const version_markers *l, int64_t ts, uint64_t seqid)
{
    return count_in_front(l->items, 0, l->count, (place){ts, seqid}, marker_is_upto);
}

static rq_err list_marker(epochs *e, version_markers *l, int64_t ts, uint64_t seqid)
{
    uint32_t i = markers_upto(l, ts, seqid);
    RQ_TRY(grow(e, (void **)&l->items, l->count, &l->cap, sizeof(*l->items)));
    memmove(&l->items[i + 1], &l->items[i], (l->count - i) * sizeof(*l->items));
    e->steps += l->count - i;
    l->items[i] = (version_marker){ts, seqid};
    l->count++;
    return RQ_OK;
}

static inline bool count_ends_behind(const void *items, uint32_t i, place at)
{
    return ((const puts_before *)items)[i].seqid >= at.seqid;
}

/* The number of counts that end at or behind the sequence id; at least one. */
static uint32_t counts_from(const epoch *p, uint64_t seqid)
{
    return count_in_front(p->counts, 1, p->count_count, (place){.seqid = seqid}, count_ends_behind);
}

static inline bool epoch_ends_behind(const void *items, uint32_t i, place at)
{
    return ((const epoch *)items)[i].seqid >= at.seqid;
}

/* The number of epochs that end at or behind the sequence id. */
static uint32_t epochs_from(const epochs *e, uint64_t seqid)
{
    return count_in_front(e->items, 0, e->count, (place){.seqid = seqid}, epoch_ends_behind);
}

/* --- epochs ----------------------------------------------------------------------------------- */

static rq_err insert_epoch(epochs *e, uint32_t i, uint64_t seqid, int64_t ts)
{
    epoch new = {.seqid = seqid, .ts = ts};
    RQ_TRY(grow(e, (void **)&new.counts, 0, &new.count_cap, sizeof(*new.counts)));
    new.counts[new.count_count++] = (puts_before){.seqid = UINT64_MAX};
    RQ_TRY(grow(e, (void **)&e->items, e->count, &e->cap, sizeof(*e->items)));
    memmove(&e->items[i + 1], &e->items[i], (e->count - i) * sizeof(*e->items));
    e->steps += e->count - i;
    e->items[i] = new;
    e->count++;
    return RQ_OK;
}

/* A marker that a later one covers needs no epoch: the later marker hides the same puts and more, and
 * the puts that survive it have the same counts. So a row that is written and deleted again and again
 * has one epoch. Of several markers of one batch the newest timestamp counts. */
static rq_err add_epoch(epochs *e, uint64_t seqid, int64_t ts)
{
    uint32_t i = epochs_from(e, seqid);
    epoch *later = i == 0 ? NULL : &e->items[i - 1];
    if (later != NULL && later->ts >= ts) return RQ_OK;
    if (later == NULL || later->seqid != seqid) return insert_epoch(e, i, seqid, ts);
    later->ts = ts;
    return RQ_OK;
}

static rq_err add_version_marker(epochs *e, int64_t ts, uint64_t seqid, bool of_column)
{
    epoch *p = &e->items[epochs_from(e, seqid) - 1];
    RQ_TRY(list_marker(e, of_column ? &p->of_column : &p->of_family, ts, seqid));
    uint32_t i = counts_from(p, seqid);
    if (p->counts[i - 1].seqid == seqid) return RQ_OK;
    puts_before new = {.seqid = seqid};
    /* The puts before the marker, of those counted in the part that the marker divides. */
    const seq_set *from = &p->counts[i - 1].puts;
    for (uint32_t k = greater_in(from, seqid); k < from->count; k++, e->steps++)
        if (from->items[k] < seqid) RQ_TRY(set_add(e, &new.puts, from->items[k]));
    RQ_TRY(grow(e, (void **)&p->counts, p->count_count, &p->count_cap, sizeof(*p->counts)));
    memmove(&p->counts[i + 1], &p->counts[i], (p->count_count - i) * sizeof(*p->counts));
    e->steps += p->count_count - i;
    p->counts[i] = new;
    p->count_count++;
    return RQ_OK;
}

static void drop_epochs(epochs *e)
{
    rq_arena_reset(&e->arena);
    e->items = NULL;
    e->count = e->cap = 0;
}

/* The markers of the family, as of a column without puts. */
static rq_err copy_family(const family_markers *from, epochs *to)
{
    drop_epochs(to);
    for (uint32_t i = 0; i < from->ranges.count; i++)
        RQ_TRY(insert_epoch(to, i, from->ranges.items[i].seqid, from->ranges.items[i].ts));
    for (uint32_t i = 0; i < from->versions.count; i++) {
        const version_marker *m = &from->versions.items[i];
        RQ_TRY(add_version_marker(to, m->ts, m->seqid, false));
    }
    to->steps += from->ranges.count + from->versions.count;
    return RQ_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Called before an arena of epochs grows: charges the bytes to the read. */
static bool may_grow(void *ctx, size_t bytes)
{
    rq__new_version_tracker *t = ctx;
    size_t total = t->family.ranges.arena.total_bytes + t->column.arena.total_bytes + bytes;
    if (total <= t->accounted) return true;
    if (rq_arena_account(t->arena, total - t->accounted) != RQ_OK) return false;
    t->accounted = total;
    return true;
}

static void release(void *thing)
{
    rq__new_version_tracker *t = thing;
    rq_arena_clear(&t->family.ranges.arena);
    rq_arena_clear(&t->column.arena);
}

rq_err rq__new_version_tracker_new(rq_arena *arena, const rq__column_tracker *columns,
                                   int32_t max_versions, int32_t wanted,
                                   rq__new_version_tracker **ret)
{
    rq__new_version_tracker *t = rq_arena_calloc(arena, 1, sizeof(*t));
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->arena = arena;
    t->columns = columns;
    t->max_versions = max_versions;
    t->wanted = wanted;
    rq_arena_meter(&t->family.ranges.arena, may_grow, t);
    rq_arena_meter(&t->column.arena, may_grow, t);
    RQ_TRY(rq_arena_link(arena, release, t));
    *ret = t;
    return RQ_OK;
}

void rq__new_version_tracker_reset(rq__new_version_tracker *t)
{
    drop_epochs(&t->family.ranges);
    t->family.versions = (version_markers){0};
    drop_epochs(&t->column);
    t->has_column = false;
    t->taken = 0;
}

uint64_t rq__new_version_tracker_steps(const rq__new_version_tracker *t)
{
    return t->family.ranges.steps + t->column.steps;
}

static rq_err need_family(rq__new_version_tracker *t)
{
    epochs *ranges = &t->family.ranges;
    return ranges->count > 0 ? RQ_OK : insert_epoch(ranges, 0, UINT64_MAX, INT64_MIN);
}

/* --- a row ------------------------------------------------------------------------------------ */

/* Makes the cell's column the current one. *ret_replaced_at: the sequence id of the next newer
 * write of the same version, UINT64_MAX if there is none. */
static rq_err enter_column(rq__new_version_tracker *t, const rq_cell *cell,
                           uint64_t *ret_replaced_at)
{
    *ret_replaced_at = UINT64_MAX;
    if (!t->has_column ||
        !rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&t->qualifier))) {
        RQ_TRY(need_family(t));
        RQ_TRY(copy_family(&t->family, &t->column));
        RQ_TRY(rq__kept_bytes_set(&t->qualifier, t->arena, cell->qualifier, cell->qualifier_len));
        t->has_column = true;
        t->taken = 0;
    } else if (!rq_cell_is_delete(cell) && t->last_type == cell->type &&
               t->last_ts == cell->timestamp) {
        *ret_replaced_at = t->last_seqid;
    }
    t->last_ts = cell->timestamp;
    t->last_seqid = cell->seqid;
    t->last_type = cell->type;
    return RQ_OK;
}

static rq_err add_to_column(epochs *e, const rq_cell *marker, bool range)
{
    return range ? add_epoch(e, marker->seqid, marker->timestamp)
                 : add_version_marker(e, marker->timestamp, marker->seqid, true);
}

static rq_err add_to_family(family_markers *f, const rq_cell *marker, bool range)
{
    return range ? add_epoch(&f->ranges, marker->seqid, marker->timestamp)
                 : list_marker(&f->ranges, &f->versions, marker->timestamp, marker->seqid);
}

rq_err rq__new_version_tracker_add(rq__new_version_tracker *t, const rq_cell *marker)
{
    if (marker->type == RQ_TYPE_DELETE_FAMILY || marker->type == RQ_TYPE_DELETE_FAMILY_VERSION) {
        bool range = marker->type == RQ_TYPE_DELETE_FAMILY;
        RQ_TRY(need_family(t));
        RQ_TRY(add_to_family(&t->family, marker, range));
        /* Puts of the empty qualifier are interleaved with the family's markers. */
        return t->has_column ? add_to_column(&t->column, marker, range) : RQ_OK;
    }
    uint64_t ignored;
    RQ_TRY(enter_column(t, marker, &ignored));
    return add_to_column(&t->column, marker, marker->type == RQ_TYPE_DELETE_COLUMN);
}

static uint64_t first_at(const version_markers *l, const rq_cell *put)
{
    uint32_t i = markers_upto(l, put->timestamp, put->seqid);
    return i > 0 && l->items[i - 1].ts == put->timestamp ? l->items[i - 1].seqid : UINT64_MAX;
}

/* The sequence id of the first marker for the put's timestamp that is at or after the put, or
 * UINT64_MAX. */
static uint64_t deleted_at(const epoch *p, const rq_cell *put)
{
    uint64_t of_family = first_at(&p->of_family, put);
    uint64_t of_column = first_at(&p->of_column, put);
    return of_family < of_column ? of_family : of_column;
}

/* Adds the put to the epoch's counts up to the sequence id `end`. *ret_is_old: one of these counts
 * already had enough newer puts. */
static rq_err count_put(rq__new_version_tracker *t, epoch *p, uint64_t seqid, uint64_t end,
                        bool *ret_is_old)
{
    *ret_is_old = false;
    for (uint32_t i = counts_from(p, seqid); i-- > 0 && p->counts[i].seqid <= end;) {
        seq_set *puts = &p->counts[i].puts;
        t->column.steps++;
        *ret_is_old = puts->count >= (uint32_t)t->max_versions;
        if (*ret_is_old) return RQ_OK;
        RQ_TRY(set_add(&t->column, puts, seqid));
    }
    return RQ_OK;
}

rq_err rq__new_version_tracker_check(rq__new_version_tracker *t, const rq_cell *put,
                                     rq__deleted *ret)
{
    uint64_t replaced_at;
    RQ_TRY(enter_column(t, put, &replaced_at));
    *ret = RQ__VERSION_DELETED;
    for (uint32_t i = epochs_from(&t->column, put->seqid); i-- > 0;) {
        epoch *p = &t->column.items[i];
        uint64_t gone_at = deleted_at(p, put);
        bool is_old;
        t->column.steps++;
        RQ_TRY(count_put(t, p, put->seqid, gone_at < replaced_at ? gone_at : replaced_at, &is_old));
        if (is_old || gone_at != UINT64_MAX || put->timestamp <= p->ts) return RQ_OK;
    }
    if (replaced_at == UINT64_MAX) *ret = RQ__NOT_DELETED;
    return RQ_OK;
}

rq__match rq__new_version_tracker_check_versions(rq__new_version_tracker *t, const rq_cell *put,
                                                 bool keep_all)
{
    if (keep_all) return RQ__MATCH_INCLUDE;
    t->taken++;
    if (put->timestamp < t->columns->oldest) {
        if (t->taken == t->columns->min_versions) return RQ__MATCH_INCLUDE_AND_NEXT_COLUMN;
        if (t->taken > t->columns->min_versions) return RQ__MATCH_NEXT_COLUMN;
    }
    if (t->taken == t->wanted) return RQ__MATCH_INCLUDE_AND_NEXT_COLUMN;
    return t->taken > t->wanted ? RQ__MATCH_NEXT_COLUMN : RQ__MATCH_INCLUDE;
}
