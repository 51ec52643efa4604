/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual rowcount: counts a table's rows, as HBase's RowCounter does. */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/count.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual rowcount [OPTION ...] TABLE\n\n" RQ__TRANSFER_HELP RQ__SCAN_HELP
    "  --prefix PREFIX        only rows whose key begins with PREFIX\n"
    "  --regex PATTERN        only rows whose key has a match of this Java regular expression\n"
    "Counts the rows with at least one selected cell, region by region in parallel.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

int rq__cmd_rowcount(int argc, char **argv)
{
    rq__transfer_arguments a = {.command = "rowcount"};
    rq_transfer_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&a),
                                  RQ__SCAN_OPTIONS(&a),
                                  {"prefix", .text = &a.scan.row_prefix},
                                  {"regex", .text = &a.scan.row_regex}};
    int code = rq__parse_options("rowcount", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0 && argc - optind != 1) code = rq__refuse("rowcount", "name a table");
    if (code < 0) code = rq__transfer_resolve(&a);
    if (code >= 0) return code;
    rq__transfer_begin(&a, "count");
    rq_err rc = rq_count_rows(&a.options, argv[optind], a.scan, &counts, &why);
    if (rc == RQ_OK) {
        rq__progress_end(&a.bar);
        printf("ROWS=%" PRIu64 "\n", counts.rows);
    }
    a.quiet = true;
    return rq__transfer_end(&a, "", &counts, rc, &why);
}
