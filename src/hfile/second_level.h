/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block cache's second level: a file on a local disk for blocks evicted from memory. HBASE:
 * BucketCache with ioengine file:PATH. Within the room; set up by rq_block_cache_add_file.
 *
 *   evicted ─► queue (bounded) ─► writer, a lane of its own ─► file: a ring of extents
 *   missed  ─► index (striped) ─► read and checked ─► block, into memory again
 *
 * 1. No thread waits for the writer: a full queue drops the block. No thread waits for the index:
 *    if a stripe is locked, the lookup is a miss.
 * 2. The file is written round robin. Starting an extent again first increments its generation,
 *    which invalidates all index entries that point into it; they are removed when their table is
 *    rebuilt.
 * 3. A record is valid if its checksum is right and it names the file, the offset and the run of
 *    the server that wrote it. An invalid record with a valid index entry is damage.
 * 4. Damage, or a failed read or write (also a full disk), switches the second level off with a
 *    line in the log and empties its file; reads then go to the HFiles.
 * 5. The index's memory is taken from the cache's capacity, at most an eighth of it; beyond that
 *    the oldest extent is dropped early. Blocks in the queue get a sixteenth and count as pinned.
 * 6. Data blocks are compressed there if the options say so (second_level.c).
 * 7. The file's content is discarded at start, and the file is removed at stop. Blocks of an HFile
 *    are valid while the HFile is open or has a block in memory.
 */
#ifndef RQ_HFILE_SECOND_LEVEL_H
#define RQ_HFILE_SECOND_LEVEL_H

#include "hfile/block.h"

typedef struct rq__second_level rq__second_level;

RQ_NODISCARD
rq_err rq__second_level_new(rq_block_cache *c, const rq_block_cache_file *o, rq__second_level **ret,
                            rq_error *why);
/* Waits for the writer. NULL is allowed. */
void rq__second_level_free(rq__second_level *s);

/* Offers an evicted block; takes its own reference if it accepts the block. Any thread. */
void rq__second_level_offer(rq__second_level *s, rq_hfile_block *b);
/*
 * Looks a block up. *ret: a block with one reference, not in the memory cache's table; NULL: not
 * found. RQ_E_AGAIN: it is there, but reading it would wait and may_block is false. No other
 * errors.
 */
RQ_NODISCARD
rq_err rq__second_level_get(rq__second_level *s, uint64_t file_id, uint64_t offset, bool may_block,
                            rq_hfile_block **ret);
/* Whether the block is stored. Waits for the index, not for the disk; counts nothing. */
bool rq__second_level_has(rq__second_level *s, uint64_t file_id, uint64_t offset);
void rq__second_level_get_stats(rq__second_level *s, rq_block_cache_stats *ret);

#endif
