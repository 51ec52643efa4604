/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual backup: copies a data folder, of a running server or a stopped one (backup/backup.h). */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/copy_progress.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual backup [OPTION ...] FOLDER TARGET\n"
    "       rorqual backup --check TARGET\n\n"
    "  --copy        copy files even where a hard link would do (TARGET on the same file system)\n"
    "  --no-verify   neither read what is linked nor look through the copy afterwards\n"
    "  --check       compare a finished backup with its list of files and checksums\n"
    "  --quiet       print errors alone\n"
    "Copies the data folder FOLDER as it is at one moment to TARGET, which must be empty or\n"
    "missing. The server may run: it goes on, only changes of tables wait for a moment. The copy\n"
    "has everything that was acknowledged before, is a data folder itself, and is looked through\n"
    "as rorqual fsck --blocks does. An interrupted backup is refused by every server and\n"
    "restore; the same command begins it anew.\n"
    "The command runs on the server's machine, as the user that runs the server.\n"
    "exit codes: 0 done; 1 not done, or damage found; 2 wrong arguments\n";

typedef struct arguments {
    rq_backup_options options;
    bool check, quiet;
} arguments;

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, arguments *a)
{
    static const struct option names[] = {
        {"copy", no_argument, NULL, 'c'},  {"no-verify", no_argument, NULL, 'n'},
        {"check", no_argument, NULL, 'k'}, {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},  {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, ":h", names, NULL)) != -1) {
        switch (option) {
        case 'c':
            a->options.never_link = true;
            break;
        case 'n':
            a->options.no_verify = true;
            break;
        case 'k':
            a->check = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            return rq_refuse_option("backup", option, argv);
        }
    }
    if (argc - optind != (a->check ? 1 : 2))
        return rq_refuse("backup",
                         a->check ? "name one backup" : "name a data folder and a target");
    a->options.source = argv[optind];
    a->options.target = a->check ? NULL : argv[optind + 1];
    return -1;
}

int rq_cmd_backup(int argc, char **argv)
{
    arguments a = {0};
    rq_copy_progress progress;
    rq_backup_result result = {0};
    rq_error why = {0};
    int code = parse(argc, argv, &a);
    if (code >= 0) return code;
    rq__copy_progress_init(&progress, "backup", a.quiet);
    a.options.progress = &progress.calls;
    rq_err rc =
        a.check ? rq_backup_check(&a.options, &result, &why) : rq_backup(&a.options, &result, &why);
    return rq__copy_progress_end(&progress, &a.options, &result, a.check ? "whole," : "backed up",
                                 rc, &why);
}
