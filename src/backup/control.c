/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of the control socket; the protocol is in control.h. */
#include "backup/control.h"

#include "backup/socket.h"
#include "catalog/image.h"
#include "vfs/retention.h"
#include "wal/image.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS_MAX 4
#define LINE_MAX 256
#define SEND_TIMEOUT_S 10
#define REQUEST_TIMEOUT_MS 10000
#define SEND_BYTES ((size_t)256 * 1024)

typedef struct session {
    rq_control *control;
    rq_lane *lane; /* created with the first connection */
    rq_task task;
    int fd;       /* guarded by the control's lock where it changes */
    bool is_busy; /* likewise */
    char line[LINE_MAX];
    size_t line_len;
    rq_buf out;
} session;

struct rq_control {
    const rq_env *env;
    rq_catalog *catalog;
    rq__socket_address address;
    int listen_fd, stop_fd;
    rq_lane *lane; /* accepts */
    rq_task task;
    pthread_mutex_t lock;
    pthread_mutex_t one_image; /* held while an image is taken */
    session sessions[SESSIONS_MAX];
};

/* --- a session -------------------------------------------------------------------------------- */

/* Waits for bytes. False: the server stops, or the timeout passed (-1: none). */
static bool wait_readable(const session *s, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN},
                            {.fd = s->control->stop_fd, .events = POLLIN}};
    int n;
    do
        n = poll(fds, 2, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0 && fds[1].revents == 0;
}

/* The next line without its newline, or NULL. */
static const char *read_line(session *s, int timeout_ms)
{
    s->line_len = 0;
    while (wait_readable(s, timeout_ms)) {
        char c;
        ssize_t n = recv(s->fd, &c, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return NULL;
        if (c == '\n') {
            s->line[s->line_len] = '\0';
            return s->line;
        }
        if (s->line_len + 1 == sizeof s->line) return NULL;
        s->line[s->line_len++] = c;
    }
    return NULL;
}

static rq_err flush_out(session *s, rq_error *why)
{
    rq_err rc = rq__socket_send(s->fd, s->out.ptr, s->out.len);
    rq_buf_reset(&s->out);
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc,
                                 "the backup or fsck command has ended, or does not read the "
                                 "server's response");
}

static rq_err send_part(void *ctx, const rq_image_part *part, rq_error *why)
{
    session *s = ctx;
    uint64_t size = part->kind == RQ_IMAGE_BYTES ? part->bytes.len : part->size;
    RQ_TRY(rq__record_append(&s->out, (char)part->kind, part->path, size));
    if (part->kind == RQ_IMAGE_BYTES)
        RQ_TRY(rq_buf_append(&s->out, part->bytes.ptr, part->bytes.len));
    return s->out.len < SEND_BYTES ? RQ_OK : flush_out(s, why);
}

static rq_err send_image(session *s, rq_holder *holder, rq_error *why)
{
    rq_image_sink sink = {send_part, s};
    pthread_mutex_lock(&s->control->one_image);
    rq_err rc = rq_catalog_image(s->control->catalog, holder, &sink, why);
    pthread_mutex_unlock(&s->control->one_image);
    if (rc == RQ_OK) rc = rq__record_append(&s->out, RQ__RECORD_END, "", 0);
    return rc == RQ_OK ? flush_out(s, why) : rc;
}

static void send_error(session *s, const char *text)
{
    rq_buf_reset(&s->out);
    if (rq__record_append(&s->out, RQ__RECORD_ERROR, text, 0) == RQ_OK)
        (void)flush_out(s, &(rq_error){0}); /* the client may be gone */
}

static void let_go_of_log(const session *s, rq_holder *holder)
{
    rq_holder_keep_log(holder, RQ_RETENTION_NO_LOG);
    rq_wal_let_go(rq_engine_wal(rq_catalog_engine(s->control->catalog)));
}

/* Runs while the command is connected. */
static void hold(session *s, rq_holder *holder)
{
    const char *line;
    while ((line = read_line(s, -1)) != NULL)
        if (strcmp(line, "log") == 0) let_go_of_log(s, holder);
}

static void serve_image(session *s, const char *name)
{
    rq_control *c = s->control;
    rq_engine *e = rq_catalog_engine(c->catalog);
    rq_executor *ex = c->env->executor;
    rq_holder *holder;
    rq_error why = {0};
    char own[LINE_MAX];
    snprintf(own, sizeof own, "%s", name);
    if (rq_retention_hold(rq_engine_retention(e), own, ex->now_ms(ex), &holder) != RQ_OK) {
        send_error(s, "out of memory");
        return;
    }
    uint64_t begun = ex->now_ns(ex);
    rq_err rc = send_image(s, holder, &why);
    if (rc == RQ_OK) {
        rq_log_info(c->env->log, "backup",
                    "backup %s: listed the data folder's files in %llu ms; no listed file is "
                    "deleted until the backup ends",
                    own, (unsigned long long)((ex->now_ns(ex) - begun) / 1000000));
        hold(s, holder);
        rq_log_info(c->env->log, "backup",
                    "backup %s: ended after %llu s; its files may be deleted again", own,
                    (unsigned long long)((ex->now_ns(ex) - begun) / 1000000000));
    } else {
        const char *text = why.message[0] != '\0' ? why.message : rq_err_text(rc);
        rq_log_warn(c->env->log, "backup", "backup %s: cannot list the data folder: %s", own, text);
        send_error(s, text);
    }
    rq_holder_release(holder);
    rq_wal_let_go(rq_engine_wal(e));
}

static rq_err send_holder(session *s, const rq_holder_info *h)
{
    uint8_t body[RQ__HOLDER_LEN];
    rq_put_be64(body, (uint64_t)h->since_ms);
    rq_put_be64(body + 8, h->holds_all_files);
    rq_put_be64(body + 16, h->files);
    rq_put_be64(body + 24, h->log_from);
    RQ_TRY(rq__record_append(&s->out, RQ_IMAGE_BYTES, h->name, sizeof body));
    return rq_buf_append(&s->out, body, sizeof body);
}

static rq_err send_holders(session *s, rq_arena *arena)
{
    rq_retention *r = rq_engine_retention(rq_catalog_engine(s->control->catalog));
    rq_holder_info *list;
    size_t count;
    RQ_TRY(rq_retention_list(r, arena, &list, &count));
    for (size_t i = 0; i < count; i++)
        RQ_TRY(send_holder(s, &list[i]));
    RQ_TRY(rq__record_append(&s->out, RQ__RECORD_END, "", 0));
    return flush_out(s, &(rq_error){0});
}

static void serve_holders(session *s)
{
    rq_arena arena;
    rq_arena_init(&arena);
    rq_err rc = send_holders(s, &arena);
    if (rc != RQ_OK) send_error(s, rq_err_text(rc));
    rq_arena_clear(&arena);
}

static void session_end(session *s)
{
    pthread_mutex_lock(&s->control->lock);
    close(s->fd);
    s->fd = -1;
    s->is_busy = false;
    pthread_mutex_unlock(&s->control->lock);
    rq_buf_clear(&s->out);
}

static void session_run(rq_task *task)
{
    session *s = RQ_CONTAINER_OF(task, session, task);
    const char *line = read_line(s, REQUEST_TIMEOUT_MS);
    if (line != NULL && strncmp(line, "image ", 6) == 0)
        serve_image(s, line + 6);
    else if (line != NULL && strcmp(line, "holders") == 0)
        serve_holders(s);
    else if (line != NULL)
        send_error(s, "the server does not know this request: it has another version");
    session_end(s);
}

/* --- connections ------------------------------------------------------------------------------ */

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

/* NULL: all are busy, or no thread can be started. */
static session *take_session(rq_control *c, int fd)
{
    session *s = NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < SESSIONS_MAX && s == NULL; i++)
        if (!c->sessions[i].is_busy) s = &c->sessions[i];
    rq_executor *ex = c->env->executor;
    if (s != NULL && s->lane == NULL && ex->lane_new(ex, "control", &s->lane) != RQ_OK) s = NULL;
    if (s != NULL) {
        s->control = c;
        s->fd = fd;
        s->is_busy = true;
    }
    pthread_mutex_unlock(&c->lock);
    return s;
}

static void refuse(int fd, const char *text)
{
    rq_buf out = {0};
    if (rq__record_append(&out, RQ__RECORD_ERROR, text, 0) == RQ_OK)
        (void)!rq__socket_send(fd, out.ptr, out.len);
    rq_buf_clear(&out);
    close(fd);
}

static void accept_one(rq_control *c)
{
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    session *s = is_allowed(fd) ? take_session(c, fd) : NULL;
    if (s == NULL) {
        refuse(fd, is_allowed(fd)
                       ? "the server already holds files for too many commands; try again later"
                       : "only the user that runs the server may connect");
        return;
    }
    s->task = (rq_task){.run = session_run};
    rq_lane_post(s->lane, &s->task);
}

static void accept_run(rq_task *task)
{
    rq_control *c = RQ_CONTAINER_OF(task, rq_control, task);
    for (;;) {
        struct pollfd fds[2] = {{.fd = c->listen_fd, .events = POLLIN},
                                {.fd = c->stop_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        if (fds[0].revents != 0) accept_one(c);
    }
}

/* --- open, close ------------------------------------------------------------------------------ */

static rq_err listen_on(rq_control *c, rq_error *why)
{
    c->stop_fd = eventfd(0, EFD_CLOEXEC);
    c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const char *path = c->address.un.sun_path;
    (void)unlink(path); /* left by a killed server: we hold the folder lock */
    bool listens =
        c->stop_fd >= 0 && c->listen_fd >= 0 &&
        bind(c->listen_fd, (const struct sockaddr *)&c->address.un, sizeof c->address.un) == 0 &&
        chmod(path, 0600) == 0 && listen(c->listen_fd, 8) == 0;
    return listens ? RQ_OK : rq_fail(why, RQ_E_IO, "%s: %s", RQ_CONTROL_NAME, strerror(errno));
}

rq_err rq_control_open(const rq_control_options *o, rq_control **ret, rq_error *why)
{
    rq_control *c = calloc(1, sizeof *c);
    if (c == NULL) return rq_no_memory(why);
    c->env = o->env;
    c->catalog = o->catalog;
    c->listen_fd = c->stop_fd = c->address.dir = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->one_image, NULL);
    rq_executor *ex = o->env->executor;
    rq_err rc = rq__socket_address_of(o->folder, &c->address, why);
    if (rc == RQ_OK) rc = listen_on(c, why);
    if (rc == RQ_OK) rc = ex->lane_new(ex, "control", &c->lane);
    if (rc != RQ_OK) {
        rq_control_close(c);
        return rc;
    }
    c->task = (rq_task){.run = accept_run};
    rq_lane_post(c->lane, &c->task);
    *ret = c;
    return RQ_OK;
}

static void end_sessions(rq_control *c)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < SESSIONS_MAX; i++) /* pending sends fail */
        if (c->sessions[i].is_busy) (void)shutdown(c->sessions[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&c->lock);
    rq_executor *ex = c->env->executor;
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (c->sessions[i].lane != NULL) ex->lane_free(ex, c->sessions[i].lane);
}

void rq_control_close(rq_control *c)
{
    if (c == NULL) return;
    uint64_t one = 1;
    if (c->stop_fd >= 0) (void)!write(c->stop_fd, &one, sizeof one);
    if (c->lane != NULL) c->env->executor->lane_free(c->env->executor, c->lane);
    end_sessions(c);
    if (c->listen_fd >= 0) {
        (void)unlink(c->address.un.sun_path);
        close(c->listen_fd);
    }
    if (c->stop_fd >= 0) close(c->stop_fd);
    rq__socket_address_clear(&c->address);
    pthread_mutex_destroy(&c->one_image);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
