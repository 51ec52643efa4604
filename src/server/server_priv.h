/* SPDX-License-Identifier: Apache-2.0 */
/* What a standalone server and a server of a cluster do alike. */
#ifndef RQ_SERVER_PRIV_H
#define RQ_SERVER_PRIV_H

#include "base/config.h"
#include "base/epoch.h"
#include "base/executor.h"

/* Creates the folder unless it is there and can be used. */
RQ_NODISCARD rq_err rq__server_make_folder(const char *path, unsigned mode, rq_error *why);
/* The pools of the settings. */
RQ_NODISCARD rq_err rq__server_threads(const rq_config *config, rq_executor **ret,
                                       rq_epoch **ret_epoch, rq_error *why);
/* Why there are no event loops. */
rq_err rq__server_loops_failed(rq_err rc, rq_error *why);

#endif
