/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache's second level: a file on a local disk that takes the blocks memory has no room
 * for. HBASE: BucketCache with ioengine file:PATH. Within the room; set up by
 * rq_block_cache_add_file.
 *
 *   evicted ─► queue (bounded) ─► writer, a lane of its own ─► file: a ring of segments
 *   missed  ─► index (striped) ─► read and checked ─► block, into memory again
 *
 * 1. Nobody waits for the writer: a full queue drops the block. Nobody waits for the index either:
 * a stripe that is taken is a miss.
 * 2. Writing goes round the file. A segment that is begun anew raises its generation first, which
 *    makes all entries of the index that point into it void; they go when their table is rebuilt.
 * 3. A record is believed when its checksum holds and it names the file, the offset and the run of
 *    the server it was written by. One that is not, though its entry is still good, is damage.
 * 4. Damage, or a write or read that fails (a full disk too), ends the second level with a line in
 *    the log, and empties its file; reads go to the HFiles as if it had never been.
 * 5. The index's bytes are taken from the cache's capacity, at most an eighth of it: then the
 * oldest segment is given up before its time. So is a sixteenth for blocks in the queue, which
 * count as pinned.
 * 6. What the file held at start is dropped, and the file is removed at the stop. What it holds of
 *    an HFile counts as long as that is open or has a block in memory.
 */
#ifndef RQ_HFILE_SECOND_LEVEL_H
#define RQ_HFILE_SECOND_LEVEL_H

#include "hfile/block.h"

typedef struct rq__second_level rq__second_level;

RQ_NODISCARD
rq_err rq__second_level_new(rq_block_cache *c, const rq_block_cache_file *o, rq__second_level **ret,
                            rq_error *why);
/* Waits for the writer. NULL is fine. */
void rq__second_level_free(rq__second_level *s);

/* A block that was evicted; takes a reference of its own if it takes the block. Any thread. */
void rq__second_level_offer(rq__second_level *s, rq_hfile_block *b);
/*
 * *ret: a block with one reference, not in the memory's table, or NULL when there is none.
 * RQ_E_AGAIN: it is there but reading it would wait, and may_block is false. Nothing else fails.
 */
RQ_NODISCARD
rq_err rq__second_level_get(rq__second_level *s, uint64_t file_id, uint64_t offset, bool may_block,
                            rq_hfile_block **ret);
void rq__second_level_get_stats(rq__second_level *s, rq_block_cache_stats *ret);

#endif
