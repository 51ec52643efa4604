/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of this room: the structure of filters and comparators, and the state of
 * parsing one from the wire.
 *
 * A filter is a struct that begins with rq_filter, and a const class of hooks. A NULL hook does
 * what HBase's FilterBase does. To add a filter: its struct, hooks and parser in the file of its
 * noun, and a line in filters.def.
 */
#ifndef RQ_FILTER_PRIV_H
#define RQ_FILTER_PRIV_H

#include "base/buf.h"
#include "filter/comparator.h"
#include "filter/filter.h"

#include <protobuf-c/protobuf-c.h>

/* --- Filters ---------------------------------------------------------------------------------- */
typedef struct rq_filter_class {
    void (*reset)(rq_filter *f);
    bool (*all_remaining)(rq_filter *f); /* NULL: false */
    /* NULL: all_remaining */
    rq_err (*row_key)(rq_filter *f, rq_slice row, bool *ret, rq_error *why);
    /* NULL: INCLUDE */
    rq_err (*cell)(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why);
    /* See rq_filter_row_hint; a *ret at or before `row` is no hint. Called only if hints_rows
     * and forgets_rows are set. */
    bool (*row_hint)(const rq_filter *f, rq_slice row, rq_slice *ret);
    void (*transform)(rq_filter *f, const rq_cell *in, rq_cell *ret); /* NULL: the cell is
                                                                       * unchanged */
    /* NULL: no hint. *has is false on entry. */
    rq_err (*hint)(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has);
    bool (*has_filter_row)(const rq_filter *f); /* NULL: false */
    /* Clears flags in cells->keep; cells whose flag is already cleared do not count as present.
     * RQ_E_AGAIN: the slice is used up; the next call continues at row_at. A hook that returns
     * RQ_OK has set row_at to 0. NULL: the filter drops no cells. */
    rq_err (*row_cells)(rq_filter *f, rq_filter_cells *cells);
    bool (*sees_row_cells)(const rq_filter *f);                 /* NULL: true if row_cells is set */
    bool (*row)(rq_filter *f);                                  /* NULL: false */
    bool (*is_family_essential)(rq_filter *f, rq_slice family); /* NULL: true */
    void (*set_reversed)(rq_filter *f, bool reversed);          /* NULL: sets only the filter's
                                                                 * own flag */
    void (*set_seed)(rq_filter *f, uint64_t seed);              /* NULL: nothing */
    /* HBASE: HintingFilter. A FilterList of AND asks such a filter for a hint even after an
     * earlier filter has excluded the cell. */
    bool hinting;
    /* State from a row excluded by its key is gone after the next reset, or rows behind it lead
     * to the same state. */
    bool forgets_rows;
    /* `cell` returns only INCLUDE or SKIP and has no side effects. */
    bool compares_only;
} rq_filter_class;

/* Answers of all_remaining that a filter keeps until its next call that may change its state. */
typedef enum rq__ended {
    RQ__ENDED_UNKNOWN,
    RQ__ENDED_NO,
    RQ__ENDED_YES,
} rq__ended;

struct rq_filter {
    const rq_filter_class *cls;
    rq_pace *pace; /* set for the outermost filter and for lists; NULL: no text searches inside,
                    * and no filters with row_cells */
    size_t row_at; /* of row_cells: the next cell, or a list's next child */
    bool row_cells_done; /* of rq__filter_row_end: the cells were passed, filterRow is next */
    bool reversed;
    uint8_t ended; /* rq__ended */
    /* Whether the class has these hooks. Lists and FilterWrapper clear may_end, and AND clears
     * may_transform, if the filters inside make no use of them. */
    bool may_end, may_transform;
    bool judges_rows;   /* see rq_filter_judges_rows */
    bool resets;        /* see rq_filter_resets */
    bool hints_rows;    /* whether the class has row_hint, unless the parser changes it */
    bool forgets_rows;  /* from the class; for a list, whether all children have it */
    bool ends_at_cells; /* WhileMatchFilter, or a filter that contains one */
    uint32_t parts;     /* set for the outermost filter: see rq_filter_clock */
};

/* The calls of filter.h without the checks that HBase's FilterWrapper adds; for calls between
 * filters. Each filter in a nest asks the next one whether it has ended, so without the kept answer
 * a nest of depth d would make d * d calls for a cell. A hook must not ask this of its own
 * filter. */
static inline bool rq__filter_all_remaining(rq_filter *f)
{
    if (!f->may_end) return false;
    if (f->ended == RQ__ENDED_UNKNOWN)
        f->ended = f->cls->all_remaining(f) ? RQ__ENDED_YES : RQ__ENDED_NO;
    return f->ended == RQ__ENDED_YES;
}

static inline rq_err rq__filter_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    if (f->cls->row_key != NULL) {
        f->ended = RQ__ENDED_UNKNOWN;
        return f->cls->row_key(f, row, ret, why);
    }
    *ret = rq__filter_all_remaining(f);
    return RQ_OK;
}

static inline rq_err rq__filter_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret,
                                     rq_error *why)
{
    if (f->cls->cell != NULL) {
        f->ended = RQ__ENDED_UNKNOWN;
        return f->cls->cell(f, cell, ret, why);
    }
    *ret = RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static inline rq_err rq__filter_row_cells(rq_filter *f, rq_filter_cells *cells)
{
    if (f->cls->row_cells == NULL) return RQ_OK;
    f->ended = RQ__ENDED_UNKNOWN;
    return f->cls->row_cells(f, cells);
}

typedef struct rq__few_cells {
    const rq_cell *cells;
    bool *keep;
    size_t count;
} rq__few_cells;

/* For row_cells hooks that look at each cell: the row's next cells from f->row_at on, as many as the
 * slice allows at `units` each. None: all were passed. RQ_E_AGAIN: the slice is used up. */
RQ_NODISCARD
rq_err rq__filter_next_cells(rq_filter *f, rq_pace *pace, unsigned units, rq_filter_cells *cells,
                             rq__few_cells *ret);

/* HBase's null among the return codes: a filter that never saw the row key (MultiRowRangeFilter
 * in a SkipFilter) returns it. Not visible outside the room. */
#define RQ__FILTER_NO_CODE ((rq_filter_code)(RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW + 1))

static inline bool rq__filter_code_includes(rq_filter_code code)
{
    return code == RQ_FILTER_INCLUDE || code == RQ_FILTER_INCLUDE_AND_NEXT_COL ||
           code == RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW;
}

/* row_key hook of filters that do not examine the row key, nor all_remaining. */
rq_err rq__filter_row_key_passes(rq_filter *f, rq_slice row, bool *ret, rq_error *why);
/* has_filter_row hook that returns true. */
bool rq__filter_has_filter_row(const rq_filter *f);
/* Implements rq_filter_row_end; also used by filters that contain a filter. */
RQ_NODISCARD
rq_err rq__filter_row_end(rq_filter *f, rq_pace *pace, rq_filter_cells *cells,
                          rq_filter_row_verdict *ret);

/* A key before all cells of the row. A row longer than any valid one is truncated, which only
 * moves the key forward. */
rq_cell rq__filter_first_on_row(rq_slice row);

/* --- Comparators ------------------------------------------------------------------------------ */
typedef struct rq_comparator_class {
    rq_err (*compare)(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why);
} rq_comparator_class;

struct rq_comparator {
    const rq_comparator_class *cls;
    rq_slice value;
    rq_pace *pace;  /* for a comparator outside a filter; NULL: it does not search in texts */
    bool is_binary; /* equality is equality of the value's bytes, so no call is needed */
};

/* An exception thrown inside a filter that is not an IOException reaches the client as an
 * IOException whose message is its class and text. HBASE: RpcServer.call. */
rq_err rq__filter_throw(rq_error *why, const char *java_class_and_message, ...) RQ_PRINTF(2, 3);
#define RQ__NULL_POINTER "java.lang.NullPointerException"

/* HBASE: CompareFilter.compareRow and similar. *ret: the cell is filtered out. */
static inline rq_err rq__filter_compare(rq_compare_op op, rq_comparator *nullable, rq_slice bytes,
                                        bool *ret, rq_error *why)
{
    *ret = true;
    if (op == RQ_NO_OP) return RQ_OK;
    if (nullable == NULL) return rq__filter_throw(why, RQ__NULL_POINTER);
    if (nullable->is_binary && (op == RQ_EQUAL || op == RQ_NOT_EQUAL)) {
        rq_slice value = nullable->value;
        *ret = rq_short_eq(value.ptr, value.len, bytes.ptr, bytes.len) != (op == RQ_EQUAL);
        return RQ_OK;
    }
    int c;
    RQ_TRY(nullable->cls->compare(nullable, bytes, &c, why));
    *ret = rq__compare_op_excludes(op, c);
    return RQ_OK;
}

/* --- Parsing ---------------------------------------------------------------------------------- */
/* Limits against hostile requests; HBase has none. */
#define RQ__FILTER_DEPTH_MAX 100                 /* FilterList in FilterList in … */
#define RQ__FILTER_BYTES_MAX (64u * 1024 * 1024) /* arena bytes of one filter's messages */

typedef struct rq__parse {
    rq_arena *arena;
    size_t bytes_left;
    unsigned depth;
    uint32_t parts;  /* keys and filters so far */
    size_t in_lists; /* filters in lists so far */
    rq_pace *pace;   /* shared by all text searches; NULL: none yet */
    bool no_memory;
    bool at_ceiling; /* a limit of this server was reached: reported without HBase's wrapping */
    rq_error why;    /* message: the Java exception's toString(), as ProtobufUtil would wrap it */
} rq__parse;

/* Decodes a message into the arena. NULL: return rq__parse_failed(p). */
void *rq__parse_message(rq__parse *p, const ProtobufCMessageDescriptor *type, rq_slice bytes);
/* Zeroed arena memory, charged to the same limit: for per-key or per-range data besides the
 * message. NULL: return rq__parse_failed(p). */
void *rq__parse_calloc(rq__parse *p, size_t count, size_t size);
/* The error after one of these functions failed: RQ_E_NO_MEMORY or RQ_E_DO_NOT_RETRY. */
rq_err rq__parse_failed(rq__parse *p);
/* The IllegalArgumentException of HBase's constructors. */
rq_err rq__parse_illegal(rq__parse *p, const char *fmt, ...) RQ_PRINTF(2, 3);
/* A zeroed filter or comparator with its class set. NULL: return rq__parse_failed(p). */
rq_filter *rq__parse_new_filter(rq__parse *p, size_t size, const rq_filter_class *cls);
rq_comparator *rq__parse_new_comparator(rq__parse *p, size_t size, const rq_comparator_class *cls,
                                        rq_slice value);

struct Pb__Filter;
struct Pb__Comparator;
/* Parses a filter inside a filter. */
rq_err rq__parse_child(rq__parse *p, const struct Pb__Filter *message, rq_filter **ret);
/* Parses a comparator inside a filter. */
rq_err rq__parse_comparator_of_filter(rq__parse *p, const struct Pb__Comparator *message,
                                      rq_comparator **ret);
/* Checks and converts protobuf's CompareType. */
rq_err rq__parse_op(rq__parse *p, int wire, rq_compare_op *ret);

static inline rq_slice rq__slice_of_pb(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

/* Returns the pace of the filter or comparator being parsed, making it if necessary. */
rq_err rq__parse_pace(rq__parse *p, rq_pace **ret);
/* Links a growable buffer to the arena, which then frees it. */
rq_err rq__parse_own_buf(rq__parse *p, rq_buf *b);
/* Like rq_buf_reserve, for a buffer that grows with the cells read: its growth is charged to the
 * filter's arena before. RQ_E_NO_MEMORY, too, where the arena may not grow. */
RQ_NODISCARD
rq_err rq__filter_reserve(rq_arena *arena, rq_buf *b, size_t more);

#define X(java_class, parser) rq_err parser(rq__parse *p, rq_slice bytes, rq_filter **ret);
#include "filter/filters.def"
#undef X
#define X(java_class, parser) rq_err parser(rq__parse *p, rq_slice bytes, rq_comparator **ret);
#include "filter/comparators.def"
#undef X

#endif
