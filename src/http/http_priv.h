/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this room: requests, pages, text. */
#ifndef RQ_HTTP_HTTP_PRIV_H
#define RQ_HTTP_HTTP_PRIV_H

#include "base/address.h"
#include "base/buf.h"
#include "http/http.h"

struct event_base;
struct evhttp_request;

/* --- text (text.c) ---------------------------------------------------------------------------- */

/* A page under construction. After the first error, kept in `rc`, nothing is appended. */
typedef struct rq__text {
    rq_buf buf;
    rq_err rc;
} rq__text;

void rq__put(rq__text *t, const char *fmt, ...) RQ_PRINTF(2, 3);
/* Appends bytes escaped for HTML and XML, as text or inside a quoted attribute. Invalid UTF-8 and
 * control characters become \xNN. */
void rq__put_html(rq__text *t, rq_slice s);
static inline void rq__put_html_cstr(rq__text *t, const char *s)
{
    rq__put_html(t, rq_slice_cstr(s));
}
/* Appends bytes as a JSON string with quotes; '<', '>' and '&' are escaped as well. */
void rq__put_json(rq__text *t, rq_slice s);
static inline void rq__put_json_cstr(rq__text *t, const char *s)
{
    rq__put_json(t, rq_slice_cstr(s));
}
/* "12.3 MB" */
void rq__put_bytes(rq__text *t, uint64_t bytes);
/* "1,234,567" */
void rq__put_count(rq__text *t, uint64_t n);
/* "12.3 ms", "950 µs" */
void rq__put_duration(rq__text *t, uint64_t ns);

/* --- pages (pages.c) -------------------------------------------------------------------------- */

#define RQ__HTTP_PLAIN "text/plain; charset=utf-8"

#define RQ__HTTP_OK 200
#define RQ__HTTP_BAD 400
#define RQ__HTTP_FORBIDDEN 403
#define RQ__HTTP_NOT_FOUND 404
#define RQ__HTTP_NO_METHOD 405
#define RQ__HTTP_BROKEN 500
#define RQ__HTTP_NOT_NOW 503

/* Decoded names and values. */
#define RQ__QUERY_MAX 16
typedef struct rq__query_item {
    char *name, *value;
} rq__query_item;
typedef struct rq__query {
    size_t count;
    rq__query_item items[RQ__QUERY_MAX];
} rq__query;

/* query.c. RQ_E_INVALID: it has more than RQ__QUERY_MAX parameters, or a NUL. To be cleared in any case. */
RQ_NODISCARD
rq_err rq__query_read(rq__query *q, const char *text);
void rq__query_clear(rq__query *q);
/* Decodes the escapes of an address; a '%' without two hex digits stays. RQ_E_INVALID: it has an escaped NUL, behind which
 * nothing would be read. *ret is the caller's, also on an error. */
RQ_NODISCARD
rq_err rq__query_decode(const char *text, bool plus_is_space, char **ret);

typedef struct rq__request {
    const char *path;
    const rq__query *query;
    const rq_http *http;
    const rq_http_sources *from; /* NULL: the server is not open */
    struct rq__rates *rates;     /* of the status page */
} rq__request;

/* The first parameter of the name, "" where it has no value; NULL: not given. */
const char *rq__query_value(const rq__query *q, const char *name);
const char *rq__parameter(const rq__request *r, const char *name);

typedef struct rq__page {
    unsigned status; /* 200 at first */
    const char *type;
    rq__text text;
    unsigned refresh_s; /* the browser reloads after this time; 0: never */
} rq__page;

/* Makes the page of the path. Out of memory: status 500. */
void rq__page_make(const rq__request *r, rq__page *ret);
/* True: the page may be large, and is refused while too many bytes of pages are unread. */
bool rq__page_is_large(const char *path);
/* A page of one line. */
void rq__page_fail(rq__page *p, unsigned status, const char *text);

/* --- pages, each in a file of its own --------------------------------------------------------- */

/* One function for each page; page->text is empty and `from` is set, unless said otherwise. */
void rq__status_page(const rq__request *r, rq__page *p); /* status.c */
void rq__conf_page(const rq__request *r, rq__page *p);   /* conf.c; `from` may be NULL */
void rq__tasks_page(const rq__request *r, rq__page *p);  /* tasks.c; without calls */
void rq__slow_page(const rq__request *r, rq__page *p);   /* slow.c */
void rq__slow_rows(const rq__request *r, rq__page *p, size_t count);
void rq__metrics_page(const rq__request *r, rq__page *p); /* figures.c */
void rq__jmx_page(const rq__request *r, rq__page *p);
void rq__prometheus_page(const rq__request *r, rq__page *p);

/* --- parts of the status page ------------------------------------------------------------------- */

#define RQ__FAILURES_SHOWN 20
/* Regions that could not be opened, and why. */
typedef struct rq__failures {
    size_t count; /* of all; the first ones are in the list */
    struct {
        char *region, *text; /* in the arena */
    } list[RQ__FAILURES_SHOWN];
} rq__failures;

RQ_NODISCARD
rq_err rq__failures_add(rq__failures *f, rq_arena *arena, const rq_catalog_region *r);
void rq__failures_put(rq__text *t, const rq__failures *f);
/* Makes a row of `size` bytes for each table of the catalog, in the arena. `add` fills a zeroed row; it runs in a read
 * section of the epoch. */
RQ_NODISCARD
rq_err rq__table_rows(const rq_http_sources *from, rq_arena *arena, size_t size,
                      rq_err (*add)(void *ctx, const rq_catalog_table *t, void *row), void *ctx,
                      void **ret, size_t *ret_count);
const char *rq__table_state_text(rq_table_state state);
/* A cell of a table. */
void rq__cell_count(rq__text *t, uint64_t n);
void rq__cell_bytes(rq__text *t, uint64_t n);
/* cluster.c; REQUIRES: from->catalog is that of a cluster. */
void rq__put_cluster(rq__text *t, const rq_http_sources *from);

/* --- pages made on other threads (later.c) ---------------------------------------------------- */

/* Which pages; a thread for each. */
typedef enum rq__later_kind {
    RQ__LATER_STACKS,
    RQ__LATER_TASKS, /* /rs-status?filter=all */
    RQ__LATER_CALLS, /* /rs-status?filter=handler, rpc, operation */
    RQ__LATER_PAGES, /* those that may be large, with parameters */
    RQ__LATER_COUNT,
    RQ__LATER_NONE = RQ__LATER_COUNT, /* the HTTP thread makes the page */
} rq__later_kind;

typedef struct rq__later_page {
    const char *type;
    const char *thread; /* its name */
    /* page->text is empty. Runs on the other thread. NULL: rq__page_make. */
    void (*make)(rq__page *page, const rq_http_sources *from);
} rq__later_page;

/* The kind of the request's page. *ret_path: its static path. */
rq__later_kind rq__page_later(const char *path, const rq__query *query, const char **ret_path);
/* Static. */
const rq__later_page *rq__later_page_of(rq__later_kind kind);

void rq__stacks_make(rq__page *p, const rq_http_sources *from); /* stacks.c */
void rq__tasks_make(rq__page *p, const rq_http_sources *from);  /* tasks.c */
void rq__calls_make(rq__page *p, const rq_http_sources *from);
/* Of a request for /rs-status. */
rq__later_kind rq__tasks_later(const rq__query *query);

typedef struct rq__later rq__later;
/* Sends the page, whose text it takes over. */
typedef void (*rq__later_answer)(rq_http *h, struct evhttp_request *request, rq__page *page);
/* NULL: memory or descriptors are exhausted. */
rq__later *rq__later_new(const rq__later_page *what, rq_http *http, rq_executor *executor,
                         struct event_base *base, rq__later_answer answer);
/* Queues the request; it is answered on the HTTP thread when the page is ready. False: it cannot be queued, and *ret is
 * the page that says why. `path` is static; the parameters are taken over if the page needs them. */
bool rq__later_ask(rq__later *l, struct evhttp_request *request, const char *path, rq__query *query,
                   rq__page *ret);
/* Returns when no page is being made. Any thread. */
void rq__later_wait(rq__later *l);
/* Requests that wait are not answered. REQUIRES: the HTTP thread has ended. NULL is fine. */
void rq__later_free(rq__later *l);

#define RQ__HTTP_NICE 5 /* lower priority than the event loops */

/* --- the server ------------------------------------------------------------------------------- */

/* Copies the objects that pages show; false: the server is not open. Any thread. */
bool rq__http_sources(rq_http *h, rq_http_sources *ret);
/* Whether peers have read enough for one more large page; otherwise *ret says so. The HTTP thread. */
bool rq__http_has_room(rq_http *h, struct evhttp_request *request, rq__page *ret);
/* A number for the host that has sent the request; 0: unknown, or its connection has closed. The HTTP thread. */
uint64_t rq__http_host(rq_http *h, struct evhttp_request *request);
/* The settings, for pages that show them. */
const rq_config *rq__http_config(const rq_http *h);
const rq_log *rq__http_log(const rq_http *h);
const char *rq__http_version(const rq_http *h);

/* Begin and end of a page for people; the title is escaped. */
void rq__html_begin(rq__page *p, const char *title);
void rq__html_end(rq__page *p);

/* Counters when the status page was last made, for rates. Used only by the thread that makes pages. */
typedef struct rq__rates {
    uint64_t at_ns, reads, writes, bytes_in, bytes_out;
} rq__rates;
rq__rates *rq__http_rates(rq_http *h);

#endif
