/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual fsck: checks a data folder (catalog/fsck.h) and prints its findings, one per line:
 * PROBLEM or note, where, what. The folder of a running server is seen as it is at one moment
 * (backup/session.h). Exit code 0: no problems; 1: problems; 2: the check was not possible (an I/O
 * error, no such folder). */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/progress.h"

#include "backup/session.h"
#include "catalog/fsck.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct fsck_run {
    bool json, quiet;
    rq_progress progress;
    uint64_t done, total; /* bytes under data/ */
} fsck_run;

static void print_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    fsck_run *run = ctx;
    bool problem = level == RQ_FINDING_PROBLEM;
    if (run->quiet && !problem) return;
    rq__progress_end(&run->progress);
    if (run->json) {
        rq__print_json_text("{", "level", rq_slice_cstr(problem ? "problem" : "note"));
        rq__print_json_text(",", "place", rq_slice_cstr(place));
        rq__print_json_text(",", "text", rq_slice_cstr(text));
        puts("}");
    } else {
        printf("%s  ", problem ? "PROBLEM" : "note   ");
        rq__print_bytes(rq_slice_cstr(place)); /* names in a damaged folder may contain any bytes */
        if (place[0] != '\0') printf(": ");
        rq__print_bytes(rq_slice_cstr(text));
        putchar('\n');
    }
    fflush(stdout);
}

static void step(void *ctx, uint64_t bytes)
{
    fsck_run *run = ctx;
    run->done += bytes;
    rq__progress_step(&run->progress, run->done, run->total);
}

/* The total for the progress bar; unreadable entries count as nothing. */
static uint64_t bytes_below(rq_vfs *vfs, const char *dir, unsigned depth)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    uint64_t sum = 0;
    if (rq_vfs_list(vfs, dir, &arena, &entries, &count, NULL) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        rq_stat st;
        const char *path = rq_arena_printf(&arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) break;
        if (entries[i].is_dir && depth < 8)
            sum += bytes_below(vfs, path, depth + 1);
        else if (!entries[i].is_dir && rq_vfs_stat(vfs, path, &st, NULL) == RQ_OK)
            sum += st.size;
    }
    rq_arena_clear(&arena);
    return sum;
}

static void print_totals(const fsck_run *run, const char *folder, const rq_fsck_totals *t)
{
    if (run->json) {
        rq__print_json_number("{", "tables", (int64_t)t->tables);
        rq__print_json_number(",", "regions", (int64_t)t->regions);
        rq__print_json_number(",", "files", (int64_t)t->files);
        rq__print_json_number(",", "logRecords", (int64_t)t->log_records);
        rq__print_json_number(",", "notes", (int64_t)t->notes);
        rq__print_json_number(",", "moved", (int64_t)t->moved);
        rq__print_json_number(",", "problems", (int64_t)t->problems);
        puts("}");
        return;
    }
    printf("%s: %" PRIu64 " tables, %" PRIu64 " regions, %" PRIu64 " files, %" PRIu64
           " records in the log: ",
           folder, t->tables, t->regions, t->files, t->log_records);
    if (t->problems == 0)
        printf("nothing wrong\n");
    else
        printf("%" PRIu64 " problem%s\n", t->problems, t->problems == 1 ? "" : "s");
    if (t->moved > 0) printf("%" PRIu64 " moved aside; run fsck again\n", t->moved);
}

static const char help[] =
    "usage: rorqual fsck [OPTION ...] FOLDER\n\n"
    "  --blocks   check every block and cell of every file too\n"
    "  --repair   move aside (never delete) files that no server reads: folders and\n"
    "             manifests of regions that hbase:meta does not list\n"
    "  --quiet    print problems only\n"
    "  --json     print a JSON object per line\n\n"
    "The server may run, except for --repair: the check then sees the folder's state at one\n"
    "moment.\n"
    "exit codes: 0 no problems; 1 problems; 2 the check was not possible, or wrong arguments\n";

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, fsck_run *run, rq_fsck_options *options,
                 const char **ret_folder)
{
    const rq__option list[] = {
        {"blocks", .flag = &options->deep},
        {"repair", .flag = &options->repair},
        {"quiet", .flag = &run->quiet},
        {"json", .flag = &run->json},
    };
    int code = rq__parse_options("fsck", help, list, RQ_ARRAY_LEN(list), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 1) return rq__refuse("fsck", "expected one data folder");
    *ret_folder = argv[optind];
    return -1;
}

/* The folder as it is, or, if a server runs on it, as it is at one moment. */
static rq_err open_folder(const char *folder, bool repair, rq_source *ret_source, rq_vfs **ret,
                          rq_error *why)
{
    char name[64];
    rq_error own = {0};
    snprintf(name, sizeof name, "fsck by process %ld", (long)getpid());
    rq_err rc = rq_source_open_running(folder, name, ret_source, &own);
    if (rc == RQ_E_NOT_FOUND) return rq_vfs_posix_new(folder, ret, why);
    if (rc == RQ_OK && repair)
        rc = rq_fail(&own, RQ_E_LOCKED,
                     "a server runs on the folder: stop the server before a repair");
    if (rc == RQ_OK) return rq_source_vfs_new(ret_source, ret, why);
    return rq_fail(why, rc, "%s", own.message);
}

/* Hints after problems, printed once. */
static void print_advice(const fsck_run *run, const char *folder)
{
    if (run->json || run->quiet) return;
    printf(
        "hint: rorqual recover %s lists what to set aside so that the rest can be served, and asks "
        "first;\nor restore a backup: rorqual restore BACKUP FOLDER. More: "
        "docs/operate/damage.md\n",
        folder);
}

int rq__cmd_fsck(int argc, char **argv)
{
    fsck_run run = {0};
    rq_fsck_options options = {.findings = {print_finding, step, &run}};
    const char *folder = NULL;
    int code = parse(argc, argv, &run, &options, &folder);
    if (code >= 0) return code;
    rq_source source = {0};
    rq_vfs *vfs = NULL;
    rq_fsck_totals totals = {0};
    rq_error why = {0};
    rq_err rc = open_folder(folder, options.repair, &source, &vfs, &why);
    if (rc == RQ_OK) {
        rq__progress_begin(&run.progress, folder);
        if (run.progress.is_terminal) run.total = bytes_below(vfs, "data", 0);
        rc = rq_fsck(vfs, &options, &totals, &why);
        rq__progress_end(&run.progress);
    }
    rq_vfs_free(vfs);
    rq_source_close(&source);
    if (rc != RQ_OK) {
        const char *text = why.message[0] != '\0' ? why.message : rq_err_text(rc);
        bool named = strstr(text, folder) != NULL;
        fprintf(stderr, "rorqual fsck: %s%s%s\n", named ? "" : folder, named ? "" : ": ", text);
        return 2;
    }
    print_totals(&run, folder, &totals);
    if (totals.problems > 0) print_advice(&run, folder);
    if (fflush(stdout) != 0) return 2;
    return totals.problems > 0 ? 1 : 0;
}
