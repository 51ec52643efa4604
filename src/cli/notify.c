/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams to the service manager; contract in notify.h. */
#include "cli/notify.h"

#include "cli/args.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path, or an abstract name with '@' for the leading zero byte. */
static bool set_address(rq_notify *n, const char *text)
{
    size_t len = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof n->to.sun_path) return false;
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, text, len);
    if (text[0] == '@') n->to.sun_path[0] = '\0';
    n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

static uint64_t watchdog_period_ns(void)
{
    const char *period = getenv("WATCHDOG_USEC");
    const char *process = getenv("WATCHDOG_PID"); /* not set: for any process */
    uint64_t us, pid;
    if (period == NULL || !rq__arg_number(period, &us) || us > UINT64_MAX / 1000) return 0;
    if (process != NULL && (!rq__arg_number(process, &pid) || pid != (uint64_t)getpid())) return 0;
    return us * 1000;
}

void rq__notify_open(rq_notify *n)
{
    const char *address = getenv("NOTIFY_SOCKET");
    *n = (rq_notify){.fd = -1};
    if (address == NULL || !set_address(n, address)) return;
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->fd >= 0) n->watchdog_ns = watchdog_period_ns();
}

void rq__notify_send(const rq_notify *n, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    if (n->fd < 0) return;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0) return;
    size_t size = (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    (void)sendto(n->fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->to_len);
}

void rq__notify_close(rq_notify *n)
{
    if (n->fd >= 0) close(n->fd);
    n->fd = -1;
}
