/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a data folder's content for commands: the client's end of the control socket, and stopped
 * folders; contract in session.h. */
#include "backup/session.h"

#include "backup/control.h"
#include "backup/socket.h"
#include "catalog/root.h"
#include "vfs/retention.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATH_BYTES_MAX 4096u
#define RECV_BYTES ((size_t)256 * 1024)

/* --- parts ------------------------------------------------------------------------------------ */

/* `path` and `bytes` are in the arena. */
static rq_err add_part(rq_source *s, rq_source_part part, rq_error *why)
{
    if (s->count == s->room) {
        size_t room = s->room == 0 ? 1024 : s->room * 2;
        rq_source_part *more = realloc(s->parts, room * sizeof *more);
        if (more == NULL) return rq_no_memory(why);
        s->parts = more;
        s->room = room;
    }
    s->parts[s->count++] = part;
    s->bytes += part.size;
    return RQ_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const rq_source_part *)a)->path, ((const rq_source_part *)b)->path);
}

/* Sorts, and drops duplicates: a folder may be listed twice. */
static void sort_parts(rq_source *s)
{
    size_t kept = 0;
    if (s->count > 1) qsort(s->parts, s->count, sizeof *s->parts, by_path);
    for (size_t i = 0; i < s->count; i++)
        if (kept == 0 || by_path(&s->parts[kept - 1], &s->parts[i]) != 0)
            s->parts[kept++] = s->parts[i];
    s->count = kept;
}

const rq_source_part *rq__source_find(const rq_source *s, const char *path)
{
    rq_source_part key = {.path = path};
    return s->count == 0 ? NULL : bsearch(&key, s->parts, s->count, sizeof key, by_path);
}

/* --- a running server ------------------------------------------------------------------------- */

typedef struct stream {
    int fd;
    uint8_t *buf;
    size_t from, to;
} stream;

static rq_err ended(rq_error *why)
{
    return rq_fail(why, RQ_E_STATE, "the server ended while it was listing the data folder");
}

static rq_err read_bytes(stream *in, void *to, size_t len, rq_error *why)
{
    uint8_t *at = to;
    while (len > 0) {
        if (in->from == in->to) {
            ssize_t n = recv(in->fd, in->buf, RECV_BYTES, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return ended(why);
            in->from = 0;
            in->to = (size_t)n;
        }
        size_t n = in->to - in->from < len ? in->to - in->from : len;
        memcpy(at, in->buf + in->from, n);
        in->from += n;
        at += n;
        len -= n;
    }
    return RQ_OK;
}

static rq_err read_path(rq_source *s, stream *in, size_t len, char **ret, rq_error *why)
{
    if (len > PATH_BYTES_MAX)
        return rq_fail(why, RQ_E_MALFORMED, "the server's response has no list of files");
    char *path = rq_arena_alloc(&s->arena, len + 1);
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(read_bytes(in, path, len, why));
    path[len] = '\0';
    *ret = path;
    return RQ_OK;
}

static rq_err read_part(rq_source *s, stream *in, char kind, char *path, uint64_t size,
                        rq_error *why)
{
    rq_source_part part = {.kind = (rq_image_kind)kind, .path = path, .size = size};
    if (kind != RQ_IMAGE_DIR && kind != RQ_IMAGE_FILE && kind != RQ_IMAGE_LOG &&
        kind != RQ_IMAGE_BYTES)
        return rq_fail(why, RQ_E_MALFORMED,
                       "the server has another version: its response has an unknown part '%c'",
                       kind);
    if (kind == RQ_IMAGE_BYTES) {
        uint8_t *bytes = size > SIZE_MAX / 2 ? NULL : rq_arena_alloc(&s->arena, (size_t)size + 1);
        if (bytes == NULL) return rq_no_memory(why);
        RQ_TRY(read_bytes(in, bytes, (size_t)size, why));
        part.bytes = bytes;
    }
    return add_part(s, part, why);
}

static rq_err read_list(rq_source *s, stream *in, rq_error *why)
{
    for (;;) {
        uint8_t header[RQ__RECORD_HEADER_LEN];
        char *path = NULL;
        RQ_TRY(read_bytes(in, header, sizeof header, why));
        RQ_TRY(read_path(s, in, rq_get_be32(header + 1), &path, why));
        if (header[0] == RQ__RECORD_END) return RQ_OK;
        if (header[0] == RQ__RECORD_ERROR) return rq_fail(why, RQ_E_STATE, "%s", path);
        RQ_TRY(read_part(s, in, (char)header[0], path, rq_get_be64(header + 5), why));
    }
}

/* *ret -1: no server listens. */
static rq_err connect_to(const char *folder, int *ret, rq_error *why)
{
    rq__socket_address address;
    *ret = -1;
    RQ_TRY(rq__socket_address_of(folder, &address, why));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rq_err rc = RQ_OK;
    if (fd < 0) {
        rc = rq_fail(why, RQ_E_IO, "cannot make a socket: %s", strerror(errno));
    } else if (connect(fd, (const struct sockaddr *)&address.un, sizeof address.un) == 0) {
        *ret = fd;
        fd = -1;
    } else if (errno == EACCES || errno == EPERM) {
        rc = rq_fail(why, RQ_E_PERMISSION, "%s/" RQ_CONTROL_NAME ": %s", folder, strerror(errno));
    }
    if (fd >= 0) close(fd);
    rq__socket_address_clear(&address);
    return rc;
}

static rq_err ask(rq_source *s, const char *verb, const char *name, rq_error *why)
{
    rq_buf line = {0};
    stream in = {.fd = s->fd, .buf = malloc(RECV_BYTES)};
    rq_err rc = in.buf == NULL ? RQ_E_NO_MEMORY : rq_buf_printf(&line, "%s%.200s\n", verb, name);
    if (rc == RQ_OK) rc = rq__socket_send(s->fd, line.ptr, line.len);
    if (rc != RQ_OK)
        (void)rq_fail(why, rc, "cannot send the request to the server: %s", rq_err_text(rc));
    if (rc == RQ_OK) rc = read_list(s, &in, why);
    rq_buf_clear(&line);
    free(in.buf);
    return rc;
}

/* --- a stopped folder ------------------------------------------------------------------------- */

static rq_err take_part(void *ctx, const rq_image_part *p, rq_error *why)
{
    rq_source *s = ctx;
    rq_source_part part = {
        .kind = p->kind, .path = rq_arena_cstr(&s->arena, rq_slice_cstr(p->path)), .size = p->size};
    if (part.path == NULL) return rq_no_memory(why);
    if (p->kind == RQ_IMAGE_BYTES) {
        rq_slice own = rq_arena_copy(&s->arena, p->bytes);
        if (own.ptr == NULL && p->bytes.len > 0) return rq_no_memory(why);
        part.bytes = own.ptr != NULL ? own.ptr : (const uint8_t *)"";
        part.size = p->bytes.len;
    }
    return add_part(s, part, why);
}

static rq_err list_stopped(rq_source *s, rq_error *why)
{
    rq_stat st;
    bool ours = rq_vfs_stat(s->vfs, ".rorqual", &st, NULL) == RQ_OK;
    if (!ours && rq_vfs_stat(s->vfs, "hbase.version", &st, NULL) != RQ_OK)
        return rq_fail(why, RQ_E_NOT_FOUND,
                       "not a data folder: it has neither .rorqual nor hbase.version");
    bool has_file = rq_vfs_stat(s->vfs, ".rorqual/lock", &st, NULL) == RQ_OK;
    rq_error own = {0};
    rq_err rc = rq_vfs_lock(s->vfs, has_file ? ".rorqual/lock" : NULL, &s->lock, &own);
    if (rc == RQ_E_LOCKED)
        return rq_fail(why, rc,
                       "%s, and its server does not listen on " RQ_CONTROL_NAME
                       ": the server is starting or stopping, or has an older version",
                       own.message);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    RQ_TRY(rq_root_check_finished(s->vfs, why));
    rq_image_sink sink = {take_part, s};
    return rq_image_of_stopped(s->vfs, &sink, why);
}

/* --- both ------------------------------------------------------------------------------------- */

static rq_err open_source(const char *folder, const char *name, bool stopped_too, rq_source *ret,
                          rq_error *why)
{
    rq_source s = {.fd = -1};
    rq_err rc = rq_vfs_posix_new(folder, &s.vfs, why);
    if (rc == RQ_OK) rc = connect_to(folder, &s.fd, why);
    s.is_running = s.fd >= 0;
    if (rc == RQ_OK && s.is_running)
        rc = ask(&s, "image ", name, why);
    else if (rc == RQ_OK)
        rc = stopped_too ? list_stopped(&s, why)
                         : rq_fail(why, RQ_E_NOT_FOUND, "no server runs on %s", folder);
    if (rc != RQ_OK) {
        rq_source_close(&s);
        return rc;
    }
    sort_parts(&s);
    *ret = s;
    return RQ_OK;
}

rq_err rq__source_open(const char *folder, const char *name, rq_source *ret, rq_error *why)
{
    return open_source(folder, name, true, ret, why);
}

rq_err rq_source_open_running(const char *folder, const char *name, rq_source *ret, rq_error *why)
{
    return open_source(folder, name, false, ret, why);
}

static void release(rq_source *s)
{
    if (s->fd >= 0) close(s->fd);
    (void)rq_file_close(s->lock);
    rq_vfs_free(s->vfs);
    free(s->parts);
    rq_arena_clear(&s->arena);
    *s = (rq_source){0};
}

void rq_source_close(rq_source *s)
{
    if (s->vfs != NULL) release(s);
}

/* --- holders ---------------------------------------------------------------------------------- */

static rq_err take_holders(const rq_source *s, rq_arena *arena, rq_holder_info **ret, rq_error *why)
{
    rq_holder_info *list = rq_arena_calloc(arena, s->count + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < s->count; i++) {
        const rq_source_part *p = &s->parts[i];
        if (p->kind != RQ_IMAGE_BYTES || p->size != RQ__HOLDER_LEN)
            return rq_fail(why, RQ_E_MALFORMED, "the server's response has no list of backups");
        list[i] = (rq_holder_info){.name = rq_arena_cstr(arena, rq_slice_cstr(p->path)),
                                   .since_ms = (int64_t)rq_get_be64(p->bytes),
                                   .holds_all_files = rq_get_be64(p->bytes + 8) != 0,
                                   .files = (size_t)rq_get_be64(p->bytes + 16),
                                   .log_from = rq_get_be64(p->bytes + 24)};
        if (list[i].name == NULL) return rq_no_memory(why);
    }
    *ret = list;
    return RQ_OK;
}

rq_err rq_source_holders(const char *folder, rq_arena *arena, rq_holder_info **ret,
                         size_t *ret_count, rq_error *why)
{
    rq_source s = {.fd = -1};
    rq_err rc = connect_to(folder, &s.fd, why);
    if (rc == RQ_OK && s.fd < 0)
        rc = rq_fail(why, RQ_E_NOT_FOUND, "no server runs on %s, so no backup holds files", folder);
    if (rc == RQ_OK) rc = ask(&s, "holders", "", why);
    if (rc == RQ_OK) rc = take_holders(&s, arena, ret, why);
    *ret_count = s.count;
    release(&s);
    return rc;
}

/* Whether the connection is still open: the server sends nothing after the list. */
static bool is_connected(const rq_source *s)
{
    char c;
    ssize_t n = recv(s->fd, &c, 1, MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

rq_err rq__source_log_done(rq_source *s, rq_error *why)
{
    if (!s->is_running) return RQ_OK;
    if (!is_connected(s))
        return rq_fail(why, RQ_E_STATE, "the server ended while its log was read");
    if (rq__socket_send(s->fd, "log\n", 4) != RQ_OK)
        return rq_fail(why, RQ_E_STATE, "the server ended while its log was read");
    return RQ_OK;
}

rq_err rq__source_open_part(rq_source *s, const rq_source_part *part, rq_file **ret, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq_vfs_open(s->vfs, part->path, RQ_OPEN_READ, ret, &own);
    if (rc == RQ_E_NOT_FOUND && part->kind == RQ_IMAGE_FILE) {
        rq_arena a = {0};
        const char *archived = rq_retention_archived(&a, part->path);
        rc = archived == NULL ? RQ_E_NO_MEMORY
                              : rq_vfs_open(s->vfs, archived, RQ_OPEN_READ, ret, NULL);
        rq_arena_clear(&a);
    }
    if (rc == RQ_E_NOT_FOUND && s->is_running && !is_connected(s))
        return rq_fail(why, RQ_E_STATE, "the server ended, and file %s no longer exists",
                       part->path);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}
