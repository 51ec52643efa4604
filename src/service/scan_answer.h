/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a ScanResponse whose cells are in the cell block. The message has a count of cells and a flag for each row;
 * protobuf-c's generic code packs each of them by itself, which took a fifth of all instructions of a scan of small
 * rows. */
#ifndef RQ_SERVICE_SCAN_ANSWER_H
#define RQ_SERVICE_SCAN_ANSWER_H

#include "base/arena.h"
#include "ops/scan.h"

#include "proto/client.pb-c.h"

/* Returns the bytes that protobuf-c would pack, in the arena. The counts and flags are taken from `results`; REQUIRES:
 * `m` has no counts, flags or Result messages. */
RQ_NODISCARD
rq_err rq__pack_scan(const Pb__ScanResponse *m, const rq_scan_result *results, uint32_t count,
                     rq_arena *arena, rq_slice *ret);

#endif
