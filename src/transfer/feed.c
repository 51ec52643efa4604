/* SPDX-License-Identifier: Apache-2.0 */
/* See feed.h. */
#include "transfer/feed.h"

#include "transfer/result.h"

#include <inttypes.h>
#include <stdlib.h>

#define SAID_MAX 20 /* bad lines; more are only counted */

const char *rq_transfer_format_name(rq_transfer_format f)
{
    static const char *const names[] = {"sequence", "tsv", "csv", "json"};
    return names[f];
}

bool rq__feed_splits(const rq__feed_options *o)
{
    return o->format != RQ_FORMAT_CSV;
}

/* --- families with other names ---------------------------------------------------------------- */

rq_err rq__check_renames(const char *renames, rq_error *why)
{
    while (renames != NULL) {
        const char *comma = strchr(renames, ',');
        size_t len = comma == NULL ? strlen(renames) : (size_t)(comma - renames);
        const char *colon = memchr(renames, ':', len);
        if (colon == NULL || colon == renames || colon + 1 == renames + len || len > 250)
            return rq_fail(why, RQ_E_INVALID, "'%.*s' is not OLD:NEW", (int)len, renames);
        renames = comma == NULL ? NULL : comma + 1;
    }
    return RQ_OK;
}

void rq__rename_family(const char *renames, rq_cell *c)
{
    while (renames != NULL) {
        const char *colon = strchr(renames, ':');
        const char *end = strchrnul(colon, ',');
        if ((size_t)(colon - renames) == c->family_len &&
            memcmp(renames, c->family, c->family_len) == 0) {
            c->family = (const uint8_t *)colon + 1;
            c->family_len = (uint8_t)(end - colon - 1);
            return;
        }
        renames = *end == '\0' ? NULL : end + 1;
    }
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The part was made of the file's size when it was listed. */
static rq_err check_size(const rq__in *in, uint64_t to, rq_error *why)
{
    if (to <= in->size || to == UINT64_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_CORRUPT,
                   "%s has become shorter: it had at least %" PRIu64 " bytes, and has %" PRIu64,
                   in->path, to, in->size);
}

rq_err rq__feed_open(rq__crew *crew, const rq__feed_options *o, rq_vfs *v, const char *path,
                     uint64_t from, uint64_t to, rq__feed *ret, rq_error *why)
{
    *ret = (rq__feed){.options = o, .crew = crew, .to = to};
    if (o->format == RQ_FORMAT_SEQUENCE) {
        RQ_TRY(rq__seq_reader_open(v, path, RQ__CLASS_RESULT, &ret->seq, why));
        RQ_TRY(check_size(&ret->seq.in, to, why));
        return rq__seq_seek(&ret->seq, from, why);
    }
    if (o->columns != NULL && rq__line_init(o->columns, &ret->line) != RQ_OK)
        return rq_no_memory(why);
    RQ_TRY(rq__lines_open(v, path, o->format == RQ_FORMAT_CSV, &ret->lines, why));
    RQ_TRY(check_size(&ret->lines.in, to, why));
    return rq__lines_seek(&ret->lines, from, why);
}

uint64_t rq__feed_position(const rq__feed *s)
{
    bool is_seq = s->options->format == RQ_FORMAT_SEQUENCE;
    return rq__in_position(is_seq ? &s->seq.in : &s->lines.in);
}

void rq__feed_close(rq__feed *s)
{
    rq__seq_reader_close(&s->seq);
    rq__lines_close(&s->lines);
    rq__line_clear(&s->line);
    rq__json_row_clear(&s->json);
    free(s->cells);
    *s = (rq__feed){0};
}

static rq_err add_cell(rq__feed *s, const rq_cell *c, size_t at)
{
    if (at == s->cell_cap) {
        size_t cap = s->cell_cap == 0 ? 16 : 2 * s->cell_cap;
        rq_cell *bigger = realloc(s->cells, cap * sizeof *bigger);
        if (bigger == NULL) return RQ_E_NO_MEMORY;
        s->cells = bigger;
        s->cell_cap = cap;
    }
    s->cells[at] = *c;
    if (s->options->renames != NULL) rq__rename_family(s->options->renames, &s->cells[at]);
    return RQ_OK;
}

/* --- results ---------------------------------------------------------------------------------- */

static rq_err take_cells(rq__feed *s, rq_slice row, rq_slice cells, rq__feed_row *ret)
{
    rq_cell c;
    rq_err rc;
    while ((rc = rq__result_next(&cells, &c)) == RQ_OK) {
        if (!rq_slice_eq(rq_cell_row(&c), row)) return RQ_E_MALFORMED;
        RQ_TRY(add_cell(s, &c, ret->count++));
    }
    ret->cells = s->cells;
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err next_result(rq__feed *s, rq__feed_row *ret, rq_error *why)
{
    rq_slice key, value, cells;
    RQ_TRY(rq__seq_next(&s->seq, s->to, &key, &value, why));
    *ret = (rq__feed_row){.row = key};
    rq_err rc = rq__result_open(value, &cells);
    if (rc == RQ_OK) rc = take_cells(s, key, cells, ret);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    if (rc == RQ_OK) return RQ_OK;
    return rq_fail(why, RQ_E_CORRUPT,
                   "%s: the record at byte %" PRIu64 " is not a Result of the row in its key",
                   s->seq.path, s->seq.start);
}

/* --- text ------------------------------------------------------------------------------------- */

static rq_err pass_over(rq__feed *s, const char *problem, rq_error *why)
{
    const rq__lines *l = &s->lines;
    if (s->options->fails_on_bad_lines)
        return rq_fail(why, RQ_E_INVALID, "%s: bad line at byte %" PRIu64 ": %s", l->path, l->start,
                       problem);
    if (atomic_fetch_add(&s->crew->bad_lines, 1) < SAID_MAX)
        rq__crew_print(s->crew, "%s: bad line at byte %" PRIu64 ": %s", l->path, l->start, problem);
    return RQ_OK;
}

static void put_ttl_tag(rq__feed *s, rq_cell *c, int64_t ttl_ms)
{
    if (ttl_ms == 0) return;
    rq_put_be16(s->ttl_tag, 1 + 8);
    s->ttl_tag[2] = RQ_TAG_TTL;
    rq_put_be64(s->ttl_tag + 3, (uint64_t)ttl_ms);
    c->tags = s->ttl_tag;
    c->tags_len = sizeof s->ttl_tag;
}

static rq_err cells_of_line(rq__feed *s, rq__feed_row *ret)
{
    const rq__columns *columns = s->options->columns;
    const rq__line *l = &s->line;
    *ret = (rq__feed_row){.row = l->row, .attributes = l->attributes, .labels = l->labels};
    for (size_t i = 0; i < l->count; i++) {
        const rq__column *column = &columns->list[i];
        rq_slice value = l->fields[i];
        if (column->kind != RQ__COLUMN_CELL) continue;
        if (columns->format.skips_empty && value.len == 0) continue;
        rq_cell c = {.row = l->row.ptr,
                     .row_len = (uint16_t)l->row.len,
                     .family = column->family.ptr,
                     .family_len = (uint8_t)column->family.len,
                     .qualifier = column->qualifier.ptr,
                     .qualifier_len = (uint32_t)column->qualifier.len,
                     .value = value.ptr,
                     .value_len = (uint32_t)value.len,
                     .type = RQ_TYPE_PUT,
                     .timestamp = s->options->now_ms};
        if (columns->time != SIZE_MAX) c.timestamp = l->timestamp;
        put_ttl_tag(s, &c, l->ttl_ms);
        RQ_TRY(add_cell(s, &c, ret->count++));
    }
    ret->cells = s->cells;
    return RQ_OK;
}

static rq_err cells_of_json(rq__feed *s, rq__feed_row *ret)
{
    const rq__json_row *j = &s->json;
    *ret = (rq__feed_row){.row = rq_cell_row(&j->cells[0])};
    for (size_t i = 0; i < j->count; i++)
        RQ_TRY(add_cell(s, &j->cells[i], ret->count++));
    ret->cells = s->cells;
    return RQ_OK;
}

static rq_err next_line(rq__feed *s, rq__feed_row *ret, rq_error *why)
{
    bool is_json = s->options->format == RQ_FORMAT_JSON;
    for (;;) {
        rq_slice text;
        rq_err rc;
        RQ_TRY(rq__lines_next(&s->lines, s->to, &text, why));
        const char *problem = is_json ? rq__json_parse(text, s->options->now_ms, &s->json, &rc)
                                      : rq__line_parse(s->options->columns, text, &s->line, &rc);
        if (rc == RQ_OK && problem != NULL) {
            RQ_TRY(pass_over(s, problem, why));
            continue;
        }
        if (rc == RQ_OK) rc = is_json ? cells_of_json(s, ret) : cells_of_line(s, ret);
        return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
    }
}

rq_err rq__feed_next(rq__feed *s, rq__feed_row *ret, rq_error *why)
{
    return s->options->format == RQ_FORMAT_SEQUENCE ? next_result(s, ret, why)
                                                    : next_line(s, ret, why);
}
