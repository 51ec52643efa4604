/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a cluster on a ZooKeeper that is replaced by functions of this program. After each event of ZooKeeper every
 * allocation fails once: the member still learns what has happened, within seconds.
 */
#include "../base/unit.h"

#include "../base/failing_memory.h"
#include "registry/zk_client.h"
#include "registry/zk_member.h"
#include "registry/znode_values.h"
#include "vfs/sim.h"

#define ID "0c8a7f52-1b7d-4f0e-9d62-3f6f3f1d2a77"
#define OTHER_ID "11111111-1b7d-4f0e-9d62-3f6f3f1d2a77"
#define SECONDS(n) ((uint64_t)(n)*1000000000)

static bool counting;
static uint64_t left; /* allocations until the failing one; 0: it has failed */

bool allocation_fails(void)
{
    return counting && left > 0 && --left == 0;
}

/* --- ZooKeeper ----------------------------------------------------------------------------------- */

typedef struct node {
    char path[128];
    uint8_t value[256];
    size_t len;
    uint64_t owner; /* the session; 0: the node stays */
} node;

/* One session at a time. Sessions of others have the number OTHERS. */
#define OTHERS UINT64_MAX
static node nodes[64];
static size_t node_count;
static rq__zk_options session;
static bool connected;

struct rq__zk {
    int unused;
};
static rq__zk the_session;

static node *find(const char *path)
{
    for (size_t i = 0; i < node_count; i++)
        if (strcmp(nodes[i].path, path) == 0) return &nodes[i];
    return NULL;
}

static void add(const char *path, rq_slice value, uint64_t owner)
{
    assert_true(node_count < RQ_ARRAY_LEN(nodes) && value.len <= sizeof nodes[0].value);
    node *n = &nodes[node_count++];
    snprintf(n->path, sizeof n->path, "%s", path);
    if (value.len > 0) memcpy(n->value, value.ptr, value.len);
    n->len = value.len;
    n->owner = owner;
}

static void drop(node *n)
{
    memmove(n, n + 1, (size_t)(&nodes[node_count] - (n + 1)) * sizeof *n);
    node_count--;
}

static void drop_nodes_of(uint64_t owner)
{
    for (size_t i = node_count; i-- > 0;)
        if (nodes[i].owner == owner) drop(&nodes[i]);
}

/* As an error of the library has a text. */
static rq_err refusal(rq_err rc, rq_error *why)
{
    return rq_fail(why, rc, "ZooKeeper: %s", rq_err_text(rc));
}

rq_err rq__zk_can_open(rq_error *why)
{
    (void)why;
    return RQ_OK;
}

rq_err rq__zk_open(const rq__zk_options *o, rq__zk **ret, rq_error *why)
{
    (void)why;
    session = *o;
    connected = false;
    *ret = &the_session;
    return RQ_OK;
}

void rq__zk_close(rq__zk *z)
{
    if (z != NULL) drop_nodes_of(session.session);
}

rq_err rq__zk_create(rq__zk *z, const char *path, rq_slice value, bool ephemeral, rq_error *why)
{
    (void)z;
    if (!connected) return refusal(RQ_E_TIMEOUT, why);
    if (find(path) != NULL) return refusal(RQ_E_EXISTS, why);
    add(path, value, ephemeral ? session.session : 0);
    return RQ_OK;
}

rq_err rq__zk_set(rq__zk *z, const char *path, rq_slice value, rq_error *why)
{
    (void)z;
    node *n = find(path);
    if (n == NULL) return refusal(RQ_E_NOT_FOUND, why);
    memcpy(n->value, value.ptr, value.len);
    n->len = value.len;
    return RQ_OK;
}

rq_err rq__zk_get(rq__zk *z, const char *path, bool watch, rq_arena *arena, rq__zk_node *ret,
                  rq_error *why)
{
    (void)z;
    (void)watch;
    const node *n = find(path);
    if (n == NULL) return refusal(RQ_E_NOT_FOUND, why);
    *ret = (rq__zk_node){.own = n->owner == session.session};
    ret->value = rq_arena_copy(arena, rq_slice_of(n->value, n->len));
    return ret->value.ptr == NULL ? rq_no_memory(why) : RQ_OK;
}

rq_err rq__zk_remove(rq__zk *z, const char *path, int32_t version, rq_error *why)
{
    (void)z;
    (void)version;
    node *n = find(path);
    if (n == NULL) return refusal(RQ_E_NOT_FOUND, why);
    drop(n);
    return RQ_OK;
}

rq_err rq__zk_remove_both(rq__zk *z, const char *path, int32_t version, const char *other,
                          rq_error *why)
{
    if (find(path) == NULL || find(other) == NULL) return refusal(RQ_E_NOT_FOUND, why);
    RQ_TRY(rq__zk_remove(z, path, version, why));
    return rq__zk_remove(z, other, -1, why);
}

rq_err rq__zk_children(rq__zk *z, const char *path, rq_arena *arena, const char ***ret,
                       size_t *ret_count, rq_error *why)
{
    (void)z;
    size_t len = strlen(path);
    *ret_count = 0;
    *ret = rq_arena_calloc(arena, node_count + 1, sizeof **ret);
    if (*ret == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < node_count; i++) {
        const char *p = nodes[i].path;
        if (strncmp(p, path, len) != 0 || p[len] != '/' || strchr(p + len + 1, '/') != NULL)
            continue;
        (*ret)[*ret_count] = rq_arena_cstr(arena, rq_slice_cstr(p + len + 1));
        if ((*ret)[(*ret_count)++] == NULL) return rq_no_memory(why);
    }
    return RQ_OK;
}

/* --- the member ------------------------------------------------------------------------------------ */

typedef struct fixture {
    rq_sim *sim;
    rq_member *member;
    rq_arena arena; /* of the last view */
    rq_member_view view;
    rq_task task;
    rq__zk_event_kind event;
} fixture;

static void deliver(rq_task *task)
{
    const fixture *f = RQ_CONTAINER_OF(task, fixture, task);
    session.event(session.ctx, session.session, f->event);
}

/* The event of the session, while the `failing`-th allocation after it fails. False: there was none. */
static bool tell(fixture *f, rq__zk_event_kind event, uint64_t failing)
{
    connected = event == RQ__ZK_CONNECTED || event == RQ__ZK_CHANGED;
    f->event = event;
    f->task.run = deliver;
    left = failing;
    counting = failing > 0;
    rq_lane_post(session.lane, &f->task);
    rq_sim_run(f->sim);
    counting = false;
    return failing > 0 && left == 0;
}

static const rq_member_view *look(fixture *f)
{
    rq_arena_clear(&f->arena);
    assert_int_equal(rq_member_look(f->member, &f->arena, &f->view), RQ_OK);
    return &f->view;
}

static void add_other_master(void)
{
    rq_arena a = {0};
    rq_slice value;
    const rq_server_name name = {
        .host = "other", .port = 16000, .start_code = 1, .text = "other,16000,1"};
    assert_int_equal(rq__znode_master(name.text, &name, 0, &a, &value), RQ_OK);
    add("/hbase/master", value, OTHERS);
    rq_arena_clear(&a);
}

static void add_cluster_id(const char *id)
{
    rq_arena a = {0};
    rq_slice value;
    assert_int_equal(rq__znode_cluster_id("other,16000,1", id, &a, &value), RQ_OK);
    add("/hbase/hbaseid", value, 0);
    rq_arena_clear(&a);
}

/* A standby, which has a session. */
static void join(fixture *f)
{
    rq_error why = {0};
    *f = (fixture){0};
    add_other_master();
    assert_int_equal(rq_sim_new(1, NULL, &f->sim), RQ_OK);
    const rq_member_options o = {
        .executor = rq_sim_env(f->sim)->executor,
        .quorum = "h:1",
        .root = "/hbase",
        .session_ms = 1000,
        .server = {.host = "h", .port = 16020, .start_code = 2, .text = "h,16020,2"},
        .master = {.host = "h", .port = 16000, .start_code = 2, .text = "h,16000,2"},
        .cluster_id = ID};
    assert_int_equal(rq_member_open(&o, &f->member, &why), RQ_OK);
    rq_sim_advance(f->sim, 1000000); /* it opens its session */
    (void)tell(f, RQ__ZK_CONNECTED, 0);
    assert_int_equal(look(f)->state, RQ_MEMBER_STANDBY);
    assert_string_equal(f->view.active, "other,16000,1");
    assert_false(f->view.is_shut_down);
}

/* Joins a new cluster. */
static void setup(fixture *f)
{
    node_count = 0;
    join(f);
}

static void teardown(fixture *f)
{
    rq_member_close(f->member);
    rq_arena_clear(&f->arena);
    rq_sim_free(f->sim);
}

static bool takes_over(fixture *f, uint64_t failing)
{
    drop_nodes_of(OTHERS);
    bool failed = tell(f, RQ__ZK_CHANGED, failing);
    rq_sim_advance(f->sim, SECONDS(2));
    assert_int_equal(look(f)->state, RQ_MEMBER_ACTIVE);
    assert_true(f->view.connected);
    assert_int_equal(f->view.server_count, 1);
    assert_string_equal(f->view.active, "h,16000,2");
    return failed;
}

static bool hears_a_disconnection(fixture *f, uint64_t failing)
{
    bool failed = tell(f, RQ__ZK_DISCONNECTED, failing);
    assert_false(look(f)->connected);
    assert_int_equal(f->view.state, RQ_MEMBER_STANDBY);
    assert_string_equal(f->view.active, "other,16000,1");
    (void)tell(f, RQ__ZK_CONNECTED, 0);
    assert_true(look(f)->connected);
    return failed;
}

static bool joins_again_after_an_expiry(fixture *f, uint64_t failing)
{
    drop_nodes_of(session.session);
    bool failed = tell(f, RQ__ZK_EXPIRED, failing);
    assert_int_equal(look(f)->state, RQ_MEMBER_JOINING);
    assert_false(f->view.connected);
    assert_int_equal(f->view.server_count, 0);
    (void)tell(f, RQ__ZK_CONNECTED, 0);
    assert_int_equal(look(f)->state, RQ_MEMBER_STANDBY);
    return failed;
}

static bool is_refused_by_another_cluster(fixture *f, uint64_t failing)
{
    drop(find("/hbase/hbaseid"));
    add_cluster_id(OTHER_ID);
    bool failed = tell(f, RQ__ZK_CHANGED, failing);
    for (int i = 0; i < 4; i++) { /* it may have closed its session and opened another one */
        rq_sim_advance(f->sim, SECONDS(1));
        if (look(f)->state != RQ_MEMBER_REFUSED) (void)tell(f, RQ__ZK_CONNECTED, 0);
    }
    assert_int_equal(look(f)->state, RQ_MEMBER_REFUSED);
    assert_non_null(strstr(f->view.trouble, OTHER_ID));
    assert_null(find("/hbase/rs/h,16020,2"));
    return failed;
}

static bool hears_a_shutdown(fixture *f, uint64_t failing)
{
    drop(find("/hbase/running"));
    bool failed = tell(f, RQ__ZK_CHANGED, failing);
    rq_sim_advance(f->sim, SECONDS(2));
    assert_true(look(f)->is_shut_down);
    assert_null(find("/hbase/running"));
    return failed;
}

static bool shuts_down(fixture *f, uint64_t failing)
{
    (void)takes_over(f, 0);
    assert_false(look(f)->is_shut_down);
    left = failing;
    counting = failing > 0;
    rq_err rc = rq_member_end_cluster(f->member);
    rq_sim_run(f->sim);
    counting = false;
    if (rc != RQ_OK) assert_int_equal(rq_member_end_cluster(f->member), RQ_OK);
    rq_sim_advance(f->sim, SECONDS(2));
    assert_true(look(f)->is_shut_down);
    assert_null(find("/hbase/running"));
    return failing > 0 && left == 0;
}

/* ZooKeeper has lost its data. */
static bool makes_a_lost_root_again(fixture *f, uint64_t failing)
{
    node_count = 0;
    (void)tell(f, RQ__ZK_EXPIRED, 0);
    assert_false(look(f)->is_shut_down);
    bool failed = tell(f, RQ__ZK_CONNECTED, failing);
    assert_false(look(f)->is_shut_down);
    rq_sim_advance(f->sim, SECONDS(2));
    assert_int_equal(look(f)->state, RQ_MEMBER_ACTIVE);
    assert_false(f->view.is_shut_down);
    assert_non_null(find("/hbase/running"));
    assert_non_null(find("/hbase/hbaseid"));
    return failed;
}

/* Until no allocation is left that could fail. */
static unsigned fail_each(bool (*scene)(fixture *f, uint64_t failing))
{
    unsigned failures = 0;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        fixture f;
        setup(&f);
        failed = scene(&f, n);
        failures += failed;
        teardown(&f);
    }
    return failures;
}

static void a_standby_takes_over_whatever_allocation_fails(void **state)
{
    (void)state;
    assert_true(fail_each(takes_over) > 0);
}

static void the_loss_of_a_session_is_known_whatever_allocation_fails(void **state)
{
    (void)state;
    (void)fail_each(hears_a_disconnection); /* needs no memory */
    (void)fail_each(joins_again_after_an_expiry);
}

static void another_cluster_is_refused_whatever_allocation_fails(void **state)
{
    (void)state;
    assert_true(fail_each(is_refused_by_another_cluster) > 0);
}

static void a_shutdown_is_known_whatever_allocation_fails(void **state)
{
    (void)state;
    assert_true(fail_each(hears_a_shutdown) > 0);
    assert_true(fail_each(shuts_down) > 0);
}

static void a_lost_root_is_no_shutdown_whatever_allocation_fails(void **state)
{
    (void)state;
    assert_true(fail_each(makes_a_lost_root_again) > 0);
}

/* Before the first master has created the node `running`, its absence is no order to shut down; afterwards it is. */
static void a_cluster_starts_after_a_shutdown(void **state)
{
    fixture f;
    (void)state;
    node_count = 0;
    add_cluster_id(ID);
    join(&f);
    assert_null(find("/hbase/running"));
    (void)takes_over(&f, 0);
    assert_false(look(&f)->is_shut_down);
    assert_non_null(find("/hbase/running"));
    (void)hears_a_shutdown(&f, 0);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standby_takes_over_whatever_allocation_fails),
        cmocka_unit_test(the_loss_of_a_session_is_known_whatever_allocation_fails),
        cmocka_unit_test(another_cluster_is_refused_whatever_allocation_fails),
        cmocka_unit_test(a_shutdown_is_known_whatever_allocation_fails),
        cmocka_unit_test(a_lost_root_is_no_shutdown_whatever_allocation_fails),
        cmocka_unit_test(a_cluster_starts_after_a_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
