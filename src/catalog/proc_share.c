/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory unfinished procedures may take, in all and for each client.
 *
 * A client need not wait for the end of its procedures: an EnableTable is answered once it is
 * recorded, and a connection can send a thousand requests before it reads an answer. So the memory
 * of each procedure, as submitted, is added to the total and to the account of its connection. Of
 * the limit
 *
 *  - a connection may always use a small part (1/SMALL_PARTS),
 *  - beyond that, it may use memory only as long as a third of what it uses itself stays free, and
 *    a reserve (1/RESERVE_PARTS) for connections with few procedures,
 *  - locks of LockService use at most 1/LOCK_PARTS, shared by the same rules: clients may hold
 *    locks as long as they like, and procedures must find memory beside them.
 *
 * So one connection may use three quarters of the limit, and however many connections do so, there
 * is memory for a connection with few procedures. Clients repeat refused requests after a pause.
 * The scanners of connections are limited in the same way (ops/leases.c).
 *
 * Accounts are a fixed array: connections whose numbers are RQ__PROC_CLIENTS apart share one. The
 * server's own procedures, and those that a restart found, are in the sum alone. */
#include "catalog/proc_priv.h"

#define SMALL_PARTS 64
#define RESERVE_PARTS 8
#define LOCK_PARTS 4

static const rq__proc_account *account_of(const rq__procedures *ps, const rq__proc *p)
{
    static const rq__proc_account none = {0};
    return p->client == 0 ? &none : &ps->clients[p->client % RQ__PROC_CLIENTS];
}

/* Whether `bytes` more fit when `used` of `max` are in use, `own` of them by the same client. */
static bool fits(size_t max, size_t used, size_t own, size_t bytes, bool shares)
{
    if (bytes > max || used > max - bytes) return false;
    size_t left = max - used - bytes;
    if (!shares || own + bytes <= max / SMALL_PARTS) return true;
    return left >= (own + bytes) / 3 && left >= max / RESERVE_PARTS;
}

/* A single procedure, or lock, may be larger than the limit. */
bool rq__procs_have_room(const rq__procedures *ps, const rq__proc *p)
{
    size_t bytes = sizeof *p + p->arena.total_bytes;
    const rq__proc_account *own = account_of(ps, p);
    bool shares = p->client != 0;
    if (p->ops->holds && ps->total.lock_bytes > 0 &&
        !fits(ps->bytes_max / LOCK_PARTS, ps->total.lock_bytes, own->lock_bytes, bytes, shares))
        return false;
    return ps->active == NULL || fits(ps->bytes_max, ps->total.bytes, own->bytes, bytes, shares);
}

void rq__procs_charge(rq__procedures *ps, rq__proc *p)
{
    p->charged = sizeof *p + p->arena.total_bytes;
    rq__proc_account *of[] = {&ps->total, &ps->clients[p->client % RQ__PROC_CLIENTS]};
    for (size_t i = 0; i < (p->client == 0 ? 1 : RQ_ARRAY_LEN(of)); i++) {
        of[i]->bytes += p->charged;
        if (p->ops->holds) of[i]->lock_bytes += p->charged;
    }
}

void rq__procs_release(rq__procedures *ps, rq__proc *p)
{
    rq__proc_account *of[] = {&ps->total, &ps->clients[p->client % RQ__PROC_CLIENTS]};
    for (size_t i = 0; i < (p->client == 0 ? 1 : RQ_ARRAY_LEN(of)); i++) {
        of[i]->bytes -= p->charged;
        if (p->ops->holds) of[i]->lock_bytes -= p->charged;
    }
}
