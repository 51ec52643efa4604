/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's /prometheus: the attributes of HBase's beans as metrics named RECORD_ATTRIBUTE in snake
 * case. HBASE: PrometheusHadoopServlet. */
#include "metrics/metrics_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 512
#define TAGS_MAX 8

typedef struct tag {
    char name[32];
    const char *text;
} tag;

typedef struct writer {
    rq_buf *out;
    const char *qry;
    bool description;
    const rq_metrics *m;
    const rq_metrics_snapshot *s;
    char record[NAME_MAX_BYTES];
    tag tags[TAGS_MAX];
    size_t tag_count;
} writer;

/* Whether a new word begins at `i`: "aB" before B, "ABc" before B. */
static bool begins_word(const char *s, size_t i)
{
    unsigned char before = (unsigned char)s[i - 1], at = (unsigned char)s[i];
    if (!isupper(at)) return false;
    return islower(before) || (isupper(before) && islower((unsigned char)s[i + 1]));
}

/* "Server" and "hlogFileCount" become server_hlog_file_count. Characters other than letters and
 * digits become underscores too. */
static void word_name(const char *record, const char *name, char ret[NAME_MAX_BYTES])
{
    char base[NAME_MAX_BYTES / 2];
    size_t n = 0;
    int len =
        snprintf(base, sizeof base, "%s%c%s", record, toupper((unsigned char)name[0]), name + 1);
    for (size_t i = 0; i < (size_t)len && i + 1 < sizeof base; i++) {
        unsigned char b = (unsigned char)base[i];
        if (!isalnum(b)) {
            if (n > 0 && ret[n - 1] != '_') ret[n++] = '_';
            continue;
        }
        if (i > 0 && n > 0 && ret[n - 1] != '_' && begins_word(base, i)) ret[n++] = '_';
        ret[n++] = (char)tolower(b);
    }
    ret[n] = '\0';
}

static void note_tag(writer *w, const rq__attribute_value *v)
{
    if (w->tag_count == TAGS_MAX || strncmp(v->name, "tag.", 4) != 0) return;
    tag *t = &w->tags[w->tag_count++];
    snprintf(t->name, sizeof t->name, "%s", v->name + 4);
    for (char *p = t->name; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    t->text = v->text;
}

/* Tags are host names and ids, which need no escaping. */
static rq_err put_tags(writer *w)
{
    RQ_TRY(rq_buf_append_u8(w->out, '{'));
    for (size_t i = 0; i < w->tag_count; i++)
        RQ_TRY(rq_buf_printf(w->out, "%s%s=\"%s\"", i == 0 ? "" : ",", w->tags[i].name,
                             w->tags[i].text));
    return rq_buf_append(w->out, "} ", 2);
}

static rq_err put_attribute(void *ctx, const rq__attribute_value *v)
{
    static const char *const kinds[] = {"counter", "gauge"};
    writer *w = ctx;
    char name[NAME_MAX_BYTES];
    if (v->text != NULL) {
        note_tag(w, v);
        return RQ_OK;
    }
    word_name(w->record, v->name, name);
    if (w->qry != NULL && strstr(name, w->qry) == NULL) return RQ_OK;
    if (w->description && v->help[0] != '\0')
        RQ_TRY(rq_buf_printf(w->out, "# HELP %s %s\n", name, v->help));
    RQ_TRY(rq_buf_printf(w->out, "# TYPE %s %s\n%s", name, kinds[v->kind], name));
    RQ_TRY(put_tags(w));
    RQ_TRY(rq__append_number(w->out, v->value));
    RQ_TRY(rq_buf_append_u8(w->out, '\n'));
    return rq__text_fits(w->m, w->out);
}

static rq_err put_bean(void *ctx, const rq__bean_ref *bean)
{
    writer *w = ctx;
    const char *record = rq__beans[bean->bean].record;
    if (record[0] == '\0') return RQ_OK;
    w->tag_count = 0;
    snprintf(w->record, sizeof w->record, "%s%s", record, bean->name);
    return rq__attributes_each(w->m, w->s, bean, put_attribute, w);
}

rq_err rq_metrics_hadoop_prometheus(rq_metrics *m, bool description, const char *qry, rq_buf *out)
{
    rq_arena arena;
    rq_metrics_snapshot s;
    writer w = {.out = out, .qry = qry, .description = description, .m = m, .s = &s};
    rq_arena_init(&arena);
    rq_err rc = rq_metrics_collect(m, true, &arena, &s);
    if (rc == RQ_OK) rc = rq__beans_each(&s, put_bean, &w);
    rq_arena_clear(&arena);
    return rc;
}
