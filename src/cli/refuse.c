/* SPDX-License-Identifier: Apache-2.0 */
/* See refuse.h. */
#include "cli/refuse.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int rq_refuse(const char *command, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "rorqual %s: ", command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, " (rorqual %s --help says more)\n", command);
    return 2;
}

int rq_refuse_option(const char *command, int got, char **argv)
{
    const char *problem = got == ':' ? "wants a value" : "is not known here";
    const char *word = argv[optind - 1];
    /* optopt is 0 after an unknown long option; set after one that takes no value but got one. */
    bool is_long = got == ':' || optopt == 0 || strchr(word, '=') != NULL;
    if (is_long && strncmp(word, "--", 2) == 0)
        return rq_refuse(command, "option %s %s", word, problem);
    return rq_refuse(command, "option -%c %s", optopt, problem);
}
