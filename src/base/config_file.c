/* SPDX-License-Identifier: Apache-2.0 */
/* The two formats of settings files: hbase-site.xml (through expat) and lines of name=value. */
#include "base/config.h"

#include "base/buf.h"

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <string.h>

/* Reports the place of the first error. */
static rq_err fail_at(const char *path, unsigned long line, rq_err rc, const rq_error *inner,
                      rq_error *why)
{
    return rq_fail(why, rc, "%s:%lu: %s", path, line,
                   inner->message[0] != '\0' ? inner->message : rq_err_text(rc));
}

/* --- hbase-site.xml: <configuration><property><name>…</name><value>…</value></property> ------- */
typedef struct xml_state {
    rq_config *config;
    XML_Parser parser;
    rq_err rc;
    rq_error why;
    unsigned long line; /* where it went wrong */
    int depth;
    rq_buf *into; /* &name, &value or NULL */
    rq_buf name;
    rq_buf value;
} xml_state;

static void XMLCALL xml_start(void *arg, const XML_Char *tag, const XML_Char **attributes)
{
    (void)attributes;
    xml_state *x = arg;
    x->depth++;
    x->into = NULL;
    if (x->depth == 2) {
        rq_buf_reset(&x->name);
        rq_buf_reset(&x->value);
    } else if (x->depth == 3 && strcmp(tag, "name") == 0) {
        x->into = &x->name;
    } else if (x->depth == 3 && strcmp(tag, "value") == 0) {
        x->into = &x->value;
    }
}

static void XMLCALL xml_text(void *arg, const XML_Char *text, int len)
{
    xml_state *x = arg;
    if (x->into == NULL || x->rc != RQ_OK) return;
    x->rc = rq_buf_append(x->into, text, (size_t)len);
}

static void XMLCALL xml_end(void *arg, const XML_Char *tag)
{
    xml_state *x = arg;
    (void)tag;
    x->into = NULL;
    if (x->depth-- != 2 || x->rc != RQ_OK || x->name.len == 0) return;
    x->rc = rq_buf_append_u8(&x->name, 0);
    if (x->rc == RQ_OK) x->rc = rq_buf_append_u8(&x->value, 0);
    if (x->rc == RQ_OK)
        x->rc = rq_config_set(x->config, (char *)x->name.ptr, (char *)x->value.ptr, &x->why);
    if (x->rc != RQ_OK) x->line = XML_GetCurrentLineNumber(x->parser);
}

static rq_err load_xml(rq_config *c, const char *path, rq_slice text, rq_error *why)
{
    XML_Parser parser = XML_ParserCreate(NULL);
    xml_state x = {.config = c, .parser = parser};
    if (parser == NULL) return rq_no_memory(why);
    XML_SetUserData(parser, &x);
    XML_SetElementHandler(parser, xml_start, xml_end);
    XML_SetCharacterDataHandler(parser, xml_text);
    bool parsed = XML_Parse(parser, (const char *)text.ptr, (int)text.len, 1) != XML_STATUS_ERROR;
    if (x.rc != RQ_OK)
        x.rc = fail_at(path, x.line, x.rc, &x.why, why);
    else if (!parsed)
        x.rc = rq_fail(why, RQ_E_CONFIG, "%s:%lu: %s", path, XML_GetCurrentLineNumber(parser),
                       XML_ErrorString(XML_GetErrorCode(parser)));
    XML_ParserFree(parser);
    rq_buf_clear(&x.name);
    rq_buf_clear(&x.value);
    return x.rc;
}

static rq_err load_lines(rq_config *c, const char *path, char *text, rq_error *why)
{
    unsigned long number = 0;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        rq_error inner = {.code = RQ_OK};
        number++;
        line += strspn(line, " \t\r");
        if (*line == '#' || *line == '\0') continue;
        rq_err rc = rq_config_set_pair(c, line, &inner);
        if (rc != RQ_OK) return fail_at(path, number, rc, &inner, why);
    }
    return RQ_OK;
}

static rq_err read_whole(const char *path, rq_buf *ret, rq_error *why)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) return rq_fail(why, RQ_E_CONFIG, "%s: %s", path, strerror(errno));
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && !feof(f) && !ferror(f)) {
        rc = rq_buf_reserve(ret, 4096);
        if (rc == RQ_OK) ret->len += fread(ret->ptr + ret->len, 1, 4096, f);
        if (ret->len > 16 * 1024 * 1024) rc = rq_fail(why, RQ_E_CONFIG, "%s is too large", path);
    }
    if (rc == RQ_OK && ferror(f)) rc = rq_fail(why, RQ_E_CONFIG, "%s: %s", path, strerror(errno));
    fclose(f);
    return rc;
}

rq_err rq_config_load(rq_config *c, const char *path, rq_error *why)
{
    rq_buf text = {0};
    rq_err rc = read_whole(path, &text, why);
    if (rc == RQ_OK) rc = rq_buf_append_u8(&text, 0);
    if (rc == RQ_OK) {
        const char *start = (char *)text.ptr + strspn((char *)text.ptr, " \t\r\n");
        rc = *start == '<' ? load_xml(c, path, rq_slice_of(text.ptr, text.len - 1), why)
                           : load_lines(c, path, (char *)text.ptr, why);
    }
    rq_buf_clear(&text);
    return rc;
}
