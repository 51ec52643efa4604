/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOB families: values above MOB_THRESHOLD lie in files of their own and are not copied by every
 * compaction. Names and bytes of what stands for them. HBASE: MobUtils, MobFileName, MobConstants.
 *
 *   mobdir/data/<ns>/<table>/<mob region>/<family>/<MOB file>
 *   archive/data/<ns>/<table>/<mob region>/<family>/<MOB file>    once nothing refers to it
 *
 * <mob region> is the encoded name of a region that is not one: `<table>,.mob,0`.
 * <MOB file>   is md5 hex of the start key of the region that wrote it, yyyyMMdd of its newest
 *              timestamp, 32 hex digits of chance, '_', that region's encoded name.
 *
 * In place of the value the store file has a reference: the same key, the value be32 length of the
 * value and the MOB file's name, and in front of the cell's own tags an empty one of type 5 and one
 * of type 6 with the name of the table under whose folder the MOB file lies (a clone has the
 * references of its origin). A store file of a MOB family says in its file info, under
 * MOB_FILE_REFS, which MOB files it refers to:
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
/* The name of the region that is not one, and its encoded name; `table` as shown ("ns:q" or "q").
 */
RQ_NODISCARD
rq_err rq_mob_region_name(rq_slice table, rq_buf *ret, char ret_encoded[RQ_MD5_HEX_LEN + 1]);
/* Below the root; in the arena, NULL when memory is out. */
const char *rq_mob_region_dir(rq_arena *arena, rq_slice table);
const char *rq_mob_family_dir(rq_arena *arena, rq_slice table, rq_slice family);
/* What a table's name as shown consists of; false: it can be no table's. */
bool rq_mob_table_parts(rq_slice table, rq_slice *ret_ns, rq_slice *ret_qualifier);

/* A new file's name. `newest_ms`: the newest timestamp in it; `random`: chance for it. */
void rq_mob_file_name(rq_slice start_key, int64_t newest_ms, const uint64_t random[2],
                      const char *region_encoded, char ret[RQ_MOB_FILE_NAME_LEN + 1]);
/* Whether all of the file's cells are older than `oldest_ms`, by the date in its name alone: a day
 * counts as a whole. HBASE: MobUtils.cleanExpiredMobFiles. */
bool rq_mob_file_is_expired(rq_slice name, int64_t oldest_ms);
/* The encoded name of the region that wrote it; empty: a name of HBase before 2.3. */
rq_slice rq_mob_file_region(rq_slice name);

/* --- references ------------------------------------------------------------------------------- */
static inline bool rq_mob_is_reference(const rq_cell *c)
{
    rq_slice tag;
    return RQ_UNLIKELY(c->tags_len > 0) && rq_cell_tag(c, RQ_TAG_MOB_REFERENCE, &tag);
}

typedef struct rq_mob_reference {
    rq_slice table; /* as shown; slices point into the cell */
    rq_slice file;
} rq_mob_reference;

/* REQUIRES: rq_mob_is_reference. False: it names no file, and HBase takes it for an empty value.
 * Names that are no names of files or tables are refused with RQ_E_MALFORMED: they come from clients
 * that may write tags. */
RQ_NODISCARD
rq_err rq_mob_reference_parse(const rq_cell *c, rq_mob_reference *ret, bool *ret_names_file,
                              rq_error *why);
/* The reference for `cell`; its value and tags are appended to `bytes`, which is reset first and
 * holds them as long as it is not changed. RQ_E_INVALID: the tags have no room for two more. */
RQ_NODISCARD
rq_err rq_mob_reference_make(const rq_cell *cell, rq_slice table, rq_slice file, rq_buf *bytes,
                             rq_cell *ret);

/* --- MOB_FILE_REFS ---------------------------------------------------------------------------- */
/* A set of MOB files by table; zero-initialised is empty. HBASE: SetMultimap<TableName, String>. */
typedef struct rq_mob_refs {
    rq_arena arena;
    struct rq_mob_ref *slots; /* open addressing; of the arena's older chunks when it has grown */
    size_t room, count;
} rq_mob_refs;

RQ_NODISCARD
rq_err rq_mob_refs_add(rq_mob_refs *r, rq_slice table, rq_slice file);
bool rq_mob_refs_has(const rq_mob_refs *r, rq_slice table, rq_slice file);
/* Appends the file info's value: tables and files ascending. */
RQ_NODISCARD
rq_err rq_mob_refs_encode(const rq_mob_refs *r, rq_buf *out);
/* Adds what the value names. Untrusted bytes; RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq_mob_refs_add_encoded(rq_mob_refs *r, rq_slice value, rq_error *why);
/* Calls for each, in no order; an error ends it and is returned. */
RQ_NODISCARD
rq_err rq_mob_refs_each(const rq_mob_refs *r,
                        rq_err (*callback)(void *ctx, rq_slice table, rq_slice file, rq_error *why),
                        void *ctx, rq_error *why);
void rq_mob_refs_clear(rq_mob_refs *r);

#endif
