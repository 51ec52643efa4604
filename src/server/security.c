/* SPDX-License-Identifier: Apache-2.0 */
/* Security settings that are not implemented; contract in security.h. Other HBase settings without
 * effect are listed and ignored, so that an hbase-site.xml can be used as it is. These are refused,
 * because the operator relies on them to keep others out. Coprocessors of the master and region
 * server are among them, because access controllers (HBase's AccessController, Ranger's) are
 * coprocessors.
 *
 * HBASE: User.isHBaseSecurityEnabled, SaslUtil.initSaslProperties, ServiceAuthorizationManager,
 * X509Util, AbstractFSWAL encryption, CoprocessorHost. */
#include "server/security.h"

#include "base/bytes.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define IGNORED "rorqual.security.ignored"
#define MASTER_CLASSES "hbase.coprocessor.master.classes"

typedef enum asks_when { NOT, IS, GIVEN } asks_when;

static const struct {
    const char *name; /* a name ending in '*' matches every name with that prefix */
    asks_when when; /* when it asks for protection: the value is not `value`, is `value`, or is not
                     * empty */
    const char *value;
} table[] = {
    {"hbase.security.authentication", NOT, "simple"},
    {"hbase.security.authorization", IS, "true"},
    {"hbase.security.exec.permission.checks", IS, "true"},
    {"hbase.security.visibility.mutations.checkauths", IS, "true"},
    {"hadoop.security.authorization", IS, "true"},
    {MASTER_CLASSES, GIVEN, NULL},
    {"hbase.coprocessor.regionserver.classes", GIVEN, NULL},
    {"hbase.rpc.protection", NOT, "authentication"},
    {"hbase.rpc.crypto.encryption.aes.enabled", IS, "true"},
    {"hbase.server.netty.tls.enabled", IS, "true"},
    {"hbase.regionserver.wal.encryption", IS, "true"},
    {"hbase.zookeeper.property.authProvider*", GIVEN, NULL},
    {"hbase.zookeeper.property.requireClientAuthScheme", GIVEN, NULL},
    {"hbase.zookeeper.property.enforce.auth.enabled", IS, "true"},
    {"hbase.zookeeper.property.sessionRequireClientSASLAuth", IS, "true"},
};

static bool same_name(const char *pattern, rq_slice name)
{
    size_t len = strlen(pattern);
    if (pattern[len - 1] == '*')
        return name.len >= len - 1 && memcmp(pattern, name.ptr, len - 1) == 0;
    return name.len == len && memcmp(pattern, name.ptr, len) == 0;
}

static bool is_security(rq_slice name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(table); i++)
        if (same_name(table[i].name, name)) return true;
    return false;
}

static bool asks(const char *name, const char *value)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(table) && value[0] != '\0'; i++) {
        if (!same_name(table[i].name, rq_slice_cstr(name))) continue;
        if (table[i].when == GIVEN) return true;
        bool same = strcasecmp(value, table[i].value) == 0;
        return table[i].when == IS ? same : !same;
    }
    return false;
}

/* The next name of a comma-separated list, skipping empty ones. */
static bool next_name(const char **list, rq_slice *ret)
{
    while (**list != '\0') {
        const char *begin = *list + strspn(*list, ", \t\n");
        size_t len = strcspn(begin, ", \t\n");
        *list = begin + len;
        *ret = rq_slice_of(begin, len);
        if (len > 0) return true;
    }
    return false;
}

static bool is_ignored(const rq_config *c, const char *name)
{
    const char *list = rq_config_text(c, RQ_SET_SECURITY_IGNORED);
    rq_slice ignored;
    while (next_name(&list, &ignored))
        if (rq_slice_eq(ignored, rq_slice_cstr(name))) return true;
    return false;
}

static rq_err check_ignored(const rq_config *c, rq_error *why)
{
    const char *list = rq_config_text(c, RQ_SET_SECURITY_IGNORED);
    rq_slice name;
    while (next_name(&list, &name))
        if (!is_security(name))
            return rq_fail(why, RQ_E_CONFIG, "setting " IGNORED ": %.*s is not a security setting",
                           (int)name.len, (const char *)name.ptr);
    return RQ_OK;
}

typedef struct names {
    char text[512];
    size_t len;
} names;

static void add(names *n, const char *name, const char *value)
{
    int len = snprintf(n->text + n->len, sizeof n->text - n->len, "%s%s%s%.60s",
                       n->len == 0     ? ""
                       : value == NULL ? ","
                                       : ", ",
                       name, value == NULL ? "" : "=", value == NULL ? "" : value);
    if (len > 0) n->len += (size_t)len;
    if (n->len >= sizeof n->text) n->len = sizeof n->text - 1;
}

/* Whether the master's coprocessors are no access controllers: RSGroupAdminEndpoint is built in. */
static bool only_groups(const char *list)
{
    rq_slice name;
    while (next_name(&list, &name))
        if (!rq_slice_eq(name,
                         RQ_SLICE_LIT("org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint")))
            return false;
    return true;
}

rq_err rq__security_check(const rq_config *c, const rq_log *log, rq_error *why)
{
    names unmet = {0}, unmet_names = {0}, ignored = {0};
    RQ_TRY(check_ignored(c, why));
    for (size_t i = 0; rq_config_unused(c, i) != NULL; i++) {
        const char *name = rq_config_unused(c, i);
        const char *value = rq_config_unused_value(c, i);
        if (!asks(name, value)) continue;
        if (is_ignored(c, name)) {
            add(&ignored, name, value);
        } else {
            add(&unmet, name, value);
            add(&unmet_names, name, NULL);
        }
    }
    const char *classes = rq_config_text(c, RQ_SET_MASTER_COPROCESSORS);
    bool asks_by_class = !only_groups(classes), may = is_ignored(c, MASTER_CLASSES);
    if (asks_by_class) add(may ? &ignored : &unmet, MASTER_CLASSES, classes);
    if (asks_by_class && !may) add(&unmet_names, MASTER_CLASSES, NULL);
    if (unmet.len > 0)
        return rq_fail(
            why, RQ_E_CONFIG,
            "%s: this server has no authentication, authorization or encryption and does "
            "not start if they are required; to start it without them: " IGNORED "=%s%s%s",
            unmet.text, rq_config_text(c, RQ_SET_SECURITY_IGNORED),
            rq_config_text(c, RQ_SET_SECURITY_IGNORED)[0] == '\0' ? "" : ",", unmet_names.text);
    if (ignored.len > 0)
        rq_log_warn(log, "server",
                    "%s has no effect, because " IGNORED
                    " names it: anyone who can connect may read, write and drop every table",
                    ignored.text);
    return RQ_OK;
}

static bool is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, address, &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, address, &v6) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

void rq__security_warn_listening(const rq_log *log, const char *address)
{
    if (is_loopback(address)) return;
    rq_log_warn(log, "server",
                "listening on %s without authentication: anyone who can connect may read, write "
                "and drop every table; use a firewall, or --listen 127.0.0.1",
                address);
}

void rq__security_warn_pages(const rq_log *log, const char *address)
{
    if (is_loopback(address)) return;
    rq_log_warn(log, "server",
                "HTTP pages on %s without authentication: anyone who can connect may read names of "
                "tables, metrics, settings and the requests of slow calls",
                address);
}
