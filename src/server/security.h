/* SPDX-License-Identifier: Apache-2.0 */
/* Security checks at start: refuses settings that ask for protection which this server does not
 * have, and warns of listening addresses that other machines can reach. */
#ifndef RQ_SERVER_SECURITY_H
#define RQ_SERVER_SECURITY_H

#include "base/config.h"
#include "base/log.h"

/* RQ_E_CONFIG: HBase's settings ask for authentication, authorization or encryption, and
 * rorqual.security.ignored does not name them; `why` names the settings. Ignored settings are
 * logged in one line. */
RQ_NODISCARD
rq_err rq__security_check(const rq_config *c, const rq_log *log, rq_error *why);

/* Logs one line unless `address` (numeric) is a loopback address. */
void rq__security_warn_listening(const rq_log *log, const char *address);
/* Logs one line unless the address of the HTTP pages is a loopback address. */
void rq__security_warn_pages(const rq_log *log, const char *address);

#endif
