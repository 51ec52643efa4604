/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rorqual hfile: what stands in an HFile, ours or HBase's, for people and for the tests. `cells`
 * prints what HBase's HFilePrettyPrinter -p prints, so that the two can be compared line by line.
 */
#include "cli/cli.h"

#include "hfile/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct hfile_args {
    const char *verb;
    const char *row; /* cells: of this row only */
    uint64_t limit;  /* cells: at most so many */
    bool values;     /* cells: values and tags too */
    char **files;
    int file_count;
} hfile_args;

/* Escaped bytes can be four times as long as they were. */
static void print_bytes(rq_slice s)
{
    char text[1024];
    while (s.len > 0) {
        rq_slice part = {s.ptr, s.len < 200 ? s.len : 200};
        rq_bytes_to_string(part, text, sizeof(text));
        fputs(text, stdout);
        s.ptr += part.len;
        s.len -= part.len;
    }
}

/* HBASE: KeyValue.Type's names. */
static const char *type_name(uint8_t type)
{
    switch (type) {
    case RQ_TYPE_MINIMUM:
        return "Minimum";
    case RQ_TYPE_PUT:
        return "Put";
    case RQ_TYPE_DELETE:
        return "Delete";
    case RQ_TYPE_DELETE_FAMILY_VERSION:
        return "DeleteFamilyVersion";
    case RQ_TYPE_DELETE_COLUMN:
        return "DeleteColumn";
    case RQ_TYPE_DELETE_FAMILY:
        return "DeleteFamily";
    default:
        return "Maximum";
    }
}

static void print_key(const rq_cell *c)
{
    print_bytes(rq_cell_row(c));
    putchar('/');
    print_bytes(rq_cell_family(c));
    if (c->family_len > 0) putchar(':');
    print_bytes(rq_cell_qualifier(c));
    if (c->timestamp == RQ_TIMESTAMP_LATEST)
        printf("/LATEST_TIMESTAMP/");
    else if (c->timestamp == RQ_TIMESTAMP_OLDEST)
        printf("/OLDEST_TIMESTAMP/");
    else
        printf("/%" PRId64 "/", c->timestamp);
    fputs(type_name(c->type), stdout);
}

static void print_tags(const rq_cell *c)
{
    const uint8_t *p = c->tags;
    size_t left = c->tags_len;
    for (int i = 0; left >= 3; i++) {
        size_t len = rq_get_be16(p);
        if (len < 1 || len > left - 2) {
            printf(" T[%d]: malformed", i);
            return;
        }
        printf(" T[%d]: [Tag type : %d, value : ", i, (int8_t)p[2]);
        print_bytes(rq_slice_of(p + 3, len - 1));
        putchar(']');
        p += 2 + len;
        left -= 2 + len;
    }
}

/* --- meta --------------------------------------------------------------------------------------
 */

static void print_number(const char *name, uint64_t v)
{
    printf("    %s = %" PRIu64 "\n", name, v);
}

static void print_info_value(rq_slice key, rq_slice value)
{
    rq_cell c;
    if (rq_slice_eq(key, RQ_SLICE_LIT("TIMERANGE")) && value.len == 16)
        printf("%" PRId64 "....%" PRId64, (int64_t)rq_get_be64(value.ptr),
               (int64_t)rq_get_be64(value.ptr + 8));
    else if ((rq_slice_eq(key, RQ_SLICE_LIT("hfile.LASTKEY")) ||
              rq_slice_eq(key, RQ_SLICE_LIT("hfile.KEY_OF_BIGGEST_CELL"))) &&
             rq_cell_parse_key(value, &c, NULL) == RQ_OK)
        print_key(&c);
    else if (value.len == 8)
        printf("%" PRId64, (int64_t)rq_get_be64(value.ptr));
    else if (value.len == 4 && value.ptr[0] == 0)
        printf("%u", rq_get_be32(value.ptr));
    else if (value.len == 1)
        fputs(value.ptr[0] != 0 ? "true" : "false", stdout);
    else
        print_bytes(value);
}

static rq_err print_meta(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    (void)args;
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    rq_slice key;
    rq_slice value;
    rq_cell c;
    printf("Trailer:\n");
    print_number("size", info->size_bytes);
    print_number("entryCount", info->entry_count);
    print_number("totalUncompressedBytes", info->uncompressed_bytes);
    print_number("numDataIndexLevels", info->data_index_levels);
    printf("    compressionCodec = %s\n", rq_compression_name(info->compression));
    printf("    comparator = %s\n", info->order == RQ_ORDER_META ? "meta" : "default");
    printf("Fileinfo:\n");
    for (size_t i = 0; rq_hfile_reader_file_info_at(r, i, &key, &value); i++) {
        printf("    ");
        print_bytes(key);
        printf(" = ");
        print_info_value(key, value);
        putchar('\n');
    }
    if (info->entry_count == 0) return RQ_OK;
    rq_read_ctx ctx = {.may_block = true};
    rq_buf mid = {0};
    rq_err rc = rq_cell_parse_key(info->first_key, &c, why);
    if (rc == RQ_OK) {
        printf("First key: ");
        print_key(&c);
        rc = rq_hfile_midkey(r, &ctx, &mid, why);
    }
    if (rc == RQ_OK) rc = rq_cell_parse_key(rq_buf_slice(&mid), &c, why);
    if (rc == RQ_OK) {
        printf("\nMid-key: ");
        print_key(&c);
        putchar('\n');
    }
    rq_buf_clear(&mid);
    rq_read_ctx_clear(&ctx);
    return rc;
}

/* --- blocks ------------------------------------------------------------------------------------
 */

static rq_err print_block(void *arg, const rq_hfile_block_line *line)
{
    static const char *const checksums[] = {"NONE", "CRC32", "CRC32C"};
    (void)arg;
    printf("%12" PRIu64 "  %-24s on disk %8u  raw %8u  previous %10" PRId64 "  %s/%u\n",
           line->offset, rq_block_kind_name(line->kind), line->on_disk_len, line->raw_len,
           (int64_t)line->prev_offset, checksums[line->checksum_type], line->bytes_per_checksum);
    return RQ_OK;
}

static rq_err print_blocks(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    (void)args;
    return rq_hfile_walk_blocks(r, print_block, NULL, why);
}

/* --- cells -------------------------------------------------------------------------------------
 */

static rq_err print_cells(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    rq_slice row = rq_slice_cstr(args->row != NULL ? args->row : "");
    rq_cell first = rq_cell_first_on_row(row);
    rq_err rc = args->row != NULL ? rq_hfile_scanner_seek(&s, &ctx, &first, why)
                                  : rq_hfile_scanner_seek_first(&s, &ctx, why);
    for (uint64_t n = 0; rc == RQ_OK && n < args->limit; n++) {
        const rq_cell *c = rq_hfile_scanner_cell(&s);
        if (args->row != NULL && !rq_slice_eq(rq_cell_row(c), row)) break;
        printf("K: ");
        print_key(c);
        printf("/vlen=%u/seqid=%" PRIu64, c->value_len, c->seqid);
        if (args->values) {
            printf(" V: ");
            print_bytes(rq_cell_value(c));
            print_tags(c);
        }
        putchar('\n');
        rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* --- statistics, check -------------------------------------------------------------------------
 */

static rq_err print_statistics(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    (void)args;
    rq_hfile_report report;
    RQ_TRY(rq_hfile_check(r, &report, why));
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    double cells = report.cells == 0 ? 1 : (double)report.cells;
    double rows = report.rows == 0 ? 1 : (double)report.rows;
    printf("%s\n", rq_hfile_reader_path(r));
    printf("    cells %" PRIu64 ", rows %" PRIu64 ", tombstones %" PRIu64 "\n", report.cells,
           report.rows, report.tombstones);
    printf("    mean key %.1f bytes, mean value %.1f bytes, %.2f cells a row\n",
           (double)report.key_bytes / cells, (double)report.value_bytes / cells,
           (double)report.cells / rows);
    printf("    size %" PRIu64 " bytes, uncompressed %" PRIu64 " (ratio %.2f)\n", info->size_bytes,
           info->uncompressed_bytes, (double)info->uncompressed_bytes / (double)info->size_bytes);
    for (int k = 0; k < RQ_BLOCK_KIND_COUNT; k++)
        if (report.blocks[k] > 0)
            printf("    %-24s %" PRIu64 "\n", rq_block_kind_name((rq_block_kind)k),
                   report.blocks[k]);
    return RQ_OK;
}

static rq_err check(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    (void)args;
    rq_hfile_report report;
    RQ_TRY(rq_hfile_check(r, &report, why));
    printf("%s: fine, %" PRIu64 " cells\n", rq_hfile_reader_path(r), report.cells);
    return RQ_OK;
}

/* --- the command -------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    rq_err (*run)(rq_hfile_reader *r, const hfile_args *args, rq_error *why);
    const char *help;
} verbs[] = {
    {"meta", print_meta, "trailer and file info"},
    {"blocks", print_blocks, "every block: offset, kind, sizes, checksum"},
    {"cells", print_cells, "the cells, as HBase's HFilePrettyPrinter -p prints them"},
    {"statistics", print_statistics, "counts, sizes, averages"},
    {"check", check, "read everything and hold it against what the file says"},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: rorqual hfile VERB [--values] [--row ROW] [--limit N] FILE...\n\n");
    for (size_t i = 0; i < RQ_ARRAY_LEN(verbs); i++)
        fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fprintf(out, "\n  --values   cells: values and tags too\n"
                 "  --row ROW  cells: of this row only\n"
                 "  --limit N  cells: at most N\n");
}

/* The file's folder is the root of a vfs; files may stand anywhere. */
static rq_err run_on_file(const char *path, const hfile_args *args,
                          rq_err (*run)(rq_hfile_reader *r, const hfile_args *args, rq_error *why),
                          rq_error *why)
{
    char *dir = strdup(path);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    char *slash = strrchr(dir, '/');
    const char *name = slash != NULL ? path + (slash - dir) + 1 : path;
    if (slash != NULL) slash[slash == dir ? 1 : 0] = '\0';
    rq_vfs *vfs = NULL;
    rq_hfile_reader *r = NULL;
    rq_err rc = rq_vfs_posix_new(slash != NULL ? dir : ".", &vfs, why);
    if (rc == RQ_OK) rc = rq_hfile_reader_open(vfs, name, NULL, false, &r, why);
    if (rc == RQ_OK) rc = run(r, args, why);
    rq_hfile_reader_unref(r);
    if (vfs != NULL) rq_vfs_free(vfs);
    free(dir);
    return rc;
}

static bool parse_args(int argc, char **argv, hfile_args *args)
{
    *args = (hfile_args){.limit = UINT64_MAX};
    if (argc < 2) return false;
    args->verb = argv[1];
    int i = 2;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--values") == 0) {
            args->values = true;
        } else if (strcmp(argv[i], "--row") == 0 && i + 1 < argc) {
            args->row = argv[++i];
        } else if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc) {
            char *end;
            errno = 0;
            args->limit = strtoull(argv[++i], &end, 10);
            if (errno != 0 || *end != '\0' || argv[i][0] == '-') return false;
        } else {
            return false;
        }
    }
    args->files = argv + i;
    args->file_count = argc - i;
    return args->file_count > 0;
}

int rq_cmd_hfile(int argc, char **argv)
{
    hfile_args args;
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return 0;
    }
    if (!parse_args(argc, argv, &args)) {
        usage(stderr);
        return 2;
    }
    for (size_t v = 0; v < RQ_ARRAY_LEN(verbs); v++) {
        if (strcmp(args.verb, verbs[v].name) != 0) continue;
        int status = 0;
        for (int i = 0; i < args.file_count; i++) {
            rq_error why = {0};
            rq_err rc = run_on_file(args.files[i], &args, verbs[v].run, &why);
            if (rc == RQ_OK) continue;
            fflush(stdout);
            fprintf(stderr, "rorqual hfile %s: %s: %s\n", args.verb, args.files[i],
                    why.message[0] != '\0' ? why.message : rq_err_text(rc));
            status = 1;
        }
        return fflush(stdout) == 0 ? status : 1;
    }
    usage(stderr);
    return 2;
}
