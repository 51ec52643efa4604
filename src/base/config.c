/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: the table, the values, and parsing of a value. Files of settings: config_file.c; checks
 * that concern several settings: config_check.c. */
#include "base/config.h"

#include "base/suggest.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const rq_setting_info table[RQ_SETTING_COUNT] = {
#define X(id, setting, setting_kind, value, ...)                                                   \
    [id] = {setting, RQ_SETTING_##setting_kind, value, __VA_ARGS__},
#include "base/settings.def"
#undef X
};

static const char *const hbase_names[] = {
#define X(name) name,
#include "base/hbase_settings.def"
#undef X
};

/* Prefixes of Hadoop's names, and of ZooKeeper's names as HBase passes them on. */
static const char *const hbase_prefixes[] = {
    "hbase.zookeeper.property.", "hadoop.", "dfs.", "fs.", "io.", "ipc.",
};

/* A replaced value that concurrent readers may still use. */
typedef struct retired {
    struct retired *next;
    char *text;
} retired;

/* Atomic: rq_config_take changes values while any thread may read them. */
typedef struct value {
    char *_Atomic text;
    _Atomic int64_t integer;
    _Atomic double real;
    bool given;
    bool by_older; /* set by its older name: the newer name overrides it */
} value;

typedef struct unused {
    char *name;
    char *value;
} unused;

struct rq_config {
    value values[RQ_SETTING_COUNT];
    unused *unused;
    size_t unused_count;
    retired *retired;
};

typedef struct parsed {
    int64_t integer;
    double real;
} parsed;

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
    return end != text && *end == '\0' && errno == 0 && *ret >= 0 && *ret < 1e300;
}

static bool parse_value(rq_setting_kind k, const char *text, parsed *ret)
{
    switch (k) {
    case RQ_SETTING_INT:
    case RQ_SETTING_MS:
        return parse_integer(text, false, false, &ret->integer);
    case RQ_SETTING_SIGNED:
        return parse_integer(text, false, true, &ret->integer);
    case RQ_SETTING_BYTES:
        return parse_integer(text, true, false, &ret->integer);
    case RQ_SETTING_REAL:
        return parse_real(text, &ret->real);
    case RQ_SETTING_BOOL:
        ret->integer = strcasecmp(text, "true") == 0;
        return ret->integer != 0 || strcasecmp(text, "false") == 0;
    case RQ_SETTING_TEXT:
        return true;
    }
    return false;
}

static double most_of(const rq_setting_info *i)
{
    if (i->most > 0) return i->most;
    return i->kind == RQ_SETTING_INT ? 2147483647 : 0;
}

static bool has_numbers(const rq_setting_info *i)
{
    return i->kind != RQ_SETTING_TEXT && i->kind != RQ_SETTING_BOOL;
}

static bool in_range(const rq_setting_info *i, const parsed *p)
{
    double v = i->kind == RQ_SETTING_REAL ? p->real : (double)p->integer;
    if (!has_numbers(i) || (i->zero && v == 0)) return true;
    if (i->kind == RQ_SETTING_SIGNED && i->least == 0 && i->most == 0) return true;
    return v >= i->least && (most_of(i) == 0 || v <= most_of(i));
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    for (const char *c = choices; c != NULL; c = strchr(c, '|')) {
        c += *c == '|';
        if (strcspn(c, "|") == len && strncmp(c, text, len) == 0) return true;
    }
    return choices == NULL;
}

static void number_text(const rq_setting_info *i, double v, char ret[RQ_SETTING_RANGE_MAX])
{
    if (i->kind == RQ_SETTING_BYTES)
        rq_setting_bytes_text((int64_t)v, ret);
    else
        snprintf(ret, RQ_SETTING_RANGE_MAX, "%.15g", v);
}

void rq_setting_bytes_text(int64_t bytes, char ret[RQ_SETTING_RANGE_MAX])
{
    static const char units[] = "kmg";
    char unit[2] = "";
    for (int i = 0; i < 3 && bytes != 0 && bytes % 1024 == 0; i++) {
        bytes /= 1024;
        unit[0] = units[i];
    }
    snprintf(ret, RQ_SETTING_RANGE_MAX, "%lld%s", (long long)bytes, unit);
}

const char *rq_setting_range(const rq_setting_info *i, char ret[RQ_SETTING_RANGE_MAX])
{
    char least[RQ_SETTING_RANGE_MAX], most[RQ_SETTING_RANGE_MAX];
    const char *zero = i->zero ? "0, or " : "";
    ret[0] = '\0';
    if (i->choices != NULL) snprintf(ret, RQ_SETTING_RANGE_MAX, "%s", i->choices);
    if (i->kind == RQ_SETTING_BOOL) snprintf(ret, RQ_SETTING_RANGE_MAX, "true|false");
    if (!has_numbers(i) || (i->kind == RQ_SETTING_SIGNED && i->most == 0)) return ret;
    number_text(i, i->least, least);
    number_text(i, most_of(i), most);
    if (most_of(i) > 0)
        snprintf(ret, RQ_SETTING_RANGE_MAX, "%s%.40s to %.40s", zero, least, most);
    else
        snprintf(ret, RQ_SETTING_RANGE_MAX, "%sat least %.80s", zero, least);
    return ret;
}

const char *rq_setting_unit(const rq_setting_info *i)
{
    static const char *const units[] = {
        [RQ_SETTING_INT] = "",  [RQ_SETTING_SIGNED] = "", [RQ_SETTING_BYTES] = "bytes",
        [RQ_SETTING_MS] = "ms", [RQ_SETTING_REAL] = "",   [RQ_SETTING_BOOL] = "",
        [RQ_SETTING_TEXT] = ""};
    return i->unit != NULL ? i->unit : units[i->kind];
}

/* "a whole number" … */
static const char *kind_text(rq_setting_kind k)
{
    static const char *const texts[] = {[RQ_SETTING_INT] = "a whole number",
                                        [RQ_SETTING_SIGNED] =
                                            "a whole number, which may be negative",
                                        [RQ_SETTING_BYTES] = "a number of bytes (k, m, g allowed)",
                                        [RQ_SETTING_MS] = "a number of milliseconds",
                                        [RQ_SETTING_REAL] = "a number",
                                        [RQ_SETTING_BOOL] = "true or false",
                                        [RQ_SETTING_TEXT] = "text"};
    return texts[k];
}

const rq_setting_info *rq_setting_get(rq_setting s)
{
    return &table[s];
}

RQ_COLD static rq_err out_of_range(const rq_setting_info *i, const char *text, const parsed *p,
                                   rq_error *why)
{
    char range[RQ_SETTING_RANGE_MAX];
    rq_setting_range(i, range);
    /* "64" for 64 MB is the usual mistake. */
    bool no_unit = i->kind == RQ_SETTING_BYTES && (double)p->integer < i->least &&
                   text[strspn(text, "0123456789")] == '\0';
    if (no_unit)
        return rq_fail(why, RQ_E_CONFIG,
                       "setting %s: %s without a unit is %s bytes; allowed: %s (%sm is %s MB)",
                       i->name, text, text, range, text, text);
    return rq_fail(why, RQ_E_CONFIG, "setting %s: %s is out of range; allowed: %s", i->name, text,
                   range);
}

static rq_err parse_setting(const rq_setting_info *i, const char *text, parsed *ret, rq_error *why)
{
    if (!parse_value(i->kind, text, ret))
        return rq_fail(why, RQ_E_CONFIG, "setting %s: '%s' is not %s", i->name, text,
                       kind_text(i->kind));
    if (!is_choice(i->choices, text))
        return rq_fail(why, RQ_E_CONFIG, "setting %s: '%s' is not one of %s", i->name, text,
                       i->choices);
    return in_range(i, ret) ? RQ_OK : out_of_range(i, text, ret, why);
}

static rq_err store_value(rq_config *c, rq_setting s, const char *text, bool given, rq_error *why)
{
    parsed p = {0};
    RQ_TRY(parse_setting(&table[s], text, &p, why));
    char *copy = strdup(text);
    if (copy == NULL) return rq_no_memory(why);
    value *v = &c->values[s];
    free(v->text);
    v->text = copy;
    v->integer = p.integer;
    v->real = p.real;
    v->given = given;
    v->by_older = false;
    return RQ_OK;
}

/* HBASE: CompactionConfiguration, MemorySizeUtil: the newer name overrides the older one, whatever
 * their order in the files. */
static rq_err store_older(rq_config *c, rq_setting s, const char *text, rq_error *why)
{
    value *v = &c->values[s];
    if (v->given && !v->by_older) return RQ_OK;
    rq_error own = {.code = RQ_OK};
    rq_err rc = store_value(c, s, text, true, &own);
    if (rc != RQ_OK)
        return rq_fail(why, rc, "%s (older name of the setting): %s", table[s].older, own.message);
    v->by_older = true;
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
    for (retired *r = c->retired; r != NULL;) {
        retired *next = r->next;
        free(r->text);
        free(r);
        r = next;
    }
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

/* The entry of that name, or a new one without name and value. */
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
    if (copy == NULL) return rq_no_memory(why);
    if (u->name == NULL) {
        u->name = strdup(name);
        if (u->name == NULL) {
            free(copy);
            return rq_no_memory(why);
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
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        if (strcmp(name, table[s].name) == 0) return store_value(c, (rq_setting)s, text, true, why);
        if (table[s].older != NULL && strcmp(name, table[s].older) == 0)
            return store_older(c, (rq_setting)s, text, why);
    }
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

/* Blanks around name and value are never intended: hbase-site.xml often has line ends there. HBASE:
 * Configuration.getTrimmed, loadResource. */
static rq_err set_any(rq_config *c, const char *name, size_t name_len, const char *text,
                      rq_error *why)
{
    char *n = trimmed(name, name_len);
    char *t = trimmed(text, strlen(text));
    rq_err rc = n == NULL || t == NULL ? rq_no_memory(why) : set_trimmed(c, n, t, why);
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

int64_t rq_config_int(const rq_config *c, rq_setting s)
{
    return atomic_load_explicit(&c->values[s].integer, memory_order_relaxed);
}

double rq_config_real(const rq_config *c, rq_setting s)
{
    return atomic_load_explicit(&c->values[s].real, memory_order_relaxed);
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

bool rq__config_given_by_older(const rq_config *c, rq_setting s)
{
    return c->values[s].by_older;
}

/* --- changes while others read ---------------------------------------------------------------- */

/* The previous text stays until the end: other threads may use it. */
static rq_err replace_text(rq_config *c, value *v, const char *text)
{
    char *copy = strdup(text);
    retired *old = malloc(sizeof *old);
    if (copy == NULL || old == NULL) {
        free(copy);
        free(old);
        return RQ_E_NO_MEMORY;
    }
    *old = (retired){.next = c->retired, .text = atomic_exchange(&v->text, copy)};
    c->retired = old;
    return RQ_OK;
}

static rq_err take_one(rq_config *c, const rq_config *from, int s)
{
    value *v = &c->values[s];
    const value *new = &from->values[s];
    RQ_TRY(replace_text(c, v, new->text));
    atomic_store_explicit(&v->integer, new->integer, memory_order_relaxed);
    atomic_store_explicit(&v->real, new->real, memory_order_relaxed);
    return RQ_OK;
}

rq_err rq_config_take(rq_config *c, const rq_config *from, rq_config_changed changed, void *ctx)
{
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        if (strcmp(c->values[s].text, from->values[s].text) == 0) continue;
        if (table[s].reloads) RQ_TRY(take_one(c, from, s));
        changed(ctx, (rq_setting)s, rq_config_text(from, (rq_setting)s));
    }
    return RQ_OK;
}

const char *rq_config_unused(const rq_config *c, size_t i)
{
    return i < c->unused_count ? c->unused[i].name : NULL;
}

const char *rq_config_unused_value(const rq_config *c, size_t i)
{
    return i < c->unused_count ? c->unused[i].value : NULL;
}
