/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "server/info.h"

#include "base/address.h"
#include "base/host_port.h"
#include "net/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK "127.0.0.1"
#define PORTS_TRIED 100

static rq_err bad_address(const char *text, rq_error *why)
{
    return rq_fail(why, RQ_E_CONFIG,
                   "setting rorqual.http.address (--http): '%s' is not HOST:PORT, a port, or none",
                   text);
}

/* "HOST:PORT", "[V6]:PORT", ":PORT", "PORT"; "none". */
static rq_err parse_address(const char *text, rq_info_place *ret, rq_error *why)
{
    char with_host[RQ_HOST_PORT_MAX], host[sizeof ret->host];
    bool has_host = strchr(text, ':') != NULL && text[0] != ':';
    int len = snprintf(with_host, sizeof with_host, "%s%s",
                       has_host ? "" : "*:", text[0] == ':' ? text + 1 : text);
    if ((size_t)len >= sizeof with_host ||
        !rq_host_port_split(rq_slice_cstr(with_host), host, sizeof host, &ret->port))
        return bad_address(text, why);
    if (text[0] != '[' && strchr(host, ':') != NULL)
        return bad_address(text, why); /* an IPv6 address needs its brackets */
    if (has_host) snprintf(ret->host, sizeof ret->host, "%s", host);
    return RQ_OK;
}

rq_err rq__info_place_of(const rq_config *c, rq_info_place *ret, rq_error *why)
{
    const char *text = rq_config_text(c, RQ_SET_HTTP);
    int64_t port = rq_config_int(c, RQ_SET_INFO_PORT);
    *ret = (rq_info_place){.fd = -1, .on = true, .is_explicit = true};
    ret->may_move = rq_config_int(c, RQ_SET_INFO_PORT_AUTO) != 0;
    snprintf(ret->host, sizeof ret->host, "%s", LOOPBACK);
    if (strcmp(text, "none") == 0) {
        ret->on = false;
        return RQ_OK;
    }
    if (text[0] != '\0') return parse_address(text, ret, why);
    ret->on = port >= 0;
    ret->port = port < 0 ? 0 : (uint16_t)port;
    ret->is_explicit =
        rq_config_given(c, RQ_SET_INFO_PORT) || rq_config_given(c, RQ_SET_INFO_ADDRESS);
    const char *host = rq_config_text(c, RQ_SET_INFO_ADDRESS);
    if (strlen(host) >= sizeof ret->host) return bad_address(host, why);
    if (host[0] != '\0') snprintf(ret->host, sizeof ret->host, "%s", host);
    return RQ_OK;
}

static bool is_own(const rq_ports *own, unsigned port)
{
    return port == own->master || port == own->rs || (!own->without_zk && port == own->zk);
}

/* HBASE: HRegionServer.putUpWebUI. RQ_E_EXISTS: none of the tried ports is free; `why` names the first. */
static rq_err listen_on_next(rq_info_place *p, const rq_ports *own, rq_error *why)
{
    unsigned last = p->port + PORTS_TRIED < UINT16_MAX ? p->port + PORTS_TRIED : UINT16_MAX;
    rq_err rc = rq_socket_listen(p->address, p->port, false, &p->fd, &p->port, why);
    if (!p->may_move || p->port == 0) return rc;
    for (unsigned port = p->port + 1u; rc == RQ_E_EXISTS && port <= last; port++)
        if (!is_own(own, port))
            rc = rq_socket_listen(p->address, (uint16_t)port, false, &p->fd, &p->port, NULL);
    return rc;
}

static rq_err bind_place(rq_info_place *p, const rq_ports *own, rq_error *why)
{
    rq_listen l;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__listen_resolve(p->host, &l, &detail);
    if (rc == RQ_OK) {
        snprintf(p->address, sizeof p->address, "%s", l.address[0]);
        rc = listen_on_next(p, own, &detail);
    }
    if (rc == RQ_OK) return rc;
    return rq_fail(why, RQ_E_CONFIG,
                   "HTTP pages: %s (--http HOST:PORT: another address; --http 0: a free port; "
                   "--http none: no pages)",
                   detail.message);
}

rq_err rq__info_bind(rq_info_place *p, const rq_ports *ports, const rq_log *log, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    uint16_t wanted = p->port;
    if (!p->on) return RQ_OK;
    rq_err rc = bind_place(p, ports, &own);
    if (rc == RQ_OK && wanted != 0 && p->port != wanted)
        rq_log_info(log, "server",
                    "HTTP pages are on port %u, because port %u is in use (--http HOST:PORT "
                    "chooses another one)",
                    p->port, wanted);
    if (rc == RQ_OK) return rc;
    p->on = false;
    if (p->is_explicit) return rq_fail(why, rc, "%s", own.message);
    rq_log_warn(log, "server", "%s; the server runs without HTTP pages", own.message);
    return RQ_OK;
}

static bool is_any(const char *address)
{
    return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

uint16_t rq__info_client_port(const rq_info_place *p, const rq_listen *listen, const char *host)
{
    if (!p->on) return 0;
    if (is_any(p->address) || strcmp(p->address, host) == 0 || strcmp(p->host, host) == 0)
        return p->port;
    /* A host name's first address is the first address that the server listens on. */
    bool is_first = strcmp(host, listen->first) == 0 && strcmp(p->address, listen->address[0]) == 0;
    return is_first ? p->port : 0;
}
