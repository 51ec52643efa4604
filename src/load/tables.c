/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a workload: their names, splits, creation and removal. */
#include "load/load_priv.h"

#include "base/address.h"
#include "base/macros.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

rq__table_names rq__table_names_of(const rq__bench *b)
{
    static const char *const tails[] = {"", "_content", "_relations"};
    rq__table_names n = {.count = b->workload->kind == RQ__LOAD_TIMELINE ? 3 : 1};
    for (int i = 0; i < n.count; i++)
        snprintf(n.name[i], sizeof n.name[i], "%.200s%s", b->o->table, tails[i]);
    return n;
}

/* Where region i of n begins: equal parts of the key range. */
static void split_key(const rq__bench *b, unsigned i, unsigned n, char out[RQ_ROW_DIGITS + 1])
{
    rq_rows plain = {.hashed = false};
    if (rq__is_app(b)) {
        snprintf(out, RQ_ROW_DIGITS + 1, "%08llu",
                 (unsigned long long)(b->o->records * i / n % 100000000));
        return;
    }
    uint64_t at = b->rows.hashed ? (uint64_t)((double)UINT64_MAX / n * i)
                                 : (uint64_t)((double)b->o->records / n * i);
    rq__rows_digits(&plain, at, out);
}

static rq_err make_table(rq__bench *b, const char *name, bool relations, rq_error *why)
{
    const rq_load_options *o = b->o;
    rq_client_family families[16];
    char(*keys)[RQ_ROW_DIGITS + 1] = calloc(o->regions, sizeof *keys);
    rq_slice *splits = calloc(o->regions, sizeof *splits);
    size_t family_count = rq__is_app(b) ? 1 : o->families;
    rq_err rc = RQ_OK;
    if (keys == NULL || splits == NULL) rc = rq_no_memory(why);
    for (size_t i = 0; i < family_count; i++)
        families[i] = (rq_client_family){.name = rq__is_app(b) ? "cf" : b->rows.family_names[i],
                                         .versions = rq__is_app(b) ? 1000 : 1,
                                         .compression = o->compression,
                                         .encoding = o->encoding,
                                         .bloom = o->bloom,
                                         .block_bytes = o->block_bytes};
    if (relations) families[0].name = "fans";
    for (unsigned i = 1; rc == RQ_OK && i < o->regions; i++) {
        split_key(b, i, o->regions, keys[i]);
        splits[i - 1] = rq_slice_cstr(keys[i]);
    }
    if (rc == RQ_OK)
        rc = rq_client_create_table(b->client, name, families, family_count, splits, o->regions - 1,
                                    why);
    free(keys);
    free(splits);
    return rc;
}

/* Whether every address of the host is this machine's loopback. */
static bool is_loopback(const char *host)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    bool local = getaddrinfo(host, NULL, &hints, &list) == 0 && list != NULL;
    for (const struct addrinfo *a = list; local && a != NULL; a = a->ai_next) {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        if (a->ai_family == AF_INET) {
            memcpy(&v4, a->ai_addr, sizeof v4);
            local = ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        } else {
            memcpy(&v6, a->ai_addr, sizeof v6);
            local = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        }
    }
    if (list != NULL) freeaddrinfo(list);
    return local;
}

/* Before a run changes anything on another machine, prints the cluster and the tables, so that a
 * mistyped address is noticed. */
static void announce(const rq__bench *b, const rq__table_names *n)
{
    uint16_t port;
    const char *host = rq_client_master_host(b->client, &port);
    FILE *out = b->o->notices;
    if (out == NULL || is_loopback(host)) return;
    fprintf(out, "about to %s on the cluster of master %s:",
            b->o->reuse     ? "use existing tables"
            : b->o->replace ? "replace tables"
                            : "create tables",
            RQ_HOST_PORT(host, port));
    for (int i = 0; i < n->count; i++)
        fprintf(out, " %s", n->name[i]);
    fprintf(out, "\n");
    fflush(out);
}

/* Drops a table of this name if the options allow it; otherwise its existence is an error. */
static rq_err remove_existing(rq__bench *b, const char *name, rq_error *why)
{
    bool exists = false;
    RQ_TRY(rq_client_table_exists(b->client, name, &exists, why));
    if (!exists) return RQ_OK;
    if (b->o->replace) return rq_client_drop_table(b->client, name, why);
    return rq_fail(why, RQ_E_TABLE_EXISTS,
                   "table %s exists: use --replace to drop it, --reuse to use it with its rows, or "
                   "--table NAME for another name",
                   name);
}

rq_err rq__make_tables(rq__bench *b, rq_error *why)
{
    rq_client_table **tables[] = {&b->table, &b->content, &b->relations};
    rq__table_names n = rq__table_names_of(b);
    announce(b, &n);
    /* All names are checked before the first table is created: a refused run changes nothing. */
    for (int i = 0; !b->o->reuse && i < n.count; i++)
        RQ_TRY(remove_existing(b, n.name[i], why));
    for (int i = 0; i < n.count; i++) {
        if (!b->o->reuse) {
            RQ_TRY(make_table(b, n.name[i], i == 2, why));
            b->tables_made = i + 1;
        }
        RQ_TRY(rq_client_table_open(b->client, n.name[i], tables[i], why));
    }
    return RQ_OK;
}

rq_err rq__drop_tables(rq__bench *b, rq_error *why)
{
    rq__table_names n = rq__table_names_of(b);
    for (int i = 0; i < b->tables_made; i++)
        RQ_TRY(rq_client_drop_table(b->client, n.name[i], why));
    return RQ_OK;
}
