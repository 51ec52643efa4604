/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this room share: the shape of a filter and of a comparator, and the context of
 * parsing one from the wire.
 *
 * A filter is a struct that begins with rq_filter and a const class of hooks. A hook left NULL does
 * what HBase's FilterBase does. To add a filter: its struct, hooks and parser in the file of its
 * noun, one line in filters.def.
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
    /* See rq_filter_row_hint; *ret may be at or before `row`, which says nothing. Asked where
     * hints_rows of a filter that forgets rows. */
    bool (*row_hint)(const rq_filter *f, rq_slice row, rq_slice *ret);
    void (*transform)(rq_filter *f, const rq_cell *in, rq_cell *ret); /* NULL: the cell itself */
    /* NULL: no hint. *has comes in false. */
    rq_err (*hint)(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has);
    bool (*has_filter_row)(const rq_filter *f); /* NULL: false */
    /* Clears flags of `keep`; cells whose flag is already cleared are not there. NULL: nothing. */
    void (*row_cells)(rq_filter *f, const rq_cell *cells, size_t count, bool *keep);
    bool (*sees_row_cells)(const rq_filter *f);                 /* NULL: whoever has row_cells */
    bool (*row)(rq_filter *f);                                  /* NULL: false */
    bool (*is_family_essential)(rq_filter *f, rq_slice family); /* NULL: true */
    void (*set_reversed)(rq_filter *f, bool reversed);          /* NULL: only itself */
    void (*set_seed)(rq_filter *f, uint64_t seed);              /* NULL: nothing */
    /* HBASE: HintingFilter. A FilterList of AND asks these for a hint even when an earlier filter
     * has said no. */
    bool hinting;
    /* What it was shown of a row that was left out by its key is gone with the next reset, or will
     * be said again by rows behind it. */
    bool forgets_rows;
    /* `cell` answers INCLUDE or SKIP, and that is all there is to it. */
    bool compares_only;
} rq_filter_class;

struct rq_filter {
    const rq_filter_class *cls;
    rq_pace
        *pace; /* of the outermost filter and of lists: NULL: nothing inside searches in texts */
    bool reversed;
    /* Whether the class has these hooks; a list of AND knows its children's. */
    bool may_end, may_transform;
    bool judges_rows;   /* see rq_filter_judges_rows */
    bool resets;        /* see rq_filter_resets */
    bool hints_rows;    /* unless its parser says otherwise: whether there is row_hint */
    bool forgets_rows;  /* the class, or a list's children all */
    bool ends_at_cells; /* WhileMatchFilter, and what has one inside */
    uint32_t parts;     /* of the outermost: see rq_filter_clock */
};

/* The calls of filter.h without what FilterWrapper adds: what one filter asks of another. */
static inline bool rq__filter_all_remaining(rq_filter *f)
{
    return f->may_end && f->cls->all_remaining(f);
}

static inline rq_err rq__filter_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    if (f->cls->row_key != NULL) return f->cls->row_key(f, row, ret, why);
    *ret = rq__filter_all_remaining(f);
    return RQ_OK;
}

static inline rq_err rq__filter_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret,
                                     rq_error *why)
{
    if (f->cls->cell != NULL) return f->cls->cell(f, cell, ret, why);
    *ret = RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static inline void rq__filter_row_cells(rq_filter *f, const rq_cell *cells, size_t count,
                                        bool *keep)
{
    if (f->cls->row_cells != NULL) f->cls->row_cells(f, cells, count, keep);
}

/* What HBase's null is among its return codes: a filter that was never shown the row key
 * (MultiRowRangeFilter in a SkipFilter) has no answer. Nobody outside the room sees it. */
#define RQ__FILTER_NO_CODE ((rq_filter_code)(RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW + 1))

static inline bool rq__filter_code_includes(rq_filter_code code)
{
    return code == RQ_FILTER_INCLUDE || code == RQ_FILTER_INCLUDE_AND_NEXT_COL ||
           code == RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW;
}

/* Hooks of filters that never look at the row key, not even at all_remaining. */
rq_err rq__filter_row_key_passes(rq_filter *f, rq_slice row, bool *ret, rq_error *why);
/* has_filter_row of those that always have one. */
bool rq__filter_has_filter_row(const rq_filter *f);
/* rq_filter_row_done, which FilterWrapper is also as a filter. */
rq_filter_row_verdict rq__filter_row_done(rq_filter *f, const rq_cell *cells, size_t count,
                                          bool *keep);

/* A key before everything of the row; a row longer than any real one is cut, which only brings the
 * key forward. */
rq_cell rq__filter_first_on_row(rq_slice row);

/* --- Comparators ------------------------------------------------------------------------------ */
typedef struct rq_comparator_class {
    rq_err (*compare)(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why);
} rq_comparator_class;

struct rq_comparator {
    const rq_comparator_class *cls;
    rq_slice value;
    rq_pace *pace;  /* of one that is no filter's; NULL: it does not search in texts */
    bool is_binary; /* equal to the value's bytes, or not: no call is needed to see that */
};

/* What HBase throws from within a filter that is no IOException reaches the client as one, with the
 * exception's class and text as the message. HBASE: RpcServer.call. */
rq_err rq__filter_throw(rq_error *why, const char *java_class_and_message, ...) RQ_PRINTF(2, 3);
#define RQ__NULL_POINTER "java.lang.NullPointerException"

/* HBASE: CompareFilter.compareRow and its likes. *ret: filtered out. */
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
    *ret = rq_compare_op_excludes(op, c);
    return RQ_OK;
}

/* --- Parsing ---------------------------------------------------------------------------------- */
/* Ceilings against hostile requests; HBase knows none of them. */
#define RQ__FILTER_DEPTH_MAX 100                 /* FilterList in FilterList in … */
#define RQ__FILTER_BYTES_MAX (64u * 1024 * 1024) /* arena bytes of one filter's messages */

typedef struct rq__parse {
    rq_arena *arena;
    size_t bytes_left;
    unsigned depth;
    uint32_t parts;  /* filters and keys so far */
    size_t in_lists; /* filters in lists so far */
    rq_pace *pace;   /* what searches in texts shares it; NULL: there is none yet */
    bool no_memory;
    bool at_ceiling; /* the reason is ours, and told without HBase's wrapping */
    rq_error why;    /* message: the Java exception's toString() as ProtobufUtil would wrap it */
} rq__parse;

/* Decodes a message into the arena, where it stays; NULL with p->why set. */
void *rq__parse_message(rq__parse *p, const ProtobufCMessageDescriptor *type, rq_slice bytes);
/* Zeroed, in the arena, and of the same budget: what a filter has beside its message for each key
 * or range that it names. NULL as above. */
void *rq__parse_calloc(rq__parse *p, size_t count, size_t size);
/* RQ_E_NO_MEMORY or RQ_E_DO_NOT_RETRY, whichever made one of these fail. */
rq_err rq__parse_failed(rq__parse *p);
/* The exceptions of HBase's constructors. */
rq_err rq__parse_illegal(rq__parse *p, const char *fmt, ...) RQ_PRINTF(2, 3);
/* A zeroed filter or comparator with its class; NULL as above. */
rq_filter *rq__parse_new_filter(rq__parse *p, size_t size, const rq_filter_class *cls);
rq_comparator *rq__parse_new_comparator(rq__parse *p, size_t size, const rq_comparator_class *cls,
                                        rq_slice value);

struct Pb__Filter;
struct Pb__Comparator;
/* A filter inside a filter. */
rq_err rq__parse_child(rq__parse *p, const struct Pb__Filter *message, rq_filter **ret);
rq_err rq__parse_filter(rq__parse *p, rq_slice java_class_name, rq_slice bytes, rq_filter **ret);
/* A comparator inside a filter. */
rq_err rq__parse_comparator_of_filter(rq__parse *p, const struct Pb__Comparator *message,
                                      rq_comparator **ret);
rq_err rq__parse_comparator(rq__parse *p, rq_slice java_class_name, rq_slice bytes,
                            rq_comparator **ret);
/* Protobuf's CompareType, checked. */
rq_err rq__parse_op(rq__parse *p, int wire, rq_compare_op *ret);

static inline rq_slice rq__slice_of_pb(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

/* The pace of the filter or comparator that is parsed. */
rq_err rq__parse_pace(rq__parse *p, rq_pace **ret);
/* A growable buffer whose memory goes with the arena. */
rq_err rq__parse_own_buf(rq__parse *p, rq_buf *b);

#define X(java_class, parser) rq_err parser(rq__parse *p, rq_slice bytes, rq_filter **ret);
#include "filter/filters.def"
#undef X
#define X(java_class, parser) rq_err parser(rq__parse *p, rq_slice bytes, rq_comparator **ret);
#include "filter/comparators.def"
#undef X

#endif
