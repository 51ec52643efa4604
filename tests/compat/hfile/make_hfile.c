/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C half of the HFile compatibility test.
 *
 *   make_hfile cells SEED COUNT ROWS VALUE_MAX TAGS DELETES   random sorted cells as text
 *   make_hfile meta  SEED COUNT ROWS VALUE_MAX TAGS DELETES   with rows and order of hbase:meta
 *   make_hfile rows COUNT                                     COUNT rows of one small cell
 *   make_hfile write FILE KEY=VALUE…  <cells                  writes the cells to FILE
 *
 * A line of the text is row, family, qualifier, value, tags (hex, '-' when empty), timestamp, type,
 * sequence id, separated by tabs. HFileTool.java reads the same text and options.
 */
#include "hfile/writer.h"

#include "../../unit/hfile/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_hex(rq_slice s, char end)
{
    if (s.len == 0) putchar('-');
    for (size_t i = 0; i < s.len; i++)
        printf("%02x", s.ptr[i]);
    putchar(end);
}

static void put_cell(const rq_cell *c)
{
    put_hex(rq_cell_row(c), '\t');
    put_hex(rq_cell_family(c), '\t');
    put_hex(rq_cell_qualifier(c), '\t');
    put_hex(rq_cell_value(c), '\t');
    put_hex(rq_slice_of(c->tags, c->tags_len), '\t');
    printf("%" PRId64 "\t%u\t%" PRIu64 "\n", c->timestamp, c->type, c->seqid);
}

static int make_cells(char **argv, rq_cell_order order)
{
    rq_random random;
    rq_random_seed(&random, strtoull(argv[0], NULL, 10));
    cell_shape shape = {
        .count = strtoull(argv[1], NULL, 10),
        .row_space = (unsigned)strtoul(argv[2], NULL, 10),
        .column_space = 20,
        .value_max = (unsigned)strtoul(argv[3], NULL, 10),
        .tags = atoi(argv[4]) != 0,
        .deletes = atoi(argv[5]) != 0,
        .order = order,
    };
    cell_list list;
    cell_list_make(&list, &random, &shape);
    for (size_t i = 0; i < list.count; i++)
        put_cell(&list.cells[i]);
    cell_list_clear(&list);
    return 0;
}

static int make_rows(char **argv)
{
    unsigned long count = strtoul(argv[0], NULL, 10);
    for (unsigned long i = 0; i < count; i++) {
        char row[64];
        int len = snprintf(row, sizeof(row), "a-row-with-a-long-common-prefix-%09lu", i * 2);
        rq_cell c = rq_cell_first_on_column(rq_slice_of(row, (size_t)len), RQ_SLICE_LIT("fam"),
                                            RQ_SLICE_LIT("q"));
        c.type = RQ_TYPE_PUT;
        c.timestamp = 1700000000000 + (int64_t)(i % 1000);
        c.value = c.row;
        c.value_len = 8;
        put_cell(&c);
    }
    return 0;
}

static unsigned nibble(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

/* The next tab-separated hex field, decoded in place. */
static rq_slice take_hex(char **at)
{
    char *text = *at;
    char *end = strchr(text, '\t');
    *at = end + 1;
    if (*text == '-') return (rq_slice){(const uint8_t *)text, 0};
    uint8_t *out = (uint8_t *)text;
    size_t n = 0;
    for (; text < end; text += 2)
        out[n++] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
    return (rq_slice){out, n};
}

static rq_cell parse_line(char *line)
{
    rq_slice row = take_hex(&line);
    rq_slice family = take_hex(&line);
    rq_slice qualifier = take_hex(&line);
    rq_slice value = take_hex(&line);
    rq_slice tags = take_hex(&line);
    rq_cell c = rq_cell_first_on_column(row, family, qualifier);
    c.value = value.ptr;
    c.value_len = (uint32_t)value.len;
    c.tags = tags.ptr;
    c.tags_len = (uint16_t)tags.len;
    c.timestamp = strtoll(line, &line, 10);
    c.type = (uint8_t)strtoul(line, &line, 10);
    c.seqid = strtoull(line, &line, 10);
    return c;
}

typedef struct plan {
    rq_hfile_options options;
    bool store;
    bool major;
    uint64_t seqid;
} plan;

static bool take_encoding(rq_slice name, rq_block_encoding *ret)
{
    static const struct {
        const char *name;
        rq_block_encoding encoding;
    } all[] = {{"NONE", RQ_ENCODING_NONE},
               {"PREFIX", RQ_ENCODING_PREFIX},
               {"DIFF", RQ_ENCODING_DIFF},
               {"FAST_DIFF", RQ_ENCODING_FAST_DIFF},
               {"ROW_INDEX_V1", RQ_ENCODING_ROW_INDEX_V1}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++)
        if (rq_slice_eq(name, rq_slice_cstr(all[i].name))) {
            *ret = all[i].encoding;
            return true;
        }
    return false;
}

static bool take_option(plan *p, const char *name, const char *value)
{
    rq_slice v = rq_slice_cstr(value);
    unsigned long n = strtoul(value, NULL, 10);
    if (strcmp(name, "compression") == 0) return rq_compression_parse(v, &p->options.compression);
    if (strcmp(name, "bloom") == 0) return rq__bloom_type_parse(v, &p->options.bloom);
    if (strcmp(name, "encoding") == 0)
        return take_encoding(v, &p->options.encoding);
    else if (strcmp(name, "compress_tags") == 0)
        p->options.compress_tags = n != 0;
    else if (strcmp(name, "checksum") == 0)
        p->options.checksum = strcmp(value, "CRC32C") == 0  ? RQ_CHECKSUM_CRC32C
                              : strcmp(value, "CRC32") == 0 ? RQ_CHECKSUM_CRC32
                                                            : RQ_CHECKSUM_NONE;
    else if (strcmp(name, "order") == 0)
        p->options.order = strcmp(value, "META") == 0 ? RQ_ORDER_META : RQ_ORDER_DEFAULT;
    else if (strcmp(name, "bloom_prefix") == 0)
        p->options.bloom_prefix_len = (uint32_t)n;
    else if (strcmp(name, "block") == 0)
        p->options.block_bytes = (uint32_t)n;
    else if (strcmp(name, "per_checksum") == 0)
        p->options.bytes_per_checksum = (uint32_t)n;
    else if (strcmp(name, "index_chunk") == 0)
        p->options.index_chunk_bytes = (uint32_t)n;
    else if (strcmp(name, "index_min") == 0)
        p->options.index_entries_min = (uint32_t)n;
    else if (strcmp(name, "bloom_chunk") == 0)
        p->options.bloom_chunk_bytes = (uint32_t)n;
    else if (strcmp(name, "mvcc") == 0)
        p->options.include_mvcc = n != 0;
    else if (strcmp(name, "tags") == 0)
        p->options.include_tags = n != 0;
    else if (strcmp(name, "created") == 0)
        p->options.create_time_ms = (int64_t)strtoll(value, NULL, 10);
    else if (strcmp(name, "store") == 0)
        p->store = n != 0;
    else if (strcmp(name, "major") == 0)
        p->major = n != 0;
    else if (strcmp(name, "seqid") == 0)
        p->seqid = n;
    else
        return false;
    return true;
}

static int write_file(int argc, char **argv)
{
    plan p = {.options = rq_hfile_options_default()};
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (eq != NULL) *eq = '\0';
        if (eq == NULL || !take_option(&p, argv[i], eq + 1)) {
            fprintf(stderr, "bad option %s\n", argv[i]);
            return 2;
        }
    }
    char *slash = strrchr(argv[0], '/');
    if (slash == NULL) return 2;
    *slash = '\0';
    rq_error why = {0};
    rq_vfs *vfs = NULL;
    rq_hfile_writer *w = NULL;
    rq_err rc = rq_vfs_posix_new(argv[0], &vfs, &why);
    if (rc == RQ_OK) rc = rq_hfile_writer_open(vfs, slash + 1, &p.options, &w, &why);
    char *line = NULL;
    size_t cap = 0;
    while (rc == RQ_OK && getline(&line, &cap, stdin) > 0) {
        rq_cell c = parse_line(line);
        rc = rq_hfile_writer_append(w, &c, &why);
    }
    free(line);
    if (rc == RQ_OK && p.store)
        rc = rq_hfile_writer_set_store_info(w, p.seqid, p.major, NULL, 0, &why);
    if (rc == RQ_OK) rc = rq_hfile_writer_finish(w, NULL, &why);
    rq_hfile_writer_close(w);
    if (vfs != NULL) rq_vfs_free(vfs);
    if (rc != RQ_OK) fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    return rc == RQ_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "cells") == 0) return make_cells(argv + 2, RQ_ORDER_DEFAULT);
    if (argc == 8 && strcmp(argv[1], "meta") == 0) return make_cells(argv + 2, RQ_ORDER_META);
    if (argc == 3 && strcmp(argv[1], "rows") == 0) return make_rows(argv + 2);
    if (argc >= 3 && strcmp(argv[1], "write") == 0) return write_file(argc - 2, argv + 2);
    fprintf(stderr, "usage: make_hfile cells|meta|rows|write ...\n");
    return 2;
}
