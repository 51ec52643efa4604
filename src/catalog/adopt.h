/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking over a folder that an Apache HBase used last: what is looked at before a byte is written,
 * and what is put in order afterwards.
 *
 * HBase leaves a trace wherever it ran: MasterData/WALs/<server>/ with a log, after a clean stop
 * too. Those traces say that it ran; adopting ends with them in MasterData/oldWALs and WALs/ empty.
 */
#ifndef RQ_CATALOG_ADOPT_H
#define RQ_CATALOG_ADOPT_H

#include "base/arena.h"
#include "vfs/vfs.h"

struct rq_catalog;

/* *ret_stamp: 0 when HBase left no trace since the last adoption, else a number that another run of
 * HBase's changes. */
RQ_NODISCARD
rq_err rq__adopt_look(rq_vfs *v, uint32_t *ret_stamp, rq_error *why);
/*
 * Reads only. RQ_E_STATE names the log of an HBase that was not stopped, the one that holds edits
 * which are in no file, or the procedure that was not finished; RQ_E_UNSUPPORTED what this version
 * cannot take over.
 */
RQ_NODISCARD
rq_err rq__adopt_check(rq_vfs *v, rq_error *why);
/* Its part that is about procedures (adopt_procedures.c). */
RQ_NODISCARD
rq_err rq__adopt_check_procedures(rq_vfs *v, rq_error *why);
/* The first step: recovered.edits whose edits are all in files go to MasterData/oldWALs. REQUIRES:
 * the check passed, the lock is held. */
RQ_NODISCARD
rq_err rq__adopt_recovered(rq_vfs *v, rq_error *why);
/* HBase's procedures leave the store: they are finished, or of crashed servers, whose regions this
 * server opens itself. REQUIRES: the store is open, nothing else of it was read. */
RQ_NODISCARD
rq_err rq__adopt_store(struct rq_catalog *c, rq_error *why);
/* The last step: HBase's logs to MasterData/oldWALs. */
RQ_NODISCARD
rq_err rq__adopt_logs(rq_vfs *v, rq_error *why);

#endif
