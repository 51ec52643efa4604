/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual verify: compares tables by hashes of their rows (transfer/verify.h). */
#include "cli/cli.h"
#include "cli/transfers.h"
#include "transfer/verify.h"

#include <inttypes.h>
#include <stdio.h>

static const char help[] =
    "usage: rorqual verify [OPTION ...] TABLE OTHER-TABLE\n"
    "       rorqual verify [OPTION ...] --write FOLDER TABLE\n"
    "       rorqual verify [OPTION ...] --against FOLDER TABLE\n\n" RQ__TRANSFER_HELP RQ__SCAN_HELP
    "  --raw                  also delete markers and the cells that they hide\n"
    "  --batch N              at most N cells of a row at once, for very wide rows\n"
    "  --peer HOST:PORT       ZooKeeper of the other table's cluster (this cluster)\n"
    "  --peer-bootstrap HOST:PORT  a master or region server of that cluster, instead of "
    "ZooKeeper\n"
    "  --peer-zk-root PATH    its parent znode (/hbase)\n"
    "  --batch-size BYTES     bytes of cells for each hash (8000)\n"
    "  --ignore-timestamps    compare rows, columns and values only\n"
    "  --write FOLDER         write the hashes, as HBase's HashTable does\n"
    "  --hash-files N         write N files (one for each 100 regions)\n"
    "  --against FOLDER       compare with a folder of hashes, whose manifest selects the cells\n"
    "Prints the ranges of rows that differ. HBase's SyncTable can read the folder of --write, and\n"
    "--against can read a folder of HBase's HashTable.\n"
    "exit codes: 0 equal, or written; 1 different, or not done; 2 wrong arguments\n";

typedef struct arguments {
    rq__transfer_arguments a;
    const char *write, *against, *peer, *bootstrap, *zk_root;
    rq_verify verify;
} arguments;

static int resolve_other(arguments *x)
{
    rq_client_options *other = &x->verify.other_client;
    const char *at = x->peer != NULL ? x->peer : x->bootstrap;
    *other = x->a.options.client;
    if (x->peer != NULL && x->bootstrap != NULL)
        return rq__refuse("verify", "--peer and --peer-bootstrap exclude each other");
    if (at == NULL) return -1;
    if (!rq_client_is_address(at)) return rq__refuse("verify", "'%s' is not host:port", at);
    other->zookeeper = x->peer;
    other->bootstrap = x->bootstrap;
    other->zk_root = x->zk_root;
    return -1;
}

static int parse(arguments *x, int argc, char **argv)
{
    const rq__option options[] = {RQ__TRANSFER_OPTIONS(&x->a),
                                  RQ__SCAN_OPTIONS(&x->a),
                                  {"raw", .flag = &x->a.scan.is_raw},
                                  {"batch", .number = &x->a.scan.batch},
                                  {"peer", .text = &x->peer},
                                  {"peer-bootstrap", .text = &x->bootstrap},
                                  {"peer-zk-root", .text = &x->zk_root},
                                  {"batch-size", .number = &x->verify.batch_bytes},
                                  {"ignore-timestamps", .flag = &x->verify.ignores_times},
                                  {"write", .text = &x->write},
                                  {"hash-files", .number = &x->verify.files},
                                  {"against", .text = &x->against}};
    int code = rq__parse_options("verify", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    bool has_folder = x->write != NULL || x->against != NULL;
    if (x->write != NULL && x->against != NULL)
        return rq__refuse("verify", "--write and --against exclude each other");
    if (argc - optind != (has_folder ? 1 : 2))
        return rq__refuse("verify", has_folder ? "name a table" : "name two tables");
    x->verify.table = argv[optind];
    x->verify.other = has_folder ? NULL : argv[optind + 1];
    x->verify.folder = x->write != NULL ? x->write : x->against;
    code = rq__transfer_resolve(&x->a);
    return code < 0 ? resolve_other(x) : code;
}

static rq_err run(const arguments *x, rq_transfer_counts *counts, rq_error *why)
{
    if (x->write != NULL) return rq_verify_write(&x->verify, counts, why);
    return x->against != NULL ? rq_verify_folder(&x->verify, counts, why)
                              : rq_verify_tables(&x->verify, counts, why);
}

int rq__cmd_verify(int argc, char **argv)
{
    arguments x = {.a.command = "verify"};
    rq_transfer_counts counts = {0};
    rq_error why = {.code = RQ_OK};
    int code = parse(&x, argc, argv);
    if (code >= 0) return code;
    x.verify.options = &x.a.options;
    x.verify.scan = x.a.scan;
    rq__transfer_begin(&x.a, "verify");
    rq_err rc = run(&x, &counts, &why);
    rq__progress_end(&x.a.bar);
    if (rc == RQ_OK && x.write == NULL && !x.a.quiet) {
        if (counts.different == 0)
            puts("equal");
        else
            printf("different: %" PRIu64 " ranges of rows\n", counts.different);
    }
    if (x.write == NULL) x.a.quiet = true;
    code = rq__transfer_end(&x.a, "hashed", &counts, rc, &why);
    return code == 0 && counts.different > 0 ? 1 : code;
}
