/* SPDX-License-Identifier: Apache-2.0 */
/* The binary's entry: finds the subcommand and runs it. */
#include "cli/cli.h"
#include "cli/version.h"

#include "base/macros.h"
#include "base/suggest.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *group;
    const char *help;
} command;

static const command commands[] = {
#define X(name, run, group, help) {name, run, group, help},
#include "cli/commands.def"
#undef X
};

static void usage(FILE *out)
{
    const char *group = "";
    fprintf(out, "usage: rorqual COMMAND [ARGUMENT ...]\n");
    for (size_t i = 0; i < RQ_ARRAY_LEN(commands); i++) {
        if (strcmp(group, commands[i].group) != 0) fprintf(out, "\n%s\n", commands[i].group);
        group = commands[i].group;
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
    }
    fprintf(out, "\nother\n"
                 "  help      print the help of a command: rorqual help COMMAND\n"
                 "  version   print the version, the commit and the libraries\n"
                 "\nexit codes: 0 success; 1 failure, or problems found; 2 wrong arguments\n");
}

static void version(void)
{
    printf("rorqual %s (commit %s)\n", RQ_VERSION, RQ_COMMIT);
    printf("built with %s\n", RQ_LIBRARIES);
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(commands); i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    rq_suggestion s = rq_suggest(name);
    for (size_t i = 0; i < RQ_ARRAY_LEN(commands); i++)
        rq_suggest_consider(&s, commands[i].name);
    rq_suggest_consider(&s, "help");
    rq_suggest_consider(&s, "version");
    fprintf(stderr, "rorqual: unknown command '%s'", name);
    if (s.best != NULL) fprintf(stderr, "; did you mean '%s'?", s.best);
    fprintf(stderr, " (rorqual --help lists the commands)\n");
    return 2;
}

static bool is_help(const char *name)
{
    return strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
}

static bool is_version(const char *name)
{
    return strcmp(name, "version") == 0 || strcmp(name, "--version") == 0;
}

static int help(int argc, char **argv)
{
    char option[] = "--help";
    char *arguments[] = {argc > 0 ? argv[0] : NULL, option, NULL};
    if (argc == 0) {
        usage(stdout);
        return 0;
    }
    const command *c = find(argv[0]);
    if (c != NULL) return c->run(2, arguments);
    if (is_help(argv[0]))
        printf("usage: rorqual help [COMMAND]\n\n"
               "Prints the commands, or the help of one.\n");
    else if (is_version(argv[0]))
        printf("usage: rorqual version\n\n"
               "Prints the version, the commit, and the versions of its libraries.\n");
    else
        return unknown(argv[0]);
    return 0;
}

static int run(const char *name, int argc, char **argv)
{
    const command *c = find(name);
    if (c != NULL) return c->run(argc - 1, argv + 1);
    if (is_help(name)) return help(argc - 2, argv + 2);
    if (is_version(name)) {
        version();
        return 0;
    }
    return unknown(name);
}

/* Without standard input, output or errors (>&-), a file or a socket that is opened later would get the number, and text would be
 * printed into a data file. Their places are taken by descriptors that can be neither read nor written. */
static bool hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

/* Lost output, for example because of a full disk, is a failure of any command. */
int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (!hold_standard_files()) return 1;
    int code = run(argv[1], argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    fprintf(stderr, "rorqual %s: standard output could not be written\n", argv[1]);
    return code == 0 ? 1 : code;
}
