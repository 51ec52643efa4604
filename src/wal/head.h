/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a server incarnation's log on shared storage: one object, "log:SERVERNAME", which is
 * compared and swapped. It decides what belongs to the log.
 *
 *   be32 magic "RQhd" | u8 version, 1 | u8 state | u8 length, who fenced it | be64 edit |
 *   varint ledgers: be64 number, be64 first LSN; FENCED: 4 x be64 length | be32 CRC of all before
 *   numbers ascending, first LSNs not descending
 *
 *  1. The owner makes the head before its first record, and alone edits it while it is OPEN. A ledger
 *     is named in the head before it is made; bytes in ledgers that the head does not name are void.
 *  2. A ledger's first LSN ends the ledgers before it. So an append whose outcome is unknown is
 *     repeated in a new ledger with the same LSNs. The first attempt is then void, even if its bytes
 *     arrive later.
 *  3. Bytes in a ledger prove that everything before its first LSN was acknowledged.
 *  4. A server that takes regions over revokes the tenure (vfs/shared.h), and then swaps the head
 *     to FENCED, with the lengths. From then on the log has the same contents for every reader.
 *  5. CLOSED: the owner left, and no region needs a record of it. An absent head was never made, or
 *     is no longer needed.
 *
 * The regions that may need records of the log are the set "log-regions:SERVERNAME", with a key for each
 * opening, "ENCODED.NUMBER". The key is put before the region's manifest names the log, and deleted after
 * the manifest has dropped the log. The key has the opening's number because a deletion whose response was
 * lost may take effect late, and must not delete the key of a later opening. A put may take effect late, too: then the
 * key is not needed, and region/late_keys.c deletes it when the log has ended. An ended log without keys, and
 * without replication queues (queues.h), is retired: its head is swapped to CLOSED, then the log's bytes are removed, then the head.
 *
 * All functions block; pool threads and tools.
 */
#ifndef RQ_WAL_HEAD_H
#define RQ_WAL_HEAD_H

#include "base/buf.h"
#include "vfs/shared.h"

#define RQ_WAL_HEAD_LEDGERS_MAX 65536

typedef enum rq_wal_state {
    RQ_WAL_OPEN = 1, /* in objects: DO NOT CHANGE */
    RQ_WAL_FENCED = 2,
    RQ_WAL_CLOSED = 3,
} rq_wal_state;

typedef struct rq__head_ledger {
    uint64_t first_lsn;
    rq_slog_ledger slog; /* number; FENCED: lengths */
} rq__head_ledger;

typedef struct rq__head {
    rq_wal_state state;
    rq_slice by;   /* FENCED: ServerName */
    uint64_t edit; /* number of the owner's swaps so far: makes the bytes of each head unique */
    rq__head_ledger *ledgers;
    size_t count;
} rq__head;

RQ_NODISCARD rq_err rq__head_encode(const rq__head *h, rq_buf *out);
/* Untrusted bytes. Slices point into them, arrays are in the arena. RQ_E_CORRUPT, RQ_E_VERSION. */
RQ_NODISCARD rq_err rq__head_decode(rq_slice bytes, rq_arena *arena, rq__head *ret, rq_error *why);

/* RQ_E_NOT_FOUND: it is absent. */
RQ_NODISCARD rq_err rq__head_read(rq_shared *s, const char *server_name, rq_arena *arena,
                                  rq__head *ret, uint64_t *ret_generation, rq_error *why);
/* The owner's swap; it is repeated until its outcome is certain. *generation as for rq_object_swap.
 * RQ_E_SERVER_ABORTED: the log was fenced. */
RQ_NODISCARD rq_err rq__head_swap(rq_shared *s, const char *server_name, const rq__head *h,
                                  uint64_t *generation, rq_error *why);

/* Ends the log of a server, perhaps of this one: revokes its tenure and swaps its head to FENCED, unless
 * it is CLOSED. Idempotent. *ret_quiet_ns as for rq_tenure_revoke. */
RQ_NODISCARD rq_err rq_wal_fence(rq_shared *s, const char *server_name, const char *by,
                                 uint64_t *ret_quiet_ns, rq_error *why);
/* RQ_E_NOT_FOUND: the head is absent. */
RQ_NODISCARD rq_err rq_wal_state_of(rq_shared *s, const char *server_name, rq_wal_state *ret,
                                    rq_error *why);
/* Puts the key of a region's opening: it may need the log. _no_more deletes it. */
RQ_NODISCARD rq_err rq_wal_need(rq_shared *s, const char *server_name, const char *encoded,
                                uint64_t opening, rq_error *why);
RQ_NODISCARD rq_err rq_wal_need_no_more(rq_shared *s, const char *server_name, const char *encoded,
                                        uint64_t opening, rq_error *why);
/* Lists the keys of the openings that may need the log, in the arena. */
RQ_NODISCARD rq_err rq_wal_needed_by(rq_shared *s, const char *server_name, rq_arena *arena,
                                     const char ***ret, size_t *ret_count, rq_error *why);
/* Removes an ended log that neither a region nor replication needs. RQ_E_STATE: one of them needs it, or it has not ended. An
 * absent log is no error. */
RQ_NODISCARD rq_err rq_wal_retire(rq_shared *s, const char *server_name, rq_error *why);

#endif
