/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's servers with their connections, found by address in a hash table.
 *
 *     servers       [ a | b | free | c | … ]     a server keeps its index while the index is in use
 *     server_slots  index + 1, by hash of the address; linear probing, at most half full
 *
 * Maps of regions and scans with an open scanner use the indexes of servers. A server whose index is not in use and
 * that has no call in flight is forgotten, with its connections, and the next new server gets its index. So in a
 * cluster whose servers come and go, the client has at most about four times as many entries as its maps have servers.
 * rq_client_poll forgets servers before it runs the loop, because a connection cannot be freed in its own callback. */
#include "client/client_priv.h"

#include <stdlib.h>

/* --- by address ------------------------------------------------------------------------------- */

/* Where the address is in server_slots, or the empty slot where it belongs. */
static size_t slot_of(const rq_client *c, const rq__address *at)
{
    size_t slot = (rq__text_hash(at->host) + at->port) & (c->slot_count - 1);
    for (; c->server_slots[slot] != 0; slot = (slot + 1) & (c->slot_count - 1)) {
        const rq__address *other = &c->servers[c->server_slots[slot] - 1].at;
        if (other->port == at->port && strcmp(other->host, at->host) == 0) break;
    }
    return slot;
}

static void fill_slots(rq_client *c)
{
    memset(c->server_slots, 0, c->slot_count * sizeof *c->server_slots);
    for (size_t i = 0; i < c->server_count; i++)
        if (c->servers[i].lanes != NULL)
            c->server_slots[slot_of(c, &c->servers[i].at)] = (uint32_t)i + 1;
}

/* Room for one more server; at most half of the slots are used. */
static rq_err grow(rq_client *c)
{
    if (c->free_servers > 0 || 2 * (c->server_count + 1) <= c->slot_count) return RQ_OK;
    size_t count = c->slot_count == 0 ? 16 : 2 * c->slot_count;
    rq__server *servers = realloc(c->servers, count / 2 * sizeof *servers);
    if (servers == NULL) return RQ_E_NO_MEMORY;
    c->servers = servers;
    uint32_t *slots = malloc(count * sizeof *slots);
    if (slots == NULL) return RQ_E_NO_MEMORY;
    free(c->server_slots);
    c->server_slots = slots;
    c->slot_count = count;
    fill_slots(c);
    return RQ_OK;
}

static size_t free_index(rq_client *c)
{
    if (c->free_servers == 0) return c->server_count++;
    size_t i = 0;
    while (c->servers[i].lanes != NULL)
        i++;
    c->free_servers--;
    return i;
}

/* Whether servers should be forgotten: the table is nearly full, and enough servers were added since the last time. */
static bool should_forget(const rq_client *c)
{
    size_t room = c->slot_count / 2, used = c->server_count - c->free_servers;
    return c->new_servers >= room / 4 && used >= room - room / 4;
}

static rq_err add(rq_client *c, const rq__address *at)
{
    rq__conn **lanes = calloc(c->options.lanes, sizeof *lanes);
    if (lanes == NULL) return RQ_E_NO_MEMORY;
    size_t slot = slot_of(c, at), i = free_index(c);
    c->servers[i] = (rq__server){.at = *at, .lanes = lanes};
    c->server_slots[slot] = (uint32_t)i + 1;
    c->new_servers++;
    c->forgets_servers = should_forget(c);
    return RQ_OK;
}

rq_err rq__client_server(rq_client *c, const rq__address *at, uint32_t *ret)
{
    RQ_TRY(grow(c));
    size_t slot = slot_of(c, at);
    if (c->server_slots[slot] == 0) RQ_TRY(add(c, at));
    *ret = c->server_slots[slot] - 1;
    return RQ_OK;
}

rq_err rq__client_lane(rq_client *c, uint32_t server, unsigned lane, rq__conn **ret)
{
    if (RQ_UNLIKELY(server == RQ__NO_SERVER)) return RQ_E_NOT_SERVING_REGION;
    rq__server *s = &c->servers[server];
    lane %= c->options.lanes;
    if (s->lanes[lane] == NULL)
        RQ_TRY(rq__client_conn(c, &s->at, "ClientService",
                               c->options.with_tags ? RQ__CODEC_WITH_TAGS : NULL, &s->lanes[lane]));
    *ret = s->lanes[lane];
    return RQ_OK;
}

size_t rq__servers_count(const rq_client *c)
{
    return c->server_count - c->free_servers;
}

/* --- forgetting ------------------------------------------------------------------------------- */

static void mark(rq_client *c, const rq__region *regions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (regions[i].server != RQ__NO_SERVER) c->servers[regions[i].server].is_named = true;
        for (size_t k = 0; k < regions[i].replica_count; k++)
            c->servers[regions[i].replicas[k].server].is_named = true;
    }
}

static bool is_in_use(const rq_client *c, const rq__server *s)
{
    if (s->is_named || s->scanners > 0) return true;
    if (s->admin != NULL && rq__conn_in_flight(s->admin) > 0) return true;
    for (unsigned i = 0; i < c->options.lanes; i++)
        if (s->lanes[i] != NULL && rq__conn_in_flight(s->lanes[i]) > 0) return true;
    return false;
}

static void forget(rq_client *c, rq__server *s)
{
    for (unsigned i = 0; i < c->options.lanes; i++)
        rq__client_drop_conn(c, s->lanes[i]);
    rq__client_drop_conn(c, s->admin);
    free(s->lanes);
    *s = (rq__server){.lanes = NULL};
    c->free_servers++;
}

void rq__servers_forget(rq_client *c)
{
    c->forgets_servers = false;
    c->new_servers = 0;
    for (size_t i = 0; i < c->server_count; i++)
        c->servers[i].is_named = false;
    for (const rq_client_table *t = c->tables; t != NULL; t = t->next) {
        mark(c, t->regions, t->region_count);
        mark(c, t->next_regions, t->next_count);
    }
    for (size_t i = 0; i < c->server_count; i++)
        if (c->servers[i].lanes != NULL && !is_in_use(c, &c->servers[i])) forget(c, &c->servers[i]);
    fill_slots(c);
}

void rq__servers_free(rq_client *c)
{
    for (size_t i = 0; i < c->server_count; i++)
        free(c->servers[i].lanes);
    free(c->servers);
    free(c->server_slots);
}
