/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual backup: copies a data folder, of a running server or a stopped one (backup/backup.h). */
#include "backup/session.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/copy_progress.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static const char help[] =
    "usage: rorqual backup [OPTION ...] FOLDER TARGET\n"
    "       rorqual backup --check TARGET\n"
    "       rorqual backup --holders FOLDER\n\n"
    "  --incremental PREVIOUS\n"
    "                an earlier backup of the same folder, on TARGET's file system: store files\n"
    "                that PREVIOUS has become hard links, so TARGET needs space only for new\n"
    "                files. TARGET is a complete backup, and either backup may be removed\n"
    "  --copy        copy files, also where a hard link is possible (TARGET on the same file "
    "system)\n"
    "  --no-verify   do not read linked files, and do not check the copy afterwards\n"
    "  --check       compare a finished backup with its list of files and checksums\n"
    "  --holders     list the commands for which the server on FOLDER keeps files and its\n"
    "                write-ahead log: name, begin, what is kept\n"
    "  --quiet       print only errors\n"
    "Copies the data folder FOLDER as it is at one moment to TARGET, which must be empty or\n"
    "missing. The server may run meanwhile; only changes of tables wait for a moment. The copy\n"
    "has every write that was acknowledged before, is a data folder itself, and is checked as\n"
    "by rorqual fsck --blocks. Servers and restore refuse the copy of an interrupted backup; the\n"
    "same command starts it over.\n"
    "The command runs on the server's machine, as the user that runs the server.\n"
    "exit codes: 0 done; 1 not done, or damage found; 2 wrong arguments\n";

typedef struct arguments {
    rq_backup_options options;
    bool check, holders, quiet;
} arguments;

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, arguments *a)
{
    const rq__option options[] = {
        {"incremental", .text = &a->options.previous},
        {"copy", .flag = &a->options.never_link},
        {"no-verify", .flag = &a->options.no_verify},
        {"check", .flag = &a->check},
        {"holders", .flag = &a->holders},
        {"quiet", .flag = &a->quiet},
    };
    int code = rq__parse_options("backup", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    bool one = a->check || a->holders;
    if (a->options.previous != NULL && (one || a->options.never_link))
        return rq__refuse("backup", "--incremental excludes --copy, --check and --holders");
    if (a->check && a->holders)
        return rq__refuse("backup", "--check and --holders exclude each other");
    if (argc - optind != (one ? 1 : 2))
        return rq__refuse("backup", a->check     ? "name one backup"
                                    : a->holders ? "name one data folder"
                                                 : "name a data folder and a target");
    a->options.source = argv[optind];
    a->options.target = one ? NULL : argv[optind + 1];
    return -1;
}

static void print_holder(const rq_holder_info *h)
{
    char since[32];
    struct tm at;
    time_t seconds = (time_t)(h->since_ms / 1000);
    gmtime_r(&seconds, &at);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &at);
    rq__print_bytes(rq_slice_cstr(h->name));
    printf(": since %s, ", since);
    if (h->holds_all_files)
        printf("all files");
    else
        printf("%zu file%s", h->files, h->files == 1 ? "" : "s");
    if (h->log_from == RQ_RETENTION_NO_LOG)
        printf(", no log\n");
    else
        printf(", the log from position %" PRIu64 "\n", h->log_from);
}

static int list_holders(const char *folder)
{
    rq_arena arena;
    rq_error why = {0};
    rq_holder_info *list = NULL;
    size_t count = 0;
    rq_arena_init(&arena);
    rq_err rc = rq_source_holders(folder, &arena, &list, &count, &why);
    if (rc != RQ_OK) fprintf(stderr, "rorqual backup: %s\n", why.message);
    if (rc == RQ_OK && count == 0) puts("nothing is held");
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        print_holder(&list[i]);
    rq_arena_clear(&arena);
    return rc == RQ_OK ? 0 : 1;
}

int rq__cmd_backup(int argc, char **argv)
{
    arguments a = {0};
    rq_copy_progress progress;
    rq_backup_result result = {0};
    rq_error why = {0};
    int code = parse(argc, argv, &a);
    if (code >= 0) return code;
    if (a.holders) return list_holders(a.options.source);
    rq__copy_progress_init(&progress, "backup", a.quiet);
    a.options.progress = &progress.calls;
    rq_err rc =
        a.check ? rq_backup_check(&a.options, &result, &why) : rq_backup(&a.options, &result, &why);
    return rq__copy_progress_end(&progress, &a.options, &result, a.check ? "whole," : "backed up",
                                 rc, &why);
}
