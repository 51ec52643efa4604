/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that wait for event loops, which may hang: each is made on a thread of its own, which the first
 * request starts; other pages, health checks among them, are answered meanwhile. A page is made once at a
 * time, and answers every request that came until it was ready.
 *
 *   HTTP thread: rq__later_ask ─ task ─► the other thread: make() ─ eventfd ─► HTTP thread: answer_all()
 */
#include "http/http_priv.h"

#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct rq__later {
    rq_executor *executor;
    rq_lane *lane; /* NULL: nobody has asked yet */
    rq_task task;
    int done_fd; /* an eventfd: a page is ready */
    struct event *done;
    pthread_mutex_t making; /* held while a page is being made */
    const rq__later_page *what;
    /* The HTTP thread's. */
    rq__later_answer answer;
    rq_http *http;
    struct evhttp_request *waiting[RQ_HTTP_CONNECTIONS];
    size_t count; /* 0: no page is being made */
    /* Used by the other thread from the post of its task until the eventfd. */
    rq__page page;
};

/* --- the other thread ------------------------------------------------------------------------- */

static void make(rq_task *task)
{
    rq__later *l = RQ_CONTAINER_OF(task, rq__later, task);
    rq_http_sources from;
    uint64_t one = 1;
    l->page = (rq__page){.status = RQ__HTTP_OK, .type = l->what->type};
    pthread_mutex_lock(&l->making);
    if (rq__http_sources(l->http, &from))
        l->what->make(&l->page, &from);
    else
        rq__page_fail(&l->page, RQ__HTTP_NOT_NOW, "the server is stopping");
    pthread_mutex_unlock(&l->making);
    if (l->page.text.rc != RQ_OK)
        rq__page_fail(&l->page, RQ__HTTP_BROKEN, rq_err_text(l->page.text.rc));
    ssize_t written = write(l->done_fd, &one, sizeof one);
    RQ_ASSERT(written == sizeof one);
}

/* --- the HTTP thread -------------------------------------------------------------------------- */

/* The answer takes ownership of the text, so each request gets a copy, as long as there is room for it. */
static void answer_one(rq__later *l, struct evhttp_request *request)
{
    rq__page copy = {.status = l->page.status, .type = l->page.type};
    if (rq__http_has_room(l->http, &copy))
        copy.text.rc = rq_buf_append(&copy.text.buf, l->page.text.buf.ptr, l->page.text.buf.len);
    if (copy.text.rc != RQ_OK) rq__page_fail(&copy, RQ__HTTP_BROKEN, rq_err_text(copy.text.rc));
    l->answer(l->http, request, &copy);
}

static void answer_all(evutil_socket_t fd, short what, void *ctx)
{
    rq__later *l = ctx;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) != sizeof count) return;
    for (size_t i = 0; i < l->count; i++)
        answer_one(l, l->waiting[i]);
    l->count = 0;
    rq_buf_clear(&l->page.text.buf);
}

bool rq__later_ask(rq__later *l, struct evhttp_request *request, rq__page *ret)
{
    rq_err rc = RQ_OK;
    if (l->count == RQ_ARRAY_LEN(l->waiting)) {
        rq__page_fail(ret, RQ__HTTP_NOT_NOW, "too many requests wait for the page");
        return false;
    }
    if (l->lane == NULL) rc = l->executor->lane_new(l->executor, l->what->thread, &l->lane);
    if (rc != RQ_OK) {
        rq__page_fail(ret, RQ__HTTP_BROKEN, rq_err_text(rc));
        return false;
    }
    l->waiting[l->count++] = request;
    if (l->count == 1) rq_lane_post(l->lane, &l->task);
    return true;
}

/* --- life ------------------------------------------------------------------------------------- */

rq__later *rq__later_new(const rq__later_page *what, rq_http *http, rq_executor *executor,
                         struct event_base *base, rq__later_answer answer)
{
    rq__later *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    l->what = what;
    l->http = http;
    l->executor = executor;
    l->answer = answer;
    l->task.run = make;
    pthread_mutex_init(&l->making, NULL);
    l->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done_fd >= 0) l->done = event_new(base, l->done_fd, EV_READ | EV_PERSIST, answer_all, l);
    if (l->done == NULL || event_add(l->done, NULL) != 0) {
        rq__later_free(l);
        return NULL;
    }
    return l;
}

void rq__later_wait(rq__later *l)
{
    pthread_mutex_lock(&l->making);
    pthread_mutex_unlock(&l->making);
}

void rq__later_free(rq__later *l)
{
    if (l == NULL) return;
    if (l->lane != NULL) l->executor->lane_free(l->executor, l->lane);
    for (size_t i = 0; i < l->count; i++) /* the others are freed with their connections */
        if (evhttp_request_get_connection(l->waiting[i]) == NULL)
            evhttp_request_free(l->waiting[i]);
    if (l->done != NULL) event_free(l->done);
    if (l->done_fd >= 0) close(l->done_fd);
    rq_buf_clear(&l->page.text.buf);
    pthread_mutex_destroy(&l->making);
    free(l);
}
