/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: the table, its parsing, and the two file forms (hbase-site.xml through expat). */
#include "base/config.h"

#include "base/buf.h"
#include "base/suggest.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum kind { INT, SIGNED, BYTES, MS, REAL, BOOL, TEXT } kind;

static const struct {
    const char *name;
    kind kind;
    const char *fallback;
} table[RQ_SETTING_COUNT] = {
#define X(id, setting, setting_kind, value, text) [id] = {setting, setting_kind, value},
#include "base/settings.def"
#undef X
};

static const char *const hbase_names[] = {
#define X(name) name,
#include "base/hbase_settings.def"
#undef X
};

/* Hadoop's names, and ZooKeeper's behind their prefix: HBase passes them on unread. */
static const char *const hbase_prefixes[] = {
    "hbase.zookeeper.property.", "hadoop.", "dfs.", "fs.", "io.", "ipc.",
};

typedef struct value {
    char *text;
    int64_t integer;
    double real;
    bool given;
} value;

typedef struct unused {
    char *name;
    char *value;
} unused;

struct rq_config {
    value values[RQ_SETTING_COUNT];
    unused *unused;
    size_t unused_count;
};

static bool parse_integer(const char *text, bool with_suffix, bool negative, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || errno != 0 || (v < 0 && !negative)) return false;
    int64_t factor = 1;
    if (with_suffix && *end != '\0') {
        switch (*end | 0x20) {
        case 'k':
            factor = 1024;
            break;
        case 'm':
            factor = 1024 * 1024;
            break;
        case 'g':
            factor = 1024 * 1024 * 1024;
            break;
        default:
            return false;
        }
        end++;
    }
    return *end == '\0' && !__builtin_mul_overflow((int64_t)v, factor, ret);
}

static bool parse_real(const char *text, double *ret)
{
    char *end;
    errno = 0;
    *ret = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *ret >= 0;
}

static bool parse_value(kind k, const char *text, value *ret)
{
    switch (k) {
    case INT:
    case MS:
        return parse_integer(text, false, false, &ret->integer);
    case SIGNED:
        return parse_integer(text, false, true, &ret->integer);
    case BYTES:
        return parse_integer(text, true, false, &ret->integer);
    case REAL:
        return parse_real(text, &ret->real);
    case BOOL:
        ret->integer = strcasecmp(text, "true") == 0;
        return ret->integer != 0 || strcasecmp(text, "false") == 0;
    case TEXT:
        return true;
    }
    return false;
}

static rq_err store_value(rq_config *c, rq_setting s, const char *text, bool given, rq_error *why)
{
    static const char *const wanted[] = {"a whole number",
                                         "a whole number, which may be negative",
                                         "a number of bytes (k, m, g allowed)",
                                         "a number of milliseconds",
                                         "a number",
                                         "true or false",
                                         "text"};
    value v = {.given = given};
    if (!parse_value(table[s].kind, text, &v))
        return rq_fail(why, RQ_E_CONFIG, "setting %s: '%s' is not %s", table[s].name, text,
                       wanted[table[s].kind]);
    v.text = strdup(text);
    if (v.text == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    free(c->values[s].text);
    c->values[s] = v;
    return RQ_OK;
}

rq_err rq_config_new(rq_config **ret)
{
    rq_config *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        rq_err rc = store_value(c, (rq_setting)s, table[s].fallback, false, NULL);
        if (rc != RQ_OK) {
            rq_config_free(c);
            return rc;
        }
    }
    *ret = c;
    return RQ_OK;
}

void rq_config_free(rq_config *c)
{
    if (c == NULL) return;
    for (int s = 0; s < RQ_SETTING_COUNT; s++)
        free(c->values[s].text);
    for (size_t i = 0; i < c->unused_count; i++) {
        free(c->unused[i].name);
        free(c->unused[i].value);
    }
    free(c->unused);
    free(c);
}

static int compare_names(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool known_to_hbase(const char *name)
{
    if (bsearch(name, hbase_names, RQ_ARRAY_LEN(hbase_names), sizeof hbase_names[0],
                compare_names) != NULL)
        return true;
    for (size_t i = 0; i < RQ_ARRAY_LEN(hbase_prefixes); i++)
        if (strncmp(name, hbase_prefixes[i], strlen(hbase_prefixes[i])) == 0) return true;
    return false;
}

/* The one of that name, or a new one without name and value. */
static unused *unused_of(rq_config *c, const char *name)
{
    for (size_t i = 0; i < c->unused_count; i++)
        if (strcmp(c->unused[i].name, name) == 0) return &c->unused[i];
    unused *more = realloc(c->unused, (c->unused_count + 1) * sizeof *more);
    if (more == NULL) return NULL;
    c->unused = more;
    more[c->unused_count] = (unused){0};
    return &more[c->unused_count];
}

static rq_err note_unused(rq_config *c, const char *name, const char *text, rq_error *why)
{
    unused *u = unused_of(c, name);
    char *copy = u == NULL ? NULL : strdup(text);
    if (copy == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    if (u->name == NULL) {
        u->name = strdup(name);
        if (u->name == NULL) {
            free(copy);
            return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
        }
        c->unused_count++;
    }
    free(u->value);
    u->value = copy;
    return RQ_OK;
}

RQ_COLD static rq_err unknown_setting(const char *name, rq_error *why)
{
    rq_suggestion s = rq_suggest(name);
    for (int i = 0; i < RQ_SETTING_COUNT; i++)
        rq_suggest_consider(&s, table[i].name);
    for (size_t i = 0; i < RQ_ARRAY_LEN(hbase_names); i++)
        rq_suggest_consider(&s, hbase_names[i]);
    if (s.best == NULL)
        return rq_fail(why, RQ_E_CONFIG, "setting %s: unknown to Rorqual and to HBase", name);
    return rq_fail(why, RQ_E_CONFIG,
                   "setting %s: unknown to Rorqual and to HBase; did you mean %s?", name, s.best);
}

static rq_err set_trimmed(rq_config *c, const char *name, const char *text, rq_error *why)
{
    for (int s = 0; s < RQ_SETTING_COUNT; s++)
        if (strcmp(name, table[s].name) == 0) return store_value(c, (rq_setting)s, text, true, why);
    if (known_to_hbase(name)) return note_unused(c, name, text, why);
    return unknown_setting(name, why);
}

static char *trimmed(const char *text, size_t len)
{
    while (len > 0 && isspace((unsigned char)*text)) {
        text++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        len--;
    return strndup(text, len);
}

/* Blanks around either are nobody's intention: hbase-site.xml often has line ends there. HBASE:
 * Configuration.getTrimmed, loadResource. */
static rq_err set_any(rq_config *c, const char *name, size_t name_len, const char *text,
                      rq_error *why)
{
    char *n = trimmed(name, name_len);
    char *t = trimmed(text, strlen(text));
    rq_err rc = n == NULL || t == NULL ? rq_fail(why, RQ_E_NO_MEMORY, "out of memory")
                                       : set_trimmed(c, n, t, why);
    free(n);
    free(t);
    return rc;
}

rq_err rq_config_set(rq_config *c, const char *name, const char *text, rq_error *why)
{
    return set_any(c, name, strlen(name), text, why);
}

rq_err rq_config_set_pair(rq_config *c, const char *pair, rq_error *why)
{
    const char *eq = strchr(pair, '=');
    if (eq == NULL || eq == pair)
        return rq_fail(why, RQ_E_CONFIG, "'%s' is not of the form name=value", pair);
    return set_any(c, pair, (size_t)(eq - pair), eq + 1, why);
}

/* Says where it went wrong, once. */
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
    if (parser == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
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

int64_t rq_config_int(const rq_config *c, rq_setting s)
{
    return c->values[s].integer;
}

double rq_config_real(const rq_config *c, rq_setting s)
{
    return c->values[s].real;
}

const char *rq_config_text(const rq_config *c, rq_setting s)
{
    return c->values[s].text;
}

const char *rq_config_by_name(const rq_config *c, const char *name)
{
    for (int s = 0; s < RQ_SETTING_COUNT; s++)
        if (strcmp(name, table[s].name) == 0) return c->values[s].text;
    return NULL;
}

bool rq_config_given(const rq_config *c, rq_setting s)
{
    return c->values[s].given;
}

const char *rq_config_unused(const rq_config *c, size_t i)
{
    return i < c->unused_count ? c->unused[i].name : NULL;
}

const char *rq_config_unused_value(const rq_config *c, size_t i)
{
    return i < c->unused_count ? c->unused[i].value : NULL;
}
