/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over a folder last used by Apache HBase: checks it before a byte is written, and cleans up
 * afterwards.
 *
 * HBase leaves a trace wherever it ran: MasterData/WALs/<server>/ with a log, after a clean stop
 * too. Adoption ends by moving these logs to MasterData/oldWALs and leaving WALs/ empty, so traces
 * found later mean that HBase ran again. */
#ifndef RQ_CATALOG_ADOPT_H
#define RQ_CATALOG_ADOPT_H

#include "base/arena.h"
#include "vfs/vfs.h"

struct rq_catalog;

/* *ret_stamp: 0 if HBase left no trace since the last adoption; otherwise a number that changes
 * with each run of HBase. */
RQ_NODISCARD
rq_err rq__adopt_look(rq_vfs *v, uint32_t *ret_stamp, rq_error *why);
/* Reads only. RQ_E_STATE names the log of an HBase that was not stopped, the log with edits that
 * are in no file, or the unfinished procedure. RQ_E_UNSUPPORTED names a feature that this version
 * cannot take over. */
RQ_NODISCARD
rq_err rq__adopt_check(rq_vfs *v, rq_error *why);
/* The part of the check that concerns procedures (adopt_procedures.c). */
RQ_NODISCARD
rq_err rq__adopt_check_procedures(rq_vfs *v, rq_error *why);
/* The first step: moves recovered.edits whose edits are all in files to MasterData/oldWALs.
 * REQUIRES: the check passed, the lock is held. */
RQ_NODISCARD
rq_err rq__adopt_recovered(rq_vfs *v, rq_error *why);
/* Removes HBase's procedures from the store: they are finished, or belong to crashed servers, whose
 * regions this server opens itself. REQUIRES: the store is open, its records are not read yet. */
RQ_NODISCARD
rq_err rq__adopt_store(struct rq_catalog *c, rq_error *why);
/* The last step: moves HBase's logs to MasterData/oldWALs. */
RQ_NODISCARD
rq_err rq__adopt_logs(rq_vfs *v, rq_error *why);

#endif
