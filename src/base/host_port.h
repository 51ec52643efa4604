/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a host and a port, taken apart and completed; address.h writes them. */
#ifndef RQ_BASE_HOST_PORT_H
#define RQ_BASE_HOST_PORT_H

#include "base/bytes.h"

#include <stdbool.h>

/* Splits "HOST:PORT" at the last colon; an IPv6 address may be in brackets, which are left out. false: it has no host
 * or no port, the host has `size` bytes or more, or the port is greater than 65535. */
bool rq_host_port_split(rq_slice text, char *host, size_t size, uint16_t *ret_port);

/* An entry of a list of servers, with `port` if it has none: "HOST", "HOST:PORT", "::1", "[::1]" or "[::1]:PORT".
 * Returns what snprintf does. */
int rq_host_with_port(char *buf, size_t size, rq_slice entry, rq_slice port);

#endif
