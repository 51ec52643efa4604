/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as text for the slow log. */
#ifndef RQ_SERVICE_SLOW_TEXT_H
#define RQ_SERVICE_SLOW_TEXT_H

#include "rpc/server.h"

/* For rq_rpc_service.describe, of any service: region and row of ClientService's requests as HBase's slow
 * log names them, other messages field by field, cut. HBASE: ProtobufUtil.getSlowLogParams. */
void rq__describe_call(const rq_call *call, rq_call_text *ret);

#endif
