/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as text for the slow log. */
#ifndef RQ_SERVICE_SLOW_TEXT_H
#define RQ_SERVICE_SLOW_TEXT_H

#include "rpc/server.h"

/* An implementation of rq_rpc_service.describe for all services: for ClientService's requests the
 * region and row, in the format of HBase's slow log; for other messages their fields, up to the
 * buffer's size. HBASE: ProtobufUtil.getSlowLogParams. */
void rq__describe_call(const rq_call *call, rq_call_text *ret);

#endif
