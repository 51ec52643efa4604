/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual cellcount: counts a table's cells by column, as HBase's CellCounter does. */
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/transfers.h"
#include "transfer/count.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual cellcount [OPTION ...] TABLE\n\n" RQ__TRANSFER_HELP RQ__SCAN_HELP
    "  --raw                  also delete markers and the cells that they hide\n"
    "  --prefix PREFIX        only rows whose key begins with PREFIX\n"
    "  --regex PATTERN        only rows whose key has a match of this Java regular expression\n"
    "  --batch N              at most N cells of a row at once, for very wide rows\n"
    "Prints the number of rows, families, columns and cells of a table; and for each column the "
    "number\n"
    "of rows with the column, its cells (versions) and their bytes. All columns after the first "
    "100,000\n"
    "share one line.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

static void print_column(const rq_column_count *c)
{
    rq__print_bytes(c->family);
    putchar(':');
    rq__print_bytes(c->qualifier);
    printf("\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", c->rows, c->cells, c->bytes);
}

static size_t families(const rq_cell_counts *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++)
        n += i == 0 || !rq_slice_eq(c->columns[i].family, c->columns[i - 1].family);
    return n;
}

static void print(const rq_cell_counts *c, const rq_transfer_counts *all)
{
    uint64_t qualifiers = c->others.rows;
    for (size_t i = 0; i < c->count; i++)
        qualifiers += c->columns[i].rows;
    printf("Total ROWS\t%" PRIu64 "\n", all->rows);
    printf("Total Families Across all Rows\t%zu\n", families(c));
    printf("Total Qualifiers across all Rows\t%" PRIu64 "\n", qualifiers);
    printf("Total CELLS\t%" PRIu64 "\nTotal SIZE\t%" PRIu64 "\n", all->cells, all->bytes);
    printf("\ncolumn\trows\tcells\tbytes\n");
    for (size_t i = 0; i < c->count; i++)
        print_column(&c->columns[i]);
    if (c->others.cells > 0)
        printf("(other columns)\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", c->others.rows,
               c->others.cells, c->others.bytes);
}

int rq__cmd_cellcount(int argc, char **argv)
{
    rq__transfer_arguments a = {.command = "cellcount"};
    rq_transfer_counts all = {0};
    rq_cell_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&a),
                                  RQ__SCAN_OPTIONS(&a),
                                  {"raw", .flag = &a.scan.is_raw},
                                  {"prefix", .text = &a.scan.row_prefix},
                                  {"regex", .text = &a.scan.row_regex},
                                  {"batch", .number = &a.scan.batch}};
    int code = rq__parse_options("cellcount", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0 && argc - optind != 1) code = rq__refuse("cellcount", "name a table");
    if (code < 0) code = rq__transfer_resolve(&a);
    if (code >= 0) return code;
    rq__transfer_begin(&a, "count");
    rq_err rc = rq_count_cells(&a.options, argv[optind], &a.scan, &counts, &all, &why);
    rq__progress_end(&a.bar);
    if (rc == RQ_OK) print(&counts, &all);
    rq_cell_counts_clear(&counts);
    a.quiet = true;
    return rq__transfer_end(&a, "", &all, rc, &why);
}
