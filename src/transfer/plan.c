/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h. */
#include "transfer/plan.h"

#include "base/clock.h"
#include "base/digest.h"
#include "transfer/out.h"

#include <stdio.h>
#include <stdlib.h>

#define PLAN_BYTES_MAX ((size_t)1 << 30)
#define FIRST_LINE "rorqual plan 1"

#define NAME_SHOWN 128 /* bytes of a table's name that is too long for a file's */

const char *rq__plan_name(rq_arena *arena, const char *what, const char *table)
{
    char digest[RQ_MD5_HEX_LEN + 1];
    if (strlen(what) + 1 + strlen(table) <= RQ_NAME_MAX)
        return rq_arena_printf(arena, "%s-%s", what, table);
    rq_md5_hex(rq_slice_cstr(table), digest);
    return rq_arena_printf(arena, "%s-%.*s-%s", what, NAME_SHOWN, table, digest);
}

static const char *path_of(rq__plan *p, const char *name)
{
    return rq_arena_printf(&p->arena, "%s/%s", p->folder, name);
}

/* --- reading ---------------------------------------------------------------------------------- */

bool rq__take_line(rq_slice *text, rq_slice *ret)
{
    const uint8_t *end = text->len == 0 ? NULL : memchr(text->ptr, '\n', text->len);
    if (end == NULL) return false;
    size_t len = (size_t)(end - text->ptr);
    *ret = rq_slice_of(text->ptr, len);
    *text = rq_slice_of(end + 1, text->len - len - 1);
    return true;
}

/* The line's text behind a word and a blank. */
static bool take_member(rq_slice *text, const char *word, rq_slice *ret)
{
    rq_slice line;
    size_t len = strlen(word);
    if (!rq__take_line(text, &line) || line.len <= len || line.ptr[len] != ' ') return false;
    if (memcmp(line.ptr, word, len) != 0) return false;
    *ret = rq_slice_of(line.ptr + len + 1, line.len - len - 1);
    return true;
}

static size_t count_lines(rq_slice text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

static rq_err take_parts(rq__plan *p, rq_slice *text, size_t max)
{
    rq_slice part;
    p->parts = rq_arena_calloc(&p->arena, max + 1, sizeof *p->parts);
    if (p->parts == NULL) return RQ_E_NO_MEMORY;
    for (rq_slice at = *text; take_member(&at, "part", &part); *text = at) {
        p->parts[p->count] = rq_arena_cstr(&p->arena, part);
        if (p->parts[p->count++] == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

static rq_err parse(rq__plan *p, rq_slice text, const char *what, rq_error *why)
{
    rq_slice rest = text, first, stamp, is_for, end;
    const char *number = NULL;
    if (!rq__take_line(&rest, &first) || !rq_slice_eq(first, RQ_SLICE_LIT(FIRST_LINE)) ||
        !take_member(&rest, "stamp", &stamp) || !take_member(&rest, "for", &is_for))
        return rq_fail(why, RQ_E_CORRUPT, "%s/plan is damaged", p->folder);
    if (!rq_slice_eq(is_for, rq_slice_cstr(what)))
        return rq_fail(why, RQ_E_CONFLICT,
                       "%s was begun by another command (%.*s, not %s): repeat that command, or "
                       "choose another folder",
                       p->folder, (int)is_for.len, (const char *)is_for.ptr, what);
    if (take_parts(p, &rest, count_lines(text)) != RQ_OK ||
        (number = rq_arena_cstr(&p->arena, stamp)) == NULL)
        return rq_no_memory(why);
    p->stamp_ms = strtoll(number, NULL, 10);
    if (rq__take_line(&rest, &end) && rq_slice_eq(end, RQ_SLICE_LIT("end"))) return RQ_OK;
    return rq_fail(why, RQ_E_CORRUPT, "%s/plan is damaged", p->folder);
}

static rq_err note_finished(rq__plan *p, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(p->vfs, p->folder, &p->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        char *end;
        size_t part = strtoul(list[i].name, &end, 10);
        if (end == list[i].name || *end != '\0' || part >= p->count) continue;
        p->done += !p->is_done[part];
        p->is_done[part] = true;
    }
    return RQ_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_plan(rq_buf *b, const rq__plan *p, const char *what)
{
    RQ_TRY(rq_buf_printf(b, FIRST_LINE "\nstamp %lld\nfor %s\n", (long long)p->stamp_ms, what));
    for (size_t i = 0; i < p->count; i++)
        RQ_TRY(rq_buf_printf(b, "part %s\n", p->parts[i]));
    return rq_buf_printf(b, "end\n");
}

/* Marks without a plan would be taken for marks of the new plan. */
static rq_err remove_leftovers(rq__plan *p, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(p->vfs, p->folder, &p->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *path = path_of(p, list[i].name);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_remove_tree(p->vfs, path, why));
    }
    return RQ_OK;
}

static rq_err store(rq__plan *p, const char *path, const char *what, const char *const *parts,
                    size_t count, rq_error *why)
{
    rq_buf b = {0};
    p->stamp_ms = (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
    p->parts = rq_arena_calloc(&p->arena, count + 1, sizeof *p->parts);
    if (p->parts == NULL) return rq_no_memory(why);
    for (; p->count < count; p->count++) {
        p->parts[p->count] = rq_arena_cstr(&p->arena, rq_slice_cstr(parts[p->count]));
        if (p->parts[p->count] == NULL) return rq_no_memory(why);
    }
    rq_err rc = put_plan(&b, p, what) == RQ_OK ? RQ_OK : rq_no_memory(why);
    if (rc == RQ_OK) rc = remove_leftovers(p, why);
    if (rc == RQ_OK) rc = rq_vfs_mkdirs(p->vfs, p->folder, why);
    if (rc == RQ_OK) rc = rq__put_file(p->vfs, path, rq_buf_slice(&b), why);
    rq_buf_clear(&b);
    return rc;
}

static bool are_same(const rq__plan *p, const char *const *parts, size_t count)
{
    bool same = p->count == count;
    for (size_t i = 0; same && i < count; i++)
        same = strcmp(p->parts[i], parts[i]) == 0;
    return same;
}

rq_err rq__plan_open(rq_vfs *v, const char *folder, const char *what, const char *const *parts,
                     size_t count, bool same_parts, rq__plan *ret, rq_error *why)
{
    rq_slice text;
    rq_error mine = {.code = RQ_OK};
    *ret = (rq__plan){.vfs = v};
    ret->folder = rq_arena_cstr(&ret->arena, rq_slice_cstr(folder));
    const char *path = ret->folder == NULL ? NULL : path_of(ret, "plan");
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_read_file(v, path, PLAN_BYTES_MAX, &ret->arena, &text, &mine);
    if (rc == RQ_E_NOT_FOUND) {
        RQ_TRY(store(ret, path, what, parts, count, why));
    } else if (rc == RQ_OK) {
        RQ_TRY(parse(ret, text, what, why));
        if (same_parts && !are_same(ret, parts, count))
            return rq_fail(why, RQ_E_CONFLICT,
                           "the input has changed since the run began: remove %s to start over",
                           folder);
        ret->is_resumed = true;
    } else {
        return rq_fail(why, rc, "%s", mine.message);
    }
    ret->is_done = rq_arena_calloc(&ret->arena, ret->count + 1, sizeof *ret->is_done);
    return ret->is_done == NULL ? rq_no_memory(why) : note_finished(ret, why);
}

rq_err rq__plan_note_done(const rq__plan *p, size_t part, const char *counts, rq_error *why)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%05zu", p->folder, part);
    return rq__put_file(p->vfs, path, rq_slice_cstr(counts), why);
}

#define COUNTS_BYTES_MAX 4096

rq_err rq__plan_counts_of(rq__plan *p, size_t part, rq_slice *ret, rq_error *why)
{
    const char *path = rq_arena_printf(&p->arena, "%s/%05zu", p->folder, part);
    if (path == NULL) return rq_no_memory(why);
    return rq_vfs_read_file(p->vfs, path, COUNTS_BYTES_MAX, &p->arena, ret, why);
}

rq_err rq__plan_remove(const rq__plan *p, rq_error *why)
{
    return rq_vfs_remove_tree(p->vfs, p->folder, why);
}

void rq__plan_close(rq__plan *p)
{
    rq_arena_clear(&p->arena);
    *p = (rq__plan){0};
}
