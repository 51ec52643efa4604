/* SPDX-License-Identifier: Apache-2.0 */
/* Servers on simulated shared storage; see shared_world.h. */
#include "shared_world.h"

#define MS UINT64_C(1000000)

uint64_t world_below(world *w, uint64_t bound)
{
    return rq_random_below(&w->random, bound);
}

void world_sleep_ms(world *w, uint64_t ms)
{
    w->executor->sleep(w->executor, ms * MS + 1);
}

void world_stand_still(world_node *n)
{
    while (n->paused && !n->dead)
        world_sleep_ms(n->world, 5 + world_below(n->world, 15));
}

/* --- a node's access to the folder ---------------------------------------------------------- */

/* Forwards to the simulated disk. A dead node's calls fail. */
typedef struct node_vfs {
    rq_vfs base;
    rq_vfs *disk;
    world_node *node;
} node_vfs;

typedef struct node_file {
    rq_file base;
    rq_file *file;
} node_file;

static rq_err gate(world_node *n, rq_error *why)
{
    if (world_below(n->world, 4) == 0) world_sleep_ms(n->world, world_below(n->world, 20));
    world_stand_still(n);
    return n->dead ? rq_fail(why, RQ_E_IO, "the node is dead") : RQ_OK;
}

static node_vfs *vfs_of(rq_vfs *v)
{
    return (node_vfs *)v;
}

static rq_file *file_of(rq_file *f)
{
    return ((node_file *)f)->file;
}

static world_node *node_of(rq_file *f)
{
    return vfs_of(f->vfs)->node;
}

static rq_err node_open(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    rq_file *inner;
    RQ_TRY(rq_vfs_open(vfs_of(v)->disk, path, flags, &inner, why));
    node_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->base.vfs = v;
    f->file = inner;
    *ret = &f->base;
    return RQ_OK;
}

static rq_err node_close(rq_file *f)
{
    rq_err rc = rq_file_close(file_of(f));
    free(f);
    return rc;
}

static rq_err node_read(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                        rq_error *why)
{
    RQ_TRY(gate(node_of(f), why));
    return rq_file_read(file_of(f), buf, len, off, ret_len, why);
}

static rq_err node_write(rq_file *f, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    /* Writes in two parts, possibly with a pause between them. */
    size_t first = len < 2 ? len : world_below(node_of(f)->world, len);
    RQ_TRY(gate(node_of(f), why));
    if (first > 0) RQ_TRY(rq_file_write(file_of(f), buf, first, off, why));
    if (first == len) return RQ_OK;
    RQ_TRY(gate(node_of(f), why));
    return rq_file_write(file_of(f), (const char *)buf + first, len - first, off + first, why);
}

static rq_err node_sync(rq_file *f, rq_error *why)
{
    RQ_TRY(gate(node_of(f), why));
    RQ_TRY(rq_file_sync(file_of(f), why));
    return gate(node_of(f), why); /* the process may pause between the sync and the next call */
}

static rq_err node_size(rq_file *f, uint64_t *ret, rq_error *why)
{
    RQ_TRY(gate(node_of(f), why));
    return rq_file_size(file_of(f), ret, why);
}

static rq_err node_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    return rq_vfs_stat(vfs_of(v)->disk, path, ret, why);
}

static rq_err node_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                        size_t *ret_count, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    return rq_vfs_list(vfs_of(v)->disk, dir, arena, ret, ret_count, why);
}

static rq_err node_mkdir(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    return rq_vfs_mkdir(vfs_of(v)->disk, path, why);
}

static rq_err node_remove(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    if (vfs_of(v)->node->keeps_temporaries && strstr(path, "/tmp-") != NULL)
        return rq_fail(why, RQ_E_IO, "cannot remove %s", path);
    return rq_vfs_remove(vfs_of(v)->disk, path, why);
}

static rq_err node_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    world_node *n = vfs_of(v)->node;
    if (n->stops_at_link) world_pause(n, true);
    n->stops_at_link = false;
    RQ_TRY(gate(n, why));
    return rq_vfs_link(vfs_of(v)->disk, from, to, why);
}

static rq_err node_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    RQ_TRY(gate(vfs_of(v)->node, why));
    return rq_vfs_sync_dir(vfs_of(v)->disk, dir, why);
}

static const rq_vfs node_functions = {
    .open = node_open,
    .close = node_close,
    .read = node_read,
    .write = node_write,
    .sync = node_sync,
    .size = node_size,
    .stat = node_stat,
    .list = node_list,
    .mkdir = node_mkdir,
    .remove = node_remove,
    .link = node_link,
    .sync_dir = node_sync_dir,
};

static uint64_t node_clock(void *ctx)
{
    const world_node *n = ctx;
    uint64_t now = n->world->executor->now_ns(n->world->executor);
    return n->offset_ns + now + (uint64_t)((int64_t)now / 1000000 * n->rate_ppm);
}

/* --- the world ------------------------------------------------------------------------------ */

static void open_node(world_node *n)
{
    world *w = n->world;
    if (w->form == FORM_MESSAGES) {
        assert_int_equal(rq_sim_node_new(w->storage, n->offset_ns, n->rate_ppm, &n->sim), RQ_OK);
        n->shared = rq_sim_node_shared(n->sim);
        return;
    }
    n->vfs = calloc(1, sizeof *n->vfs);
    assert_non_null(n->vfs);
    *n->vfs = (node_vfs){.base = node_functions, .disk = rq_sim_env(w->sim)->vfs, .node = n};
    assert_int_equal(rq_shared_posix_new(&n->vfs->base, w->executor, node_clock, n, &n->shared),
                     RQ_OK);
}

void world_open(world *w, world_form form, uint64_t seed, unsigned unanswered)
{
    *w = (world){.form = form, .seed = seed};
    rq_random_seed(&w->random, seed);
    assert_int_equal(rq_sim_new(seed, NULL, &w->sim), RQ_OK);
    w->executor = rq_sim_env(w->sim)->executor;
    if (form == FORM_MESSAGES)
        assert_int_equal(rq_sim_storage_new(w->sim, unanswered, &w->storage), RQ_OK);
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        w->nodes[i] = (world_node){.world = w, .index = i};
        w->nodes[i].offset_ns = 1000 * MS + world_below(w, UINT64_C(1) << 50);
        w->nodes[i].rate_ppm = (int)world_below(w, 10000) - 5000;
        open_node(&w->nodes[i]);
    }
}

void world_close(world *w)
{
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        rq_shared_free(w->nodes[i].shared);
        rq_sim_node_free(w->nodes[i].sim);
        free(w->nodes[i].vfs);
    }
    rq_sim_storage_free(w->storage);
    rq_sim_free(w->sim);
}

void world_pause(world_node *n, bool paused)
{
    n->paused = paused;
    if (n->sim != NULL) rq_sim_node_pause(n->sim, paused);
}

void world_cut(world_node *n, bool cut)
{
    if (n->sim != NULL) rq_sim_node_cut(n->sim, cut);
}

void world_kill(world_node *n)
{
    n->dead = true;
    if (n->sim != NULL) rq_sim_node_kill(n->sim);
}

bool world_fault(world_node *n, world_chances chances)
{
    world *w = n->world;
    unsigned kind = (unsigned)world_below(w, 30);
    world_sleep_ms(w, world_below(w, 1200));
    if (kind < chances.pause) {
        world_pause(n, true);
        world_sleep_ms(w, world_below(w, kind < 3 ? 6000 : 1500));
        world_pause(n, false);
    } else if (kind < chances.pause + chances.cut) {
        world_cut(n, true);
        world_sleep_ms(w, world_below(w, 2500));
        world_cut(n, false);
    } else if (kind < chances.pause + chances.cut + chances.kill && n->index != 1) {
        world_kill(n);
        return true;
    }
    return false;
}

static void run_task(rq_task *task)
{
    world_task *t = RQ_CONTAINER_OF(task, world_task, task);
    t->run(t);
    t->world->running--;
}

void world_start(world_task *t, world *w, world_node *n, void (*run)(world_task *t))
{
    t->task.run = run_task;
    t->world = w;
    t->node = n;
    t->run = run;
    w->running++;
    w->executor->submit(w->executor, RQ_POOL_WORK, &t->task);
}

void world_run(world *w)
{
    while (w->running > 0)
        rq_sim_advance(w->sim, 50 * MS);
}
