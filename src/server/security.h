/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operator has to know about who may do what: settings that ask for a protection which
 * this server does not have, and an address that others can reach.
 */
#ifndef RQ_SERVER_SECURITY_H
#define RQ_SERVER_SECURITY_H

#include "base/config.h"
#include "base/log.h"

/* RQ_E_CONFIG: HBase's settings ask for authentication, authorization or encryption, and
 * rorqual.security.ignored does not name them; `why` says which. What it names is logged in one
 * line. */
RQ_NODISCARD
rq_err rq_security_check(const rq_config *c, const rq_log *log, rq_error *why);

/* One line in the log unless `address` (numeric) is a loopback one. */
void rq_security_warn_listening(const rq_log *log, const char *address);
/* The same for the address of the HTTP pages. */
void rq__security_warn_pages(const rq_log *log, const char *address);

#endif
