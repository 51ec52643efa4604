/* SPDX-License-Identifier: Apache-2.0 */
/* The remote back end: a cluster of HBase's or Rorqual's servers, reached by the client. */
#ifndef RQ_REMOTE_REMOTE_H
#define RQ_REMOTE_REMOTE_H

#include "api/backend.h"

/* `place` is HOST:PORT,… of ZooKeeper servers (by_zookeeper), perhaps with "/znode", or of masters or region servers.
 * Blocks until one of these servers (the registry) has answered. RQ_E_INVALID: `place` is malformed.
 * RQ_E_IO: no answer, or not in time. RQ_E_NOT_FOUND: the registry does not know meta or master.
 * RQ_E_MALFORMED: the server is not a registry. */
RQ_NODISCARD
rq_err rq_remote_open(const char *place, bool by_zookeeper, const rq_connect_options *o,
                      rq_db **ret, rq_error *why);

#endif
