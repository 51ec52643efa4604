/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's /jmx: HBase's beans as JSON, indented by two spaces. HBASE: JMXJsonServlet, JSONBean. */
#include "metrics/metrics_priv.h"

#include "filter/pace.h"
#include "filter/regex.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 512
#define PATTERNS_MAX 64
#define PATTERN_BYTES_MAX ((size_t)1 << 20)

typedef struct json {
    const rq_metrics *m;
    rq_buf *out;
    bool description;
    bool follows; /* the array or object has a member already */
} json;

/* Which attributes are shown: `one`, or those that contain one of the patterns, or all. */
typedef struct selection {
    const char *one; /* NULL: see `patterns` */
    rq_regex *patterns[PATTERNS_MAX];
    size_t count; /* 0: all */
    rq_pace pace;
} selection;

typedef struct bean_writer {
    json *j;
    selection *select;
    bool found; /* the attribute `select->one` */
} bean_writer;

/* --- JSON ------------------------------------------------------------------------------------- */

static rq_err put(json *j, const char *text)
{
    return rq_buf_append(j->out, text, strlen(text));
}

static rq_err put_string(json *j, const char *text)
{
    RQ_TRY(rq_buf_append_u8(j->out, '"'));
    for (const char *p = text; *p != '\0'; p++) {
        uint8_t b = (uint8_t)*p;
        if (b == '"' || b == '\\')
            RQ_TRY(rq_buf_printf(j->out, "\\%c", b));
        else if (b < 0x20)
            RQ_TRY(rq_buf_printf(j->out, "\\u%04x", b));
        else
            RQ_TRY(rq_buf_append_u8(j->out, b));
    }
    return rq_buf_append_u8(j->out, '"');
}

/* Begins the next member, on a line of its own. */
static rq_err next(json *j, const char *indent)
{
    RQ_TRY(put(j, j->follows ? ",\n" : "\n"));
    RQ_TRY(rq__text_fits(j->m, j->out));
    j->follows = true;
    return put(j, indent);
}

static rq_err put_key(json *j, const char *indent, const char *key)
{
    RQ_TRY(next(j, indent));
    RQ_TRY(put_string(j, key));
    return put(j, ": ");
}

static rq_err put_member(json *j, const char *indent, const char *key, const char *text)
{
    RQ_TRY(put_key(j, indent, key));
    return put_string(j, text);
}

/* --- beans ------------------------------------------------------------------------------------ */

static rq_err put_value(json *j, const rq__attribute_value *v)
{
    return v->text != NULL ? put_string(j, v->text) : rq__append_number(j->out, v->value);
}

static rq_err is_selected(selection *s, const char *name, bool *ret)
{
    rq_error why;
    *ret = s->one != NULL ? strcmp(s->one, name) == 0 : s->count == 0;
    for (size_t i = 0; i < s->count && !*ret; i++)
        RQ_TRY(rq_regex_search(s->patterns[i], rq_slice_cstr(name), &s->pace, ret, &why));
    return RQ_OK;
}

static rq_err put_attribute(void *ctx, const rq__attribute_value *v)
{
    bean_writer *w = ctx;
    json *j = w->j;
    bool wanted;
    RQ_TRY(is_selected(w->select, v->name, &wanted));
    if (!wanted) return RQ_OK;
    w->found = true;
    RQ_TRY(put_key(j, "      ", v->name));
    if (!j->description || v->help[0] == '\0') return put_value(j, v);
    RQ_TRY(put(j, "{\n        \"description\": "));
    RQ_TRY(put_string(j, v->help));
    RQ_TRY(put(j, ",\n        \"value\": "));
    RQ_TRY(put_value(j, v));
    return put(j, "\n      }");
}

static rq_err put_missing(json *j, const char *attribute)
{
    char text[256];
    snprintf(text, sizeof text, "No attribute with name %s was found.", attribute);
    RQ_TRY(put_member(j, "      ", "result", "ERROR"));
    return put_member(j, "      ", "message", text);
}

/* The beans that are wanted. */
typedef struct beans {
    json *j;
    const rq_metrics *m;
    const rq_metrics_snapshot *s;
    const char *pattern, *excluded;
    selection *select;
} beans;

static bool is_wanted(const beans *b, const char *name)
{
    return rq__object_name_matches(b->pattern, name) &&
           (b->excluded == NULL || !rq__object_name_matches(b->excluded, name));
}

/* RQ_E_ILLEGAL_ARGUMENT: the bean lacks the attribute that was asked for. */
static rq_err put_bean(void *ctx, const rq__bean_ref *bean)
{
    const beans *b = ctx;
    json *j = b->j;
    bean_writer w = {.j = j, .select = b->select};
    char name[NAME_MAX_BYTES], type[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s%s", rq__beans[bean->bean].name, bean->name);
    snprintf(type, sizeof type, "%s%s", rq__beans[bean->bean].type, bean->name);
    if (!is_wanted(b, name)) return RQ_OK;
    RQ_TRY(next(j, "    "));
    RQ_TRY(put(j, "{"));
    j->follows = false;
    RQ_TRY(put_member(j, "      ", "name", name));
    RQ_TRY(put_member(j, "      ", "modelerType", type));
    RQ_TRY(rq__attributes_each(b->m, b->s, bean, put_attribute, &w));
    bool found = w.found || b->select->one == NULL;
    if (!found) RQ_TRY(put_missing(j, b->select->one));
    j->follows = true;
    RQ_TRY(put(j, "\n    }"));
    return found ? RQ_OK : RQ_E_ILLEGAL_ARGUMENT;
}

static rq_err put_beans(json *j, rq_metrics *m, const char *pattern, const char *excluded,
                        selection *select)
{
    rq_arena arena;
    rq_metrics_snapshot s;
    beans b = {.j = j, .m = m, .s = &s, .pattern = pattern, .excluded = excluded, .select = select};
    rq_arena_init(&arena);
    rq_err rc = rq_metrics_collect(m, is_wanted(&b, rq__beans[RQ__BEAN_REGIONS].name), &arena, &s);
    if (rc == RQ_OK) rc = put(j, "{\n  \"beans\": [");
    j->follows = false;
    if (rc == RQ_OK) rc = rq__beans_each(&s, put_bean, &b);
    rq_arena_clear(&arena);
    if (rc != RQ_OK && rc != RQ_E_ILLEGAL_ARGUMENT) return rc;
    RQ_TRY(put(j, j->follows ? "\n  ]\n}" : "]\n}"));
    return rc;
}

/* --- queries ---------------------------------------------------------------------------------- */

static rq_err refuse(json *j, const char *message)
{
    j->follows = false;
    RQ_TRY(put(j, "{"));
    RQ_TRY(put_member(j, "  ", "result", "ERROR"));
    RQ_TRY(put_member(j, "  ", "message", message));
    RQ_TRY(put(j, "\n}"));
    return RQ_E_ILLEGAL_ARGUMENT;
}

/* An attribute with a * is a comma-separated list of patterns. */
static rq_err select_attributes(selection *s, const char *attribute, rq_arena *arena, rq_error *why)
{
    size_t bytes_left = PATTERN_BYTES_MAX;
    s->one = NULL;
    rq_pace_begin(&s->pace, false);
    if (strchr(attribute, '*') == NULL) {
        s->one = attribute;
        return RQ_OK;
    }
    for (const char *at = attribute; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t len = comma == NULL ? strlen(at) : (size_t)(comma - at);
        if (s->count == PATTERNS_MAX) return rq_fail(why, RQ_E_INVALID, "too many patterns");
        RQ_TRY(rq_regex_new(rq_slice_of(at, len), 0, RQ_REGEX_FIND, arena, &bytes_left,
                            &s->patterns[s->count], why));
        s->count++;
        at = comma == NULL ? NULL : comma + 1;
    }
    return RQ_OK;
}

static rq_err put_got(json *j, rq_metrics *m, const char *get, rq_arena *arena)
{
    selection s = {0};
    rq_error why = {0};
    const char *colons = strstr(get, "::");
    if (colons == NULL || strstr(colons + 2, "::") != NULL)
        return refuse(j, "query format is not as expected.");
    const char *bean = rq_arena_cstr(arena, rq_slice_of(get, (size_t)(colons - get)));
    if (bean == NULL) return RQ_E_NO_MEMORY;
    if (!rq__object_name_is_valid(bean)) return refuse(j, "not the name of a bean");
    rq_err rc = select_attributes(&s, colons + 2, arena, &why);
    if (rc == RQ_E_NO_MEMORY) return rc;
    return rc != RQ_OK ? refuse(j, why.message) : put_beans(j, m, bean, NULL, &s);
}

rq_err rq_metrics_jmx(rq_metrics *m, const rq_metrics_query *query, rq_buf *out)
{
    json j = {.m = m, .out = out, .description = query->description};
    selection all = {0};
    const char *pattern = query->qry == NULL ? "*:*" : query->qry;
    if (query->get == NULL) {
        if (!rq__object_name_is_valid(pattern) ||
            (query->excl != NULL && !rq__object_name_is_valid(query->excl)))
            return refuse(&j, "not the name of a bean");
        return put_beans(&j, m, pattern, query->excl, &all);
    }
    rq_arena arena;
    rq_arena_init(&arena);
    rq_err rc = put_got(&j, m, query->get, &arena);
    rq_arena_clear(&arena);
    return rc;
}
