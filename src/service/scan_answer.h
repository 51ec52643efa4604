/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a ScanResponse whose cells are in the cell block. It has a count of cells and a flag for
 * each row, which protobuf-c's generic code packs one at a time: a fifth of all instructions of a
 * scan of small rows. */
#ifndef RQ_SERVICE_SCAN_ANSWER_H
#define RQ_SERVICE_SCAN_ANSWER_H

#include "base/arena.h"
#include "ops/scan.h"

#include "proto/client.pb-c.h"

/* The same bytes as protobuf-c's, in the arena. The counts and flags are those of `results`; `m` has
 * none, and no results as messages. */
RQ_NODISCARD
rq_err rq__pack_scan(const Pb__ScanResponse *m, const rq_scan_result *results, uint32_t count,
                     rq_arena *arena, rq_slice *ret);

#endif
