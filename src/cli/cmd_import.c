/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual import: files into a table, by puts and deletes (transfer/import.h). */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/import.h"

#include <string.h>

static const char help[] =
    "usage: rorqual import [OPTION ...] TABLE INPUT\n\n" RQ__TRANSFER_HELP
    "  --format FORMAT        sequence (HBase's Export), tsv, csv or json (sequence)\n"
    "  --fields LIST          fields of a line (tsv, csv), as for ImportTsv: "
    "HBASE_ROW_KEY,cf:a,cf:b;\n"
    "                         also HBASE_TS_KEY, HBASE_CELL_TTL, HBASE_CELL_VISIBILITY,\n"
    "                         HBASE_ATTRIBUTES_KEY\n"
    "  --separator BYTE       between fields (a tab; for csv a comma)\n"
    "  --escape               read \\xNN in a field as a byte (tsv, csv)\n"
    "  --skip-empty           write no cell for an empty field\n"
    "  --timestamp MS         for cells that have none (the time when the import began)\n"
    "  --fail-on-bad-line     end at the first bad line (otherwise bad lines are printed and "
    "counted)\n"
    "  --rename OLD:NEW,...   write the cells of family OLD to family NEW\n"
    "  --durability WORD      of writes: skip_wal, async_wal, sync_wal, fsync_wal (the table's)\n"
    "  --progress FOLDER      keep the record of finished parts there (beside the input)\n"
    "INPUT is a file, or a folder: all its files but those that begin with _ or a dot. Repeat the\n"
    "command after an interruption: parts that are done are not done again.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

typedef struct arguments {
    rq__transfer_arguments a;
    const char *durability;
    rq_import import;
} arguments;

static bool take_durability(const char *word, int *ret)
{
    static const char *const words[] = {"use_default", "skip_wal", "async_wal", "sync_wal",
                                        "fsync_wal"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(words); i++)
        if (strcasecmp(word, words[i]) == 0) {
            *ret = (int)i;
            return true;
        }
    return false;
}

static int resolve(arguments *x)
{
    if (x->durability != NULL && !take_durability(x->durability, &x->import.durability))
        return rq__refuse("import", "--durability %s is not known", x->durability);
    int code = rq__transfer_resolve_input(&x->a);
    x->import.now_ms = x->a.now_ms;
    x->import.fails_on_bad_lines = x->a.fails_on_bad_lines;
    return code;
}

static int parse(arguments *x, int argc, char **argv)
{
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&x->a),
                                  RQ__INPUT_OPTIONS(&x->a),
                                  {"rename", .text = &x->import.renames},
                                  {"durability", .text = &x->durability},
                                  {"progress", .text = &x->import.progress}};
    int code = rq__parse_options("import", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 2) return rq__refuse("import", "name a table and a file or folder");
    x->import.table = argv[optind];
    x->import.input = argv[optind + 1];
    return resolve(x);
}

int rq__cmd_import(int argc, char **argv)
{
    arguments x = {.a.command = "import"};
    rq_transfer_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&x, argc, argv);
    if (code >= 0) return code;
    x.import.options = &x.a.options;
    x.import.format = x.a.format;
    x.import.text = x.a.text;
    rq__transfer_begin(&x.a, "import");
    rq_err rc = rq_import_run(&x.import, &counts, &why);
    return rq__transfer_end(&x.a, "imported", &counts, rc, &why);
}
