/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk's calls: the functions of the file system (vfs.h). Each call is numbered; at
 * each, the power may fail or an error be injected, and then the call is done partly or not at all.
 *
 * A failed sync behaves as on Linux: its sectors may or may not reach the disk, and count as clean
 * afterwards. A second sync of the same file succeeds and makes none of them durable. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vfs/reads_priv.h"
#include "vfs/sim_disk_priv.h"

typedef struct sim_file {
    rq_file base;
    inode *node;
    uint64_t life; /* of the disk, when it was opened */
    bool writable;
    bool holds_lock;
    char path[];
} sim_file;

rq_vfs *rq__sim_disk_vfs(sim_disk *d)
{
    return &d->vfs;
}

/* --- calls -------------------------------------------------------------------------------- */

/* The outcome of a call: complete, or failed, perhaps partly done. */
typedef enum fate {
    FATE_RUN,
    FATE_FAIL,        /* nothing happens */
    FATE_FAIL_PARTLY, /* partly done, or done but reported as failed */
} fate;

static rq_err no_power(rq_error *why, const char *verb, const char *path)
{
    return rq_fail(why, RQ_E_IO, "cannot %s %s: the power is off", verb, path);
}

/* Numbers the call and decides its fate. `changes`: it creates, writes or syncs. *ret_rc is the
 * error. */
static fate call_begin(sim_disk *d, const char *verb, const char *path, bool changes,
                       rq_err *ret_rc, rq_error *why)
{
    if (d->cut) {
        *ret_rc = no_power(why, verb, path);
        return FATE_FAIL;
    }
    d->calls++;
    rq__sim_executor_tick(d->sim->executor, 1000 + rq_random_below(&d->random, 50000));
    if (d->trace) fprintf(stderr, "%llu %s %s\n", (unsigned long long)d->calls, verb, path);
    rq__writeback_some(d);
    if (d->calls == d->cut_at) {
        d->cut = true;
        *ret_rc = no_power(why, verb, path);
        return rq__sim_chance(d, 50) ? FATE_FAIL_PARTLY : FATE_FAIL;
    }
    for (size_t i = 0; i < FAILS_MAX; i++) {
        if (d->fails[i].call != d->calls) continue;
        d->fails[i].call = 0;
        *ret_rc = rq_fail(why, d->fails[i].rc, "cannot %s %s: injected failure", verb, path);
        return rq__sim_chance(d, 50) ? FATE_FAIL_PARTLY : FATE_FAIL;
    }
    /* Written bytes have their space: a full disk does not prevent their sync. */
    bool spares = d->fail_writes == RQ_E_NO_SPACE && strncmp(verb, "sync", 4) == 0;
    if (changes && d->fail_writes != RQ_OK && !spares) {
        *ret_rc = rq_fail(why, d->fail_writes, "cannot %s %s: injected failure", verb, path);
        return FATE_FAIL;
    }
    *ret_rc = RQ_OK;
    return FATE_RUN;
}

static sim_disk *disk_of(rq_vfs *v)
{
    return (sim_disk *)v;
}

/* The open file's inode, unless it was opened before a restart. */
static inode *node_of(const sim_file *f)
{
    return f->life == disk_of(f->base.vfs)->life ? f->node : NULL;
}

static rq_err file_new(sim_disk *d, inode *n, const char *path, bool writable, sim_file **ret)
{
    size_t len = strlen(path) + 1;
    sim_file *f = calloc(1, sizeof *f + len);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->base.vfs = &d->vfs;
    f->node = rq__inode_ref(n);
    f->life = d->life;
    f->writable = writable;
    memcpy(f->path, path, len);
    *ret = f;
    return RQ_OK;
}

static rq_err no_space(rq_error *why, const char *verb, const char *path)
{
    return rq_fail(why, RQ_E_NO_SPACE, "cannot %s %s: no space left on the simulated disk", verb,
                   path);
}

/* A new inode under a new name. */
static rq_err create(sim_disk *d, const char *path, bool is_dir, inode **ret, rq_error *why)
{
    const char *name;
    inode *parent = rq__walk_parent(d, path, &name);
    if (parent == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot create %s: no folder", path);
    if (rq__dir_child(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot create %s: it exists", path);
    if (rq__sim_bytes_free(d) < SECTOR) return no_space(why, "create", path);
    inode *n = rq__inode_new(d, is_dir);
    if (n == NULL) return rq_no_memory(why);
    n->mtime_ms = d->sim->env.executor->now_ms(d->sim->env.executor);
    n->refs = 1;
    rq_err rc = rq__entry_set(d, parent, name, n);
    inode *kept = rc == RQ_OK ? n : NULL;
    rq__inode_unref(d, n);
    if (rc == RQ_OK) *ret = kept;
    return rc;
}

static rq_err disk_open(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    bool creates = (flags & RQ_OPEN_CREATE) != 0;
    fate how = call_begin(d, creates ? "create" : "open", path, creates, &rc, why);
    if (how == FATE_FAIL || (how == FATE_FAIL_PARTLY && !creates)) return rc;
    inode *n = rq__walk(d, path);
    if (n != NULL && how == FATE_FAIL_PARTLY) return rc;
    if (n != NULL && n->is_dir) return rq_fail(why, RQ_E_CORRUPT, "cannot open %s: a folder", path);
    if (n != NULL && (flags & RQ_OPEN_EXCL) != 0)
        return rq_fail(why, RQ_E_EXISTS, "cannot create %s: it exists", path);
    if (n == NULL && !creates)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot open %s: not found", path);
    if (n == NULL) {
        rq_err made = create(d, path, false, &n, why);
        if (how == FATE_FAIL_PARTLY) return rc;
        RQ_TRY(made);
    }
    sim_file *f;
    RQ_TRY(file_new(d, n, path, (flags & RQ_OPEN_WRITE) != 0, &f));
    *ret = &f->base;
    return RQ_OK;
}

static rq_err disk_close(rq_file *base)
{
    sim_file *f = (sim_file *)base;
    sim_disk *d = disk_of(base->vfs);
    if (f->holds_lock && node_of(f) != NULL) {
        f->node->locked = false;
        d->root->locked = false;
    }
    rq__inode_unref(d, f->node);
    free(f);
    return RQ_OK;
}

/* Called first by every call on an open file. */
static fate file_begin(sim_file *f, const char *verb, bool changes, inode **ret, rq_err *ret_rc,
                       rq_error *why)
{
    sim_disk *d = disk_of(f->base.vfs);
    *ret = node_of(f);
    if (*ret == NULL) {
        *ret_rc = rq_fail(why, RQ_E_IO, "cannot %s %s: opened before the restart", verb, f->path);
        return FATE_FAIL;
    }
    if (changes && !f->writable) {
        *ret_rc = rq_fail(why, RQ_E_IO, "cannot %s %s: opened for reading", verb, f->path);
        return FATE_FAIL;
    }
    return call_begin(d, verb, f->path, changes, ret_rc, why);
}

static size_t node_read(const inode *n, void *buf, size_t len, uint64_t off)
{
    if (off >= n->size) return 0;
    if (len > n->size - off) len = (size_t)(n->size - off);
    memcpy(buf, n->now + off, len);
    return len;
}

static rq_err disk_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                        rq_error *why)
{
    inode *n;
    rq_err rc;
    if (file_begin((sim_file *)base, "read", false, &n, &rc, why) != FATE_RUN) return rc;
    *ret_len = len == 0 ? 0 : node_read(n, buf, len, off);
    return RQ_OK;
}

static rq_err disk_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    sim_disk *d = disk_of(base->vfs);
    const inode *n = node_of((sim_file *)base);
    if (n == NULL || d->cut) return RQ_E_IO;
    if (rq__sim_chance(d, d->sim->options.again_percent)) return RQ_E_AGAIN;
    *ret_len = len == 0 ? 0 : node_read(n, buf, len, off);
    return RQ_OK;
}

/* A begun read that ends. */
static void run_begun(rq_task *task)
{
    rq_read *r = RQ_CONTAINER_OF(task, rq_read, work);
    sim_disk *d = disk_of(r->file->vfs);
    const inode *n = node_of((sim_file *)r->file);
    int32_t got = -EIO;
    if (n != NULL && !d->cut && !rq__sim_chance(d, 12)) {
        got = (int32_t)node_read(n, r->bytes, r->len, r->from);
        if (got > 0 && rq__sim_chance(d, 12))
            got = (int32_t)rq_random_below(&d->random, (uint64_t)got);
    }
    rq__read_ended(r, got);
}

static bool disk_begin_read(rq_file *base, rq_reads *q, rq_read *r, uint64_t off, size_t len)
{
    sim_disk *d = disk_of(base->vfs);
    rq_executor *executor = d->sim->env.executor;
    if (d->sim->options.begin_percent == 0 || !rq__sim_chance(d, d->sim->options.begin_percent) ||
        !rq__read_take(q, r, off, len))
        return false;
    r->file = base;
    r->work.run = run_begun;
    executor->submit(executor, RQ_POOL_READ, &r->work);
    return true;
}

static void disk_drop_behind(rq_file *base, uint64_t off, uint64_t len)
{
    (void)off;
    disk_of(base->vfs)->dropped += len;
}

/* Returns every plan for some part of a file. */
static rq_read_plan disk_plan_read(rq_file *base, uint64_t off, uint64_t len)
{
    static const rq_read_plan plans[] = {RQ_READ_PAST, RQ_READ_PAST, RQ_READ_CACHED, RQ_READ_AHEAD};
    (void)base;
    (void)len;
    return plans[(off >> 13) % RQ_ARRAY_LEN(plans)];
}

static rq_err disk_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    sim_disk *d = disk_of(base->vfs);
    inode *n;
    rq_err rc;
    fate how = file_begin((sim_file *)base, "write", true, &n, &rc, why);
    if (how == FATE_FAIL) return rc;
    n->mtime_ms = d->sim->env.executor->now_ms(d->sim->env.executor);
    uint64_t end = rq__end_with_room(d, n, off + len);
    size_t fits = end >= off + len ? len : end > off ? (size_t)(end - off) : 0;
    if (how == FATE_RUN && fits == len) return rq__inode_write(d, n, buf, len, off);
    if (how == FATE_RUN) { /* a partial read at the end, like a real disk */
        rq_err some = rq__inode_write(d, n, buf, fits, off);
        return some != RQ_OK ? some : no_space(why, "write", ((sim_file *)base)->path);
    }
    len = fits;
    rq_err partly = rq__inode_write(d, n, buf, rq_random_below(&d->random, len + 1), off);
    (void)partly;
    return rc;
}

static rq_err disk_sync(rq_file *base, rq_error *why)
{
    sim_disk *d = disk_of(base->vfs);
    inode *n;
    rq_err rc;
    fate how = file_begin((sim_file *)base, "sync", true, &n, &rc, why);
    if (d->sim->options.ignore_sync) return rc;
    if (how == FATE_RUN) rq__inode_sync(d, n);
    /* After a power cut, restart decides about the sectors; otherwise the kernel forgets them. */
    if (how != FATE_RUN && n != NULL && !d->cut) rq__inode_sync_failed(d, n);
    return rc;
}

static rq_err disk_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    sim_disk *d = disk_of(base->vfs);
    inode *n;
    rq_err rc;
    fate how = file_begin((sim_file *)base, "truncate", true, &n, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = rq__inode_truncate(d, n, size);
    return how == FATE_RUN ? done : rc;
}

static rq_err disk_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    sim_file *f = (sim_file *)base;
    const inode *n = node_of(f);
    if (n == NULL || disk_of(base->vfs)->cut) return no_power(why, "stat", f->path);
    *ret = n->size;
    return RQ_OK;
}

static rq_err disk_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    const sim_file *f = (sim_file *)base;
    const inode *n = node_of(f);
    if (n == NULL || disk_of(base->vfs)->cut) return no_power(why, "stat", f->path);
    *ret = (rq_file_id){.inode = (uintptr_t)n,
                        .size = n->size,
                        .written_ns = n->mtime_ms * 1000000,
                        .changed_ns = n->mtime_ms * 1000000};
    return RQ_OK;
}

static rq_err disk_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    if (call_begin(d, "stat", path, false, &rc, why) != FATE_RUN) return rc;
    const inode *n = rq__walk(d, path);
    if (n == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot stat %s: not found", path);
    *ret = (rq_stat){.size = n->size, .mtime_ms = n->mtime_ms, .is_dir = n->is_dir};
    return RQ_OK;
}

static rq_err disk_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                        size_t *ret_count, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    if (call_begin(d, "list", dir, false, &rc, why) != FATE_RUN) return rc;
    const inode *n = rq__walk(d, dir);
    if (n == NULL || !n->is_dir)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot list %s: no folder", dir);
    size_t count = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next)
        count += e->now != NULL;
    rq_dir_entry *out = rq_arena_calloc(arena, count + 1, sizeof *out);
    if (out == NULL) return rq_no_memory(why);
    size_t i = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next) {
        if (e->now == NULL) continue;
        out[i].name = rq_arena_cstr(arena, rq_slice_cstr(e->name));
        out[i].is_dir = e->now->is_dir;
        if (out[i++].name == NULL) return rq_no_memory(why);
    }
    *ret = out;
    *ret_count = count;
    return RQ_OK;
}

static rq_err disk_mkdir(rq_vfs *v, const char *path, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "mkdir", path, true, &rc, why);
    if (how == FATE_FAIL) return rc;
    inode *n;
    rq_err done = create(d, path, true, &n, how == FATE_RUN ? why : NULL);
    return how == FATE_RUN ? done : rc;
}

static rq_err remove_name(sim_disk *d, const char *path, rq_error *why)
{
    const char *name;
    inode *parent = rq__walk_parent(d, path, &name);
    const inode *n = parent == NULL ? NULL : rq__dir_child(parent, name, strlen(name));
    if (n == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot remove %s: not found", path);
    if (n->is_dir && !rq__dir_empty(n))
        return rq_fail(why, RQ_E_EXISTS, "cannot remove %s: not empty", path);
    return rq__entry_set(d, parent, name, NULL);
}

static rq_err disk_remove(rq_vfs *v, const char *path, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "remove", path, false, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = remove_name(d, path, how == FATE_RUN ? why : NULL);
    return how == FATE_RUN ? done : rc;
}

static rq_err link_node(sim_disk *d, inode *n, const char *to, rq_error *why)
{
    const char *name;
    inode *parent = rq__walk_parent(d, to, &name);
    if (n == NULL || parent == NULL)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot link %s: not found", to);
    if (n->is_dir) return rq_fail(why, RQ_E_PERMISSION, "cannot link %s: of a folder", to);
    if (rq__dir_child(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot link %s: it exists", to);
    if (rq__sim_bytes_free(d) < SECTOR)
        return no_space(why, "link", to); /* its folder may have to grow */
    return rq__entry_set(d, parent, name, n);
}

static rq_err disk_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "link", to, true, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = link_node(d, rq__walk(d, from), to, how == FATE_RUN ? why : NULL);
    return how == FATE_RUN ? done : rc;
}

static rq_err disk_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    inode *n = node_of((sim_file *)base);
    sim_disk *d = disk_of(to);
    rq_err rc;
    if (n == NULL || base->vfs != to)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s: of another disk", path);
    fate how = call_begin(d, "link", path, true, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = link_node(d, n, path, how == FATE_RUN ? why : NULL);
    return how == FATE_RUN ? done : rc;
}

static rq_err disk_remove_file(rq_vfs *v, const char *path, const rq_file_id *id, rq_error *why)
{
    const inode *n = rq__walk(disk_of(v), path);
    if (n != NULL && (uintptr_t)n != id->inode)
        return rq_fail(why, RQ_E_CONFLICT, "cannot remove %s: it is another file now", path);
    return disk_remove(v, path, why);
}

static void sync_names(sim_disk *d, inode *dir)
{
    for (entry *e = dir->entries; e != NULL; e = e->next) {
        inode *old = e->disk;
        e->disk = rq__inode_ref(e->now);
        rq__inode_unref(d, old);
    }
    rq__entries_tidy(dir);
}

static rq_err disk_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "sync_dir", dir, true, &rc, why);
    if (how != FATE_RUN) return rc;
    inode *n = rq__walk(d, dir);
    if (n == NULL || !n->is_dir)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot sync %s: no folder", dir);
    if (d->sim->options.ignore_sync) return RQ_OK;
    sync_names(d, n);
    return RQ_OK;
}

/* Files first: while names are synced, inodes may be freed. */
static void sync_tree(sim_disk *d, inode *n)
{
    if (!n->is_dir) {
        rq__inode_sync(d, n);
        return;
    }
    for (const entry *e = n->entries; e != NULL; e = e->next)
        if (e->now != NULL) sync_tree(d, e->now);
    sync_names(d, n);
}

static rq_err disk_sync_all(rq_vfs *v, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    if (call_begin(d, "sync_all", "", true, &rc, why) != FATE_RUN) return rc;
    if (!d->sim->options.ignore_sync) sync_tree(d, d->root);
    return RQ_OK;
}

static rq_err disk_lock(rq_vfs *v, const char *said, rq_file **ret, rq_error *why)
{
    sim_disk *d = disk_of(v);
    const char *path = said == NULL ? "" : said;
    rq_err rc;
    if (call_begin(d, "lock", path, said != NULL, &rc, why) != FATE_RUN) return rc;
    inode *n = rq__walk(d, path);
    if (n == NULL) RQ_TRY(create(d, path, false, &n, why));
    if (n->locked || d->root->locked)
        return rq_fail(why, RQ_E_LOCKED, "%s is in use by another server", path);
    sim_file *f;
    RQ_TRY(file_new(d, n, path, true, &f));
    d->root->locked = true;
    n->locked = true;
    f->holds_lock = true;
    *ret = &f->base;
    return RQ_OK;
}

static void disk_vfs_free(rq_vfs *v)
{
    (void)v; /* the simulation's, see rq_sim_free */
}

/* --- life --------------------------------------------------------------------------------- */

rq_err rq__sim_disk_new(rq_sim *sim, sim_disk **ret)
{
    sim_disk *d = calloc(1, sizeof *d);
    if (d == NULL) return RQ_E_NO_MEMORY;
    d->sim = sim;
    rq_random_seed(&d->random, sim->seed ^ 0x6469736bu);
    d->vfs = (rq_vfs){
        .open = disk_open,
        .close = disk_close,
        .read = disk_read,
        .try_read = disk_try_read,
        .drop_behind = disk_drop_behind,
        .plan_read = disk_plan_read,
        .begin_read = disk_begin_read,
        .write = disk_write,
        .sync = disk_sync,
        .truncate = disk_truncate,
        .size = disk_size,
        .stat = disk_stat,
        .list = disk_list,
        .mkdir = disk_mkdir,
        .remove = disk_remove,
        .link = disk_link,
        .sync_dir = disk_sync_dir,
        .sync_all = disk_sync_all,
        .lock = disk_lock,
        .identify = disk_identify,
        .link_file = disk_link_file,
        .remove_file = disk_remove_file,
        .free = disk_vfs_free,
    };
    d->root = rq__inode_ref(rq__inode_new(d, true));
    if (d->root == NULL) {
        free(d);
        return RQ_E_NO_MEMORY;
    }
    *ret = d;
    return RQ_OK;
}

void rq__sim_disk_free(sim_disk *d)
{
    if (d == NULL) return;
    rq__inode_unref(d, d->root);
    RQ_ASSERT(d->inodes == NULL); /* else files are still open */
    free(d);
}
