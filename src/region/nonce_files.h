/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nonces of a region that the log need not hold any more, on disk. A flush lets the log forget
 * records, and with them their nonces (region/recover.c); so it writes the nonces that are in no
 * file yet into a new one, before it commits.
 *
 *   .rorqual/nonces/<encoded region>/<highest number, 16 hex digits>.<n>
 *
 *      0  8  magic "RQNONC1\n"         24  4  count
 *      8  8  highest number in it      28  4  CRC-32C of the 28 before
 *     16  8  wall clock when written, ms (for people)
 *     32     entries of 28 bytes, oldest first:
 *            be64 group | be64 nonce | be64 sequence id | be32 age in ms when the file was written
 *            then be32 CRC-32C of the entries
 *
 * All integers are big-endian.
 *
 *  1. A file never changes. It is synced, with its name, before the flush commits its manifest. A
 *     flush without new nonces writes none; no write of a client waits for one.
 *  2. A file whose number is not below the manifest's next number is of a flush that did not
 * commit: the log still has all of it. It is removed when the region opens. So a power cut loses
 *     nothing, and no nonce outlives an operation that was lost.
 *  3. A new file takes over what younger and smaller ones before it hold (merged as long as the one
 *     before has at most twice as many), and only what is still alive. They are removed after the
 *     commit; what a crash leaves twice is found twice, no more.
 *  4. A file goes when none of its nonces is alive: all are as old as a nonce gets, or dropped from
 *     the table because there are too many. So a server keeps at most those of its table, and what
 *     files hold beside living ones.
 *  5. Only the time that servers run counts for an age: wall clocks may jump by years. A start
 * takes an entry as as old as the file says; what it finds in the log begins anew.
 *  6. A split or merge links the parents' files into the new regions' folders.
 *  7. A damaged file is told with its name and costs its nonces, nothing else: increments retried
 *     across that start may count twice.
 *
 * The list of a region's files is guarded by its flush gate.
 */
#ifndef RQ_REGION_NONCE_FILES_H
#define RQ_REGION_NONCE_FILES_H

#include "base/buf.h"
#include "region/nonces.h"
#include "region/region_info.h"
#include "vfs/vfs.h"

#define RQ__NONCE_DIR ".rorqual/nonces"
#define RQ__NONCE_FILE_NAME_MAX 31
#define RQ__NONCE_FILE_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* --- the bytes -------------------------------------------------------------------------------- */
typedef struct rq__nonce_entries {
    uint64_t seqid; /* the highest number */
    int64_t written_ms;
    size_t count;
    rq_slice bytes; /* the entries; see rq__nonce_entry */
} rq__nonce_entries;

/* Appends a whole file. `entries` are encoded by rq__nonce_entry_put. */
RQ_NODISCARD
rq_err rq__nonce_file_encode(uint64_t seqid, int64_t written_ms, rq_slice entries, rq_buf *out);
/* Untrusted bytes; the slice points into them. RQ_E_CORRUPT with the offset. */
RQ_NODISCARD
rq_err rq__nonce_file_decode(rq_slice bytes, rq__nonce_entries *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__nonce_entry_put(rq_buf *out, const rq__nonce *n);
/* REQUIRES: i < count. */
rq__nonce rq__nonce_entry(const rq__nonce_entries *e, size_t i);
/* "<16 hex digits>.<n>"; false: no file of ours. */
bool rq__nonce_file_name_parse(const char *name, uint64_t *ret_seqid, unsigned *ret_n);

/* --- a region's ------------------------------------------------------------------------------- */
typedef struct rq__nonce_file {
    char name[RQ__NONCE_FILE_NAME_MAX + 1];
    uint64_t seqid;
    unsigned n;
    size_t count;
    uint64_t ages_as_of_ns;  /* monotonic: the entries' ages are told as of then */
    uint64_t youngest_at_ns; /* when the youngest entry was added */
    bool replaced;           /* a younger file has what is alive in it: goes after the commit */
    bool damaged;
} rq__nonce_file;

typedef struct rq__nonce_files {
    rq__nonce_file *list; /* by number, then n */
    size_t count, room;
    bool has_folder;
} rq__nonce_files;

typedef struct rq__nonce_place {
    rq_vfs *vfs;
    rq_executor *executor;
    const struct rq_log *log;
    const char *encoded;
    rq__nonces *nonces; /* the server's */
} rq__nonce_place;

/* Blocking, all of them. */
/* The files of a region that is opened, into the table. `used`: one below the manifest's next
 * number (rule 2). */
RQ_NODISCARD
rq_err rq__nonce_files_load(rq__nonce_files *f, const rq__nonce_place *at, uint64_t used,
                            rq_error *why);
/* A new file of those that are alive, with what it takes over; none when none is. */
RQ_NODISCARD
rq_err rq__nonce_files_write(rq__nonce_files *f, const rq__nonce_place *at, const rq__nonce_id *ids,
                             size_t count, uint64_t seqid, rq_error *why);
/* After the commit, and from time to time: rules 3 and 4. Best effort. */
void rq__nonce_files_tidy(rq__nonce_files *f, const rq__nonce_place *at, bool committed);
/* The least youngest_at_ns of them; UINT64_MAX: there are none. */
uint64_t rq__nonce_files_due_ns(const rq__nonce_files *f);
void rq__nonce_files_clear(rq__nonce_files *f);

/* Rule 6; both regions are closed. */
RQ_NODISCARD
rq_err rq__nonce_files_link(rq_vfs *vfs, const char *from_encoded, const char *to_encoded,
                            rq_error *why);
/* The region is gone for good. Absent is fine. */
RQ_NODISCARD
rq_err rq__nonce_files_remove(rq_vfs *vfs, const char *encoded, rq_error *why);

#endif
