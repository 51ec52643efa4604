/* SPDX-License-Identifier: Apache-2.0 */
/* See listen.h. */
#include "server/listen.h"

#include "base/address.h"
#include "net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A port that is free on one address may be in use on another: number of ports tried. */
#define FREE_PORT_TRIES 50

/* --- addresses -------------------------------------------------------------------------------- */

static bool is_numeric(const char *text)
{
    struct in6_addr any;
    return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

static bool is_there(const rq_listen *l, const char *address)
{
    for (unsigned i = 0; i < l->count; i++)
        if (strcmp(l->address[i], address) == 0) return true;
    return false;
}

static rq_err add(rq_listen *l, const char *address, rq_error *why)
{
    if (is_there(l, address)) return RQ_OK;
    if (l->count == RQ_LISTEN_MAX)
        return rq_fail(why, RQ_E_CONFIG, "--listen: more than %d addresses", RQ_LISTEN_MAX);
    snprintf(l->address[l->count++], sizeof l->address[0], "%.45s", address);
    return RQ_OK;
}

/* A name may have addresses that this machine cannot bind, e.g. localhost's ::1 without IPv6. */
static bool can_bind(const char *address)
{
    int fd = -1;
    uint16_t port;
    if (rq_socket_listen(address, 0, false, &fd, &port, NULL) != RQ_OK) return false;
    close(fd);
    return true;
}

static rq_err add_name(rq_listen *l, const char *name, rq_error *why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    bool is_here = false;
    rq_err rc = RQ_OK;
    int error = getaddrinfo(name, NULL, &hints, &list);
    if (error != 0) return rq_fail(why, RQ_E_CONFIG, "--listen %s: %s", name, gai_strerror(error));
    for (const struct addrinfo *a = list; a != NULL && rc == RQ_OK; a = a->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) ==
                0 &&
            is_numeric(text) && can_bind(text)) {
            is_here = true;
            rc = add(l, text, why); /* an earlier entry may have the address already */
        }
    }
    freeaddrinfo(list);
    if (rc == RQ_OK && !is_here)
        return rq_fail(why, RQ_E_CONFIG,
                       "--listen %s: none of the name's addresses belongs to this machine", name);
    return rc;
}

static rq_err add_entry(rq_listen *l, char *entry, rq_error *why)
{
    size_t len = strlen(entry);
    if (strchr(entry, ':') != NULL && entry[len - 1] != ']' && !is_numeric(entry))
        return rq_fail(why, RQ_E_CONFIG,
                       "--listen %s: not an address or a host name (ports are set by --zk-port, "
                       "--master-port and --rs-port)",
                       entry);
    if (len > 1 && entry[0] == '[' && entry[len - 1] == ']') {
        entry[len - 1] = '\0';
        entry++;
        if (strchr(entry, ':') == NULL)
            return rq_fail(why, RQ_E_CONFIG, "--listen: [%s] is not an IPv6 address", entry);
    }
    if (l->first[0] == '\0') snprintf(l->first, sizeof l->first, "%s", entry);
    return is_numeric(entry) ? add(l, entry, why) : add_name(l, entry, why);
}

rq_err rq__listen_resolve(const char *text, rq_listen *ret, rq_error *why)
{
    char copy[RQ_LISTEN_MAX * RQ_HOST_SIZE];
    *ret = (rq_listen){0};
    if (strlen(text) >= sizeof copy)
        return rq_fail(why, RQ_E_CONFIG, "--listen: the value is too long");
    memcpy(copy, text, strlen(text) + 1);
    for (char *rest = copy, *entry; (entry = strsep(&rest, ",")) != NULL;) {
        entry += strspn(entry, " \t");
        entry[strcspn(entry, " \t")] = '\0';
        if (entry[0] == '\0' || strlen(entry) >= RQ_HOST_SIZE)
            return rq_fail(why, RQ_E_CONFIG, "--listen '%s': an address is missing or too long",
                           text);
        RQ_TRY(add_entry(ret, entry, why));
    }
    return RQ_OK;
}

void rq__listen_host(const rq_listen *l, const char *advertise, char ret[RQ_HOST_SIZE])
{
    bool given = advertise != NULL && advertise[0] != '\0';
    snprintf(ret, RQ_HOST_SIZE, "%s", given ? advertise : l->first);
    if (given || !(is_there(l, "0.0.0.0") || is_there(l, "::"))) return;
    if (gethostname(ret, RQ_HOST_SIZE) != 0) snprintf(ret, RQ_HOST_SIZE, "localhost");
    ret[RQ_HOST_SIZE - 1] = '\0';
}

/* --- ports ------------------------------------------------------------------------------------ */

static void release(rq_listen_held *h, unsigned from)
{
    while (h->count > from)
        close(h->fd[--h->count]);
}

/* Binds one port on all addresses; port 0 becomes the one chosen for the first address. */
static rq_err try_once(const rq_listen *l, uint16_t *port, rq_listen_held *h, rq_error *why)
{
    unsigned before = h->count;
    uint16_t got = *port;
    for (unsigned i = 0; i < l->count; i++) {
        rq_err rc = rq_socket_bind(l->address[i], got, l->count > 1, &h->fd[h->count], &got, why);
        if (rc != RQ_OK) {
            release(h, before);
            return rc;
        }
        h->count++;
    }
    *port = got;
    return RQ_OK;
}

static rq_err try_port(const rq_listen *l, const char *option, uint16_t *port, rq_listen_held *h,
                       rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    rq_err rc = try_once(l, port, h, &own);
    for (int i = 1; rc == RQ_E_EXISTS && *port == 0 && i < FREE_PORT_TRIES; i++) {
        rq_error_clear(&own);
        rc = try_once(l, port, h, &own);
    }
    if (rc == RQ_OK) return rc;
    if (rc == RQ_E_EXISTS || rc == RQ_E_PERMISSION)
        return rq_fail(why, rc == RQ_E_EXISTS ? rc : RQ_E_CONFIG,
                       "%s (%s sets another port; 0 chooses a free port)", own.message, option);
    return rq_fail(why, RQ_E_CONFIG, "--listen: %s", own.message);
}

/* Sockets that do not listen may share a port, so binding does not find this out. */
static rq_err compare(const rq_ports *p, rq_error *why)
{
    const struct {
        const char *option;
        uint16_t port;
    } all[] = {{"--zk-port", p->without_zk ? 0 : p->zk},
               {"--master-port", p->master},
               {"--rs-port", p->rs}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++)
        for (size_t j = 0; j < i; j++)
            if (all[i].port != 0 && all[i].port == all[j].port)
                return rq_fail(why, RQ_E_CONFIG, "%s and %s: both have port %u", all[j].option,
                               all[i].option, all[i].port);
    return RQ_OK;
}

rq_err rq__listen_hold(const rq_listen *l, rq_ports *ports, rq_listen_held *ret, rq_error *why)
{
    ret->count = 0;
    RQ_TRY(compare(ports, why));
    rq_err rc = ports->without_zk ? RQ_OK : try_port(l, "--zk-port", &ports->zk, ret, why);
    if (rc == RQ_OK) rc = try_port(l, "--master-port", &ports->master, ret, why);
    if (rc == RQ_OK) rc = try_port(l, "--rs-port", &ports->rs, ret, why);
    if (rc != RQ_OK) rq__listen_release(ret);
    return rc;
}

void rq__listen_release(rq_listen_held *h)
{
    release(h, 0);
}
