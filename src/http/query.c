/* SPDX-License-Identifier: Apache-2.0 */
/* The query of an address, "name=value&name&…". libevent's reader refuses a name without '='. */
#include "http/http_priv.h"

#include <event2/http.h>
#include <stdlib.h>

rq_err rq__query_decode(const char *text, bool plus_is_space, char **ret)
{
    size_t len = 0;
    *ret = evhttp_uridecode(text, plus_is_space, &len);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    return strlen(*ret) == len ? RQ_OK : RQ_E_INVALID;
}

static rq_err decode(const char *text, size_t len, char **ret)
{
    char *copy = strndup(text, len);
    rq_err rc = copy == NULL ? RQ_E_NO_MEMORY : rq__query_decode(copy, true, ret);
    free(copy);
    return rc;
}

static rq_err add(rq__query *q, const char *part, size_t len)
{
    const char *equals = memchr(part, '=', len);
    size_t name_len = equals == NULL ? len : (size_t)(equals - part);
    const char *value = equals == NULL ? "" : equals + 1;
    rq__query_item *item = &q->items[q->count++]; /* rq__query_clear frees it, also half made */
    *item = (rq__query_item){NULL, NULL};
    RQ_TRY(decode(part, name_len, &item->name));
    return decode(value, equals == NULL ? 0 : len - name_len - 1, &item->value);
}

rq_err rq__query_read(rq__query *q, const char *text)
{
    q->count = 0;
    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, "&");
        if (len > 0 && q->count == RQ__QUERY_MAX) return RQ_E_INVALID;
        if (len > 0) RQ_TRY(add(q, text, len));
        text += len + (text[len] == '&');
    }
    return RQ_OK;
}

void rq__query_clear(rq__query *q)
{
    for (size_t i = 0; i < q->count; i++) {
        free(q->items[i].name);
        free(q->items[i].value);
    }
    q->count = 0;
}

const char *rq__query_value(const rq__query *q, const char *name)
{
    for (size_t i = 0; i < q->count; i++)
        if (strcmp(q->items[i].name, name) == 0) return q->items[i].value;
    return NULL;
}

const char *rq__parameter(const rq__request *r, const char *name)
{
    return rq__query_value(r->query, name);
}
