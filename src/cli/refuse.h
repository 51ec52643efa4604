/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that make no sense: one line that says which and where to read on, exit code 2. */
#ifndef RQ_CLI_REFUSE_H
#define RQ_CLI_REFUSE_H

#include "base/macros.h"

/* "rorqual COMMAND: … (rorqual COMMAND --help says more)". Returns 2. */
int rq_refuse(const char *command, const char *fmt, ...) RQ_PRINTF(2, 3);

/* After getopt_long, of an option string that begins with ":" (so that getopt itself prints
 * nothing), has returned '?' or ':'. */
int rq_refuse_option(const char *command, int got, char **argv);

#endif
