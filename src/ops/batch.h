/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: gets and writes of several regions as one op. It iterates over groups, each of one
 * region, and over their parts, and asks its caller for each one when it gets there, so that a
 * large request is decoded in slices while it is executed.
 *
 * A group is executed in one of two ways:
 *  - atomic: one op of all its parts, perhaps with a condition. Atomic groups of one region that follow each
 *    other are submitted as one run of ops, which are executed in their order and wait for the log together. A
 *    group of a row that one of them changes begins another run, which waits for the first.
 *  - otherwise: each part on its own, in order, except that puts and deletes are collected. They
 *    are submitted to the region as one run when an append or an increment comes (which must see
 *    them, and must be seen by later parts), and at the end of the group. The batch waits for such
 *    a run before the next part.
 *
 * The last run of a group may be in progress while later groups are executed. A later group of the same region
 * waits for it if either of the two is atomic, because a write that waits for a block or a locked row lets the
 * writes behind it pass, and changes of a row must keep their order. HBASE:
 * RSRpcServices.multi completes each region action before the next one.
 *
 * A get that needs a block waits for it; meanwhile the blocks that the next gets of the group need
 * are read, too (beside.h).
 *
 * If memory is short the writes of a group are submitted in smaller runs, each awaited.
 *
 * The op ends when all runs are durable. Results are reported in the order in which the parts were
 * executed, and the cells in the sink have the same order. */
#ifndef RQ_OPS_BATCH_H
#define RQ_OPS_BATCH_H

#include "base/meter.h"
#include "ops/gate.h"
#include "ops/read.h"
#include "region/region_scanner.h"

typedef enum rq_batch_part_kind {
    RQ_PART_GET,
    RQ_PART_COLLECTED, /* a put or delete: submitted to the region together with others */
    RQ_PART_ALONE,     /* an append or increment: the last of its run */
    RQ_PART_OTHER,     /* the caller's business */
} rq_batch_part_kind;

typedef struct rq_batch_part {
    rq_batch_part_kind kind : 8;
    bool is_long;        /* a get or write: decoding it takes long; see `translate` */
    uint32_t index;      /* the caller's index for the part; not used here */
    rq_slice row;        /* of a get */
    const void *request; /* the caller's */
    const void *cells;   /* the caller's */
} rq_batch_part;

static inline bool rq_batch_part_writes(const rq_batch_part *p)
{
    return p->kind == RQ_PART_COLLECTED || p->kind == RQ_PART_ALONE;
}

typedef struct rq_op_batch rq_op_batch;

/* The batch's callbacks. An error ends the whole batch, unless stated otherwise. */
typedef struct rq_batch_caller {
    /* Sets region, parts, part_count, is_atomic, has_condition, with_tags and group for the group at group_at, and
     * is_long if all its parts together take long to decode. A group without a region is skipped. RQ_E_AGAIN: the time
     * slice is over (`meter`), and it is called once more. */
    rq_err (*enter)(rq_op_batch *b);
    /* Decodes a long part on another thread, into b->write_arena if it is a write, or an atomic group (NULL); then
     * calls rq_op_batch_translated, and the next get(), write() or atomic() hands over the result. Meanwhile the batch
     * makes no callback. An error fails only the part or group. A NULL function: no part is long. */
    rq_err (*translate)(rq_op_batch *b, const rq_batch_part *p);
    /* Decode a part; an error fails only the part. `write` consumes the write's cells from their
     * source in any case, so that the next part finds its own. A write is decoded into
     * b->write_arena. *ret_nonce is left unchanged if the part has none. */
    rq_err (*get)(rq_op_batch *b, const rq_batch_part *p, rq_scan *ret, rq_error *why);
    rq_err (*write)(rq_op_batch *b, const rq_batch_part *p, rq_mutation *ret, uint64_t *ret_nonce,
                    rq_error *why);
    /* Decodes the whole group; an error fails only the group. */
    rq_err (*atomic)(rq_op_batch *b, rq_row_op *ret, rq_error *why);
    /* The part is not executed. */
    void (*skip)(rq_op_batch *b, const rq_batch_part *p);
    /* Begins a part that the caller executes; it calls rq_op_batch_go_on when the part has ended.
     * Meanwhile the batch makes no callback: the caller may work on another thread. An error fails
     * only the part. */
    rq_err (*other)(rq_op_batch *b, const rq_batch_part *p, rq_error *why);
    /* A get has ended: its cells are behind b->get_mark in the sink, where the caller may truncate
     * it. */
    rq_err (*got)(rq_op_batch *b, const rq_batch_part *p, uint32_t cells);
    /* A write has ended, with the error rc if there is one; `why` may be NULL. The caller may take the result's buffer. */
    rq_err (*written)(rq_op_batch *b, void *group, uint32_t index, rq_row_op *op, rq_err rc,
                      const rq_error *why);
    rq_err (*atomic_written)(rq_op_batch *b, void *group, const rq_row_op *op);
    rq_err (*failed)(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why);
    rq_err (*group_failed)(rq_op_batch *b, rq_err rc, const rq_error *why);
} rq_batch_caller;

struct rq_op_batch {
    /* The caller's. */
    const rq_batch_caller *table;
    size_t group_count;
    uint64_t nonce_group;
    rq_cellblock *out;    /* gets' cells */
    bool with_tags;       /* writes return tags */
    bool stops_at_blocks; /* parts beyond the limit of block bytes fail, like those beyond the
                           * result's limit */
    /* Of the group at hand, set by enter(). */
    rq_region *region;
    const rq_batch_part *parts;
    size_t part_count;
    bool is_atomic;
    bool is_long;         /* atomic(): see `translate` */
    rq_slice cluster_ids; /* of its writes, see rq_row_op; kept from group to group */
    bool has_condition;   /* atomic, with a condition */
    void *group;          /* the caller's */
    /* The walk. */
    size_t group_at;
    size_t part_at;
    bool in_group;
    struct rq__batch_run *collecting; /* puts and deletes of this group */
    struct rq__batch_run *atomics;    /* the atomic groups left last; not submitted yet */
    uint64_t *row_marks;              /* of `atomics`; in the arena */
    size_t no_run_before;             /* part of this group; the parts before it use small_run */
    struct rq__batch_run *small_run;  /* used when there is no memory for a larger one, or NULL */
    size_t ahead;                     /* gets before this part were prefetched */
    rq_arena *write_arena;            /* of the write that is being decoded; until its run ends */
    size_t runs_running;
    rq_region *first_region; /* of the first group that was left; a reference */
    rq_meter meter;
    bool walked;
    /* Bits of the regions whose runs may be in progress: of all, and of those with an atomic group. Regions may share a
     * bit: then a group may wait without need. */
    uint64_t busy, busy_atomic;
    bool follows;       /* the group at hand has not begun, and may have to wait for earlier ones */
    bool drains;        /* the walk continues when the last run in progress has ended */
    bool is_translated; /* the part or atomic group at hand, by translate() */
    rq_err ended_with;  /* RQ_OK, or the first error that ends the batch */
    uint64_t result_bytes;
    uint32_t counts[RQ_OP_KINDS];  /* parts */
    bool is_gated;                 /* the group at hand has passed a policy */
    rq_gate_group gate;            /* then */
    struct rq__batch_looks *looks; /* at the gets behind one that waits; NULL: none has waited */
    /* The get under way. */
    rq_scan scan;
    bool get_waits;     /* for a block, without a scanner; `scan` is decoded */
    unsigned get_tries; /* that ended so */
    rq_region_scanner *scanner;
    rq_arena get_arena; /* of this get's scanner; the op's would keep those of all gets */
    rq_cellblock_mark get_mark;
    bool get_running;
    rq_op_read read;
};

/* The caller's fields are set, the others are zero. */
void rq_op_batch_start(rq_op_batch *b);
/* Continues after other(); must not be called before other() has returned. */
void rq_op_batch_go_on(rq_op_batch *b, rq_err rc);
/* Continues after translate(), likewise. */
void rq_op_batch_translated(rq_op_batch *b);

#endif
