/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual split: plans the regions of a table, as HBase's RegionSplitter does: prints which splits it
 * lacks, or creates it. The keys come from the row-key toolkit (rorqual/rowkey.h). */
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/transfers.h"
#include "rorqual/rowkey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: rorqual split [OPTION ...] --regions N --kind hex|decimal|uniform "
    "TABLE\n\n" RQ__CLUSTER_HELP "  --regions N            number of regions the table shall have\n"
    "  --kind KIND            how to divide the key space, as HBase's HexStringSplit,\n"
    "                         DecimalStringSplit or UniformSplit\n"
    "  --create FAMILIES      create the table with these regions: cf,cf2\n"
    "Without --create, prints the splits that the existing table lacks, as commands of HBase's\n"
    "shell: split 'REGION', 'KEY'. Nothing is changed. Other keys: rorqual key --splits.\n"
    "exit codes: 0 done; 1 not done; 2 wrong arguments\n";

#define FAMILIES_MAX 64

typedef struct arguments {
    rq__transfer_arguments a;
    uint64_t regions;
    const char *kind, *families;
    const char *table;
    rq_key_list *keys;
} arguments;

static bool take_kind(const char *word, rq_split_kind *ret)
{
    static const char *const words[] = {"hex", "decimal", "uniform"};
    static const rq_split_kind kinds[] = {RQ_SPLIT_HEX, RQ_SPLIT_DECIMAL, RQ_SPLIT_UNIFORM};
    for (size_t i = 0; i < RQ_ARRAY_LEN(words); i++)
        if (word != NULL && strcmp(word, words[i]) == 0) {
            *ret = kinds[i];
            return true;
        }
    return false;
}

/* --- a new table ------------------------------------------------------------------------------ */

static rq_err create(arguments *x, rq_client *c, rq_error *why)
{
    rq_client_family families[FAMILIES_MAX] = {{0}};
    size_t count = 0;
    char *names = rq_arena_cstr(&x->a.arena, rq_slice_cstr(x->families));
    rq_slice *splits = calloc(x->keys->count + 1, sizeof *splits);
    if (names == NULL || splits == NULL) {
        free(splits);
        return rq_no_memory(why);
    }
    for (char *rest = names, *name; count < FAMILIES_MAX && (name = strsep(&rest, ",")) != NULL;)
        families[count++].name = name;
    for (size_t i = 0; i < x->keys->count; i++)
        splits[i] = rq_slice_of(x->keys->items[i].data, x->keys->items[i].len);
    rq_err rc = rq_client_create_table(c, x->table, families, count, splits, x->keys->count, why);
    free(splits);
    if (rc == RQ_OK) printf("created %s with %zu regions\n", x->table, x->keys->count + 1);
    return rc;
}

/* --- an existing one -------------------------------------------------------------------------- */

/* The region that has the key; *ret_is_start: it begins with it. */
static size_t region_of(const rq_client_table *t, rq_slice key, bool *ret_is_start)
{
    size_t i = 0;
    while (i + 1 < rq_client_table_regions(t) &&
           rq_slice_compare(rq_client_table_region(t, i + 1).start, key) <= 0)
        i++;
    *ret_is_start = rq_slice_eq(rq_client_table_region(t, i).start, key);
    return i;
}

static void print_quoted(rq_slice s)
{
    putchar('"');
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = s.ptr[i];
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '#')
            putchar(c);
        else
            printf("\\x%02X", c);
    }
    putchar('"');
}

static rq_err plan(const arguments *x, rq_client *c, rq_error *why)
{
    rq_client_table *t;
    size_t lacking = 0;
    RQ_TRY(rq_client_table_open(c, x->table, &t, why));
    for (size_t i = 0; i < x->keys->count; i++) {
        rq_slice key = rq_slice_of(x->keys->items[i].data, x->keys->items[i].len);
        bool is_start;
        size_t region = region_of(t, key, &is_start);
        if (is_start) continue;
        printf("split ");
        print_quoted(rq_client_table_region(t, region).name);
        printf(", ");
        print_quoted(key);
        putchar('\n');
        lacking++;
    }
    fprintf(stderr, "%zu of %zu splits exist\n", x->keys->count - lacking, x->keys->count);
    return RQ_OK;
}

static int parse(arguments *x, int argc, char **argv)
{
    rq_split_kind kind;
    rq_failure why = {0};
    const rq__option options[] = {RQ__CLUSTER_OPTIONS(&x->a.where),
                                  {"regions", .number = &x->regions},
                                  {"kind", .text = &x->kind},
                                  {"create", .text = &x->families}};
    int code = rq__parse_options("split", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (argc - optind != 1) return rq__refuse("split", "name a table");
    if (x->regions < 2) return rq__refuse("split", "--regions N: a number from 2 on");
    if (!take_kind(x->kind, &kind)) return rq__refuse("split", "--kind hex, decimal or uniform");
    x->table = argv[optind];
    code = rq__transfer_resolve(&x->a);
    if (code >= 0) return code;
    if (rq_split_keys(kind, x->regions, &x->keys, &why) != RQ_OK)
        return rq__refuse("split", "%s", why.message);
    return -1;
}

int rq__cmd_split(int argc, char **argv)
{
    arguments x = {.a.command = "split"};
    rq_error why = {.code = RQ_OK};
    rq_client *c = NULL;
    int code = parse(&x, argc, argv);
    if (code >= 0) return code;
    rq_err rc = rq_client_open(&x.a.options.client, &c, &why);
    if (rc == RQ_OK) rc = x.families != NULL ? create(&x, c, &why) : plan(&x, c, &why);
    rq_client_close(c);
    rq_key_list_free(x.keys);
    x.a.quiet = true;
    return rq__transfer_end(&x.a, "", &(rq_transfer_counts){0}, rc, &why);
}
