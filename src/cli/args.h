/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands have in common when they read their arguments. One that makes no sense ends in
 * one line that says which and where to read on, and exit code 2. */
#ifndef RQ_CLI_ARGS_H
#define RQ_CLI_ARGS_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

/* "rorqual COMMAND: … (rorqual COMMAND --help says more)". Returns 2. */
int rq_refuse(const char *command, const char *fmt, ...) RQ_PRINTF(2, 3);

/* After getopt_long, of an option string that begins with ":" (so that getopt itself prints
 * nothing), has returned '?' or ':'. */
int rq_refuse_option(const char *command, int got, char **argv);

/* A decimal number without a sign, as far as *end; what follows it is the caller's to judge. */
bool rq_arg_number_prefix(const char *text, const char **end, uint64_t *ret);
/* The whole text is one. */
bool rq_arg_number(const char *text, uint64_t *ret);

#endif
