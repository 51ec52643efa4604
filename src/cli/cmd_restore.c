/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual restore: makes a data folder from a backup (backup/backup.h). */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/copy_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: rorqual restore [OPTION ...] BACKUP FOLDER\n"
    "       rorqual restore --to TIME [OPTION ...] BACKUPS FOLDER\n\n"
    "  --to TIME     BACKUPS is a folder of backups: take the newest that was begun at TIME or\n"
    "                before; TIME is in UTC, 2026-11-26T04:00:00Z, or in ms since 1970\n"
    "  --replace     rename a FOLDER that is not empty to FOLDER.replaced-N first (nothing in it\n"
    "                is deleted); its server must be stopped\n"
    "  --copy        copy files, also where a hard link is possible (FOLDER on the same file "
    "system)\n"
    "  --no-verify   do not read linked files to check them\n"
    "  --quiet       print only errors\n"
    "Creates the data folder FOLDER, which must be empty or missing, from a finished backup. Each\n"
    "file is compared with the backup's list. Servers refuse the folder of an interrupted "
    "restore;\n"
    "the same command starts it over. Then start a server on FOLDER.\n"
    "exit codes: 0 done; 1 not done, or damage found; 2 wrong arguments\n";

typedef struct arguments {
    rq_backup_options options;
    const char *to;
    int64_t to_ms;
    bool replace, quiet;
} arguments;

static bool parse_time(const char *text, int64_t *ret_ms)
{
    struct tm at = {0};
    uint64_t ms;
    if (rq__arg_number(text, &ms) && ms <= INT64_MAX) {
        *ret_ms = (int64_t)ms;
        return true;
    }
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &at);
    if (end == NULL || *end != '\0') return false;
    *ret_ms = (int64_t)timegm(&at) * 1000;
    return true;
}

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, arguments *a)
{
    const rq__option options[] = {
        {"to", .text = &a->to},
        {"replace", .flag = &a->replace},
        {"copy", .flag = &a->options.never_link},
        {"no-verify", .flag = &a->options.no_verify},
        {"quiet", .flag = &a->quiet},
    };
    int code = rq__parse_options("restore", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (a->to != NULL && !parse_time(a->to, &a->to_ms))
        return rq__refuse("restore", "--to %s: not a time like 2026-11-26T04:00:00Z", a->to);
    if (argc - optind != 2)
        return rq__refuse("restore", a->to != NULL ? "name a folder of backups and a data folder"
                                                   : "name a backup and a data folder");
    a->options.source = argv[optind];
    a->options.target = argv[optind + 1];
    return -1;
}

/* A folder that no server uses may be renamed. */
static rq_err check_unused(const char *folder, rq_error *why)
{
    rq_vfs *v;
    rq_file *lock = NULL;
    RQ_TRY(rq_vfs_posix_new(folder, &v, why));
    rq_err rc = rq_vfs_lock(v, NULL, &lock, why);
    (void)rq_file_close(lock);
    rq_vfs_free(v);
    return rc;
}

/* FOLDER.replaced-N with the lowest N that is free. */
static rq_err move_away(const char *folder, bool quiet, rq_error *why)
{
    if (access(folder, F_OK) != 0) return RQ_OK;
    RQ_TRY(check_unused(folder, why));
    size_t len = strlen(folder), room = len + 32;
    while (len > 1 && folder[len - 1] == '/')
        len--;
    char *to = malloc(room);
    if (to == NULL) return rq_no_memory(why);
    for (unsigned n = 1;; n++) {
        snprintf(to, room, "%.*s.replaced-%u", (int)len, folder, n);
        if (access(to, F_OK) != 0) break;
    }
    rq_err rc = RQ_OK;
    if (rename(folder, to) != 0)
        rc = rq_fail(why, RQ_E_IO, "cannot rename %s to %s: %s", folder, to, strerror(errno));
    else if (!quiet)
        printf("renamed %s to %s\n", folder, to);
    free(to);
    return rc;
}

/* --to: the backup becomes the source of the options. */
static rq_err choose(arguments *a, char **ret, rq_error *why)
{
    int64_t taken_ms;
    char text[32];
    RQ_TRY(rq_backup_newest(a->options.source, a->to_ms, ret, &taken_ms, why));
    a->options.source = *ret;
    struct tm at;
    time_t seconds = (time_t)(taken_ms / 1000);
    gmtime_r(&seconds, &at);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &at);
    if (!a->quiet) printf("backup %s, begun at %s.%03dZ\n", *ret, text, (int)(taken_ms % 1000));
    return RQ_OK;
}

int rq__cmd_restore(int argc, char **argv)
{
    arguments a = {0};
    rq_copy_progress progress;
    rq_backup_result result = {0};
    rq_error why = {0};
    int code = parse(argc, argv, &a);
    if (code >= 0) return code;
    rq__copy_progress_init(&progress, "restore", a.quiet);
    a.options.progress = &progress.calls;
    char *chosen = NULL;
    rq_err rc = RQ_OK;
    if (a.to != NULL) rc = choose(&a, &chosen, &why);
    if (rc == RQ_OK && a.replace) { /* only for a backup that can be read */
        rq_backup_result ignored;
        rq_backup_options check = a.options;
        rc = rq_backup_check(&check, &ignored, &why);
        if (rc == RQ_OK) rc = move_away(a.options.target, a.quiet, &why);
    }
    if (rc == RQ_OK) rc = rq_restore(&a.options, &result, &why);
    int ended = rq__copy_progress_end(&progress, &a.options, &result, "restored", rc, &why);
    free(chosen);
    return ended;
}
