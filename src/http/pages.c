/* SPDX-License-Identifier: Apache-2.0 */
/* The list of pages, and the small pages. */
#include "http/http_priv.h"

#include <stdlib.h>

#define HTML "text/html; charset=utf-8"
#define JSON "application/json; charset=utf-8"

void rq__page_fail(rq__page *p, unsigned status, const char *text)
{
    rq_buf_reset(&p->text.buf);
    p->text.rc = RQ_OK;
    p->status = status;
    p->type = RQ__HTTP_PLAIN;
    rq__put(&p->text, "%s\n", text);
}

/* --- small pages ------------------------------------------------------------------------------ */

/* The process answers. */
static void live_page(const rq__request *r, rq__page *p)
{
    (void)r;
    rq__put(&p->text, "live\n");
}

static void ready_page(const rq__request *r, rq__page *p)
{
    if (r->from == NULL)
        rq__page_fail(p, RQ__HTTP_NOT_NOW, "not ready: starting or stopping");
    else
        rq__put(&p->text, "ready\n");
}

/* HBase's page can also change levels; here update_config does. */
static void level_page(const rq__request *r, rq__page *p)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    const rq_log *log = rq__http_log(r->http);
    const char *level = log == NULL ? "OFF" : names[log->level];
    if (rq__parameter(r, "level") != NULL) {
        rq__page_fail(
            p, RQ__HTTP_FORBIDDEN,
            "change the setting rorqual.log.level, then send SIGHUP or call update_config");
        return;
    }
    rq__html_begin(p, "Log level");
    rq__put(&p->text, "<!-- OUTPUT -->Effective level: <b>%s</b><br />\n", level);
    rq__html_end(p);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct page_entry {
    const char *path;
    void (*make)(const rq__request *r, rq__page *p);
    const char *type;
    bool always; /* served before the server is open, too */
    bool large;
} pages[] = {
    {"/", rq__status_page, HTML, false, true},
    {"/metrics", rq__metrics_page, RQ_METRICS_TEXT_TYPE, false, true},
    {"/prometheus", rq__prometheus_page, RQ_METRICS_TEXT_TYPE, false, true},
    {"/jmx", rq__jmx_page, RQ_METRICS_JSON_TYPE, false, true},
    {"/health/live", live_page, RQ__HTTP_PLAIN, true, false},
    {"/health/ready", ready_page, RQ__HTTP_PLAIN, true, false},
    {"/conf", rq__conf_page, "text/xml; charset=utf-8", true, true},
    {"/rs-status", rq__tasks_page, JSON, false, true},
    {"/logLevel", level_page, HTML, true, false},
    {"/stacks", NULL, RQ__HTTP_PLAIN, false, true}, /* rq__page_later */
    {"/debug/slow", rq__slow_page, HTML, false, true},
    /* The addresses of HBase's front pages. */
    {"/master-status", rq__status_page, HTML, false, true},
    {"/regionserver.jsp", rq__tasks_page, JSON, false, true}, /* /rs-status in later 2.6 releases */
};

static const struct page_entry *find_page(const char *path)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(pages); i++)
        if (strcmp(pages[i].path, path) == 0) return &pages[i];
    return NULL;
}

rq__later_kind rq__page_later(const char *path, const rq__query *query, const char **ret_path)
{
    const struct page_entry *e = find_page(path);
    *ret_path = e == NULL ? NULL : e->path;
    if (e == NULL || e->always) return RQ__LATER_NONE;
    if (e->make == NULL) return RQ__LATER_STACKS;
    rq__later_kind tasks = e->make == rq__tasks_page ? rq__tasks_later(query) : RQ__LATER_NONE;
    return tasks != RQ__LATER_NONE ? tasks : RQ__LATER_PAGES;
}

const rq__later_page *rq__later_page_of(rq__later_kind kind)
{
    static const rq__later_page of[RQ__LATER_COUNT] = {
        [RQ__LATER_STACKS] = {RQ__HTTP_PLAIN, "http-stacks", rq__stacks_make},
        [RQ__LATER_TASKS] = {JSON, "http-tasks", rq__tasks_make},
        [RQ__LATER_CALLS] = {JSON, "http-calls", rq__calls_make},
        [RQ__LATER_PAGES] = {NULL, "http-pages", NULL},
    };
    return &of[kind];
}

bool rq__page_is_large(const char *path)
{
    const struct page_entry *e = find_page(path);
    return e != NULL && e->large;
}

void rq__page_make(const rq__request *r, rq__page *p)
{
    const struct page_entry *e = find_page(r->path);
    if (e == NULL) {
        rq__page_fail(p, RQ__HTTP_NOT_FOUND, "unknown page; / lists the pages");
        return;
    }
    if (r->from == NULL && !e->always) {
        rq__page_fail(p, RQ__HTTP_NOT_NOW, "the server is starting or stopping");
        return;
    }
    p->status = RQ__HTTP_OK;
    p->type = e->type;
    e->make(r, p);
    if (p->text.rc != RQ_OK) rq__page_fail(p, RQ__HTTP_BROKEN, rq_err_text(p->text.rc));
}
