/* SPDX-License-Identifier: Apache-2.0 */
/* See new_version_tracker.h. */
#include "store/new_version_tracker.h"

typedef struct seq_set {
    uint64_t *items; /* ascending */
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

typedef struct epoch {
    uint64_t seqid; /* of the range marker that ends the epoch; UINT64_MAX: none */
    int64_t ts;     /* the marker covers this and older */
    version_marker *markers;
    puts_before *counts; /* ascending by seqid; the last has seqid UINT64_MAX */
    uint32_t marker_count, marker_cap;
    uint32_t count_count, count_cap;
} epoch;

typedef struct epochs {
    rq_arena arena; /* of what they point to */
    epoch *items;   /* ascending by seqid */
    uint32_t count, cap;
} epochs;

struct rq__new_version_tracker {
    const rq__column_tracker *columns;
    int32_t max_versions;
    int32_t wanted;
    epochs family; /* from the row's family markers alone */
    epochs column; /* family's, and the column's own */
    rq_arena *arena;
    rq__kept_bytes qualifier; /* the column at hand */
    bool has_column;
    int32_t taken; /* versions of it */
    uint8_t last_type;
    int64_t last_ts;
    uint64_t last_seqid;
};

/* Makes room for one more item; the items may move. */
static rq_err grow(rq_arena *arena, void **items, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) return RQ_OK;
    uint32_t more = *cap == 0 ? 4 : 2 * *cap;
    void *p = rq_arena_alloc(arena, more * size);
    if (p == NULL) return RQ_E_NO_MEMORY;
    if (count != 0) memcpy(p, *items, count * size);
    *items = p;
    *cap = more;
    return RQ_OK;
}

static rq_err set_add(rq_arena *arena, seq_set *s, uint64_t seqid)
{
    uint32_t i = s->count;
    while (i > 0 && s->items[i - 1] > seqid)
        i--;
    if (i > 0 && s->items[i - 1] == seqid) return RQ_OK;
    RQ_TRY(grow(arena, (void **)&s->items, s->count, &s->cap, sizeof(*s->items)));
    memmove(&s->items[i + 1], &s->items[i], (s->count - i) * sizeof(*s->items));
    s->items[i] = seqid;
    s->count++;
    return RQ_OK;
}

/* The index of the first epoch whose sequence id is at least `seqid`. */
static uint32_t epoch_at(const epochs *e, uint64_t seqid)
{
    uint32_t i = 0;
    while (i < e->count && e->items[i].seqid < seqid)
        i++;
    return i;
}

static rq_err add_epoch(epochs *e, uint64_t seqid, int64_t ts)
{
    uint32_t i = epoch_at(e, seqid);
    if (i == e->count || e->items[i].seqid != seqid) {
        RQ_TRY(grow(&e->arena, (void **)&e->items, e->count, &e->cap, sizeof(*e->items)));
        memmove(&e->items[i + 1], &e->items[i], (e->count - i) * sizeof(*e->items));
        e->count++;
    }
    epoch *new = &e->items[i];
    *new = (epoch){.seqid = seqid, .ts = ts};
    RQ_TRY(grow(&e->arena, (void **)&new->counts, 0, &new->count_cap, sizeof(*new->counts)));
    new->counts[0] = (puts_before){.seqid = UINT64_MAX};
    new->count_count = 1;
    return RQ_OK;
}

static rq_err add_version_marker(epochs *e, int64_t ts, uint64_t seqid)
{
    epoch *p = &e->items[epoch_at(e, seqid)];
    RQ_TRY(grow(&e->arena, (void **)&p->markers, p->marker_count, &p->marker_cap,
                sizeof(*p->markers)));
    p->markers[p->marker_count++] = (version_marker){ts, seqid};

    uint32_t i = 0;
    while (p->counts[i].seqid < seqid)
        i++;
    if (p->counts[i].seqid != seqid) {
        RQ_TRY(grow(&e->arena, (void **)&p->counts, p->count_count, &p->count_cap,
                    sizeof(*p->counts)));
        memmove(&p->counts[i + 1], &p->counts[i], (p->count_count - i) * sizeof(*p->counts));
        p->count_count++;
        p->counts[i + 1].puts = p->counts[i].puts;
        p->counts[i] = (puts_before){.seqid = seqid};
    } else {
        return RQ_OK;
    }
    /* The puts before the marker, of those counted in the part that the marker divides. */
    const seq_set *from = &p->counts[i + 1].puts;
    for (uint32_t k = 0; k < from->count && from->items[k] < seqid; k++)
        RQ_TRY(set_add(&e->arena, &p->counts[i].puts, from->items[k]));
    return RQ_OK;
}

static rq_err copy_epochs(const epochs *from, epochs *to)
{
    rq_arena_reset(&to->arena);
    to->items = NULL;
    to->count = to->cap = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const epoch *p = &from->items[i];
        RQ_TRY(add_epoch(to, p->seqid, p->ts));
        for (uint32_t k = 0; k < p->marker_count; k++)
            RQ_TRY(add_version_marker(to, p->markers[k].ts, p->markers[k].seqid));
    }
    return RQ_OK;
}

static void release(void *thing)
{
    rq__new_version_tracker *t = thing;
    rq_arena_clear(&t->family.arena);
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
    RQ_TRY(rq_arena_link(arena, release, t));
    *ret = t;
    return RQ_OK;
}

void rq__new_version_tracker_reset(rq__new_version_tracker *t)
{
    rq_arena_reset(&t->family.arena);
    rq_arena_reset(&t->column.arena);
    t->family.items = t->column.items = NULL;
    t->family.count = t->family.cap = 0;
    t->column.count = t->column.cap = 0;
    t->has_column = false;
    t->taken = 0;
}

static rq_err need_family(rq__new_version_tracker *t)
{
    return t->family.count > 0 ? RQ_OK : add_epoch(&t->family, UINT64_MAX, INT64_MIN);
}

/* Makes the cell's column the current one. *ret_replaced_at: the sequence id of the next newer
 * write of the same version, UINT64_MAX if there is none. */
static rq_err enter_column(rq__new_version_tracker *t, const rq_cell *cell,
                           uint64_t *ret_replaced_at)
{
    *ret_replaced_at = UINT64_MAX;
    if (!t->has_column ||
        !rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&t->qualifier))) {
        RQ_TRY(need_family(t));
        RQ_TRY(copy_epochs(&t->family, &t->column));
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

static rq_err add_to(epochs *e, const rq_cell *marker, bool range)
{
    return range ? add_epoch(e, marker->seqid, marker->timestamp)
                 : add_version_marker(e, marker->timestamp, marker->seqid);
}

rq_err rq__new_version_tracker_add(rq__new_version_tracker *t, const rq_cell *marker)
{
    if (marker->type == RQ_TYPE_DELETE_FAMILY || marker->type == RQ_TYPE_DELETE_FAMILY_VERSION) {
        bool range = marker->type == RQ_TYPE_DELETE_FAMILY;
        RQ_TRY(need_family(t));
        RQ_TRY(add_to(&t->family, marker, range));
        /* Puts of the empty qualifier are interleaved with the family's markers. */
        return t->has_column ? add_to(&t->column, marker, range) : RQ_OK;
    }
    uint64_t ignored;
    RQ_TRY(enter_column(t, marker, &ignored));
    return add_to(&t->column, marker, marker->type == RQ_TYPE_DELETE_COLUMN);
}

/* The sequence id of the first marker for the put's timestamp that is at or after the put, or
 * UINT64_MAX. */
static uint64_t deleted_at(const epoch *p, const rq_cell *put)
{
    uint64_t at = UINT64_MAX;
    for (uint32_t i = 0; i < p->marker_count; i++) {
        const version_marker *m = &p->markers[i];
        if (m->ts == put->timestamp && m->seqid >= put->seqid && m->seqid < at) at = m->seqid;
    }
    return at;
}

rq_err rq__new_version_tracker_check(rq__new_version_tracker *t, const rq_cell *put,
                                     rq__deleted *ret)
{
    uint64_t replaced_at;
    RQ_TRY(enter_column(t, put, &replaced_at));
    *ret = RQ__VERSION_DELETED;
    for (uint32_t i = epoch_at(&t->column, put->seqid); i < t->column.count; i++) {
        epoch *p = &t->column.items[i];
        uint64_t gone_at = deleted_at(p, put);
        uint64_t end = gone_at < replaced_at ? gone_at : replaced_at;
        for (uint32_t k = 0; k < p->count_count; k++) {
            puts_before *c = &p->counts[k];
            if (c->seqid < put->seqid || c->seqid > end) continue;
            if (c->puts.count >= (uint32_t)t->max_versions) return RQ_OK;
            RQ_TRY(set_add(&t->column.arena, &c->puts, put->seqid));
        }
        if (gone_at != UINT64_MAX || put->timestamp <= p->ts) return RQ_OK;
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
