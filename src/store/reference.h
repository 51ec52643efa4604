/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a family's folder that stand for files elsewhere. HBASE: Reference, HFileLink,
 * StoreFileInfo.
 *
 *   <hfile>.<region>                     a reference: half of the file of that name in the same
 *                                        family of another region of the table. A split makes them
 *                                        (one half each), a merge (all of the file).
 *   [<ns>=]<table>=<region>-<hfile>      a link: that whole file, wherever it is now; data/ or
 *                                        archive/. Cloned snapshots consist of them.
 *   [<ns>=]<table>=<region>-<hfile>.<region>   a reference to a link of the other region
 *
 * A reference holds "PBUF" and a message {1: split key, 2: range}; the key is a serialized one,
 * the first of the row that divides; range 0 is the top (that row and what is behind it), 1 the
 * bottom. A link holds nothing.
 */
#ifndef RQ_STORE_REFERENCE_H
#define RQ_STORE_REFERENCE_H

#include "base/buf.h"
#include "hfile/reader.h"

/* A file's name taken apart; slices point into it. */
typedef struct rq_store_name {
    bool is_link;
    rq_slice ns, table, region; /* link: where the file is; no namespace: ns.len 0 */
    rq_slice file;              /* the HFile's name */
    bool is_reference;
    rq_slice parent; /* reference: the encoded name of the region that has what is referred to */
} rq_store_name;

void rq_store_name_parse(rq_slice name, rq_store_name *ret);

RQ_NODISCARD
rq_err rq_reference_encode(const rq_hfile_half *half, rq_buf *out);
/* Untrusted bytes; the row points into them. RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq_reference_decode(rq_slice bytes, rq_hfile_half *ret, rq_error *why);

/* The HFile that a name in the family's folder stands for, itself when it is one: where it lies
 * now, in data/ or archive/. RQ_E_NOT_FOUND names it when it is in neither. */
RQ_NODISCARD
rq_err rq_store_file_locate(rq_vfs *vfs, const char *dir, const char *name, rq_arena *arena,
                            const char **ret, rq_error *why);

/* Opens what the name stands for; `dir` is the family's folder, `path` the file in it. Of the
 * options the half is not looked at. */
RQ_NODISCARD
rq_err rq__store_open_elsewhere(rq_vfs *vfs, const char *dir, const char *path,
                                const rq_store_name *name, const rq_hfile_reader_options *o,
                                rq_hfile_reader **ret, rq_error *why);

#endif
