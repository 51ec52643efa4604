/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual restore: makes a data folder from a backup (backup/backup.h). */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/copy_progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: rorqual restore [OPTION ...] BACKUP FOLDER\n\n"
    "  --replace     FOLDER is not empty: rename it to FOLDER.replaced-N first (nothing in it is\n"
    "                deleted); its server must be stopped\n"
    "  --copy        copy files even where a hard link would do (FOLDER on the same file system)\n"
    "  --no-verify   do not read linked files to check them\n"
    "  --quiet       print only errors\n"
    "Makes the data folder FOLDER, which must be empty or missing, from a finished backup. Each\n"
    "file is compared with the backup's list. Servers refuse the folder of an interrupted "
    "restore;\n"
    "the same command starts it over. Then start a server on FOLDER.\n"
    "exit codes: 0 done; 1 not done, or damage found; 2 wrong arguments\n";

typedef struct arguments {
    rq_backup_options options;
    bool replace, quiet;
} arguments;

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, arguments *a)
{
    const rq__option options[] = {
        {"replace", .flag = &a->replace},
        {"copy", .flag = &a->options.never_link},
        {"no-verify", .flag = &a->options.no_verify},
        {"quiet", .flag = &a->quiet},
    };
    int code = rq__parse_options("restore", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 2) return rq__refuse("restore", "name a backup and a data folder");
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
        printf("%s is %s now\n", folder, to);
    free(to);
    return rc;
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
    rq_err rc = RQ_OK;
    if (a.replace) { /* only for a backup that can be read */
        rq_backup_result ignored;
        rq_backup_options check = a.options;
        rc = rq_backup_check(&check, &ignored, &why);
        if (rc == RQ_OK) rc = move_away(a.options.target, a.quiet, &why);
    }
    if (rc == RQ_OK) rc = rq_restore(&a.options, &result, &why);
    return rq__copy_progress_end(&progress, &a.options, &result, "restored", rc, &why);
}
