/* SPDX-License-Identifier: Apache-2.0 */
/* See export.h. */
#include "transfer/export.h"

#include "transfer/crew.h"
#include "transfer/json.h"
#include "transfer/link.h"
#include "transfer/out.h"
#include "transfer/plan.h"
#include "transfer/ranges.h"
#include "transfer/result.h"
#include "transfer/seqfile.h"
#include "transfer/text_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAN_FOLDER "_rorqual/export"
#define UNITS 1000 /* of a part's progress */
#define ANSWER_BYTES_MIN 65536
#define ANSWER_BYTES_MAX 2097152

/* The whole export. */
typedef struct export_job {
    const rq_export *e;
    rq_vfs *vfs;
    bool has_made_folder;
    rq_file *lock;
    rq__plan plan;
    rq_arena arena;
    rq_buf fields; /* of the scan */
    rq__columns columns;
} export_job;

/* A thread's. */
typedef struct export_tools {
    rq__link link; /* first */
    rq_buf value, scratch;
    rq__line line; /* of TSV and CSV */
    /* of the part that is being done */
    rq__crew *crew;
    rq__range range;
    rq__row_parts parts;
    rq__seq_writer seq;
    rq__out out;
    uint64_t rows, cells, passed, units;
} export_tools;

static const export_job *job_of(const export_tools *t)
{
    return t->crew->ctx;
}

static bool is_sequence(const export_job *j)
{
    return j->e->format == RQ_FORMAT_SEQUENCE;
}

/* --- a part ----------------------------------------------------------------------------------- */

static rq_err put_text(export_tools *t, rq_op_result *row, uint64_t *ret_cells, rq_error *why)
{
    const export_job *j = job_of(t);
    rq_err rc = j->e->format == RQ_FORMAT_JSON
                    ? rq__json_put_row(&t->out.buf, row, ret_cells)
                    : rq__text_put_row(&j->columns, &t->line, row, &t->out.buf, ret_cells, why);
    return rc == RQ_OK ? rq__out_ease(&t->out, why) : rc;
}

static rq_err put_result(export_tools *t, rq_op_result *row, uint64_t *ret_cells, rq_error *why)
{
    rq_slice key = {0};
    RQ_TRY(rq__result_put(&t->value, &t->scratch, row, &key, ret_cells));
    if (*ret_cells == 0) return RQ_OK;
    return rq__seq_append(&t->seq, key, rq_buf_slice(&t->value), why);
}

/* Tells the crew's counter how much of the part is done. */
static void add_progress(export_tools *t, rq_slice row)
{
    uint64_t units = (uint64_t)(rq__range_share(&t->range, row) * UNITS);
    if (units <= t->units) return;
    atomic_fetch_add(&t->crew->done, units - t->units);
    t->units = units;
}

static rq_err take_row(void *ctx, rq_op_result *row, rq_error *why)
{
    export_tools *t = ctx;
    uint64_t cells = 0;
    rq_cell first = {0};
    rq_result_view view = row->row;
    rq_cursor at = row->cells;
    if (rq_result_next(&view, &at, &first) != RQ_OK) first = (rq_cell){0}; /* told below */
    rq_err rc =
        is_sequence(job_of(t)) ? put_result(t, row, &cells, why) : put_text(t, row, &cells, why);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    if (rc == RQ_E_MALFORMED) return rq_fail(why, rc, "the server's response is malformed");
    t->rows += cells > 0 && rq__row_begins(&t->parts, rq_cell_row(&first), row->row.partial);
    t->cells += cells;
    if (t->rows % 64 == 0) add_progress(t, rq_cell_row(&first));
    return rc;
}

static uint64_t written(const export_tools *t)
{
    return rq__out_len(is_sequence(job_of(t)) ? &t->seq.out : &t->out);
}

static rq_err rest(void *ctx, rq_error *why)
{
    export_tools *t = ctx;
    uint64_t now = written(t);
    uint64_t more = now - t->passed;
    t->passed = now;
    return rq__crew_pass(t->crew, more, why);
}

static rq_err write_part(export_tools *t, const char *path, rq_error *why)
{
    const export_job *j = job_of(t);
    const rq__scan_calls calls = {take_row, rest, t};
    uint64_t rate = j->e->options->rate;
    rq_scan scan = rq__scan_of(&j->e->scan, t->range.start, t->range.stop, &j->fields);
    scan.result_bytes = rate == 0 || rate > ANSWER_BYTES_MAX ? ANSWER_BYTES_MAX
                        : rate < ANSWER_BYTES_MIN            ? ANSWER_BYTES_MIN
                                                             : rate;
    RQ_TRY(is_sequence(j) ? rq__seq_writer_open(j->vfs, path, RQ__CLASS_RESULT, &t->seq, why)
                          : rq__out_open(j->vfs, path, &t->out, why));
    RQ_TRY(rq__link_scan(&t->link, &scan, &calls, why));
    return is_sequence(j) ? rq__seq_writer_finish(&t->seq, why) : rq__out_finish(&t->out, why);
}

static const char *extension(rq_transfer_format f)
{
    static const char *const list[] = {"", ".tsv", ".csv", ".json"};
    return list[f];
}

/* Renames the part's file to its final name, then records the part as done. */
static rq_err publish(export_tools *t, size_t part, const char *draft, rq_error *why)
{
    const export_job *j = job_of(t);
    char name[64], counts[128];
    snprintf(name, sizeof name, "part-m-%05zu%s", part, extension(j->e->format));
    snprintf(counts, sizeof counts, "rows %" PRIu64 " cells %" PRIu64 " bytes %" PRIu64 "\n",
             t->rows, t->cells, t->passed);
    RQ_TRY(rq__move_file(j->vfs, draft, name, why));
    return rq__plan_note_done(&j->plan, part, counts, why);
}

static rq_err do_part(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    export_tools *t = tools;
    export_job *j = crew->ctx;
    rq_arena arena = {0};
    char draft[64];
    t->crew = crew;
    t->rows = t->cells = t->passed = t->units = 0;
    t->parts.may_go_on = false;
    snprintf(draft, sizeof draft, PLAN_FOLDER "/part-%05zu.draft", part);
    rq_err rc = rq__range_parse(j->plan.parts[part], &arena, &t->range)
                    ? write_part(t, draft, why)
                    : rq_fail(why, RQ_E_CORRUPT, PLAN_FOLDER "/plan is damaged");
    rq__seq_writer_close(&t->seq);
    rq__out_close(&t->out);
    rq_arena_clear(&arena);
    RQ_TRY(rc);
    RQ_TRY(publish(t, part, draft, why));
    atomic_fetch_add(&crew->rows, t->rows);
    atomic_fetch_add(&crew->cells, t->cells);
    atomic_fetch_add(&crew->bytes, t->passed);
    atomic_fetch_add(&crew->done, UNITS - t->units);
    return RQ_OK;
}

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    const export_job *j = crew->ctx;
    RQ_TRY(rq__link_tools(&j->e->options->client, j->e->table, sizeof(export_tools), ret, why));
    export_tools *t = *ret;
    return rq__line_init(&j->columns, &t->line) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static void close_tools(void *tools)
{
    export_tools *t = tools;
    if (t == NULL) return;
    rq__link_close(&t->link);
    rq_buf_clear(&t->value);
    rq_buf_clear(&t->scratch);
    rq__line_clear(&t->line);
    free(t);
}

/* --- the plan --------------------------------------------------------------------------------- */

/* Identifies the export in a line of text: another export in the same folder is refused. */
static const char *describe(const rq_export *e, rq_arena *arena)
{
    const rq_transfer_scan *s = &e->scan;
    const char *rows = rq__range_text(&(rq__range){s->start, s->stop}, arena);
    char *text = rq_arena_printf(
        arena,
        "export table=%s format=%s rows=%s versions=%" PRIu64 " times=%" PRId64 "..%" PRId64
        " raw=%d batch=%" PRIu64 " columns=%s,%s prefix=%s regex=%s separator=%d escape=%d",
        e->table, rq_transfer_format_name(e->format), rows == NULL ? "" : rows, s->versions,
        s->from_ms, s->to_ms, s->is_raw, s->batch, s->columns != NULL ? s->columns : "",
        e->text.columns != NULL ? e->text.columns : "", s->row_prefix != NULL ? s->row_prefix : "",
        s->row_regex != NULL ? s->row_regex : "", e->text.separator, e->text.has_escapes);
    for (char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return rows == NULL ? NULL : text;
}

static bool is_there(rq_vfs *v, const char *path)
{
    rq_stat st;
    return rq_vfs_stat(v, path, &st, NULL) == RQ_OK;
}

/* A folder with other content than an unfinished export is not changed. */
static rq_err check_folder(export_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    if (is_there(j->vfs, "_SUCCESS"))
        return rq_fail(why, RQ_E_EXISTS, "folder %s has a finished export already", j->e->folder);
    if (is_there(j->vfs, PLAN_FOLDER)) return RQ_OK;
    RQ_TRY(rq_vfs_list(j->vfs, "", &j->arena, &list, &count, why));
    return count == 0
               ? RQ_OK
               : rq_fail(why, RQ_E_EXISTS, "%s is not empty (%s)", j->e->folder, list[0].name);
}

static rq_err make_plan(export_job *j, rq_error *why)
{
    rq__range *ranges;
    size_t count;
    const rq_export *e = j->e;
    RQ_TRY(rq__ranges_ask(&e->options->client, e->table, e->scan.start, e->scan.stop, &j->arena,
                          &ranges, &count, why));
    const char **texts = rq_arena_calloc(&j->arena, count + 1, sizeof *texts);
    const char *what = describe(e, &j->arena);
    if (texts == NULL || what == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        texts[i] = rq__range_text(&ranges[i], &j->arena);
        if (texts[i] == NULL) return rq_no_memory(why);
    }
    return rq__plan_open(j->vfs, PLAN_FOLDER, what, texts, count, false, &j->plan, why);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* The text's columns in the form of rq_transfer_scan: rows without any of them produce no line. */
static rq_err list_columns(export_job *j, rq_buf *out)
{
    for (size_t i = 0; i < j->columns.count; i++) {
        const rq__column *c = &j->columns.list[i];
        if (c->kind != RQ__COLUMN_CELL) continue;
        if (out->len > 0) RQ_TRY(rq_buf_append_u8(out, ','));
        RQ_TRY(rq_buf_append(out, c->family.ptr, c->family.len));
        RQ_TRY(rq_buf_append_u8(out, ':'));
        RQ_TRY(rq__text_of_bytes(c->qualifier, out));
    }
    return rq_buf_append_u8(out, '\0');
}

static rq_err prepare_scan(export_job *j, rq_error *why)
{
    const rq_export *e = j->e;
    rq_transfer_scan scan = e->scan;
    rq_buf columns = {0};
    rq_err rc = RQ_OK;
    if (e->format == RQ_FORMAT_TSV || e->format == RQ_FORMAT_CSV) {
        RQ_TRY(rq__columns_parse(&e->text, &j->columns, why));
        if (scan.columns == NULL) {
            rc = list_columns(j, &columns) == RQ_OK ? RQ_OK : rq_no_memory(why);
            scan.columns = (const char *)columns.ptr;
        }
    }
    if (rc == RQ_OK) rc = rq__scan_fields(&j->fields, &scan, why);
    rq_buf_clear(&columns);
    return rc;
}

static rq_err prepare(export_job *j, rq_error *why)
{
    const rq_export *e = j->e;
    RQ_TRY(prepare_scan(j, why));
    RQ_TRY(rq__open_folder(e->folder, 0777, &j->vfs, &j->has_made_folder, why));
    RQ_TRY(rq_vfs_lock(j->vfs, NULL, &j->lock, why));
    RQ_TRY(check_folder(j, why));
    return make_plan(j, why);
}

static void clean(export_job *j, rq_err rc)
{
    if (rc != RQ_OK && j->has_made_folder && j->lock != NULL) rq__drop_empty_folder(j->e->folder);
    rq__plan_close(&j->plan);
    rq__columns_clear(&j->columns);
    rq_buf_clear(&j->fields);
    rq_arena_clear(&j->arena);
    (void)rq_file_close(j->lock);
    if (j->vfs != NULL) rq_vfs_free(j->vfs);
}

rq_err rq_export_run(const rq_export *e, rq_transfer_counts *ret, rq_error *why)
{
    export_job j = {.e = e};
    *ret = (rq_transfer_counts){0};
    rq_err rc = prepare(&j, why);
    if (rc == RQ_OK) {
        rq__crew crew = {.options = e->options,
                         .count = j.plan.count,
                         .is_done = j.plan.is_done,
                         .units = UNITS * (j.plan.count - j.plan.done),
                         .ctx = &j,
                         .open = open_tools,
                         .close = close_tools,
                         .work = do_part};
        ret->parts_kept = j.plan.done;
        rc = rq__crew_run(&crew, ret, why);
    }
    if (rc == RQ_OK) rc = rq__put_file(j.vfs, "_SUCCESS", (rq_slice){0}, why);
    clean(&j, rc);
    return rc;
}
