/* SPDX-License-Identifier: Apache-2.0 */
/* The address of an HTTP request, the JMX patterns in it, and the escaping of arbitrary bytes on pages. */
#include "http/http_priv.h"
#include "metrics/metrics_priv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void query(const char *text)
{
    rq__query q;
    rq_err rc = rq__query_read(&q, text);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_INVALID);
    RQ_ASSERT(q.count <= RQ__QUERY_MAX);
    for (size_t i = 0; rc == RQ_OK && i < q.count; i++)
        RQ_ASSERT(rq__query_value(&q, q.items[i].name) != NULL);
    rq__query_clear(&q);
}

static void path(const char *text)
{
    char *plain;
    const char *known;
    const rq__query none = {0};
    if (rq__query_decode(text, false, &plain) == RQ_OK) (void)rq__page_later(plain, &none, &known);
    free(plain);
}

static void pattern(const char *text)
{
    static const char bean[] = "Hadoop:service=HBase,name=RegionServer,sub=Server";
    if (rq__object_name_is_valid(text)) (void)rq__object_name_matches(text, bean);
}

/* No part of a name may become markup, or end a JSON string. */
static void escaping(rq_slice bytes)
{
    rq__text html = {0}, json = {0};
    rq__put_html(&html, bytes);
    RQ_ASSERT(html.rc == RQ_OK);
    for (size_t i = 0; i < html.buf.len; i++)
        RQ_ASSERT(html.buf.ptr[i] >= ' ' && strchr("<>\"'", html.buf.ptr[i]) == NULL);
    rq__put_json(&json, bytes);
    RQ_ASSERT(json.rc == RQ_OK && json.buf.len >= 2);
    for (size_t i = 1; i < json.buf.len - 1; i++) {
        RQ_ASSERT(json.buf.ptr[i] >= ' ' && strchr("<>&\"", json.buf.ptr[i]) == NULL);
        if (json.buf.ptr[i] == '\\') i++;
        RQ_ASSERT(i < json.buf.len - 1);
    }
    rq_buf_clear(&html.buf);
    rq_buf_clear(&json.buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    if (text == NULL) return 0;
    query(text);
    path(text);
    pattern(text);
    escaping(rq_slice_of(data, size));
    free(text);
    return 0;
}
