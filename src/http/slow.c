/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/slow: the slow and large calls in the ring, with the parts of their durations. */
#include "http/http_priv.h"

#include <time.h>

static void put_time(rq__text *t, int64_t ms)
{
    char text[32];
    struct tm utc;
    time_t s = (time_t)(ms / 1000);
    gmtime_r(&s, &utc);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    rq__put(t, "%s.%03d", text, (int)(ms % 1000));
}

static void put_ms(rq__text *t, uint64_t ns)
{
    rq__put(t, "<td class=n>%.1f</td>", (double)ns / 1e6);
}

static void put_text(rq__text *t, const char *class, const char *text)
{
    rq__put(t, "<td class=%s>", class);
    rq__put_html_cstr(t, text);
    rq__put(t, "</td>");
}

/* The part of the duration that was not measured separately. */
static uint64_t rest_of(const rq_slow_call *c)
{
    uint64_t known = 0;
    for (int i = 0; i < RQ_CALL_PLACES; i++)
        known += c->place_ns[i];
    return c->ns > known ? c->ns - known : 0;
}

static void put_row(rq__text *t, const rq_slow_call *c)
{
    rq__put(t, "<tr><td class=w>");
    put_time(t, c->start_ms);
    rq__put(t, "</td><td>%s%s%s</td>", c->is_slow ? "slow" : "",
            c->is_slow && c->is_large ? ", " : "", c->is_large ? "large" : "");
    put_text(t, "w", c->method);
    put_ms(t, c->ns);
    put_ms(t, c->queue_ns);
    put_ms(t, c->place_ns[RQ_CALL_IN_MEMORY]);
    put_ms(t, c->place_ns[RQ_CALL_IN_FILES]);
    put_ms(t, c->place_ns[RQ_CALL_IN_LOG]);
    put_ms(t, rest_of(c));
    rq__put(t, "<td class=n>");
    rq__put_bytes(t, c->answer_bytes);
    rq__put(t, "</td>");
    put_text(t, "w", c->user);
    put_text(t, "w", c->client);
    /* The request is long: a row of its own makes horizontal scrolling unnecessary. */
    rq__put(t, "</tr><tr class=q><td colspan=12>");
    rq__put_html_cstr(t, c->param);
    if (c->failure != NULL) {
        rq__put(t, " <b>");
        rq__put_html_cstr(t, c->failure);
        rq__put(t, "</b>");
    }
    rq__put(t, "</td></tr>\n");
}

void rq__slow_rows(const rq__request *r, rq__page *p, size_t count)
{
    rq_slow_list list;
    rq__text *t = &p->text;
    rq_err rc = rq_slow_log_list(r->from->slow, &list);
    if (rc != RQ_OK) {
        t->rc = rc;
        return;
    }
    if (list.count == 0) {
        rq__put(t, "<p>none</p>\n");
    } else {
        rq__put(t, "<div class=s><table><tr><th>began (UTC)<th><th>method<th class=n>ms<th "
                   "class=n>queue<th class=n>memory<th class=n>files<th class=n>log<th "
                   "class=n>other<th class=n>response<th>user<th>client</tr>\n");
        for (size_t i = 0; i < list.count && i < count; i++)
            put_row(t, list.calls[i]);
        rq__put(t, "</table></div>\n");
    }
    rq_slow_list_release(&list);
}

static void put_limit(rq__text *t, const char *what, const char *unit, const rq_config *c,
                      rq_setting s)
{
    long long limit = (long long)rq_config_int(c, s);
    if (limit < 0)
        rq__put(t, "%s: none. ", what);
    else
        rq__put(t, "%s: above %lld %s. ", what, limit, unit);
}

void rq__slow_page(const rq__request *r, rq__page *p)
{
    const rq_config *c = rq__http_config(r->http);
    rq__html_begin(p, "Slow and large calls");
    rq__put(&p->text, "<p>");
    put_limit(&p->text, "Slow", "ms", c, RQ_SET_WARN_TIME);
    put_limit(&p->text, "Large", "bytes of response", c, RQ_SET_WARN_SIZE);
    rq__put(&p->text, "Noted since the start: ");
    rq__put_count(&p->text, rq_slow_log_count(r->from->slow, false));
    rq__put(&p->text, " slow, ");
    rq__put_count(&p->text, rq_slow_log_count(r->from->slow, true));
    rq__put(&p->text,
            " large. Times in ms; queue is before the other times, which are parts of ms; "
            "other is work on the event loop, including filters, and waiting for a turn."
            "</p>\n");
    rq__slow_rows(r, p, SIZE_MAX);
    rq__html_end(p);
}
