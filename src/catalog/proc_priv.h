/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the procedures share: procedure.c runs them, proc_lists.c holds them,
 * proc_store.c keeps their records, proc_memory.c makes and frees them.
 */
#ifndef RQ_CATALOG_PROC_PRIV_H
#define RQ_CATALOG_PROC_PRIV_H

#include "catalog/catalog_priv.h"

/* --- proc_memory.c ---------------------------------------------------------------------------- */
/* NULL: no memory. */
rq__proc *rq__proc_new(rq_catalog *c);
/* NULL is fine. */
void rq__proc_free(rq__proc *p);
RQ_NODISCARD
rq_err rq__proc_from_ddl(rq__proc *p, const rq_ddl *d);
/* The internal change that opens a region anew. */
RQ_NODISCARD
rq_err rq__proc_to_reopen(rq__proc *p, const rq_region_info *info);
/* Regions it opened that never came into a view: nobody wrote to them. */
void rq__proc_abandon_opened(rq__proc *p);
/* Frees what a result needs no more: region names, descriptors. REQUIRES: lock held. */
void rq__proc_slim(rq__proc *p);

/* --- proc_lists.c; all REQUIRE: lock held ----------------------------------------------------- */
void rq__procs_append(rq__procedures *ps, rq__proc *p);
void rq__procs_remove(rq__procedures *ps, rq__proc *p);
/* Into the results. */
void rq__procs_keep(rq__procedures *ps, rq__proc *p);
/* NULL: none; so for the nonce 0, which is no nonce. */
rq__proc *rq__procs_by_nonce(rq__procedures *ps, uint64_t group, uint64_t nonce);
/* Takes what nobody will ask for any more out of the results. */
rq__proc *rq__procs_take_evicted(rq__procedures *ps, int64_t now_ms);

/* --- proc_store.c: blocking ------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__proc_write(rq__proc *p, bool synced, rq_error *why);
/* Deletes the records of a list of results and frees it. */
void rq__proc_evict(rq_catalog *c, rq__proc *list);

#endif
