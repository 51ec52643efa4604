/* SPDX-License-Identifier: Apache-2.0 */
/* Whether loops can be made. */
#ifndef RQ_NET_CHECK_H
#define RQ_NET_CHECK_H

#include "base/err.h"

/* RQ_E_UNSUPPORTED, as rq_loops_new returns it, with a message that names the library: libuv cannot be loaded. */
RQ_NODISCARD rq_err rq_loops_check(rq_error *why);

#endif
