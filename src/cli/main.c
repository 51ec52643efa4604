/* SPDX-License-Identifier: Apache-2.0 */
/* The binary's entry: finds the subcommand and runs it. */
#include "cli/cli.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
#define X(name, run, help) {name, run, help},
#include "cli/commands.def"
#undef X
};

static void usage(FILE *out)
{
    fprintf(out, "usage: rorqual COMMAND [ARGUMENT ...]\n\n");
    for (size_t i = 0; i < RQ_ARRAY_LEN(commands); i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "  %-8s %s\n", "version", "print the version");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    const char *name = argv[1];
    for (size_t i = 0; i < RQ_ARRAY_LEN(commands); i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        printf("rorqual %s\n", RQ_VERSION);
        return 0;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        usage(stdout);
        return 0;
    }
    fprintf(stderr, "rorqual: unknown command '%s'\n", name);
    usage(stderr);
    return 2;
}
