/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

/* --- sets of cells ---------------------------------------------------------------------------- */
static const uint8_t *copy(rq_arena *a, const uint8_t *p, size_t len)
{
    rq_slice s = rq_arena_copy(a, rq_slice_of(p, len));
    RQ_ASSERT(s.ptr != NULL);
    return s.ptr;
}

void cell_set_empty(cell_set *s)
{
    s->count = 0;
    rq_arena_reset(&s->arena);
}

void cell_set_clear(cell_set *s)
{
    rq_arena_clear(&s->arena);
    free(s->items);
    *s = (cell_set){0};
}

void cell_set_add(cell_set *s, const rq_cell *cell)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 16 : 2 * s->cap;
        s->items = realloc(s->items, s->cap * sizeof(*s->items));
        RQ_ASSERT(s->items != NULL);
    }
    rq_cell c = *cell;
    c.row = copy(&s->arena, c.row, c.row_len);
    c.family = copy(&s->arena, c.family, c.family_len);
    c.qualifier = copy(&s->arena, c.qualifier, c.qualifier_len);
    c.value = copy(&s->arena, c.value, c.value_len);
    c.tags = c.tags_len > 0 ? copy(&s->arena, c.tags, c.tags_len) : NULL;
    s->items[s->count++] = c;
}

void cell_set_add_all(cell_set *to, const cell_set *from)
{
    for (size_t i = 0; i < from->count; i++)
        cell_set_add(to, &from->items[i]);
}

static int compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    for (size_t i = 0; i < a_len && i < b_len; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

static bool meta_order;

void model_set_order(rq_cell_order order)
{
    meta_order = order == RQ_ORDER_META;
}

/* Splits a row of hbase:meta at its first and its last comma: table, start key, id. */
static void cut_meta_row(rq_slice row, rq_slice part[3])
{
    size_t first = 0;
    size_t last = row.len;
    while (first < row.len && row.ptr[first] != ',')
        first++;
    while (last > first && row.ptr[last - 1] != ',')
        last--;
    part[0] = rq_slice_of(row.ptr, first);
    part[1] = rq_slice_of(row.ptr + first + 1, last - first - 2);
    part[2] = rq_slice_of(row.ptr + last, row.len - last);
}

/* The tests' meta rows have two commas or more. */
static int compare_row_bytes(rq_slice a, rq_slice b)
{
    if (!meta_order) return compare_bytes(a.ptr, a.len, b.ptr, b.len);
    rq_slice x[3];
    rq_slice y[3];
    cut_meta_row(a, x);
    cut_meta_row(b, y);
    for (int i = 0; i < 3; i++) {
        int c = compare_bytes(x[i].ptr, x[i].len, y[i].ptr, y[i].len);
        if (c != 0) return c;
    }
    return 0;
}

static int compare_rows(const rq_cell *a, const rq_cell *b)
{
    return compare_row_bytes(rq_cell_row(a), rq_cell_row(b));
}

static int compare_qualifiers(const rq_cell *a, const rq_cell *b)
{
    return compare_bytes(a->qualifier, a->qualifier_len, b->qualifier, b->qualifier_len);
}

static int compare_keys(const rq_cell *a, const rq_cell *b)
{
    int c = compare_rows(a, b);
    if (c == 0) c = compare_bytes(a->family, a->family_len, b->family, b->family_len);
    if (c == 0) c = compare_qualifiers(a, b);
    if (c == 0 && a->timestamp != b->timestamp) c = a->timestamp > b->timestamp ? -1 : 1;
    if (c == 0 && a->type != b->type) c = a->type > b->type ? -1 : 1;
    return c;
}

static int compare_cells(const void *x, const void *y)
{
    const rq_cell *a = x;
    const rq_cell *b = y;
    int c = compare_keys(a, b);
    if (c == 0 && a->seqid != b->seqid) c = a->seqid > b->seqid ? -1 : 1;
    return c;
}

void cell_set_put(cell_set *s, const rq_cell *cell)
{
    for (size_t i = 0; i < s->count; i++) {
        if (compare_cells(&s->items[i], cell) != 0) continue;
        s->items[i] = s->items[--s->count];
        break;
    }
    cell_set_add(s, cell);
}

void cell_set_sort(cell_set *s)
{
    if (s->count > 1) qsort(s->items, s->count, sizeof(*s->items), compare_cells);
}

static const char *type_name(uint8_t type)
{
    switch (type) {
    case RQ_TYPE_PUT:
        return "Put";
    case RQ_TYPE_DELETE:
        return "Delete";
    case RQ_TYPE_DELETE_FAMILY_VERSION:
        return "DeleteFamilyVersion";
    case RQ_TYPE_DELETE_COLUMN:
        return "DeleteColumn";
    case RQ_TYPE_DELETE_FAMILY:
        return "DeleteFamily";
    default:
        return "?";
    }
}

void cell_set_print(const cell_set *s, const char *title)
{
    fprintf(stderr, "%s: %zu\n", title, s->count);
    for (size_t i = 0; i < s->count; i++) {
        const rq_cell *c = &s->items[i];
        char row[64];
        char qualifier[64];
        rq_bytes_to_string(rq_cell_row(c), row, sizeof(row));
        rq_bytes_to_string(rq_cell_qualifier(c), qualifier, sizeof(qualifier));
        fprintf(stderr, "  %s/%.*s:%s/%lld/%s/%llu = %.*s%s\n", row, c->family_len, c->family,
                qualifier, (long long)c->timestamp, type_name(c->type),
                (unsigned long long)c->seqid, (int)c->value_len, c->value,
                c->tags_len > 0 ? " (ttl)" : "");
    }
}

bool cell_set_equal(const cell_set *a, const cell_set *b, bool seqids)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const rq_cell *x = &a->items[i];
        const rq_cell *y = &b->items[i];
        if (compare_keys(x, y) != 0 || (seqids && x->seqid != y->seqid) ||
            !rq_slice_eq(rq_cell_value(x), rq_cell_value(y)) || x->tags_len != y->tags_len ||
            (x->tags_len > 0 && memcmp(x->tags, y->tags, x->tags_len) != 0))
            return false;
    }
    return true;
}

/* --- expired and hidden cells ----------------------------------------------------------------- */
static bool family_expired(const rq_family_schema *f, const rq_cell *c, int64_t now_ms)
{
    return f->ttl_s != RQ_TTL_FOREVER && c->timestamp < now_ms - 1000 * (int64_t)f->ttl_s;
}

/* The tests' only tag is a TTL: 2 bytes length, type 8, 8 bytes of milliseconds. */
static bool cell_expired(const rq_cell *c, int64_t now_ms)
{
    return c->tags_len == 11 && c->tags[2] == 8 &&
           c->timestamp + (int64_t)rq_get_be64(c->tags + 3) < now_ms;
}

static bool is_marker(const rq_cell *c)
{
    return c->type != RQ_TYPE_PUT;
}

static bool same_column(const rq_cell *a, const rq_cell *b)
{
    return compare_rows(a, b) == 0 && compare_qualifiers(a, b) == 0;
}

/* Whether this marker hides that put. 2: it also hides all older versions of the column. */
static int hides(const rq_cell *marker, const rq_cell *put)
{
    if (compare_rows(marker, put) != 0) return 0;
    switch (marker->type) {
    case RQ_TYPE_DELETE_FAMILY:
        return put->timestamp <= marker->timestamp ? 2 : 0;
    case RQ_TYPE_DELETE_FAMILY_VERSION:
        return put->timestamp == marker->timestamp;
    case RQ_TYPE_DELETE_COLUMN:
        return same_column(marker, put) && put->timestamp <= marker->timestamp ? 2 : 0;
    case RQ_TYPE_DELETE:
        return same_column(marker, put) && put->timestamp == marker->timestamp;
    default:
        return 0;
    }
}

/* --- flush and compaction --------------------------------------------------------------------- */
void model_rewrite(const rq_family_schema *f, cell_set *in, const model_rewrite_options *o,
                   cell_set *out)
{
    cell_set_sort(in);
    int64_t earliest_put = o->any_age ? INT64_MIN : INT64_MAX;
    for (size_t i = 0; i < in->count; i++) {
        if (!is_marker(&in->items[i]) && in->items[i].timestamp < earliest_put)
            earliest_put = in->items[i].timestamp;
    }
    uint64_t zero_up_to = 0;
    if (o->all_files)
        zero_up_to =
            o->newest_seqid < o->smallest_read_point ? o->newest_seqid : o->smallest_read_point;
    if (o->unflushed_from != 0 && zero_up_to >= o->unflushed_from)
        zero_up_to = o->unflushed_from - 1;

    cell_set acting = {0}; /* markers that hide later cells */
    bool ended = false;    /* no further cell of this column is kept */
    int versions = 0;
    const rq_cell *last = NULL; /* the last cell counted as a version */
    for (size_t i = 0; i < in->count; i++) {
        const rq_cell *c = &in->items[i];
        if (i > 0 && !same_column(c, c - 1)) {
            ended = false;
            versions = 0;
            last = NULL;
        }
        bool is_new = c->seqid > o->smallest_read_point;
        bool expired = family_expired(f, c, o->now_ms);
        bool keep = true;
        bool end = false;
        bool count = false;
        if (ended) continue;
        if (expired && f->min_versions <= 0) {
            keep = false;
            end = true;
        } else if (cell_expired(c, o->now_ms)) {
            keep = false;
        } else if (is_marker(c)) {
            bool kept_by_family = f->keep_deleted == RQ_KEEP_DELETED_TRUE ||
                                  (f->keep_deleted == RQ_KEEP_DELETED_TTL && !expired);
            if (!is_new) {
                if (!kept_by_family) cell_set_add(&acting, c);
                bool may_go =
                    o->all_files && (o->purge_ms == 0 || o->now_ms - c->timestamp > o->purge_ms);
                /* The marker may delete cells in the memstore. */
                if (o->unflushed_from != 0 && c->seqid > o->unflushed_from) may_go = false;
                if (may_go && !kept_by_family) keep = false;
                if (may_go && kept_by_family) {
                    if (c->timestamp < earliest_put) {
                        keep = false;
                        end = true;
                    } else {
                        count = true;
                    }
                }
            }
        } else {
            count = true;
            /* HBase checks family markers first, then markers of family versions, then the
             * column's; the first one that hides the put decides whether the rest of the column is
             * hidden too. */
            static const uint8_t order[] = {RQ_TYPE_DELETE_FAMILY, RQ_TYPE_DELETE_FAMILY_VERSION,
                                            RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE};
            for (size_t rank = 0; rank < RQ_ARRAY_LEN(order) && keep; rank++) {
                for (size_t k = 0; k < acting.count && keep; k++) {
                    int h = acting.items[k].type == order[rank] ? hides(&acting.items[k], c) : 0;
                    if (h > 0) keep = false;
                    if (h == 2) end = true;
                }
            }
        }
        if (keep && count && !is_new) {
            if (last != NULL && last->timestamp == c->timestamp && last->type == c->type) {
                keep = false; /* an older write of the same version */
            } else {
                if (!is_marker(c)) versions++;
                if (versions > f->max_versions || (versions > f->min_versions && expired)) {
                    keep = false;
                    end = true;
                } else {
                    last = c;
                }
            }
        }
        if (end && c->qualifier_len > 0) ended = true;
        if (!keep) continue;
        rq_cell kept = *c;
        if (kept.seqid <= zero_up_to) kept.seqid = 0;
        cell_set_add(out, &kept);
    }
    cell_set_clear(&acting);
}

/* --- scans ------------------------------------------------------------------------------------ */
void model_scan_init(model_scan *m, const rq_scan *scan, rq_filter *filter, uint64_t read_point,
                     int64_t now_ms)
{
    *m = (model_scan){.scan = scan, .filter = filter, .read_point = read_point, .now_ms = now_ms};
    if (filter != NULL && scan->reversed) rq_filter_set_reversed(filter, true);
}

void model_scan_add_family(model_scan *m, const rq_family_schema *schema,
                           const rq_scan_family *wanted, cell_set *cells)
{
    RQ_ASSERT(m->family_count < MODEL_FAMILIES_MAX);
    m->families[m->family_count++] = (model_family){
        .schema = schema,
        .wanted = wanted,
        .cells = cells,
        .essential = m->filter == NULL || !m->scan->load_families_on_demand ||
                     rq_filter_is_family_essential(m->filter, schema->name),
    };
}

void model_scan_clear(model_scan *m)
{
    for (size_t i = 0; i < m->family_count; i++)
        cell_set_clear(&m->families[i].floor);
    cell_set_clear(&m->row);
}

static bool all_remaining(const model_scan *m)
{
    return m->filter != NULL && rq_filter_all_remaining(m->filter);
}

/* Whether the cell exists for this scan. */
static bool exists(const model_scan *m, const model_family *f, const rq_cell *c)
{
    if (c->seqid > m->read_point) return false;
    if (!f->has_floor) return true;
    const rq_cell *floor = &f->floor.items[0];
    int rows = compare_rows(c, floor);
    if (rows != 0) return m->scan->reversed ? rows < 0 : rows > 0;
    return compare_keys(c, floor) >= 0;
}

static int compare_to_row(const rq_cell *c, rq_slice row)
{
    return compare_row_bytes(rq_cell_row(c), row);
}

static bool before_start(const model_scan *m, const rq_cell *c)
{
    const rq_scan *s = m->scan;
    if (m->has_row) {
        int rows = compare_rows(c, &m->row.items[0]);
        return s->reversed ? rows >= 0 : rows <= 0;
    }
    if (s->start_row.len == 0) return false;
    int rows = compare_to_row(c, s->start_row);
    if (rows == 0) return !s->include_start && !s->is_get;
    return s->reversed ? rows > 0 : rows < 0;
}

static bool behind_stop(const model_scan *m, const rq_cell *c)
{
    const rq_scan *s = m->scan;
    if (s->is_get) return compare_to_row(c, s->start_row) != 0;
    if (s->stop_row.len == 0) return false;
    int rows = compare_to_row(c, s->stop_row);
    if (rows == 0) return !s->include_stop;
    return s->reversed ? rows < 0 : rows > 0;
}

static const rq_cell *find_row(const model_scan *m)
{
    const rq_cell *best = NULL;
    for (size_t i = 0; i < m->family_count; i++) {
        const model_family *f = &m->families[i];
        if (!f->essential || f->ended) continue;
        for (size_t k = 0; k < f->cells->count; k++) {
            const rq_cell *c = &f->cells->items[k];
            if (!exists(m, f, c) || before_start(m, c)) continue;
            int rows = best == NULL ? 0 : compare_rows(c, best);
            if (best == NULL || (m->scan->reversed ? rows > 0 : rows < 0)) best = c;
        }
    }
    return best != NULL && !behind_stop(m, best) ? best : NULL;
}

typedef enum verdict { GO_ON, COLUMN_OVER, ROW_OVER } verdict;

/* One family's part of a row. */
typedef struct part {
    model_scan *m;
    model_family *f;
    cell_set *out;
    int shown;
    int passed; /* versions of the column that passed the filter */
    bool at_limit;
} part;

static verdict show(part *p, const rq_cell *c, verdict then)
{
    const rq_scan *scan = p->m->scan;
    rq_cell transformed = *c;
    if (p->m->filter != NULL) rq_filter_transform_cell(p->m->filter, c, &transformed);
    p->shown++;
    if (p->shown <= scan->store_offset) return then;
    cell_set_add(p->out, &transformed);
    if (scan->store_limit > -1 && p->shown >= scan->store_limit + scan->store_offset) {
        p->at_limit = true;
        return ROW_OVER;
    }
    return then;
}

static void set_floor(model_family *f, const rq_cell *hint)
{
    rq_cell key = *hint;
    key.value_len = 0;
    key.tags_len = 0;
    if (key.family_len > 0) {
        key.family = f->schema->name.ptr;
        key.family_len = (uint8_t)f->schema->name.len;
    }
    cell_set_empty(&f->floor);
    cell_set_add(&f->floor, &key);
    f->has_floor = true;
}

/* Calls the filter for a cell that passes all other rules. `most`: the number of versions of the
 * column that may be returned. */
static verdict ask(part *p, const rq_cell *c, int most)
{
    if (p->m->filter == NULL) return show(p, c, GO_ON);
    rq_filter_code code;
    if (p->m->failed || rq_filter_cell(p->m->filter, c, &code, &p->m->why) != RQ_OK) {
        p->m->failed = true;
        return ROW_OVER;
    }
    verdict then = GO_ON;
    switch (code) {
    case RQ_FILTER_SKIP:
        return GO_ON;
    case RQ_FILTER_NEXT_COL:
        return COLUMN_OVER;
    case RQ_FILTER_NEXT_ROW:
        return ROW_OVER;
    case RQ_FILTER_SEEK_NEXT_USING_HINT: {
        rq_cell hint;
        bool has = false;
        if (rq_filter_next_cell_hint(p->m->filter, c, &hint, &has) != RQ_OK) {
            p->m->failed = true;
            return ROW_OVER;
        }
        if (!has) return GO_ON;
        int rows = compare_rows(&hint, c);
        if (p->m->scan->reversed) {
            if (rows >= 0) return GO_ON;
            set_floor(p->f, &hint);
            return ROW_OVER;
        }
        if (rows < 0 || (rows == 0 && (c->qualifier_len == 0 || compare_keys(&hint, c) <= 0)))
            return GO_ON;
        set_floor(p->f, &hint);
        return rows > 0 ? ROW_OVER : GO_ON;
    }
    case RQ_FILTER_INCLUDE:
        break;
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
        then = COLUMN_OVER;
        break;
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
        then = ROW_OVER;
        break;
    }
    if (++p->passed > most) return then == ROW_OVER ? ROW_OVER : COLUMN_OVER;
    return show(p, c, then);
}

static bool wanted_column(const model_family *f, const rq_cell *c)
{
    if (f->wanted == NULL || f->wanted->qualifier_count == 0) return true;
    for (size_t i = 0; i < f->wanted->qualifier_count; i++)
        if (rq_slice_eq(f->wanted->qualifiers[i], rq_cell_qualifier(c))) return true;
    return false;
}

static bool in_range(rq_time_range r, const rq_cell *c)
{
    if (r.min == 0 && r.max == INT64_MAX) return true;
    return c->timestamp >= r.min && c->timestamp < r.max;
}

/* Whether this marker may hide puts in this scan. */
static bool acts(const model_scan *m, const model_family *f, rq_time_range r, const rq_cell *marker)
{
    if (!is_marker(marker) || cell_expired(marker, m->now_ms)) return false;
    if (family_expired(f->schema, marker, m->now_ms) && f->schema->min_versions <= 0) return false;
    if (r.min == 0 && r.max == INT64_MAX) return true;
    if (f->schema->keep_deleted != RQ_KEEP_DELETED_FALSE) return in_range(r, marker);
    return marker->timestamp >= r.min;
}

static bool hidden(const model_scan *m, const model_family *f, rq_time_range r, const cell_set *row,
                   const rq_cell *put)
{
    for (size_t i = 0; i < row->count; i++)
        if (acts(m, f, r, &row->items[i]) && hides(&row->items[i], put)) return true;
    return false;
}

static int by_seqid(const void *x, const void *y)
{
    uint64_t a = ((const rq_cell *)x)->seqid;
    uint64_t b = ((const rq_cell *)y)->seqid;
    return (a > b) - (a < b);
}

/* NEW_VERSION_BEHAVIOR: replays the column's history in the order of writing; returns whether the
 * put exists in the end. */
static bool survives(const model_family *f, const cell_set *row, const rq_cell *put)
{
    cell_set events = {0};
    cell_set shown = {0};
    for (size_t i = 0; i < row->count; i++) {
        const rq_cell *c = &row->items[i];
        if (same_column(c, put) || c->type == RQ_TYPE_DELETE_FAMILY ||
            c->type == RQ_TYPE_DELETE_FAMILY_VERSION)
            cell_set_add(&events, c);
    }
    if (events.count > 1) qsort(events.items, events.count, sizeof(rq_cell), by_seqid);
    for (size_t i = 0; i < events.count; i++) {
        const rq_cell *e = &events.items[i];
        size_t kept = 0;
        for (size_t k = 0; k < shown.count; k++) {
            bool goes = is_marker(e) ? hides(e, &shown.items[k]) > 0
                                     : e->timestamp == shown.items[k].timestamp;
            if (!goes) shown.items[kept++] = shown.items[k];
        }
        shown.count = kept;
        if (is_marker(e)) continue;
        cell_set_add(&shown, e);
        cell_set_sort(&shown);
        /* the oldest version is dropped permanently */
        if (shown.count > (size_t)f->schema->max_versions) shown.count--;
    }
    bool there = false;
    for (size_t k = 0; k < shown.count; k++)
        there = there ||
                (shown.items[k].timestamp == put->timestamp && shown.items[k].seqid == put->seqid);
    cell_set_clear(&events);
    cell_set_clear(&shown);
    return there;
}

static void read_part(part *p, const cell_set *row)
{
    const model_scan *m = p->m;
    const rq_scan *scan = m->scan;
    model_family *f = p->f;
    const rq_family_schema *schema = f->schema;
    rq_time_range range =
        f->wanted != NULL && f->wanted->has_time_range ? f->wanted->time_range : scan->time_range;
    bool explicit_columns = f->wanted != NULL && f->wanted->qualifier_count > 0;
    int most = scan->max_versions;
    if (!scan->raw && schema->max_versions < most) most = schema->max_versions;
    int counted = most;
    bool replay = schema->new_version_behavior && !scan->raw;
    if (m->filter != NULL && !replay) counted = scan->raw ? INT32_MAX : schema->max_versions;

    int versions = 0;
    const rq_cell *last = NULL;
    verdict state = GO_ON;
    for (size_t i = 0; i < row->count && state != ROW_OVER; i++) {
        const rq_cell *c = &row->items[i];
        if (i > 0 && !same_column(c, c - 1)) {
            versions = 0;
            last = NULL;
            p->passed = 0;
            state = GO_ON;
        }
        /* The empty qualifier is never skipped, because family markers are at it; except if a read
         * names its columns and has all of them. */
        if (state == COLUMN_OVER && (c->qualifier_len > 0 || (explicit_columns && !replay)))
            continue;
        if (!exists(m, f, c)) continue;
        if (!wanted_column(f, c) || !in_range(range, c) || cell_expired(c, m->now_ms)) continue;
        bool expired = !scan->raw && family_expired(schema, c, m->now_ms);
        if (!scan->raw) {
            if (is_marker(c) || (expired && schema->min_versions <= 0)) continue;
            if (replay ? !survives(f, row, c) : hidden(m, f, range, row, c)) continue;
        }
        if (!replay && last != NULL && last->timestamp == c->timestamp && last->type == c->type)
            continue;
        if (!is_marker(c)) versions++;
        bool last_one = false;
        if (versions > counted) {
            state = COLUMN_OVER;
            continue;
        }
        if (explicit_columns) {
            /* HBase: the first expired version at or after the minimum is still returned. */
            last_one = versions >= counted || (versions >= schema->min_versions && expired);
        } else if (versions > (scan->raw ? INT32_MAX : schema->min_versions) && expired) {
            state = COLUMN_OVER;
            continue;
        }
        last = c;
        state = ask(p, c, most);
        if (state == GO_ON && last_one) state = COLUMN_OVER;
        if (all_remaining(m) && !p->at_limit) state = ROW_OVER;
    }
    if (all_remaining(m) && !p->at_limit) f->ended = true;
}

/* Appends the family's part of the row. */
static void read_family(model_scan *m, model_family *f, const rq_cell *at, cell_set *out)
{
    if (f->ended) return;
    cell_set row = {0};
    for (size_t i = 0; i < f->cells->count; i++) {
        const rq_cell *c = &f->cells->items[i];
        if (compare_rows(c, at) == 0 && exists(m, f, c)) cell_set_add(&row, c);
    }
    cell_set_sort(&row);
    if (row.count > 0 && all_remaining(m)) {
        f->ended = true;
    } else if (row.count > 0) {
        part p = {.m = m, .f = f, .out = out};
        read_part(&p, &row);
    }
    cell_set_clear(&row);
}

/* Whether the row is returned. */
static bool decide(const model_scan *m, cell_set *out)
{
    bool is_empty = out->count == 0;
    if (m->filter == NULL) return !is_empty;
    if (!rq_filter_has_filter_row(m->filter)) return !is_empty && !rq_filter_row(m->filter);
    bool *keep = malloc(out->count + 1);
    RQ_ASSERT(keep != NULL);
    memset(keep, true, out->count);
    rq_filter_row_verdict v = rq_filter_row_done(m->filter, out->items, out->count, keep);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (keep[i]) out->items[kept++] = out->items[i];
    out->count = kept;
    free(keep);
    return !is_empty && v != RQ_FILTER_ROW_EXCLUDE;
}

static void reset(const model_scan *m)
{
    if (m->filter != NULL) rq_filter_reset(m->filter);
}

/* Cells of a row that is excluded by its key are passed to the filter, because they may end it.
 * HBASE: RegionScannerImpl.nextRow; a reversed scan seeks the row before. */
static void show_row(model_scan *m, const rq_cell *at, cell_set *out)
{
    if (m->scan->reversed || m->scan->is_get || !rq_filter_ends_at_cells(m->filter)) return;
    for (size_t i = 0; i < m->family_count; i++)
        if (m->families[i].essential) read_family(m, &m->families[i], at, out);
    cell_set_empty(out);
}

bool model_scan_next(model_scan *m, cell_set *out)
{
    for (;;) {
        cell_set_empty(out);
        if (m->done) return false;
        const rq_cell *found = find_row(m);
        if (found == NULL || (m->scan->is_get && m->has_row)) {
            m->done = true;
            return false;
        }
        cell_set_empty(&m->row);
        cell_set_add(&m->row, found);
        m->has_row = true;
        const rq_cell *at = &m->row.items[0];
        bool filtered = false;
        if (m->filter != NULL &&
            rq_filter_row_key(m->filter, rq_cell_row(at), &filtered, &m->why) != RQ_OK)
            m->failed = true;
        if (filtered) {
            show_row(m, at, out);
            if (all_remaining(m)) m->done = true;
            reset(m);
            continue;
        }
        for (size_t i = 0; i < m->family_count; i++)
            if (m->families[i].essential) read_family(m, &m->families[i], at, out);
        if (m->failed) {
            m->done = true;
            return false;
        }
        if (decide(m, out)) {
            for (size_t i = 0; i < m->family_count; i++)
                if (!m->families[i].essential) read_family(m, &m->families[i], at, out);
            if (m->failed) {
                m->done = true;
                return false;
            }
            if (out->count > 0) {
                cell_set_sort(out);
                reset(m);
                if (all_remaining(m)) m->done = true;
                return true;
            }
        }
        reset(m);
    }
}
