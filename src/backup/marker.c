/* SPDX-License-Identifier: Apache-2.0 */
/* See marker.h. */
#include "backup/marker.h"

#include "base/checksum.h"
#include "catalog/root.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_BYTES_MAX ((size_t)4096 * 1024 * 1024)
#define HEAD "rorqual backup 1\n"

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_file(rq_buf *b, const rq_listed_file *f, rq_error *why)
{
    char crc[12] = "-";
    if (strchr(f->path, '\n') != NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: a backup cannot list a name with a line break",
                       f->path);
    if (f->has_crc) snprintf(crc, sizeof crc, "%08x", f->crc);
    return rq_buf_printf(b, "%c %s %" PRIu64 " %s\n", f->kind, crc, f->size, f->path);
}

rq_err rq__backup_list_write(rq_vfs *v, const rq_backup_list *list, rq_error *why)
{
    rq_buf b = {0};
    if (strchr(list->source, '\n') != NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: a backup cannot list a name with a line break",
                       list->source);
    rq_err rc =
        rq_buf_printf(&b, HEAD "source %s\ntaken %" PRId64 " from a %s\n", list->source,
                      list->taken_ms, list->was_running ? "running server" : "stopped folder");
    for (size_t i = 0; i < list->count && rc == RQ_OK; i++)
        rc = put_file(&b, &list->files[i], why);
    if (rc == RQ_OK)
        rc = rq_buf_printf(&b, "end %zu %" PRIu64 " %08x\n", list->count, list->bytes,
                           rq_crc32c(0, b.ptr, b.len));
    if (rc == RQ_OK) rc = rq_vfs_write_new_file(v, RQ_ROOT_BACKUP_LIST, rq_buf_slice(&b), why);
    rq_buf_clear(&b);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err damaged(rq_error *why, const char *what)
{
    return rq_fail(why, RQ_E_CORRUPT, RQ_ROOT_BACKUP_LIST ": the backup's list is damaged: %s",
                   what);
}

/* Returns the next complete line, or NULL. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (end == NULL) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* Checks the last line against the lines before it. *ret_body: their length. */
static rq_err check_end(const char *text, size_t len, size_t *ret_count, uint64_t *ret_bytes,
                        size_t *ret_body, rq_error *why)
{
    size_t from = len;
    if (len == 0 || text[len - 1] != '\n') return damaged(why, "it is cut off");
    for (from = len - 1; from > 0 && text[from - 1] != '\n'; from--) {
    }
    uint32_t crc;
    if (sscanf(text + from, "end %zu %" SCNu64 " %8" SCNx32, ret_count, ret_bytes, &crc) != 3)
        return damaged(why, "it is cut off");
    if (crc != rq_crc32c(0, text, from)) return damaged(why, "its checksum is wrong");
    *ret_body = from;
    return RQ_OK;
}

/* Whether a path stays below the folder: no empty part, "." or "..". */
static bool path_is_ok(const char *path)
{
    if (path[0] == '\0') return false;
    for (const char *part = path;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += n;
        if (*part == '\0') return true;
    }
}

static rq_err parse_file(char *line, rq_listed_file *ret, rq_error *why)
{
    char crc[16];
    int at = 0;
    if (sscanf(line, "%c %15s %" SCNu64 " %n", &ret->kind, crc, &ret->size, &at) != 3 || at == 0)
        return damaged(why, "a line is malformed");
    ret->has_crc = strcmp(crc, "-") != 0;
    ret->crc = ret->has_crc ? (uint32_t)strtoul(crc, NULL, 16) : 0;
    ret->path = line + at;
    if (strchr("dfc", ret->kind) == NULL || !path_is_ok(ret->path))
        return damaged(why, "a line is malformed");
    return RQ_OK;
}

static rq_err parse_head(char **at, rq_backup_list *ret, rq_error *why)
{
    const char *head = next_line(at);
    const char *source = next_line(at);
    const char *taken = head == NULL || source == NULL ? NULL : next_line(at);
    char from[32] = "";
    if (taken == NULL || strncmp(source, "source ", 7) != 0 ||
        sscanf(taken, "taken %" SCNd64 " from a %31s", &ret->taken_ms, from) != 2)
        return damaged(why, "its head is malformed");
    if (strcmp(head, "rorqual backup 1") != 0)
        return rq_fail(why, RQ_E_VERSION, "the backup's list has an unknown format: \"%.40s\"",
                       head);
    ret->source = source + 7;
    ret->was_running = strcmp(from, "running") == 0;
    return RQ_OK;
}

static rq_err parse(char *text, size_t len, rq_arena *arena, rq_backup_list *ret, rq_error *why)
{
    size_t count = 0, body = 0;
    RQ_TRY(check_end(text, len, &count, &ret->bytes, &body, why));
    if (count > body) return damaged(why, "its end is malformed");
    text[body] = '\0';
    RQ_TRY(parse_head(&text, ret, why));
    ret->files = rq_arena_calloc(arena, count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(why);
    for (char *line; (line = next_line(&text)) != NULL;) {
        if (ret->count == count) return damaged(why, "it has more lines than its last line says");
        RQ_TRY(parse_file(line, &ret->files[ret->count++], why));
    }
    return ret->count == count ? RQ_OK : damaged(why, "lines are missing");
}

rq_err rq__backup_list_read(rq_vfs *v, rq_arena *arena, rq_backup_list *ret, rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    *ret = (rq_backup_list){0};
    rq_err rc = rq_vfs_read_file(v, RQ_ROOT_BACKUP_LIST, LIST_BYTES_MAX, arena, &bytes, &own);
    if (rc == RQ_E_NOT_FOUND)
        return rq_fail(why, rc,
                       "not a finished backup: " RQ_ROOT_BACKUP_LIST
                       " is missing (the backup was interrupted, or a server was started on it)");
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    char *text = rq_arena_cstr(arena, bytes);
    if (text == NULL) return rq_no_memory(why);
    if (strlen(text) != bytes.len) return damaged(why, "it contains a zero byte");
    return parse(text, bytes.len, arena, ret, why);
}
