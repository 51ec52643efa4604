/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that move data (export, import, copytable …) have in common: the cluster, threads
 * and rate, the scan's options, progress and the line at the end. */
#ifndef RQ_CLI_TRANSFERS_H
#define RQ_CLI_TRANSFERS_H

#include "base/arena.h"
#include "cli/args.h"
#include "cli/cluster.h"
#include "cli/progress.h"
#include "transfer/format.h"
#include "transfer/scan.h"
#include "transfer/transfer.h"

typedef struct rq__transfer_arguments {
    const char *command;
    rq__cluster_where where;
    rq_transfer_options options; /* after rq__transfer_resolve */
    const char *rate;
    bool quiet;
    /* of the scan */
    const char *start, *stop, *from, *to;
    rq_transfer_scan scan;
    /* of text */
    const char *format_name, *separator, *fields;
    rq_transfer_format format;
    rq_text_format text;
    /* of an input */
    const char *timestamp;
    bool fails_on_bad_lines;
    int64_t now_ms; /* after rq__transfer_resolve_input; 0: none was given */
    rq_arena arena;
    rq_progress bar;
} rq__transfer_arguments;

#define RQ__TRANSFER_OPTIONS(a)                                                                    \
    RQ__CLUSTER_OPTIONS(&(a)->where), {"jobs", .number = &(a)->options.jobs},                      \
        {"rate", .text = &(a)->rate},                                                              \
    {                                                                                              \
        "quiet", .flag = &(a)->quiet                                                               \
    }
#define RQ__TRANSFER_HELP                                                                          \
    RQ__CLUSTER_HELP                                                                               \
    "  --jobs N               parts in parallel (4)\n"                                             \
    "  --rate BYTES           at most BYTES a second, all jobs together; also 500K, 20M, 1G\n"     \
    "  --quiet                print only errors\n"

#define RQ__SCAN_OPTIONS(a)                                                                        \
    {"start-row", .text = &(a)->start}, {"stop-row", .text = &(a)->stop},                          \
        {"columns", .text = &(a)->scan.columns}, {"start-time", .text = &(a)->from},               \
        {"end-time", .text = &(a)->to},                                                            \
    {                                                                                              \
        "versions", .number = &(a)->scan.versions                                                  \
    }
#define RQ__SCAN_HELP                                                                              \
    "  --start-row ROW        the first row; bytes as \\xNN\n"                                     \
    "  --stop-row ROW         end before this row\n"                                               \
    "  --columns LIST         only these: cf,cf:qualifier,… (all)\n"                             \
    "  --start-time MS        only cells with this timestamp or a later one\n"                     \
    "  --end-time MS          only cells with an earlier timestamp\n"                              \
    "  --versions N           the newest N versions of each cell (1)\n"

#define RQ__TEXT_OPTIONS(a)                                                                        \
    {"format", .text = &(a)->format_name}, {"fields", .text = &(a)->fields},                       \
        {"separator", .text = &(a)->separator},                                                    \
    {                                                                                              \
        "escape", .flag = &(a)->text.has_escapes                                                   \
    }

/* Of the commands that read text. */
#define RQ__INPUT_OPTIONS(a)                                                                       \
    RQ__TEXT_OPTIONS(a), {"skip-empty", .flag = &(a)->text.skips_empty},                           \
        {"timestamp", .text = &(a)->timestamp},                                                    \
    {                                                                                              \
        "fail-on-bad-line", .flag = &(a)->fails_on_bad_lines                                       \
    }

/* Checks the options after all were parsed. An exit code, or -1 to go on. */
int rq__transfer_resolve(rq__transfer_arguments *a);
/* Likewise for the text formats. */
int rq__transfer_resolve_text(rq__transfer_arguments *a);
/* Likewise for RQ__INPUT_OPTIONS. */
int rq__transfer_resolve_input(rq__transfer_arguments *a);
void rq__transfer_begin(rq__transfer_arguments *a, const char *what);
/* "1 row", "2 rows". */
void rq__print_count(uint64_t count, const char *noun);
/* Prints the error, or "VERB N rows …"; frees the arguments' memory. Returns the exit code. */
int rq__transfer_end(rq__transfer_arguments *a, const char *verb, const rq_transfer_counts *counts,
                     rq_err rc, const rq_error *why);

#endif
