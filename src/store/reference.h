/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in a family's folder that stand for files elsewhere. HBASE: Reference, HFileLink,
 * StoreFileInfo.
 *
 *   <hfile>.<region>                     a reference: half of the file of that name in the same
 *                                        family of another region of the table. Made by a split
 *                                        (one half each) and a merge (all of the file).
 *   [<ns>=]<table>=<region>-<hfile>      a link: that whole file, in data/ or archive/. Cloned
 *                                        snapshots consist of them.
 *   [<ns>=]<table>=<region>-<hfile>.<region>   a reference to a link of the other region
 *
 * A reference contains "PBUF" and a message {1: split key, 2: range}. The key is serialized: the
 * first key of the dividing row. Range 0 is the top half (that row and rows behind it), 1 the
 * bottom half. A link is empty.
 */
#ifndef RQ_STORE_REFERENCE_H
#define RQ_STORE_REFERENCE_H

#include "base/buf.h"
#include "hfile/reader.h"

/* The parts of a file's name; slices point into it. */
typedef struct rq_store_name {
    bool is_link;
    rq_slice ns, table, region; /* link: the file's table and region; without namespace ns.len is
                                 * 0 */
    rq_slice file;              /* the HFile's name */
    bool is_reference;
    rq_slice parent; /* reference: encoded name of the region that has the file */
} rq_store_name;

void rq_store_name_parse(rq_slice name, rq_store_name *ret);

RQ_NODISCARD
rq_err rq_reference_encode(const rq_hfile_half *half, rq_buf *out);
/* Decodes a reference, untrusted bytes; the row points into them. RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq_reference_decode(rq_slice bytes, rq_hfile_half *ret, rq_error *why);

/* Returns the path of the HFile that a name in the family's folder stands for (itself for an
 * HFile), in data/ or archive/, or for a link to a MOB file in mobdir/. RQ_E_NOT_FOUND: it is in
 * none of them; `why` names it. */
RQ_NODISCARD
rq_err rq_store_file_locate(rq_vfs *vfs, const char *dir, const char *name, rq_arena *arena,
                            const char **ret, rq_error *why);

/* Opens the file that the name stands for. `dir` is the family's folder, `path` the file in it.
 * The options' `half` is ignored. RQ_E_CORRUPT: also if that file is missing. */
RQ_NODISCARD
rq_err rq_store_open_elsewhere(rq_vfs *vfs, const char *dir, const char *path,
                               const rq_store_name *name, const rq_hfile_reader_options *o,
                               rq_hfile_reader **ret, rq_error *why);

#endif
