/* SPDX-License-Identifier: Apache-2.0 */
/* A server and its client; see cluster.h. */
#include "cluster.h"

#include "../base/unit.h"

#include <ftw.h>
#include <unistd.h>

static const char *const settings[][2] = {
    {"rorqual.memory", "64m"},     {"hbase.zookeeper.property.clientPort", "0"},
    {"hbase.master.port", "0"},    {"hbase.regionserver.port", "0"},
    {"rorqual.log.level", "warn"}, {"rorqual.http.address", "none"},
};

static const char *const quota_settings[][2] = {
    {"hbase.quota.enabled", "true"},
    {"hbase.quota.default.user.machine.request.num", "1000000"},
};

static void set_all(cluster *c, const char *const list[][2], size_t count)
{
    rq_error why = {0};
    for (size_t i = 0; i < count; i++)
        if (rq_config_set(c->config, list[i][0], list[i][1], &why) != RQ_OK)
            fail_msg("%s", why.message);
}

static void start(cluster *c, const char *folder, const struct rq_gate_policy *policy,
                  const rq_transform_kind *transform, bool quotas)
{
    rq_error why = {0};
    char made[64] = "/tmp/rorqual-test-XXXXXX";
    if (folder == NULL) assert_non_null(folder = mkdtemp(made));
    *c = (cluster){.log = {.fd = STDERR_FILENO}};
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    assert_int_equal(rq_config_new(&c->config), RQ_OK);
    set_all(c, settings, RQ_ARRAY_LEN(settings));
    if (quotas) set_all(c, quota_settings, RQ_ARRAY_LEN(quota_settings));
    rq_server_options o = {.data = c->folder,
                           .listen = "127.0.0.1",
                           .config = c->config,
                           .log = &c->log,
                           .policy = policy,
                           .transform = transform};
    if (rq_server_open(&o, &c->server, &why) != RQ_OK) fail_msg("%s", why.message);
    uint16_t zk, rs;
    const char *host = rq_server_host(c->server, &zk, &rs);
    snprintf(c->zookeeper, sizeof c->zookeeper, "%s:%u", host, zk);
}

void cluster_start(cluster *c, const char *folder, const struct rq_gate_policy *policy,
                   const rq_transform_kind *transform)
{
    start(c, folder, policy, transform, false);
}

void cluster_start_with_quotas(cluster *c, const struct rq_gate_policy *policy)
{
    start(c, NULL, policy, NULL, true);
}

void cluster_connect(cluster *c)
{
    rq_error why = {0};
    rq_client_options client = {.zookeeper = c->zookeeper, .pause_ms = 1};
    if (rq_client_open(&client, &c->client, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_int_equal(rq_op_new(c->client, 0, c, &c->op), RQ_OK);
}

void cluster_create_table(cluster *c)
{
    rq_error why = {0};
    rq_client_family family = {.name = "f"};
    if (rq_client_create_table(c->client, "t", &family, 1, NULL, 0, &why) != RQ_OK)
        fail_msg("%s", why.message);
}

void cluster_open_table(cluster *c)
{
    rq_error why = {0};
    if (rq_client_table_open(c->client, "t", &c->table, &why) != RQ_OK) fail_msg("%s", why.message);
}

static void done(rq_op *op, void *ctx, const rq_op_result *r)
{
    cluster *c = ctx;
    rq_cell cell;
    (void)op;
    c->done = true;
    c->last = *r;
    snprintf(c->text, sizeof c->text, "%.*s", (int)r->text.len, (const char *)r->text.ptr);
    if (r->err == RQ_OK && rq_result_next(&c->last.row, &c->last.cells, &cell) == RQ_OK)
        snprintf(c->value, sizeof c->value, "%.*s", (int)cell.value_len, (const char *)cell.value);
}

static rq_err finish(cluster *c, rq_err begun)
{
    assert_int_equal(begun, RQ_OK);
    while (!c->done)
        rq_client_poll(c->client, 1000000000);
    return c->last.err;
}

rq_err cluster_put(cluster *c, const char *row, const char *value)
{
    rq_cell cell = {.row = (const uint8_t *)row,
                    .row_len = (uint16_t)strlen(row),
                    .family = (const uint8_t *)"f",
                    .family_len = 1,
                    .qualifier = (const uint8_t *)"q",
                    .qualifier_len = 1,
                    .value = (const uint8_t *)value,
                    .value_len = (uint32_t)strlen(value),
                    .timestamp = INT64_MAX,
                    .type = RQ_TYPE_PUT};
    rq_mutate m = {
        .kind = RQ_MUTATE_PUT, .row = rq_slice_cstr(row), .cells = &cell, .cell_count = 1};
    c->done = false;
    return finish(c, rq_op_mutate(c->op, c->table, &m, done));
}

rq_err cluster_get(cluster *c, const char *row)
{
    rq_get get = {.row = rq_slice_cstr(row)};
    c->done = false;
    c->value[0] = '\0';
    return finish(c, rq_op_get(c->op, c->table, &get, done));
}

void cluster_stop(cluster *c)
{
    rq_error why = {0};
    rq_op_free(c->op);
    rq_client_close(c->client);
    if (rq_server_close(c->server, &why) != RQ_OK) fail_msg("%s", why.message);
    rq_config_free(c->config);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void cluster_remove_folder(cluster *c)
{
    assert_int_equal(nftw(c->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
