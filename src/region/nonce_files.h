/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nonces of a region whose log records are no longer needed, on disk. A flush releases log
 * records, and with them their nonces (region/recover.c); so before it commits it writes the nonces
 * that are in no file yet into a new one.
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
 *  1. A file never changes. It and its name are synced before the flush commits its manifest. A
 *     flush without new nonces writes no file; no client's write waits for one.
 *  2. A file whose number is not below the manifest's next number belongs to a flush that did not
 *     commit: the log still has all of its nonces. It is removed when the region opens. So a power
 *     cut loses no nonce, and no nonce outlives an operation that was lost.
 *  3. A new file takes over the live nonces of younger and smaller predecessors (merged while the
 *     predecessor has at most twice as many). These files are removed after the commit. After a
 *     crash some nonces may be found twice, which is harmless.
 *  4. A file is removed when none of its nonces is alive: all have reached their maximum age, or
 *     were dropped from the table because there were too many. So the files hold at most the nonces
 *     of the table and some dead ones beside them.
 *  5. Only the time that servers run counts as age: wall clocks may jump by years. At start an
 *     entry has the age given in the file; a nonce found in the log has age 0.
 *  6. A split or merge links the parents' files into the new regions' folders.
 *  7. A damaged file is reported by name and costs only its nonces: increments retried across that
 *     start may be applied twice.
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
    uint64_t seqid; /* highest sequence id */
    int64_t written_ms;
    size_t count;
    rq_slice bytes; /* the entries; see rq__nonce_entry */
} rq__nonce_entries;

/* Appends a complete file. `entries` are encoded by rq__nonce_entry_put. */
RQ_NODISCARD
rq_err rq__nonce_file_encode(uint64_t seqid, int64_t written_ms, rq_slice entries, rq_buf *out);
/* Decodes a file, untrusted bytes; the slice points into them. RQ_E_CORRUPT with the offset. */
RQ_NODISCARD
rq_err rq__nonce_file_decode(rq_slice bytes, rq__nonce_entries *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__nonce_entry_put(rq_buf *out, const rq__nonce *n);
/* REQUIRES: i < count. */
rq__nonce rq__nonce_entry(const rq__nonce_entries *e, size_t i);
/* Parses "<16 hex digits>.<n>". False: not a nonce file. */
bool rq__nonce_file_name_parse(const char *name, uint64_t *ret_seqid, unsigned *ret_n);

/* --- a region's ------------------------------------------------------------------------------- */
typedef struct rq__nonce_file {
    char name[RQ__NONCE_FILE_NAME_MAX + 1];
    uint64_t seqid;
    unsigned n;
    size_t count;
    uint64_t ages_as_of_ns;  /* monotonic time to which the entries' ages refer */
    uint64_t youngest_at_ns; /* when the youngest entry was added */
    bool replaced;           /* a younger file has its live nonces: remove it after the commit */
    bool damaged;
} rq__nonce_file;

typedef struct rq__nonce_files {
    rq__nonce_file *list; /* ordered by seqid, then n */
    size_t count, room;
    bool has_folder;
} rq__nonce_files;

typedef struct rq__nonce_place {
    rq_vfs *vfs;
    rq_executor *executor;
    const struct rq_log *log;
    const char *encoded;
    rq__nonces *nonces; /* the server's table */
} rq__nonce_place;

/* All of these block. */
/* Loads the files of a region being opened into the table. `used`: the manifest's next number
 * minus one (rule 2). */
RQ_NODISCARD
rq_err rq__nonce_files_load(rq__nonce_files *f, const rq__nonce_place *at, uint64_t used,
                            rq_error *why);
/* Writes a new file with the live nonces of `ids` and those it takes over; no file if none is
 * alive. */
RQ_NODISCARD
rq_err rq__nonce_files_write(rq__nonce_files *f, const rq__nonce_place *at, const rq__nonce_id *ids,
                             size_t count, uint64_t seqid, rq_error *why);
/* Applies rules 3 and 4: after the commit and periodically. Best effort. */
void rq__nonce_files_tidy(rq__nonce_files *f, const rq__nonce_place *at, bool committed);
/* The smallest youngest_at_ns of the files; UINT64_MAX: no files. */
uint64_t rq__nonce_files_due_ns(const rq__nonce_files *f);
void rq__nonce_files_clear(rq__nonce_files *f);

/* Applies rule 6. REQUIRES: both regions are closed. */
RQ_NODISCARD
rq_err rq__nonce_files_link(rq_vfs *vfs, const char *from_encoded, const char *to_encoded,
                            rq_error *why);
/* Removes the files of a destroyed region. An absent folder is no error. */
RQ_NODISCARD
rq_err rq__nonce_files_remove(rq_vfs *vfs, const char *encoded, rq_error *why);

#endif
