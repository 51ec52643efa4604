/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual recover: repairs a damaged data folder so that a server starts on it (catalog/recover.h).
 * Prints what it would do, and asks before doing it. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"

#include "base/epoch.h"
#include "catalog/recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: rorqual recover [OPTION ...] FOLDER\n\n"
    "  --yes       do it without asking\n"
    "  --dry-run   only print what would be done\n"
    "Repairs a damaged data folder so that a server can start on it and serve its undamaged data.\n"
    "Stop the server first. Damaged files are moved to FOLDER/.rorqual/aside/N under their old\n"
    "paths and printed; nothing is deleted. Acknowledged writes in damaged files or in a damaged\n"
    "part of the log are missing afterwards; a backup may have them. Reads every block, prints\n"
    "what it would do, and asks.\n"
    "exit codes: 0 nothing to do, or done; 1 not done; 2 wrong arguments\n";

typedef struct run {
    bool yes, dry;
    uint64_t shown;
} run;

static void print_action(void *ctx, const char *what, const char *place, const char *text)
{
    run *r = ctx;
    r->shown++;
    printf("%-10s ", what);
    rq__print_bytes(rq_slice_cstr(place)); /* names in a damaged folder may contain any bytes */
    printf(": ");
    rq__print_bytes(rq_slice_cstr(text));
    putchar('\n');
    fflush(stdout);
}

static bool confirm(const char *folder)
{
    char line[16];
    printf("Do this in %s? Type yes: ", folder);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL && strcmp(line, "yes\n") == 0;
}

static rq_err open_env(const char *folder, rq_log *log, rq_env *ret, rq_error *why)
{
    const unsigned threads[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = 2,          [RQ_POOL_FLUSH] = 2, [RQ_POOL_COMPACT] = 1,
        [RQ_POOL_COMPACT_LARGE] = 1, [RQ_POOL_CODEC] = 1, [RQ_POOL_WORK] = 4};
    *ret = (rq_env){.log = log};
    RQ_TRY(rq_vfs_posix_new(folder, &ret->vfs, why));
    if (rq_thread_executor_new(threads, &ret->executor) != RQ_OK ||
        rq_epoch_new(&ret->epoch) != RQ_OK)
        return rq_no_memory(why);
    return RQ_OK;
}

static void close_env(rq_env *env)
{
    rq_epoch_free(env->epoch);
    if (env->executor != NULL) rq_thread_executor_free(env->executor);
    rq_vfs_free(env->vfs);
}

/* Exit code. */
static int recover(const char *folder, run *r)
{
    rq_log log = {.fd = STDERR_FILENO, .level = RQ_LOG_ERROR};
    rq_env env;
    rq_error why = {0};
    rq_recover_result result = {0};
    rq_recover_options o = {.report = print_action, .ctx = r};
    rq_err rc = open_env(folder, &log, &env, &why);
    if (rc == RQ_OK) rc = rq_recover(&env, &o, &result, &why);
    bool go = rc == RQ_OK && result.found > 0 && !r->dry;
    if (rc == RQ_OK && result.found == 0) printf("%s: nothing to recover\n", folder);
    if (go && !r->yes) go = confirm(folder);
    bool refused = rc == RQ_OK && result.found > 0 && !r->dry && !go;
    if (go) {
        o.act = true;
        rc = rq_recover(&env, &o, &result, &why);
    }
    close_env(&env);
    if (rc != RQ_OK) {
        fflush(stdout);
        fprintf(stderr, "rorqual recover: %s: %s\n", folder,
                why.message[0] != '\0' ? why.message : rq_err_text(rc));
        return 1;
    }
    if (refused) fprintf(stderr, "rorqual recover: nothing was done\n");
    if (go) printf("%s: done, %" PRIu64 " repairs", folder, result.found);
    if (go && result.aside_text[0] != '\0')
        printf("; what was moved is in %s/%s", folder, result.aside_text);
    if (go) printf(". Look once more (rorqual fsck --blocks %s), then start the server.\n", folder);
    return refused ? 1 : 0;
}

int rq__cmd_recover(int argc, char **argv)
{
    run r = {0};
    const rq__option options[] = {{"yes", .flag = &r.yes}, {"dry-run", .flag = &r.dry}};
    int code = rq__parse_options("recover", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 1) return rq__refuse("recover", "name one data folder");
    return recover(argv[optind], &r);
}
