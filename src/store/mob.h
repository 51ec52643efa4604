/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOB families: values above MOB_THRESHOLD are stored in files of their own, which compactions do
 * not copy each time. Names of MOB files and encoding of references to them. HBASE: MobUtils,
 * MobFileName, MobConstants.
 *
 *   mobdir/data/<ns>/<table>/<mob region>/<family>/<MOB file>
 *   archive/data/<ns>/<table>/<mob region>/<family>/<MOB file>    once nothing refers to it
 *
 * <mob region> is the encoded name of a pseudo region: `<table>,.mob,0`.
 * <MOB file>   is the md5 hex of the start key of the region that wrote it, yyyyMMdd of its newest
 *              timestamp, 32 random hex digits, '_', that region's encoded name.
 *
 * In place of the value the store file has a reference: the same key; as value a be32 length of the
 * real value and the MOB file's name; and before the cell's own tags an empty one of type 5 and one
 * of type 6 with the name of the table whose folder contains the MOB file (a clone has its origin's
 * references). A store file of a MOB family lists the MOB files it refers to in its file info,
 * under MOB_FILE_REFS:
 *
 *   <table>/<file>,<file>//<table>/<file>           none: one zero byte
 */
#ifndef RQ_STORE_MOB_H
#define RQ_STORE_MOB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"
#include "cell/cell.h"

#define RQ_MOB_DIR "mobdir"
#define RQ_MOB_FILE_NAME_LEN (RQ_MD5_HEX_LEN + 8 + 32 + 1 + RQ_MD5_HEX_LEN)
#define RQ_MOB_INFO_REFS "MOB_FILE_REFS"
#define RQ_MOB_INFO_CELLS "MOB_CELLS_COUNT"

/* On disk: DO NOT CHANGE. HBASE: TagType. */
#define RQ_TAG_MOB_REFERENCE 5
#define RQ_TAG_MOB_TABLE 6

/* --- names ------------------------------------------------------------------------------------ */
/* Name and encoded name of the pseudo region; `table` as displayed ("ns:q" or "q"). */
RQ_NODISCARD
rq_err rq_mob_region_name(rq_slice table, rq_buf *ret, char ret_encoded[RQ_MD5_HEX_LEN + 1]);
/* Paths below the root, in the arena. NULL: memory is exhausted, or the table's name is invalid. */
const char *rq_mob_region_dir(rq_arena *arena, rq_slice table);
const char *rq_mob_family_dir(rq_arena *arena, rq_slice table, rq_slice family);
/* Splits a displayed table name. False: it is not a valid name. */
bool rq_mob_table_parts(rq_slice table, rq_slice *ret_ns, rq_slice *ret_qualifier);

/* Makes a new file's name. `newest_ms`: the newest timestamp in it; `random`: random bits for
 * it. */
void rq__mob_file_name(rq_slice start_key, int64_t newest_ms, const uint64_t random[2],
                       const char *region_encoded, char ret[RQ_MOB_FILE_NAME_LEN + 1]);
/* Whether all of the file's cells are older than `oldest_ms`, judged only by the date in its
 * name, in whole days. HBASE: MobUtils.cleanExpiredMobFiles. */
bool rq_mob_file_is_expired(rq_slice name, int64_t oldest_ms);
/* Encoded name of the region that wrote the file; empty: a name from HBase before 2.3. */
rq_slice rq_mob_file_region(rq_slice name);

/* --- references ------------------------------------------------------------------------------- */
static inline bool rq__mob_is_reference(const rq_cell *c)
{
    rq_slice tag;
    return RQ_UNLIKELY(c->tags_len > 0) && rq_cell_tag(c, RQ_TAG_MOB_REFERENCE, &tag);
}

typedef struct rq_mob_reference {
    rq_slice table; /* as displayed; slices point into the cell */
    rq_slice file;
} rq_mob_reference;

/* Parses a reference. *ret_names_file false: it names no file; HBase treats it as an empty
 * value. RQ_E_MALFORMED: an invalid file or table name, since clients may write tags. REQUIRES:
 * rq__mob_is_reference. */
RQ_NODISCARD
rq_err rq__mob_reference_parse(const rq_cell *c, rq_mob_reference *ret, bool *ret_names_file,
                               rq_error *why);
/* Makes the reference for `cell`. Its value and tags are stored in `bytes`, which is reset
 * first; they are valid until it changes. RQ_E_INVALID: there is no room for two more tags. */
RQ_NODISCARD
rq_err rq__mob_reference_make(const rq_cell *cell, rq_slice table, rq_slice file, rq_buf *bytes,
                              rq_cell *ret);

/* --- MOB_FILE_REFS ---------------------------------------------------------------------------- */
/* A set of MOB files by table; zeroed is empty. HBASE: SetMultimap<TableName, String>. */
typedef struct rq_mob_refs {
    rq_arena arena;
    struct rq_mob_ref *slots; /* open addressing; former tables remain in the arena */
    size_t room, count;
} rq_mob_refs;

RQ_NODISCARD
rq_err rq__mob_refs_add(rq_mob_refs *r, rq_slice table, rq_slice file);
bool rq_mob_refs_has(const rq_mob_refs *r, rq_slice table, rq_slice file);
/* Appends the file info's value; tables and files ascending. */
RQ_NODISCARD
rq_err rq__mob_refs_encode(const rq_mob_refs *r, rq_buf *out);
/* Adds the files in a file info value, untrusted bytes. RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq_mob_refs_add_encoded(rq_mob_refs *r, rq_slice value, rq_error *why);
/* Calls `callback` for each, unordered. An error ends it and is returned. */
RQ_NODISCARD
rq_err rq_mob_refs_each(const rq_mob_refs *r,
                        rq_err (*callback)(void *ctx, rq_slice table, rq_slice file, rq_error *why),
                        void *ctx, rq_error *why);
void rq_mob_refs_clear(rq_mob_refs *r);

#endif
