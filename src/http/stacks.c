/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /stacks: what threads and calls are doing, as SIGQUIT writes it to the log. A report waits up to
 * some seconds for loops that hang, so it is made on a thread of its own, which the first request
 * starts; other pages, health checks among them, are answered meanwhile. One report is made at a time. It
 * answers every request that came until it was ready.
 *
 *   HTTP thread: rq__stacks_ask ─ task ─► the other thread: make() ─ eventfd ─► HTTP thread: answer_all()
 */
#include "http/http_priv.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct rq__stacks {
    rq_executor *executor;
    rq_lane *lane; /* NULL: nobody has asked yet */
    rq_task task;
    int done_fd; /* an eventfd: a report is ready */
    struct event *done;
    pthread_mutex_t making; /* held while a report is being made */
    /* The HTTP thread's. */
    rq__stacks_answer answer;
    rq_http *http;
    struct evhttp_request *waiting[RQ_HTTP_CONNECTIONS];
    size_t count; /* 0: no report is being made */
    /* The other thread's from the post of its task to the eventfd. */
    rq__page page;
};

/* --- the other thread ------------------------------------------------------------------------- */

static rq_err read_all(int fd, rq_buf *out)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0) return RQ_E_IO;
    RQ_TRY(rq_buf_reserve(out, (size_t)size));
    ssize_t got = pread(fd, out->ptr, (size_t)size, 0);
    if (got < 0) return RQ_E_IO;
    out->len = (size_t)got;
    return RQ_OK;
}

static void make_report(rq__page *p, const rq_http_sources *from)
{
    int fd = memfd_create("rorqual-report", MFD_CLOEXEC);
    if (fd < 0) {
        rq__page_fail(p, RQ__HTTP_BROKEN, strerror(errno));
        return;
    }
    from->report(from->report_ctx, fd);
    p->text.rc = read_all(fd, &p->text.buf);
    close(fd);
    if (p->text.rc != RQ_OK) rq__page_fail(p, RQ__HTTP_BROKEN, rq_err_text(p->text.rc));
}

static void make(rq_task *task)
{
    rq__stacks *s = RQ_CONTAINER_OF(task, rq__stacks, task);
    rq_http_sources from;
    uint64_t one = 1;
    s->page = (rq__page){.status = RQ__HTTP_OK, .type = RQ__HTTP_PLAIN};
    pthread_mutex_lock(&s->making);
    if (rq__http_sources(s->http, &from))
        make_report(&s->page, &from);
    else
        rq__page_fail(&s->page, RQ__HTTP_NOT_NOW, "the server is stopping");
    pthread_mutex_unlock(&s->making);
    ssize_t written = write(s->done_fd, &one, sizeof one);
    RQ_ASSERT(written == sizeof one);
}

/* --- the HTTP thread -------------------------------------------------------------------------- */

/* The answer takes the text over, so each request gets a copy. */
static void answer_one(rq__stacks *s, struct evhttp_request *request)
{
    rq__page copy = {.status = s->page.status, .type = s->page.type};
    copy.text.rc = rq_buf_append(&copy.text.buf, s->page.text.buf.ptr, s->page.text.buf.len);
    if (copy.text.rc != RQ_OK) rq__page_fail(&copy, RQ__HTTP_BROKEN, rq_err_text(copy.text.rc));
    s->answer(s->http, request, &copy);
}

static void answer_all(evutil_socket_t fd, short what, void *ctx)
{
    rq__stacks *s = ctx;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) != sizeof count) return;
    for (size_t i = 0; i < s->count; i++)
        answer_one(s, s->waiting[i]);
    s->count = 0;
    rq_buf_clear(&s->page.text.buf);
}

bool rq__stacks_ask(rq__stacks *s, struct evhttp_request *request, rq__page *ret)
{
    rq_err rc = RQ_OK;
    if (s->count == RQ_ARRAY_LEN(s->waiting)) {
        rq__page_fail(ret, RQ__HTTP_NOT_NOW, "too many requests wait for the report");
        return false;
    }
    if (s->lane == NULL) rc = s->executor->lane_new(s->executor, "http-stacks", &s->lane);
    if (rc != RQ_OK) {
        rq__page_fail(ret, RQ__HTTP_BROKEN, rq_err_text(rc));
        return false;
    }
    s->waiting[s->count++] = request;
    if (s->count == 1) rq_lane_post(s->lane, &s->task);
    return true;
}

/* --- life ------------------------------------------------------------------------------------- */

rq__stacks *rq__stacks_new(rq_http *http, rq_executor *executor, struct event_base *base,
                           rq__stacks_answer answer)
{
    rq__stacks *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->http = http;
    s->executor = executor;
    s->answer = answer;
    s->task.run = make;
    pthread_mutex_init(&s->making, NULL);
    s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->done_fd >= 0) s->done = event_new(base, s->done_fd, EV_READ | EV_PERSIST, answer_all, s);
    if (s->done == NULL || event_add(s->done, NULL) != 0) {
        rq__stacks_free(s);
        return NULL;
    }
    return s;
}

void rq__stacks_wait(rq__stacks *s)
{
    pthread_mutex_lock(&s->making);
    pthread_mutex_unlock(&s->making);
}

void rq__stacks_free(rq__stacks *s)
{
    if (s == NULL) return;
    if (s->lane != NULL) s->executor->lane_free(s->executor, s->lane);
    for (size_t i = 0; i < s->count; i++) /* the others are freed with their connections */
        if (evhttp_request_get_connection(s->waiting[i]) == NULL)
            evhttp_request_free(s->waiting[i]);
    if (s->done != NULL) event_free(s->done);
    if (s->done_fd >= 0) close(s->done_fd);
    rq_buf_clear(&s->page.text.buf);
    pthread_mutex_destroy(&s->making);
    free(s);
}
