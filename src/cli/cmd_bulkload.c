/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual bulkload: text to HFiles, HFiles into a table (transfer/bulkload.h). */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/bulkload.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual bulkload [OPTION ...] --format FORMAT TABLE INPUT\n"
    "       rorqual bulkload [OPTION ...] TABLE HFILES\n\n" RQ__TRANSFER_HELP
    "  --format FORMAT        tsv, csv, json, or sequence (HBase's Export); otherwise the input is "
    "a\n"
    "                         folder of HFiles, HFILES/FAMILY/FILE\n"
    "  --fields LIST          fields of a line (tsv, csv), as for ImportTsv: "
    "HBASE_ROW_KEY,cf:a,cf:b;\n"
    "                         also HBASE_TS_KEY, HBASE_CELL_TTL\n"
    "  --separator BYTE       between fields (a tab; for csv a comma)\n"
    "  --escape               read \\xNN in a field as a byte (tsv, csv)\n"
    "  --skip-empty           write no cell for an empty field\n"
    "  --timestamp MS         for cells that have none (now)\n"
    "  --fail-on-bad-line     end at the first bad line (otherwise bad lines are printed and "
    "counted)\n"
    "  --output FOLDER        write the HFiles to this folder (the server's staging folder); it "
    "must\n"
    "                         be empty, and a Rorqual server must list it in "
    "rorqual.bulkload.folders\n"
    "  --progress FOLDER      keep the state from which a killed load continues in this folder "
    "(the\n"
    "                         output folder; without either option a killed load starts over)\n"
    "  --no-load              only write the HFiles to the output folder\n"
    "  --keep                 keep the HFiles: the server copies them instead of moving them\n"
    "  --memory BYTES         memory for sorting; also 200M, 2G (512M)\n"
    "The input need not be sorted. The server reads the HFiles by their path, so their folder must "
    "have\n"
    "the same path on the server. A file that spans regions is divided. Repeat the command to "
    "continue\n"
    "a killed load.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

typedef struct arguments {
    rq__transfer_arguments a;
    const char *memory;
    rq_bulkload bulk;
} arguments;

static int resolve(arguments *x)
{
    rq_bulkload *b = &x->bulk;
    if (x->memory != NULL && (!rq__arg_bytes(x->memory, &b->memory) || b->memory < 1 << 20))
        return rq__refuse("bulkload", "--memory %s: not a number of bytes, at least 1M", x->memory);
    b->has_hfiles = x->a.format_name == NULL;
    if (b->has_hfiles && (b->output != NULL || b->only_writes))
        return rq__refuse("bulkload", "--output and --no-load need --format");
    if (b->has_hfiles && b->progress != NULL)
        return rq__refuse("bulkload", "--progress needs --format: what is loaded of a folder of "
                                      "HFiles is noted in that folder");
    if (b->only_writes && b->output == NULL)
        return rq__refuse("bulkload", "--no-load needs --output");
    int code = rq__transfer_resolve_input(&x->a);
    b->now_ms = x->a.now_ms;
    b->fails_on_bad_lines = x->a.fails_on_bad_lines;
    return code;
}

static int parse(arguments *x, int argc, char **argv)
{
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&x->a),
                                  RQ__INPUT_OPTIONS(&x->a),
                                  {"output", .text = &x->bulk.output},
                                  {"progress", .text = &x->bulk.progress},
                                  {"no-load", .flag = &x->bulk.only_writes},
                                  {"keep", .flag = &x->bulk.keeps_files},
                                  {"memory", .text = &x->memory}};
    int code = rq__parse_options("bulkload", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 2) return rq__refuse("bulkload", "name a table and a file or folder");
    x->bulk.table = argv[optind];
    x->bulk.input = argv[optind + 1];
    return resolve(x);
}

static void print(const arguments *x, const rq_bulkload_counts *c)
{
    if (!x->bulk.has_hfiles) {
        fputs("sorted ", stdout);
        rq__print_count(c->read.rows, "row");
        fputs(", ", stdout);
        rq__print_count(c->read.cells, "cell");
        fputs(" into ", stdout);
        rq__print_count(c->written, "HFile");
        fputs("; ", stdout);
    }
    fputs("loaded ", stdout);
    rq__print_count(c->loaded, "HFile");
    if (c->divided > 0) {
        fputs(", ", stdout);
        rq__print_count(c->divided, "time");
        fputs(" divided at a region's end", stdout);
    }
    if (c->is_continued) {
        fputs("; an earlier run was continued, ", stdout);
        rq__print_count(c->read.parts_kept, "part");
        printf(" %s sorted before", c->read.parts_kept == 1 ? "was" : "were");
    }
    if (c->read.bad_lines > 0) printf("; Bad Lines=%" PRIu64, c->read.bad_lines);
    putchar('\n');
}

int rq__cmd_bulkload(int argc, char **argv)
{
    arguments x = {.a.command = "bulkload"};
    rq_bulkload_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&x, argc, argv);
    if (code >= 0) return code;
    x.bulk.options = &x.a.options;
    x.bulk.format = x.a.format;
    x.bulk.text = x.a.text;
    rq__transfer_begin(&x.a, "bulkload");
    rq_err rc = rq_bulkload_run(&x.bulk, &counts, &why);
    rq__progress_end(&x.a.bar);
    if (rc == RQ_OK && !x.a.quiet) print(&x, &counts);
    x.a.quiet = true;
    return rq__transfer_end(&x.a, "", &counts.read, rc, &why);
}
