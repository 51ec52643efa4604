/* SPDX-License-Identifier: Apache-2.0 */
/* Argument parsing shared by the commands. An invalid argument ends the command with one line that
 * names it and refers to --help, and exit code 2. */
#ifndef RQ_CLI_ARGS_H
#define RQ_CLI_ARGS_H

#include "base/macros.h"

#include <getopt.h> /* optind */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "rorqual COMMAND: … (see rorqual COMMAND --help)". Returns 2. */
int rq__refuse(const char *command, const char *fmt, ...) RQ_PRINTF(2, 3);

/* An option of a command, and where its value goes: exactly one pointer is not NULL. */
typedef struct rq__option {
    const char *name;
    bool *flag; /* takes no value */
    const char **text;
    uint64_t *number;
    uint64_t *seconds; /* a number from 1 to 3600 */
} rq__option;

#define RQ__OPTIONS_MAX 32

/* Parses the options of a command; --help and -h print `help`. -1: go on, optind is the index of
 * the first argument that is no option. Otherwise the exit code. Texts point into argv. */
int rq__parse_options(const char *command, const char *help, const rq__option *list, size_t count,
                      int argc, char **argv);

/* Reports an option after getopt_long has returned '?' or ':'. The option string must begin with
 * ":", so that getopt itself prints nothing. */
int rq__refuse_option(const char *command, int got, char **argv);

/* Parses a decimal number without a sign, up to *end; the caller checks what follows. */
bool rq__arg_number_prefix(const char *text, const char **end, uint64_t *ret);
/* The whole text must be a number. */
bool rq__arg_number(const char *text, uint64_t *ret);
/* A number of bytes above 0; "500K", "20M", "1G" are of 1024. */
bool rq__arg_bytes(const char *text, uint64_t *ret);

#endif
