/* SPDX-License-Identifier: Apache-2.0 */
/* See load_journal.h. */
#include "transfer/load_journal.h"

#include "transfer/out.h"
#include "transfer/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define JOURNAL "_rorqual_load"
#define FORMAT "rorqual load "
#define FORMAT_VERSION "3\n"
#define PIECES_MAX ((uint64_t)1 << 30)
#define BYTES_MAX ((size_t)1 << 30)

static const char *const words[] = {
    [RQ__LOAD_CALLED] = "call ", [RQ__LOAD_DONE] = "done ", [RQ__LOAD_DIVIDED] = "divided "};

/* --- reading ---------------------------------------------------------------------------------- */

static bool take_word(rq_slice *line, const char *word)
{
    size_t len = strlen(word);
    if (line->len < len || memcmp(line->ptr, word, len) != 0) return false;
    *line = rq_slice_of(line->ptr + len, line->len - len);
    return true;
}

static rq_err damaged(rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, JOURNAL " is damaged");
}

/* "N REST": leaves the rest. */
static bool take_number(rq_slice *line, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < line->len && line->ptr[i] >= '0' && line->ptr[i] <= '9' && n <= max / 10; i++)
        n = 10 * n + (line->ptr[i] - (uint64_t)'0');
    if (i == 0 || n > max || i == line->len || line->ptr[i] != ' ') return false;
    *line = rq_slice_of(line->ptr + i + 1, line->len - i - 1);
    *ret = n;
    return true;
}

static rq_err take_entry(rq__load_journal *j, rq_slice line, rq_error *why)
{
    rq__journal_line *l = &j->lines[j->count];
    for (rq__load_state s = RQ__LOAD_CALLED; l->state == RQ__LOAD_NEW && s <= RQ__LOAD_DIVIDED; s++)
        if (take_word(&line, words[s])) l->state = s;
    if (l->state == RQ__LOAD_NEW) return damaged(why);
    if (l->state == RQ__LOAD_DIVIDED &&
        (!take_number(&line, PIECES_MAX, &l->pieces) || l->pieces == 0))
        return damaged(why);
    if (!take_number(&line, INT64_MAX, &l->size) || !take_number(&line, INT64_MAX, &l->mtime_ms))
        return damaged(why);
    l->path = rq_arena_cstr(&j->arena, line);
    if (l->path == NULL) return rq_no_memory(why);
    if (strchr(l->path, '/') == NULL) return damaged(why);
    l->number = j->count++;
    return RQ_OK;
}

static int compare(const void *a, const void *b)
{
    const rq__journal_line *x = a, *y = b;
    int c = strcmp(x->path, y->path);
    return c != 0 ? c : (x->number > y->number) - (x->number < y->number);
}

static rq_err take_entries(rq__load_journal *j, rq_slice text, rq_error *why)
{
    rq_slice line;
    size_t max = 0;
    for (size_t i = 0; i < text.len; i++)
        max += text.ptr[i] == '\n';
    j->lines = rq_arena_calloc(&j->arena, max + 1, sizeof *j->lines);
    if (j->lines == NULL) return rq_no_memory(why);
    while (rq__take_line(&text, &line))
        RQ_TRY(take_entry(j, line, why));
    qsort(j->lines, j->count, sizeof *j->lines, compare);
    return RQ_OK;
}

static rq_err other_version(rq_error *why)
{
    return rq_fail(why, RQ_E_VERSION,
                   "the load of this folder was begun by another version of rorqual: finish the "
                   "load with that version, or remove the file " JOURNAL
                   " to load what is in the folder");
}

static rq_err parse(rq__load_journal *j, rq_slice text, rq_error *why)
{
    rq_slice line, rest = text;
    if (!take_word(&rest, FORMAT)) return damaged(why);
    if (!take_word(&rest, FORMAT_VERSION)) return other_version(why);
    if (!rq__take_line(&rest, &line) || !take_word(&line, "for ")) return damaged(why);
    if (!rq_slice_eq(line, rq_slice_cstr(j->what)))
        return rq_fail(
            why, RQ_E_CONFLICT,
            "an unfinished load of this folder was begun as \"%.*s\"; remove the file " JOURNAL
            " to load the remaining files as \"%s\"",
            (int)line.len, (const char *)line.ptr, j->what);
    j->is_resumed = true;
    RQ_TRY(take_entries(j, rest, why));
    const uint8_t *end = memrchr(text.ptr, '\n', text.len);
    return rq_buf_append(&j->text, text.ptr, (size_t)(end + 1 - text.ptr)) == RQ_OK
               ? RQ_OK
               : rq_no_memory(why);
}

rq_err rq__journal_open(rq_vfs *v, const char *what, rq__load_journal *ret, rq_error *why)
{
    rq_slice text;
    rq_error mine = {.code = RQ_OK};
    *ret = (rq__load_journal){.vfs = v, .what = what};
    RQ_TRY(rq__complete_file(v, JOURNAL, why));
    rq_err rc = rq_vfs_read_file(v, JOURNAL, BYTES_MAX, &ret->arena, &text, &mine);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    return rc == RQ_OK ? parse(ret, text, why) : rq_fail(why, rc, "%s", mine.message);
}

bool rq__journal_is_last(const rq__load_journal *j, size_t line)
{
    return line + 1 == j->count || strcmp(j->lines[line].path, j->lines[line + 1].path) != 0;
}

rq__load_state rq__journal_state(const rq__load_journal *j, const char *path)
{
    size_t low = 0, high = j->count; /* the first line behind those of the path */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(j->lines[mid].path, path) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || strcmp(j->lines[low - 1].path, path) != 0) return RQ__LOAD_NEW;
    return j->lines[low - 1].state;
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err begin(rq__load_journal *j, rq_error *why)
{
    if (j->file != NULL) return RQ_OK;
    if (j->text.len == 0 &&
        rq_buf_printf(&j->text, FORMAT FORMAT_VERSION "for %s\n", j->what) != RQ_OK)
        return rq_no_memory(why);
    RQ_TRY(rq__put_file(j->vfs, JOURNAL, rq_buf_slice(&j->text), why));
    return rq_vfs_open(j->vfs, JOURNAL, RQ_OPEN_WRITE, &j->file, why);
}

/* Writes the text from there on. */
static rq_err put_from(rq__load_journal *j, size_t from, rq_error *why)
{
    RQ_TRY(rq_file_write(j->file, j->text.ptr + from, j->text.len - from, from, why));
    return rq_file_sync(j->file, why);
}

static rq_err add_line(rq__load_journal *j, const rq__journal_line *l, rq_error *why)
{
    char pieces[32] = "";
    if (strchr(l->path, '\n') != NULL)
        return rq_fail(why, RQ_E_INVALID, "%s: a file's name contains a line break", l->path);
    if (l->state == RQ__LOAD_DIVIDED) snprintf(pieces, sizeof pieces, "%" PRIu64 " ", l->pieces);
    rq_err rc = rq_buf_printf(&j->text, "%s%s%" PRIu64 " %" PRIu64 " %s\n", words[l->state], pieces,
                              l->size, l->mtime_ms, l->path);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq__journal_note(rq__load_journal *j, const rq__journal_line *lines, size_t count,
                        rq_error *why)
{
    if (j->is_off || count == 0) return RQ_OK;
    RQ_TRY(begin(j, why));
    size_t from = j->text.len;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(add_line(j, &lines[i], why));
    return put_from(j, from, why);
}

void rq__journal_close(rq__load_journal *j)
{
    (void)rq_file_close(j->file); /* what counts is synced */
    rq_buf_clear(&j->text);
    rq_arena_clear(&j->arena);
    *j = (rq__load_journal){0};
}

rq_err rq__journal_remove(rq_vfs *v, rq_error *why)
{
    return rq__drop_file(v, JOURNAL, why);
}
