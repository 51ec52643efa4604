/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that take long: those that wait for event loops, which may hang, and those that grow with tables and
 * regions. Each kind is made on a thread of its own, which the first request starts; health checks are answered
 * meanwhile.
 *
 *   HTTP thread: rq__later_ask ─ task ─► the other thread: make() ─ eventfd ─► HTTP thread: made()
 *
 * A page without parameters (rq__later_page.make) is made once for all requests that arrive until it is ready. A page
 * with parameters is made for each request, one request after the other; hosts take turns.
 */
#include "http/http_priv.h"

#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct waiting {
    struct evhttp_request *request;
    const char *path; /* static; NULL: the page has no parameters */
    rq__query query;
} waiting;

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
    size_t count;       /* 0: no page is being made */
    uint64_t last_host; /* for which the page is made */
    /* Its first is used by the other thread from the post of its task until the eventfd, as is the page. */
    waiting waiting[RQ_HTTP_CONNECTIONS];
    rq__page page;
};

/* --- the other thread ------------------------------------------------------------------------- */

static void make_page(rq__later *l, const rq_http_sources *from)
{
    const waiting *w = &l->waiting[0];
    const rq__request r = {.path = w->path,
                           .query = &w->query,
                           .http = l->http,
                           .from = from,
                           .rates = rq__http_rates(l->http)};
    if (l->what->make != NULL)
        l->what->make(&l->page, from);
    else
        rq__page_make(&r, &l->page);
}

static void make(rq_task *task)
{
    rq__later *l = RQ_CONTAINER_OF(task, rq__later, task);
    rq_http_sources from;
    uint64_t one = 1;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), RQ__HTTP_NICE); /* as the HTTP thread */
    l->page = (rq__page){.status = RQ__HTTP_OK, .type = l->what->type};
    pthread_mutex_lock(&l->making);
    if (rq__http_sources(l->http, &from))
        make_page(l, &from);
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
    if (rq__http_has_room(l->http, request, &copy))
        copy.text.rc = rq_buf_append(&copy.text.buf, l->page.text.buf.ptr, l->page.text.buf.len);
    if (copy.text.rc != RQ_OK) rq__page_fail(&copy, RQ__HTTP_BROKEN, rq_err_text(copy.text.rc));
    l->answer(l->http, request, &copy);
}

static void answer_all(rq__later *l)
{
    for (size_t i = 0; i < l->count; i++)
        answer_one(l, l->waiting[i].request);
    l->count = 0;
    rq_buf_clear(&l->page.text.buf);
}

/* Sends the page to the first that waits, and forgets that one. */
static void answer_first(rq__later *l, rq__page *page)
{
    struct evhttp_request *request = l->waiting[0].request;
    rq__query_clear(&l->waiting[0].query);
    l->count--;
    memmove(&l->waiting[0], &l->waiting[1], l->count * sizeof l->waiting[0]);
    l->answer(l->http, request, page);
}

/* Moves the next request to the front: the first of another host than the last one, so that a host that asks all the
 * time does not keep others waiting. */
static void choose_next(rq__later *l)
{
    size_t i = 0;
    while (i < l->count && rq__http_host(l->http, l->waiting[i].request) == l->last_host)
        i++;
    if (i == l->count) i = 0;
    waiting chosen = l->waiting[i];
    memmove(&l->waiting[1], &l->waiting[0], i * sizeof l->waiting[0]);
    l->waiting[0] = chosen;
    l->last_host = rq__http_host(l->http, chosen.request);
}

static void begin_next(rq__later *l)
{
    while (l->count > 0) {
        rq__page refusal = {0};
        choose_next(l);
        if (rq__http_has_room(l->http, l->waiting[0].request, &refusal)) {
            rq_lane_post(l->lane, &l->task);
            return;
        }
        answer_first(l, &refusal);
    }
}

static void made(evutil_socket_t fd, short what, void *ctx)
{
    rq__later *l = ctx;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) != sizeof count) return;
    if (l->what->make != NULL) {
        answer_all(l);
        return;
    }
    answer_first(l, &l->page);
    begin_next(l);
}

bool rq__later_ask(rq__later *l, struct evhttp_request *request, const char *path, rq__query *query,
                   rq__page *ret)
{
    rq_err rc = RQ_OK;
    if (l->count == RQ_ARRAY_LEN(l->waiting)) {
        rq__page_fail(ret, RQ__HTTP_NOT_NOW, "too many requests are waiting for this page");
        return false;
    }
    if (l->lane == NULL) rc = l->executor->lane_new(l->executor, l->what->thread, &l->lane);
    if (rc != RQ_OK) {
        rq__page_fail(ret, RQ__HTTP_BROKEN, rq_err_text(rc));
        return false;
    }
    waiting *w = &l->waiting[l->count++];
    *w = (waiting){.request = request};
    if (l->what->make == NULL) {
        w->path = path;
        w->query = *query;
        query->count = 0; /* taken over */
    }
    if (l->count > 1) return true;
    l->last_host = rq__http_host(l->http, request);
    rq_lane_post(l->lane, &l->task);
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
    if (l->done_fd >= 0) l->done = event_new(base, l->done_fd, EV_READ | EV_PERSIST, made, l);
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
    for (size_t i = 0; i < l->count; i++) {
        struct evhttp_request *r =
            l->waiting[i].request; /* others are freed with their connections */
        if (evhttp_request_get_connection(r) == NULL) evhttp_request_free(r);
        rq__query_clear(&l->waiting[i].query);
    }
    if (l->done != NULL) event_free(l->done);
    if (l->done_fd >= 0) close(l->done_fd);
    rq_buf_clear(&l->page.text.buf);
    pthread_mutex_destroy(&l->making);
    free(l);
}
