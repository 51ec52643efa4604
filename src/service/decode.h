/* SPDX-License-Identifier: Apache-2.0 */
/* Translates request messages to scans and mutations of the region. HBASE: ProtobufUtil.toGet,
 * toScan, toPut, toDelete, toAppend, toIncrement, toCheckAndMutate; where those throw, these
 * functions return the error with HBase's text. Results point into the message and the cell block
 * unless stated otherwise. */
#ifndef RQ_SERVICE_DECODE_H
#define RQ_SERVICE_DECODE_H

#include "ops/scan.h"
#include "region/region.h"
#include "service/messages.h"

#include "proto/client.pb-c.h"

/* `region` provides the families where the request means all of them. */
RQ_NODISCARD
rq_err rq__decode_get(const Pb__Get *get, const rq_region *region, rq_arena *arena, rq_scan *ret,
                      rq_error *why);
/* Copies everything into the arena, which belongs to the scanner and outlives the request. */
RQ_NODISCARD
rq_err rq__decode_scan(const Pb__Scan *scan, const rq_region *region, rq_arena *arena, rq_scan *ret,
                       rq_scan_extra *ret_extra, rq_error *why);
/* The mutation's type; APPEND if it is absent or unknown. HBASE: the default of MutationProto's
 * mutate_type. */
rq_mutation_type rq__mutation_type(const Pb__MutationProto *m);
/* Takes the mutation's cells from `cells` (the frame's cell block) if the message says so. After an
 * error the cursor may stand before, among or behind them: reset it and call rq__skip_cells.
 * *ret_nonce 0: none. */
RQ_NODISCARD
rq_err rq__decode_mutation(const Pb__MutationProto *m, const rq_region *region, rq_cursor *cells,
                           uint64_t cell_max, rq_arena *arena, rq_mutation *ret,
                           uint64_t *ret_nonce, rq_error *why);
/* Consumes the cells of a mutation that is not executed. */
void rq__skip_cells(const Pb__MutationProto *m, rq_cursor *cells);
RQ_NODISCARD
rq_err rq__decode_condition(const Pb__Condition *c, rq_arena *arena, rq_condition *ret,
                            rq_error *why);

/* Checks that the condition is on `row`, the row of its mutation. */
RQ_NODISCARD
rq_err rq__check_condition_row(const rq_condition *c, rq_slice row, rq_error *why);

#endif
