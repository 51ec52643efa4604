/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual export: a table to a folder of files (transfer/export.h). */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/export.h"

static const char help[] =
    "usage: rorqual export [OPTION ...] TABLE FOLDER\n\n" RQ__TRANSFER_HELP
    "  --format FORMAT        sequence (HBase's Export), tsv, csv or json (sequence)\n"
    "  --fields LIST          fields of a line (tsv, csv), as for ImportTsv: "
    "HBASE_ROW_KEY,cf:a,cf:b\n"
    "  --separator BYTE       between fields (a tab; for csv a comma)\n"
    "  --escape               write bytes that are not text as \\xNN (tsv, csv)\n" RQ__SCAN_HELP
    "  --raw                  also delete markers and the cells that they hide\n"
    "  --prefix PREFIX        only rows whose key begins with PREFIX\n"
    "  --regex PATTERN        only rows whose key has a match of this Java regular expression\n"
    "  --batch N              at most N cells in a record, for very wide rows\n"
    "Writes a file for each region, part-m-00000 ... (part-m-00000.tsv, .csv or .json for these\n"
    "formats), and _SUCCESS at the end. The folder must be empty or missing. Repeat the command\n"
    "after an interruption: finished regions are kept. HBase's Import reads the folder (format\n"
    "sequence).\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

int rq__cmd_export(int argc, char **argv)
{
    rq__transfer_arguments a = {.command = "export"};
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&a),
                                  RQ__SCAN_OPTIONS(&a),
                                  RQ__TEXT_OPTIONS(&a),
                                  {"raw", .flag = &a.scan.is_raw},
                                  {"prefix", .text = &a.scan.row_prefix},
                                  {"regex", .text = &a.scan.row_regex},
                                  {"batch", .number = &a.scan.batch}};
    int code = rq__parse_options("export", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0 && argc - optind != 2) code = rq__refuse("export", "name a table and a folder");
    if (code < 0) code = rq__transfer_resolve(&a);
    if (code < 0) code = rq__transfer_resolve_text(&a);
    if (code >= 0) return code;
    rq_export e = {.options = &a.options,
                   .table = argv[optind],
                   .folder = argv[optind + 1],
                   .scan = a.scan,
                   .format = a.format,
                   .text = a.text};
    rq_transfer_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    rq__transfer_begin(&a, "export");
    rq_err rc = rq_export_run(&e, &counts, &why);
    return rq__transfer_end(&a, "exported", &counts, rc, &why);
}
