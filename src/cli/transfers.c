/* SPDX-License-Identifier: Apache-2.0 */
/* See transfers.h. */
#include "cli/transfers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 60000 /* HBASE: hbase.rpc.timeout */

static bool take_time(const char *text, int64_t *ret)
{
    uint64_t n;
    if (text == NULL) return true;
    if (!rq__arg_number(text, &n) || n > INT64_MAX) return false;
    *ret = (int64_t)n;
    return true;
}

static rq_slice take_row(rq__transfer_arguments *a, const char *text)
{
    rq_buf b = {0};
    rq_slice row = {0};
    if (text != NULL && rq_bytes_of_text(rq_slice_cstr(text), &b) == RQ_OK)
        row = rq_arena_copy(&a->arena, rq_buf_slice(&b));
    rq_buf_clear(&b);
    return row;
}

static void show(void *ctx, uint64_t done, uint64_t total)
{
    rq__transfer_arguments *a = ctx;
    rq__progress_step(&a->bar, done, total);
}

static void print_note(void *ctx, const char *text)
{
    rq__transfer_arguments *a = ctx;
    if (a->bar.is_drawn) fputs("\r\033[K", stderr);
    fprintf(stderr, "rorqual %s: %s\n", a->command, text);
}

int rq__transfer_resolve(rq__transfer_arguments *a)
{
    int code = rq__cluster_where_resolve(&a->where, a->command);
    if (code >= 0) return code;
    if (a->where.timeout_s == 0) a->where.client.rpc_timeout_ms = TIMEOUT_MS;
    if (a->rate != NULL && !rq__arg_bytes(a->rate, &a->options.rate))
        return rq__refuse(a->command, "--rate %s: not a number of bytes", a->rate);
    if (!take_time(a->from, &a->scan.from_ms) || !take_time(a->to, &a->scan.to_ms))
        return rq__refuse(a->command, "--start-time and --end-time are milliseconds since 1970");
    a->scan.start = take_row(a, a->start);
    a->scan.stop = take_row(a, a->stop);
    a->options.client = a->where.client;
    a->options.progress = show;
    a->options.print = print_note;
    a->options.ctx = a;
    return -1;
}

static int take_separator(rq__transfer_arguments *a)
{
    rq_slice s = take_row(a, a->separator);
    a->text.separator = a->format == RQ_FORMAT_CSV ? ',' : '\t';
    if (a->separator == NULL) return -1;
    if (strcmp(a->separator, "\\t") == 0) s = RQ_SLICE_LIT("\t");
    if (s.len != 1 || *s.ptr == '\n' || *s.ptr == '\r' ||
        (*s.ptr == '"' && a->format == RQ_FORMAT_CSV))
        return rq__refuse(
            a->command,
            "--separator %s: must be one byte, and no line break or (csv) quotation mark",
            a->separator);
    a->text.separator = (char)*s.ptr;
    return -1;
}

int rq__transfer_resolve_text(rq__transfer_arguments *a)
{
    unsigned f = 0;
    while (a->format_name != NULL && f < RQ_TRANSFER_FORMATS &&
           strcmp(a->format_name, rq_transfer_format_name((rq_transfer_format)f)) != 0)
        f++;
    if (f == RQ_TRANSFER_FORMATS)
        return rq__refuse(a->command, "--format %s: neither sequence, tsv, csv nor json",
                          a->format_name);
    a->format = (rq_transfer_format)f;
    bool is_text = a->format == RQ_FORMAT_TSV || a->format == RQ_FORMAT_CSV;
    if (is_text && a->fields == NULL)
        return rq__refuse(a->command, "%s needs --fields, for example HBASE_ROW_KEY,cf:a,cf:b",
                          rq_transfer_format_name(a->format));
    if (!is_text && (a->fields != NULL || a->separator != NULL || a->text.has_escapes))
        return rq__refuse(a->command, "--fields, --separator and --escape are for tsv and csv");
    a->text.columns = a->fields;
    a->text.has_quotes = a->format == RQ_FORMAT_CSV;
    return take_separator(a);
}

int rq__transfer_resolve_input(rq__transfer_arguments *a)
{
    uint64_t ms = 0;
    if (a->timestamp != NULL && (!rq__arg_number(a->timestamp, &ms) || ms > INT64_MAX || ms == 0))
        return rq__refuse(a->command, "--timestamp %s: not a number of milliseconds", a->timestamp);
    a->now_ms = (int64_t)ms;
    int code = rq__transfer_resolve(a);
    return code < 0 ? rq__transfer_resolve_text(a) : code;
}

void rq__transfer_begin(rq__transfer_arguments *a, const char *what)
{
    rq__progress_begin(&a->bar, what);
    if (a->quiet) a->bar.is_terminal = false;
}

void rq__print_count(uint64_t count, const char *noun)
{
    printf("%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}

static void print_counts(const char *verb, const rq_transfer_counts *c)
{
    printf("%s ", verb);
    rq__print_count(c->rows, "row");
    fputs(", ", stdout);
    rq__print_count(c->cells, "cell");
    if (c->bytes > 0) {
        fputs(", ", stdout);
        rq__print_count(c->bytes, "byte");
    }
    fputs(" in ", stdout);
    rq__print_count(c->parts, "part");
    if (c->parts_kept > 0) {
        fputs("; ", stdout);
        rq__print_count(c->parts_kept, "part");
        printf(" %s done before", c->parts_kept == 1 ? "was" : "were");
    }
    if (c->bad_lines > 0) printf("; Bad Lines=%" PRIu64, c->bad_lines);
    putchar('\n');
}

int rq__transfer_end(rq__transfer_arguments *a, const char *verb, const rq_transfer_counts *counts,
                     rq_err rc, const rq_error *why)
{
    rq__progress_end(&a->bar);
    rq_arena_clear(&a->arena);
    if (rc != RQ_OK) {
        fprintf(stderr, "rorqual %s: %s\n", a->command,
                why->message[0] != '\0' ? why->message : rq_err_text(rc));
        return 1;
    }
    if (!a->quiet) print_counts(verb, counts);
    return fflush(stdout) == 0 ? 0 : 1;
}
