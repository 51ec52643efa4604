/* SPDX-License-Identifier: Apache-2.0 */
/* One call of any method of any server, for programs that know the messages: the shell. */
#ifndef RQ_CLIENT_CALL_H
#define RQ_CLIENT_CALL_H

#include "client/client.h"

#include <signal.h>

typedef struct rq_client_target {
    rq_slice host; /* empty: the master */
    uint16_t port;
    const char *service; /* "MasterService" */
} rq_client_target;

/* Blocking: sends an encoded message and appends the response's message to `ret`. One attempt. When
 * *stop becomes true (NULL: never), all that the client does ends with RQ_E_CLOSED, as by
 * rq_client_stop, and the call returns. */
RQ_NODISCARD
rq_err rq_client_call(rq_client *c, const rq_client_target *to, const char *method,
                      rq_slice message, const volatile sig_atomic_t *stop, rq_buf *ret,
                      rq_client_failure *ret_failure);

#endif
