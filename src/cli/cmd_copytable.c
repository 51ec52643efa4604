/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual copytable: a table's cells into another table (transfer/copy.h). */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/copy.h"

#include <string.h>

static const char help[] =
    "usage: rorqual copytable [OPTION ...] TABLE\n\n" RQ__TRANSFER_HELP RQ__SCAN_HELP
    "  --new-name TABLE       the target table's name (the source table's name)\n"
    "  --peer HOST:PORT       ZooKeeper of the target's cluster (this cluster)\n"
    "  --peer-bootstrap HOST:PORT  a master or region server of it, instead of ZooKeeper\n"
    "  --peer-zk-root PATH    its parent znode (/hbase)\n"
    "  --families LIST        cf,old:new: families to copy, and their names in the target (all)\n"
    "  --all-cells            also delete markers and all versions\n"
    "  --progress FOLDER      keep the record of finished parts there; the same command continues\n"
    "                         after an interruption\n"
    "  --batch N              at most N cells of a row at once, for very wide rows\n"
    "Both tables must exist. Cells keep their timestamps, so a copy may be repeated. Clusters may "
    "be\n"
    "HBase or Rorqual.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

typedef struct arguments {
    rq__transfer_arguments a;
    const char *new_name, *peer, *bootstrap, *zk_root, *families;
    bool all_cells;
    char columns[4096], renames[4096];
    rq_copy copy;
} arguments;

static bool append(char *to, size_t size, const char *from, size_t len)
{
    size_t used = strlen(to);
    if (used + len + 2 > size) return false;
    if (used > 0) to[used++] = ',';
    memcpy(to + used, from, len);
    to[used + len] = '\0';
    return true;
}

/* HBase's list names families; "old:new" copies old as new. */
static bool take_families(arguments *x)
{
    const char *at = x->families;
    while (at != NULL) {
        const char *end = strchrnul(at, ',');
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *name_end = colon == NULL ? end : colon;
        if (name_end == at) return false;
        if (!append(x->columns, sizeof x->columns, at, (size_t)(name_end - at))) return false;
        if (colon != NULL && !append(x->renames, sizeof x->renames, at, (size_t)(end - at)))
            return false;
        at = *end == '\0' ? NULL : end + 1;
    }
    return true;
}

static int resolve_target(arguments *x)
{
    rq_client_options *target = &x->copy.target_client;
    *target = x->a.options.client;
    x->copy.target = x->new_name != NULL ? x->new_name : x->copy.table;
    if (x->peer != NULL && x->bootstrap != NULL)
        return rq__refuse("copytable", "--peer and --peer-bootstrap exclude each other");
    const char *at = x->peer != NULL ? x->peer : x->bootstrap;
    if (at != NULL && !rq_client_is_address(at))
        return rq__refuse("copytable", "'%s' is not host:port", at);
    if (at != NULL) {
        target->zookeeper = x->peer;
        target->bootstrap = x->bootstrap;
        target->zk_root = x->zk_root;
    } else if (strcmp(x->copy.table, x->copy.target) == 0) {
        return rq__refuse("copytable", "the target is the source table: give --new-name or --peer");
    }
    return -1;
}

static int resolve(arguments *x)
{
    int code = rq__transfer_resolve(&x->a);
    if (code >= 0) return code;
    if (x->families != NULL && x->a.scan.columns != NULL)
        return rq__refuse("copytable", "--families and --columns exclude each other");
    if (!take_families(x))
        return rq__refuse("copytable", "--families %s: not cf,old:new,...", x->families);
    if (x->columns[0] != '\0') x->a.scan.columns = x->columns;
    if (x->renames[0] != '\0') x->copy.renames = x->renames;
    x->a.scan.is_raw = x->all_cells;
    if (x->all_cells) x->a.scan.versions = INT32_MAX;
    return resolve_target(x);
}

int rq__cmd_copytable(int argc, char **argv)
{
    arguments x = {.a.command = "copytable"};
    rq_transfer_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&x.a),
                                  RQ__SCAN_OPTIONS(&x.a),
                                  {"new-name", .text = &x.new_name},
                                  {"peer", .text = &x.peer},
                                  {"peer-bootstrap", .text = &x.bootstrap},
                                  {"peer-zk-root", .text = &x.zk_root},
                                  {"families", .text = &x.families},
                                  {"all-cells", .flag = &x.all_cells},
                                  {"progress", .text = &x.copy.progress},
                                  {"batch", .number = &x.a.scan.batch}};
    int code = rq__parse_options("copytable", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0 && argc - optind != 1) code = rq__refuse("copytable", "name a table");
    if (code < 0) x.copy.table = argv[optind];
    if (code < 0) code = resolve(&x);
    if (code >= 0) return code;
    x.copy.options = &x.a.options;
    x.copy.scan = x.a.scan;
    rq__transfer_begin(&x.a, "copy");
    rq_err rc = rq_copy_run(&x.copy, &counts, &why);
    return rq__transfer_end(&x.a, "copied", &counts, rc, &why);
}
