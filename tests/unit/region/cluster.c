/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. */
#include "cluster.h"

#include "wal/head.h"

void cluster_start(cluster *c, cluster_server *s)
{
    rq_error why = {.code = RQ_OK};
    (void)snprintf(s->name, sizeof s->name, "host%d,16020,%u", (int)(s - c->servers),
                   ++c->start_code);
    assert_ok(rq_tenure_begin(s->shared, s->name, &s->tenure, NULL));
    rq_engine_options o = {.config = s->f.config, .tenure = s->tenure, .server_name = s->name};
    if (rq_engine_open(s->f.env, &o, &s->f.engine, &why) != RQ_OK) fail_msg("%s", why.message);
}

void cluster_init(cluster *c)
{
    static const family_def families[] = {{"a", {"IS_MOB", "true", "MOB_THRESHOLD", "100", NULL}},
                                          {"b", {NULL}}};
    *c = (cluster){0};
    assert_ok(rq_sim_new(1, NULL, &c->sim));
    assert_ok(rq_sim_storage_new(c->sim, 0, &c->storage));
    for (unsigned i = 0; i < SERVERS; i++) {
        cluster_server *s = &c->servers[i];
        s->f.env = rq_sim_env(c->sim);
        s->f.schema = make_schema("default", "t", families, 2);
        assert_ok(rq_config_new(&s->f.config));
        assert_ok(rq_region_info_make(&s->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      (rq_slice){0}, (rq_slice){0}, 1700000000000, 0, &s->f.info));
        assert_ok(rq_sim_node_new(c->storage, 1000 + i, 0, &s->node));
        s->shared = rq_sim_node_shared(s->node);
        cluster_start(c, s);
    }
    assert_ok(rq_region_create(c->servers[0].f.engine, &c->servers[0].f.info,
                               c->servers[0].f.schema, NULL));
}

rq_err cluster_open(cluster_server *s, rq_error *why)
{
    return rq_region_open(s->f.engine, &s->f.info, s->f.schema, &s->f.region, why);
}

rq_err cluster_close(cluster_server *s, bool abort)
{
    rq_err rc = rq_region_close(s->f.region, abort, NULL);
    if (rc != RQ_OK) return rc;
    rq_region_unref(s->f.region);
    s->f.region = NULL;
    return RQ_OK;
}

void cluster_crash(cluster *c, cluster_server *s)
{
    rq_wal_abort(rq_engine_wal(s->f.engine));
    if (s->f.region != NULL) assert_ok(cluster_close(s, true));
    rq_sim_run(c->sim);
    (void)!rq_engine_close(s->f.engine, false, NULL);
    s->f.engine = NULL;
    rq_tenure_free(s->tenure);
    s->tenure = NULL;
}

void cluster_end(cluster *c)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (c->servers[i].f.engine != NULL) cluster_crash(c, &c->servers[i]);
    for (unsigned i = 0; i < SERVERS; i++) {
        rq_sim_node_free(c->servers[i].node);
        rq_table_schema_unref(c->servers[i].f.schema);
        rq_config_free(c->servers[i].f.config);
        rq_arena_clear(&c->servers[i].f.arena);
    }
    rq_sim_storage_free(c->storage);
    rq_sim_free(c->sim);
}

void cluster_fence(cluster_server *by, const char *name)
{
    uint64_t quiet_ns;
    assert_ok(rq_wal_fence(by->shared, name, by->name, &quiet_ns, NULL));
}

void cluster_manifest(cluster_server *s, rq__manifest *m)
{
    uint64_t generation;
    assert_ok(
        rq__owned_read(s->f.engine->cluster, s->f.info.encoded, &s->f.arena, m, &generation, NULL));
}

size_t cluster_keys(cluster_server *s, const char *log)
{
    const char **keys;
    size_t count;
    assert_ok(rq_wal_needed_by(s->shared, log, &s->f.arena, &keys, &count, NULL));
    return count;
}
