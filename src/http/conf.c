/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /conf: the current settings, in the formats of HBase's ConfServlet (XML, or ?format=json). Values
 * of settings whose names contain "password", "secret", "superuser" or "credential" are not shown.
 * HBASE: ConfServlet, Configuration.writeXml, dumpConfiguration.
 */
#include "http/http_priv.h"

#define MASKED "<masked>"

typedef struct row {
    const char *name, *value;
    bool is_given;
    bool is_unused;
} row;

static const char *shown(const row *r)
{
    static const char *const secrets[] = {"password", "secret", "superuser", "credential"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(secrets); i++)
        if (strcasestr(r->name, secrets[i]) != NULL) return MASKED;
    return r->value;
}

/* In this field HBase names the file that a value came from. */
static const char *source_of(const row *r)
{
    return r->is_unused ? "set, without effect" : r->is_given ? "given" : "default";
}

static void put_xml(rq__text *t, const row *r)
{
    rq__put(t, "<property><name>");
    rq__put_html_cstr(t, r->name);
    rq__put(t, "</name><value>");
    rq__put_html_cstr(t, shown(r));
    rq__put(t, "</value><final>false</final><source>%s</source></property>\n", source_of(r));
}

static void put_json(rq__text *t, const row *r)
{
    rq__put(t, "{\"key\":");
    rq__put_json_cstr(t, r->name);
    rq__put(t, ",\"value\":");
    rq__put_json_cstr(t, shown(r));
    rq__put(t, ",\"isFinal\":false,\"resource\":\"%s\"}", source_of(r));
}

typedef struct printer {
    rq__text *text;
    bool json;
    size_t count;
} printer;

static void print(printer *p, const row *r)
{
    if (p->json && p->count > 0) rq__put(p->text, ",");
    p->count++;
    if (p->json)
        put_json(p->text, r);
    else
        put_xml(p->text, r);
}

static void print_all(printer *p, const rq_config *c)
{
    for (int i = 0; i < RQ_SETTING_COUNT; i++) {
        rq_setting s = (rq_setting)i;
        print(p,
              &(row){rq_setting_get(s)->name, rq_config_text(c, s), rq_config_given(c, s), false});
    }
    for (size_t i = 0; rq_config_unused(c, i) != NULL; i++)
        print(p, &(row){rq_config_unused(c, i), rq_config_unused_value(c, i), true, true});
}

void rq__conf_page(const rq__request *r, rq__page *page)
{
    const char *format = rq__parameter(r, "format");
    printer p = {.text = &page->text, .json = format != NULL && strcmp(format, "json") == 0};
    if (format != NULL && !p.json && strcmp(format, "xml") != 0) {
        rq__page_fail(page, RQ__HTTP_BAD, "unknown format; formats are xml and json");
        return;
    }
    if (p.json) page->type = "application/json; charset=utf-8";
    rq__put(p.text, "%s",
            p.json ? "{\"properties\":["
                   : "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
                     "<configuration>\n");
    print_all(&p, rq__http_config(r->http));
    rq__put(p.text, "%s", p.json ? "]}\n" : "</configuration>\n");
}
