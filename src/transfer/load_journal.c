/* SPDX-License-Identifier: Apache-2.0 */
/* See load_journal.h. */
#include "transfer/load_journal.h"

#include "transfer/out.h"

#include <stdlib.h>

#define JOURNAL "_rorqual_load"
#define FIRST_LINE "rorqual load 1\n"
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

/* A line behind which there is a line break. */
static bool take_line(rq_slice *text, rq_slice *ret)
{
    const uint8_t *end = text->len == 0 ? NULL : memchr(text->ptr, '\n', text->len);
    if (end == NULL) return false;
    size_t len = (size_t)(end - text->ptr);
    *ret = rq_slice_of(text->ptr, len);
    *text = rq_slice_of(end + 1, text->len - len - 1);
    return true;
}

static rq_err damaged(rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, JOURNAL " is damaged");
}

static rq_err take_entry(rq__load_journal *j, rq_slice line, rq_error *why)
{
    rq__journal_line *l = &j->lines[j->count];
    for (rq__load_state s = RQ__LOAD_CALLED; l->state == RQ__LOAD_NEW && s <= RQ__LOAD_DIVIDED; s++)
        if (take_word(&line, words[s])) l->state = s;
    if (l->state == RQ__LOAD_NEW) return damaged(why);
    l->path = rq_arena_cstr(&j->arena, line);
    if (l->path == NULL) return rq_no_memory(why);
    j->count++;
    return RQ_OK;
}

/* A file is called before it is done or divided, so later lines have later states. */
static int compare(const void *a, const void *b)
{
    const rq__journal_line *x = a, *y = b;
    int c = strcmp(x->path, y->path);
    return c != 0 ? c : (x->state > y->state) - (x->state < y->state);
}

static rq_err take_entries(rq__load_journal *j, rq_slice text, rq_error *why)
{
    rq_slice line;
    size_t max = 0;
    for (size_t i = 0; i < text.len; i++)
        max += text.ptr[i] == '\n';
    j->lines = rq_arena_calloc(&j->arena, max + 1, sizeof *j->lines);
    if (j->lines == NULL) return rq_no_memory(why);
    while (take_line(&text, &line))
        RQ_TRY(take_entry(j, line, why));
    qsort(j->lines, j->count, sizeof *j->lines, compare);
    return RQ_OK;
}

static rq_err parse(rq__load_journal *j, rq_slice text, rq_error *why)
{
    rq_slice line, rest = text;
    if (!take_word(&rest, FIRST_LINE) || !take_line(&rest, &line) || !take_word(&line, "for "))
        return damaged(why);
    if (!rq_slice_eq(line, rq_slice_cstr(j->what)))
        return rq_fail(why, RQ_E_CONFLICT,
                       "the load of this folder was begun as \"%.*s\", and is not finished; remove "
                       "the file " JOURNAL " to load what is left as \"%s\"",
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
    rq_err rc = rq_vfs_read_file(v, JOURNAL, BYTES_MAX, &ret->arena, &text, &mine);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    return rc == RQ_OK ? parse(ret, text, why) : rq_fail(why, rc, "%s", mine.message);
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
    if (j->text.len == 0 && rq_buf_printf(&j->text, FIRST_LINE "for %s\n", j->what) != RQ_OK)
        return rq_no_memory(why);
    RQ_TRY(rq__put_file(j->vfs, JOURNAL, rq_buf_slice(&j->text), why));
    return rq_vfs_open(j->vfs, JOURNAL, RQ_OPEN_WRITE, &j->file, why);
}

rq_err rq__journal_note(rq__load_journal *j, rq__load_state state, const char *const *paths,
                        size_t count, rq_error *why)
{
    if (j->is_off || count == 0) return RQ_OK;
    RQ_TRY(begin(j, why));
    size_t from = j->text.len;
    for (size_t i = 0; i < count; i++) {
        if (strchr(paths[i], '\n') != NULL)
            return rq_fail(why, RQ_E_INVALID, "%s: a line break in a file's name", paths[i]);
        if (rq_buf_printf(&j->text, "%s%s\n", words[state], paths[i]) != RQ_OK)
            return rq_no_memory(why);
    }
    RQ_TRY(rq_file_write(j->file, j->text.ptr + from, j->text.len - from, from, why));
    return rq_file_sync(j->file, why);
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
