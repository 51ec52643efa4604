/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual hfile: prints the contents of an HFile, Rorqual's or HBase's, for people and tests.
 * `cells` has the output format of HBase's HFilePrettyPrinter -p, so that the two can be compared
 * line by line. With --json every line is an object; bytes are strings, with \xNN for bytes that
 * are not text. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/progress.h"

#include "hfile/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct hfile_args {
    const char *verb;
    const char *row; /* cells: this row only */
    uint64_t limit;  /* cells: at most so many */
    bool values;     /* cells: print values and tags too */
    bool json;
    char **files;
    int file_count;
} hfile_args;

static void step(void *progress, uint64_t done, uint64_t total)
{
    rq__progress_step(progress, done, total);
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
        rq__print_bytes(rq_slice_of(p + 3, len - 1));
        putchar(']');
        p += 2 + len;
        left -= 2 + len;
    }
}

/* --- meta ------------------------------------------------------------------------------------- */

static void print_number(const char *name, uint64_t v)
{
    printf("    %s = %" PRIu64 "\n", name, v);
}

static bool is_key_value(rq_slice name)
{
    return rq_slice_eq(name, RQ_SLICE_LIT("hfile.LASTKEY")) ||
           rq_slice_eq(name, RQ_SLICE_LIT("hfile.KEY_OF_BIGGEST_CELL"));
}

static void print_info_value(rq_slice key, rq_slice value)
{
    rq_cell c;
    if (rq_slice_eq(key, RQ_SLICE_LIT("TIMERANGE")) && value.len == 16)
        printf("%" PRId64 "....%" PRId64, (int64_t)rq_get_be64(value.ptr),
               (int64_t)rq_get_be64(value.ptr + 8));
    else if (is_key_value(key) && rq_cell_parse_stored_key(value, &c, NULL) == RQ_OK)
        rq__print_key(&c);
    else if (value.len == 8)
        printf("%" PRId64, (int64_t)rq_get_be64(value.ptr));
    else if (value.len == 4 && value.ptr[0] == 0)
        printf("%u", rq_get_be32(value.ptr));
    else if (value.len == 1)
        fputs(value.ptr[0] != 0 ? "true" : "false", stdout);
    else
        rq__print_bytes(value);
}

static void print_json_info_value(rq_slice key, rq_slice v)
{
    rq_cell c;
    if (rq_slice_eq(key, RQ_SLICE_LIT("TIMERANGE")) && v.len == 16)
        printf("[%" PRId64 ",%" PRId64 "]", (int64_t)rq_get_be64(v.ptr),
               (int64_t)rq_get_be64(v.ptr + 8));
    else if (is_key_value(key) && rq_cell_parse_stored_key(v, &c, NULL) == RQ_OK)
        rq__print_json_bytes(rq_cell_row(&c));
    else if (v.len == 8)
        printf("%" PRId64, (int64_t)rq_get_be64(v.ptr));
    else if (v.len == 4 && v.ptr[0] == 0)
        printf("%u", rq_get_be32(v.ptr));
    else if (v.len == 1)
        fputs(v.ptr[0] != 0 ? "true" : "false", stdout);
    else
        rq__print_json_bytes(v);
}

static rq_err print_json_meta(rq_hfile_reader *r)
{
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    rq_slice key;
    rq_slice value;
    rq_cell c;
    rq__print_json_text("{", "file", rq_slice_cstr(rq_hfile_reader_path(r)));
    rq__print_json_number(",", "size", (int64_t)info->size_bytes);
    rq__print_json_number(",", "entryCount", (int64_t)info->entry_count);
    rq__print_json_number(",", "totalUncompressedBytes", (int64_t)info->uncompressed_bytes);
    rq__print_json_number(",", "numDataIndexLevels", info->data_index_levels);
    rq__print_json_text(",", "compressionCodec",
                        rq_slice_cstr(rq_compression_name(info->compression)));
    rq__print_json_text(",", "comparator",
                        rq_slice_cstr(info->order == RQ_ORDER_META ? "meta" : "default"));
    if (rq_cell_parse_stored_key(info->first_key, &c, NULL) == RQ_OK)
        rq__print_json_text(",", "firstRow", rq_cell_row(&c));
    if (rq_cell_parse_stored_key(info->last_key, &c, NULL) == RQ_OK)
        rq__print_json_text(",", "lastRow", rq_cell_row(&c));
    for (size_t i = 0; rq_hfile_reader_file_info_at(r, i, &key, &value); i++) {
        fputs(i == 0 ? ",\"fileInfo\":{" : ",", stdout);
        rq__print_json_bytes(key);
        putchar(':');
        print_json_info_value(key, value);
    }
    puts("}}"); /* no file is without file info */
    return RQ_OK;
}

static rq_err print_meta(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    if (args->json) return print_json_meta(r);
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
        rq__print_bytes(key);
        printf(" = ");
        print_info_value(key, value);
        putchar('\n');
    }
    if (info->entry_count == 0) return RQ_OK;
    rq_read_ctx ctx = {.may_block = true};
    rq_buf mid = {0};
    rq_err rc = rq_cell_parse_stored_key(info->first_key, &c, why);
    if (rc == RQ_OK) {
        printf("First key: ");
        rq__print_key(&c);
        rc = rq_hfile_midkey(r, &ctx, &mid, why);
    }
    if (rc == RQ_OK) rc = rq_cell_parse_stored_key(rq_buf_slice(&mid), &c, why);
    if (rc == RQ_OK) {
        printf("\nMid-key: ");
        rq__print_key(&c);
        putchar('\n');
    }
    rq_buf_clear(&mid);
    rq_read_ctx_clear(&ctx);
    return rc;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static rq_err print_block(void *arg, const rq_hfile_block_line *line)
{
    static const char *const checksums[] = {"NONE", "CRC32", "CRC32C"};
    const hfile_args *args = arg;
    if (args->json) {
        rq__print_json_number("{", "offset", (int64_t)line->offset);
        rq__print_json_text(",", "kind", rq_slice_cstr(rq_block_kind_name(line->kind)));
        rq__print_json_number(",", "onDisk", line->on_disk_len);
        rq__print_json_number(",", "raw", line->raw_len);
        rq__print_json_number(",", "previous", (int64_t)line->prev_offset);
        rq__print_json_text(",", "checksum", rq_slice_cstr(checksums[line->checksum_type]));
        rq__print_json_number(",", "bytesPerChecksum", line->bytes_per_checksum);
        puts("}");
        return RQ_OK;
    }
    printf("%12" PRIu64 "  %-24s on disk %8u  raw %8u  previous %10" PRId64 "  %s/%u\n",
           line->offset, rq_block_kind_name(line->kind), line->on_disk_len, line->raw_len,
           (int64_t)line->prev_offset, checksums[line->checksum_type], line->bytes_per_checksum);
    return RQ_OK;
}

static rq_err print_blocks(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    return rq_hfile_walk_blocks(r, print_block, (void *)(uintptr_t)args, why);
}

/* --- cells ------------------------------------------------------------------------------------ */

static void print_cell(const rq_cell *c, const hfile_args *args)
{
    if (!args->json) {
        printf("K: ");
        rq__print_key(c);
        printf("/vlen=%u/seqid=%" PRIu64, c->value_len, c->seqid);
        if (args->values) {
            printf(" V: ");
            rq__print_bytes(rq_cell_value(c));
            print_tags(c);
        }
        putchar('\n');
        return;
    }
    rq__print_json_text("{", "row", rq_cell_row(c));
    rq__print_json_text(",", "family", rq_cell_family(c));
    rq__print_json_text(",", "qualifier", rq_cell_qualifier(c));
    rq__print_json_number(",", "timestamp", c->timestamp);
    rq__print_json_text(",", "type", rq_slice_cstr(rq_cell_type_name(c->type)));
    rq__print_json_number(",", "valueLength", c->value_len);
    rq__print_json_number(",", "seqid", (int64_t)c->seqid);
    if (args->values) {
        rq__print_json_text(",", "value", rq_cell_value(c));
        rq__print_json_text(",", "tags", rq_slice_of(c->tags, c->tags_len));
    }
    puts("}");
}

static rq_err print_cells(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    rq_slice row = rq_slice_cstr(args->row != NULL ? args->row : "");
    rq_cell first = rq_cell_first_on_row(row);
    rq_err rc = args->row != NULL ? rq_hfile_scanner_seek(&s, &ctx, &first, why)
                                  : rq_hfile_scanner_seek_first(&s, &ctx, why);
    rq_progress progress;
    rq__progress_begin(&progress, "cells");
    /* On a terminal the cells themselves show the progress. */
    if (isatty(STDOUT_FILENO)) progress.is_terminal = false;
    for (uint64_t n = 0; rc == RQ_OK && n < args->limit; n++) {
        if (n % 1024 == 0) rq__progress_step(&progress, n, rq_hfile_reader_info(r)->entry_count);
        const rq_cell *c = rq_hfile_scanner_cell(&s);
        if (args->row != NULL && !rq_slice_eq(rq_cell_row(c), row)) break;
        print_cell(c, args);
        rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq__progress_end(&progress);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* --- statistics, check ------------------------------------------------------------------------ */

static rq_err check_with_bar(rq_hfile_reader *r, rq_hfile_report *ret, rq_error *why)
{
    rq_progress progress;
    rq__progress_begin(&progress, rq_hfile_reader_path(r));
    rq_err rc = rq_hfile_check_watched(r, &(rq_hfile_watch){step, &progress}, ret, why);
    rq__progress_end(&progress);
    return rc;
}

static rq_err print_json_statistics(const rq_hfile_reader *r, const rq_hfile_report *report)
{
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    rq__print_json_text("{", "file", rq_slice_cstr(rq_hfile_reader_path(r)));
    rq__print_json_number(",", "cells", (int64_t)report->cells);
    rq__print_json_number(",", "rows", (int64_t)report->rows);
    rq__print_json_number(",", "tombstones", (int64_t)report->tombstones);
    rq__print_json_number(",", "keyBytes", (int64_t)report->key_bytes);
    rq__print_json_number(",", "valueBytes", (int64_t)report->value_bytes);
    rq__print_json_number(",", "size", (int64_t)info->size_bytes);
    rq__print_json_number(",", "uncompressed", (int64_t)info->uncompressed_bytes);
    fputs(",\"blocks\":", stdout);
    const char *before = "{";
    for (int k = 0; k < RQ_BLOCK_KIND_COUNT; k++) {
        if (report->blocks[k] == 0) continue;
        rq__print_json_number(before, rq_block_kind_name((rq_block_kind)k),
                              (int64_t)report->blocks[k]);
        before = ",";
    }
    puts("}}"); /* no file is without blocks */
    return RQ_OK;
}

static rq_err print_statistics(rq_hfile_reader *r, const hfile_args *args, rq_error *why)
{
    rq_hfile_report report;
    RQ_TRY(check_with_bar(r, &report, why));
    if (args->json) return print_json_statistics(r, &report);
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
    rq_hfile_report report;
    RQ_TRY(check_with_bar(r, &report, why));
    if (args->json) {
        rq__print_json_text("{", "file", rq_slice_cstr(rq_hfile_reader_path(r)));
        rq__print_json_number(",", "cells", (int64_t)report.cells);
        puts(",\"fine\":true}");
        return RQ_OK;
    }
    printf("%s: fine, %" PRIu64 " cells\n", rq_hfile_reader_path(r), report.cells);
    return RQ_OK;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    rq_err (*run)(rq_hfile_reader *r, const hfile_args *args, rq_error *why);
} verbs[] = {
    {"meta", print_meta}, {"blocks", print_blocks},         {"cells", print_cells},
    {"check", check},     {"statistics", print_statistics},
};

static const char help[] =
    "usage: rorqual hfile VERB [OPTION ...] FILE...\n\n"
    "  meta       trailer and file info\n"
    "  blocks     every block: offset, kind, sizes, checksum\n"
    "  cells      the cells, as HBase's HFilePrettyPrinter -p prints them\n"
    "  statistics counts, sizes, averages\n"
    "  check      read everything and compare it with the file's metadata\n\n"
    "  --json     print a JSON object per line\n"
    "  --values   cells: print values and tags too\n"
    "  --row ROW  cells: this row only\n"
    "  --limit N  cells: at most N\n"
    "exit codes: 0 success; 1 damage, or a file cannot be read; 2 wrong arguments\n";

/* The file's folder is the root of a vfs; the file may be anywhere. */
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

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, hfile_args *args)
{
    const rq__option options[] = {
        {"json", .flag = &args->json},
        {"values", .flag = &args->values},
        {"row", .text = &args->row},
        {"limit", .number = &args->limit},
    };
    *args = (hfile_args){.limit = UINT64_MAX};
    int code = rq__parse_options("hfile", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (optind == argc) return rq__refuse("hfile", "expected a verb and files");
    args->verb = argv[optind];
    args->files = argv + optind + 1;
    args->file_count = argc - optind - 1;
    return -1;
}

/* Whether the message names the file already, as most do. */
static bool names(const char *text, const char *path)
{
    size_t n = strlen(path);
    for (const char *at = text; n > 0 && (at = strstr(at, path)) != NULL; at++)
        if (at[n] == ':' && (at == text || at[-1] == ' ' || at[-1] == '/')) return true;
    return false;
}

/* Exit code. */
static int run_on_files(const hfile_args *args,
                        rq_err (*run)(rq_hfile_reader *r, const hfile_args *args, rq_error *why))
{
    int status = 0;
    for (int i = 0; i < args->file_count; i++) {
        rq_error why = {0};
        rq_err rc = run_on_file(args->files[i], args, run, &why);
        if (rc == RQ_OK) continue;
        const char *text = why.message[0] != '\0' ? why.message : rq_err_text(rc);
        if (args->json) {
            rq__print_json_text("{", "file", rq_slice_cstr(args->files[i]));
            rq__print_json_text(",\"fine\":false,", "error", rq_slice_cstr(text));
            puts("}");
        }
        fflush(stdout);
        if (names(text, args->files[i]))
            fprintf(stderr, "rorqual hfile %s: %s\n", args->verb, text);
        else
            fprintf(stderr, "rorqual hfile %s: %s: %s\n", args->verb, args->files[i], text);
        status = 1;
    }
    return fflush(stdout) == 0 ? status : 1;
}

int rq__cmd_hfile(int argc, char **argv)
{
    hfile_args args;
    int code = parse(argc, argv, &args);
    if (code >= 0) return code;
    if (strcmp(args.verb, "help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    for (size_t v = 0; v < RQ_ARRAY_LEN(verbs); v++) {
        if (strcmp(args.verb, verbs[v].name) != 0) continue;
        if (args.file_count == 0) return rq__refuse("hfile", "%s: expected a file", args.verb);
        return run_on_files(&args, verbs[v].run);
    }
    return rq__refuse("hfile", "unknown verb or option '%s'", args.verb);
}
