/* SPDX-License-Identifier: Apache-2.0 */
/* See args.h. */
#include "cli/args.h"

#include <errno.h>
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
    fprintf(stderr, " (see rorqual %s --help)\n", command);
    return 2;
}

int rq__refuse_option(const char *command, int got, char **argv)
{
    const char *problem = got == ':' ? "needs a value" : "is unknown";
    const char *word = argv[optind - 1];
    /* optopt is 0 after an unknown long option; set after one that takes no value but got one. */
    bool is_long = got == ':' || optopt == 0 || strchr(word, '=') != NULL;
    if (is_long && strncmp(word, "--", 2) == 0)
        return rq__refuse(command, "option %s %s", word, problem);
    return rq__refuse(command, "option -%c %s", optopt, problem);
}

static int take_value(const char *command, const rq__option *o, const char *value)
{
    if (o->flag != NULL) {
        *o->flag = true;
    } else if (o->text != NULL) {
        *o->text = value;
    } else if (o->number != NULL) {
        if (!rq__arg_number(value, o->number))
            return rq__refuse(command, "--%s %s: not a number", o->name, value);
    } else if (!rq__arg_number(value, o->seconds) || *o->seconds == 0 || *o->seconds > 3600) {
        return rq__refuse(command, "--%s %s: not a number of seconds from 1 to 3600", o->name,
                          value);
    }
    return -1;
}

int rq__parse_options(const char *command, const char *help, const rq__option *list, size_t count,
                      int argc, char **argv)
{
    enum { FIRST = 256 }; /* above the short options */
    struct option names[RQ__OPTIONS_MAX + 2] = {{0}};
    RQ_ASSERT(count <= RQ__OPTIONS_MAX);
    for (size_t i = 0; i < count; i++)
        names[i] =
            (struct option){list[i].name, list[i].flag != NULL ? no_argument : required_argument,
                            NULL, FIRST + (int)i};
    names[count] = (struct option){"help", no_argument, NULL, 'h'};
    int got, code = -1;
    while (code < 0 && (got = getopt_long(argc, argv, ":h", names, NULL)) != -1) {
        if (got == '?' || got == ':') return rq__refuse_option(command, got, argv);
        if (got == 'h') {
            fputs(help, stdout);
            return 0;
        }
        code = take_value(command, &list[got - FIRST], optarg);
    }
    return code;
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

bool rq__arg_bytes(const char *text, uint64_t *ret)
{
    static const char units[] = "KMG";
    const char *end;
    if (!rq__arg_number_prefix(text, &end, ret) || *ret == 0) return false;
    const char *unit = *end == '\0' ? NULL : strchr(units, *end);
    if (*end == '\0') return true;
    unsigned bits = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
    if (unit == NULL || end[1] != '\0' || *ret > UINT64_MAX >> bits) return false;
    *ret <<= bits;
    return true;
}
