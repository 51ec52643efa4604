/* SPDX-License-Identifier: Apache-2.0 */
/* See args.h. */
#include "cli/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rq__refuse(const char *command, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "rorqual %s: ", command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, " (rorqual %s --help says more)\n", command);
    return 2;
}

int rq__refuse_option(const char *command, int got, char **argv)
{
    const char *problem = got == ':' ? "wants a value" : "is not known here";
    const char *word = argv[optind - 1];
    /* optopt is 0 after an unknown long option; set after one that takes no value but got one. */
    bool is_long = got == ':' || optopt == 0 || strchr(word, '=') != NULL;
    if (is_long && strncmp(word, "--", 2) == 0)
        return rq__refuse(command, "option %s %s", word, problem);
    return rq__refuse(command, "option -%c %s", optopt, problem);
}

bool rq__arg_number_prefix(const char *text, const char **end, uint64_t *ret)
{
    if (*text < '0' || *text > '9') return false; /* strtoull would take blanks and signs */
    char *rest;
    errno = 0;
    *ret = strtoull(text, &rest, 10);
    *end = rest;
    return errno == 0;
}

bool rq__arg_number(const char *text, uint64_t *ret)
{
    const char *end;
    return rq__arg_number_prefix(text, &end, ret) && *end == '\0';
}
