/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated disk. Each file has two contents: what programs see (`now`) and what the disk holds
 * (`disk`), and a flag per 512-byte sector that tells where the first has yet to reach the second.
 * Each folder entry has two targets in the same way. sync copies; a power cut chooses.
 *
 * A failed sync is modelled on Linux: its sectors reach the disk or do not, and count as clean
 * afterwards. A second sync of the same file succeeds and makes nothing of that durable.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "base/buf.h"
#include "vfs/sim_priv.h"
#include "vfs/vfs_priv.h"

#define SECTOR 512
#define FAILS_MAX 8

typedef struct inode inode;

typedef struct entry {
    struct entry *next;
    inode *now, *disk; /* NULL: absent */
    char name[];
} entry;

struct inode {
    inode *next, *prev; /* all inodes, in order of birth */
    unsigned refs;      /* entries (now and disk count apart) and open files */
    bool is_dir;
    bool locked;
    int64_t mtime_ms;
    entry *entries; /* of a folder */
    uint8_t *now, *disk;
    uint8_t *dirty; /* per sector */
    size_t cap;     /* of both contents */
    uint64_t size, disk_size;
    size_t dirty_count;
};

typedef struct sim_file {
    rq_file base;
    inode *node;
    uint64_t life; /* of the disk, when it was opened */
    bool writable;
    bool holds_lock;
    char path[];
} sim_file;

struct sim_disk {
    rq_vfs vfs;
    rq_sim *sim;
    rq_random random;
    inode *root;
    inode *inodes;
    uint64_t life; /* counts restarts */
    uint64_t calls;
    uint64_t cut_at;
    bool cut;
    bool trace;
    rq_err fail_writes;
    uint64_t quota; /* bytes all files may take together; 0: as many as they like */
    struct {
        uint64_t call;
        rq_err rc;
    } fails[FAILS_MAX];
    size_t dirty_total;
};

rq_vfs *rq__sim_disk_vfs(sim_disk *d)
{
    return &d->vfs;
}

static bool chance(sim_disk *d, unsigned percent)
{
    return rq_random_below(&d->random, 100) < percent;
}

/* --- inodes ------------------------------------------------------------------------------- */

static inode *inode_new(sim_disk *d, bool is_dir)
{
    inode *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    n->is_dir = is_dir;
    n->next = d->inodes;
    if (n->next != NULL) n->next->prev = n;
    d->inodes = n;
    return n;
}

static void inode_unref(sim_disk *d, inode *n);

static void entries_free(sim_disk *d, inode *dir)
{
    entry *next;
    for (entry *e = dir->entries; e != NULL; e = next) {
        next = e->next;
        inode_unref(d, e->now);
        inode_unref(d, e->disk);
        free(e);
    }
    dir->entries = NULL;
}

static void inode_unref(sim_disk *d, inode *n)
{
    if (n == NULL || --n->refs > 0) return;
    entries_free(d, n);
    d->dirty_total -= n->dirty_count;
    if (n->prev != NULL)
        n->prev->next = n->next;
    else
        d->inodes = n->next;
    if (n->next != NULL) n->next->prev = n->prev;
    free(n->now);
    free(n->disk);
    free(n->dirty);
    free(n);
}

static inode *inode_ref(inode *n)
{
    if (n != NULL) n->refs++;
    return n;
}

static bool inode_reserve(inode *n, uint64_t size)
{
    if (size <= n->cap) return true;
    size_t cap = n->cap == 0 ? 4096 : n->cap;
    while (cap < size)
        cap *= 2;
    uint8_t *now = realloc(n->now, cap);
    if (now != NULL) n->now = now;
    uint8_t *disk = realloc(n->disk, cap);
    if (disk != NULL) n->disk = disk;
    uint8_t *dirty = realloc(n->dirty, cap / SECTOR);
    if (dirty != NULL) n->dirty = dirty;
    if (now == NULL || disk == NULL || dirty == NULL) return false;
    memset(now + n->cap, 0, cap - n->cap);
    memset(disk + n->cap, 0, cap - n->cap);
    memset(dirty + n->cap / SECTOR, 0, (cap - n->cap) / SECTOR);
    n->cap = cap;
    return true;
}

static void sector_clean(sim_disk *d, inode *n, size_t sector, bool reaches_disk)
{
    if (n->dirty[sector] == 0) return;
    if (reaches_disk) memcpy(n->disk + sector * SECTOR, n->now + sector * SECTOR, SECTOR);
    n->dirty[sector] = 0;
    n->dirty_count--;
    d->dirty_total--;
}

static void bytes_touch(sim_disk *d, inode *n, uint64_t off, uint64_t len)
{
    for (uint64_t s = off / SECTOR; len > 0 && s <= (off + len - 1) / SECTOR; s++) {
        if (n->dirty[s] != 0) continue;
        n->dirty[s] = 1;
        n->dirty_count++;
        d->dirty_total++;
    }
}

/* --- space: a sector for each file or folder, and the sectors up to its end. What is inside a
 * file's size has its place. -------------------------------------------------------------- */

static uint64_t sectors_bytes(uint64_t size)
{
    return (size + SECTOR - 1) / SECTOR * SECTOR;
}

static uint64_t bytes_used(const sim_disk *d)
{
    uint64_t used = 0;
    for (const inode *n = d->inodes; n != NULL; n = n->next)
        used += SECTOR + sectors_bytes(n->size);
    return used;
}

static uint64_t bytes_free(const sim_disk *d)
{
    if (d->quota == 0) return UINT64_MAX;
    uint64_t used = bytes_used(d);
    return used < d->quota ? d->quota - used : 0;
}

/* Of a write up to `end`, where it has to stop. */
static uint64_t end_with_room(const sim_disk *d, const inode *n, uint64_t end)
{
    uint64_t placed = sectors_bytes(n->size);
    if (end <= placed) return end;
    uint64_t room = bytes_free(d);
    return end - placed <= room ? end : placed + room / SECTOR * SECTOR;
}

static rq_err no_space(rq_error *why, const char *verb, const char *path)
{
    return rq_fail(why, RQ_E_NO_SPACE, "cannot %s %s: no space left on the simulated disk", verb,
                   path);
}

static rq_err bytes_write(sim_disk *d, inode *n, const void *bytes, uint64_t len, uint64_t off)
{
    if (len == 0) return RQ_OK;
    if (!inode_reserve(n, off + len)) return RQ_E_NO_MEMORY;
    memcpy(n->now + off, bytes, (size_t)len);
    bytes_touch(d, n, off, len);
    if (off + len > n->size) n->size = off + len;
    return RQ_OK;
}

static rq_err bytes_truncate(sim_disk *d, inode *n, uint64_t size)
{
    if (!inode_reserve(n, size)) return RQ_E_NO_MEMORY;
    if (size < n->size) {
        memset(n->now + size, 0, (size_t)(n->size - size));
        bytes_touch(d, n, size, n->size - size);
    }
    n->size = size;
    return RQ_OK;
}

/* All of it is on disk. */
static void inode_sync(sim_disk *d, inode *n)
{
    for (size_t s = 0; n->dirty_count > 0; s++)
        sector_clean(d, n, s, true);
    n->disk_size = n->size;
}

static void inode_sync_failed(sim_disk *d, inode *n)
{
    for (size_t s = 0; n->dirty_count > 0; s++)
        sector_clean(d, n, s, chance(d, 50));
}

/* The operating system writes a sector back for reasons of its own. */
static void writeback_some(sim_disk *d)
{
    if (d->dirty_total == 0 || !chance(d, d->sim->options.writeback_percent)) return;
    uint64_t pick = rq_random_below(&d->random, d->dirty_total);
    for (inode *n = d->inodes; n != NULL; n = n->next) {
        if (pick >= n->dirty_count) {
            pick -= n->dirty_count;
            continue;
        }
        for (size_t s = 0;; s++) {
            if (n->dirty[s] != 0 && pick-- == 0) {
                sector_clean(d, n, s, true);
                return;
            }
        }
    }
}

/* --- names -------------------------------------------------------------------------------- */

static entry *entry_find(const inode *dir, const char *name, size_t len)
{
    for (entry *e = dir->entries; e != NULL; e = e->next)
        if (strncmp(e->name, name, len) == 0 && e->name[len] == '\0') return e;
    return NULL;
}

static rq_err entry_set(sim_disk *d, inode *dir, const char *name, inode *target)
{
    size_t len = strlen(name);
    entry *e = entry_find(dir, name, len);
    if (e == NULL) {
        e = calloc(1, sizeof *e + len + 1);
        if (e == NULL) return RQ_E_NO_MEMORY;
        memcpy(e->name, name, len);
        entry **at = &dir->entries; /* by name: list and tree need no sorting */
        while (*at != NULL && strcmp((*at)->name, name) < 0)
            at = &(*at)->next;
        e->next = *at;
        *at = e;
    }
    inode *old = e->now;
    e->now = inode_ref(target);
    inode_unref(d, old);
    return RQ_OK;
}

/* Entries absent on both sides go. */
static void entries_tidy(inode *dir)
{
    for (entry **at = &dir->entries; *at != NULL;) {
        entry *e = *at;
        if (e->now != NULL || e->disk != NULL) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        free(e);
    }
}

static inode *dir_child(const inode *dir, const char *name, size_t len)
{
    if (!dir->is_dir) return NULL;
    const entry *e = entry_find(dir, name, len);
    return e == NULL ? NULL : e->now;
}

/* The inode of a path, or NULL. */
static inode *walk(const sim_disk *d, const char *path)
{
    inode *n = d->root;
    while (n != NULL && *path != '\0') {
        size_t len = strcspn(path, "/");
        n = dir_child(n, path, len);
        path += len;
        if (*path == '/') path++;
    }
    return n;
}

/* The folder a path's last part stands in, or NULL; *ret_name is the last part. */
static inode *walk_parent(const sim_disk *d, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash == NULL ? path : slash + 1;
    if (slash == NULL) return d->root;
    char parent[RQ_PATH_MAX];
    size_t len = (size_t)(slash - path);
    memcpy(parent, path, len);
    parent[len] = '\0';
    inode *n = walk(d, parent);
    return n != NULL && n->is_dir ? n : NULL;
}

static bool dir_empty(const inode *dir)
{
    for (const entry *e = dir->entries; e != NULL; e = e->next)
        if (e->now != NULL) return false;
    return true;
}

/* --- calls -------------------------------------------------------------------------------- */

/* How a call goes: as it should, or not, perhaps having done a part. */
typedef enum fate {
    FATE_RUN,
    FATE_FAIL,        /* nothing happens */
    FATE_FAIL_PARTLY, /* what it does is done in part, or done and not told */
} fate;

static rq_err no_power(rq_error *why, const char *verb, const char *path)
{
    return rq_fail(why, RQ_E_IO, "cannot %s %s: the power is off", verb, path);
}

/* Numbers the call and decides. `changes`: it creates, writes or syncs. *ret_rc is the error. */
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
    writeback_some(d);
    if (d->calls == d->cut_at) {
        d->cut = true;
        *ret_rc = no_power(why, verb, path);
        return chance(d, 50) ? FATE_FAIL_PARTLY : FATE_FAIL;
    }
    for (size_t i = 0; i < FAILS_MAX; i++) {
        if (d->fails[i].call != d->calls) continue;
        d->fails[i].call = 0;
        *ret_rc = rq_fail(why, d->fails[i].rc, "cannot %s %s: injected failure", verb, path);
        return chance(d, 50) ? FATE_FAIL_PARTLY : FATE_FAIL;
    }
    /* What is written has its place: a full disk does not keep it from being synced. */
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

/* The open file, unless it is of before a restart. */
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
    f->node = inode_ref(n);
    f->life = d->life;
    f->writable = writable;
    memcpy(f->path, path, len);
    *ret = f;
    return RQ_OK;
}

/* A new inode under a new name. */
static rq_err create(sim_disk *d, const char *path, bool is_dir, inode **ret, rq_error *why)
{
    const char *name;
    inode *parent = walk_parent(d, path, &name);
    if (parent == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot create %s: no folder", path);
    if (dir_child(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot create %s: it exists", path);
    if (bytes_free(d) < SECTOR) return no_space(why, "create", path);
    inode *n = inode_new(d, is_dir);
    if (n == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    n->mtime_ms = d->sim->env.executor->now_ms(d->sim->env.executor);
    n->refs = 1;
    rq_err rc = entry_set(d, parent, name, n);
    inode *kept = rc == RQ_OK ? n : NULL;
    inode_unref(d, n);
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
    inode *n = walk(d, path);
    if (n != NULL && how == FATE_FAIL_PARTLY) return rc;
    if (n != NULL && n->is_dir) return rq_fail(why, RQ_E_IO, "cannot open %s: a folder", path);
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
    if (f->holds_lock && node_of(f) != NULL) f->node->locked = false;
    inode_unref(d, f->node);
    free(f);
    return RQ_OK;
}

/* What every call on an open file begins with. */
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
    if (chance(d, d->sim->options.again_percent)) return RQ_E_AGAIN;
    *ret_len = len == 0 ? 0 : node_read(n, buf, len, off);
    return RQ_OK;
}

static rq_err disk_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    sim_disk *d = disk_of(base->vfs);
    inode *n;
    rq_err rc;
    fate how = file_begin((sim_file *)base, "write", true, &n, &rc, why);
    if (how == FATE_FAIL) return rc;
    n->mtime_ms = d->sim->env.executor->now_ms(d->sim->env.executor);
    uint64_t end = end_with_room(d, n, off + len);
    size_t fits = end >= off + len ? len : end > off ? (size_t)(end - off) : 0;
    if (how == FATE_RUN && fits == len) return bytes_write(d, n, buf, len, off);
    if (how == FATE_RUN) { /* as far as it goes, like a real one */
        rq_err some = bytes_write(d, n, buf, fits, off);
        return some != RQ_OK ? some : no_space(why, "write", ((sim_file *)base)->path);
    }
    len = fits;
    rq_err partly = bytes_write(d, n, buf, rq_random_below(&d->random, len + 1), off);
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
    if (how == FATE_RUN) inode_sync(d, n);
    /* With the power gone the sectors are left to restart; else the kernel forgets them. */
    if (how != FATE_RUN && n != NULL && !d->cut) inode_sync_failed(d, n);
    return rc;
}

static rq_err disk_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    sim_disk *d = disk_of(base->vfs);
    inode *n;
    rq_err rc;
    fate how = file_begin((sim_file *)base, "truncate", true, &n, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = bytes_truncate(d, n, size);
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

static rq_err disk_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    if (call_begin(d, "stat", path, false, &rc, why) != FATE_RUN) return rc;
    const inode *n = walk(d, path);
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
    const inode *n = walk(d, dir);
    if (n == NULL || !n->is_dir)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot list %s: no folder", dir);
    size_t count = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next)
        count += e->now != NULL;
    rq_dir_entry *out = rq_arena_calloc(arena, count + 1, sizeof *out);
    if (out == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    size_t i = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next) {
        if (e->now == NULL) continue;
        out[i].name = rq_arena_cstr(arena, rq_slice_cstr(e->name));
        out[i].is_dir = e->now->is_dir;
        if (out[i++].name == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
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
    inode *parent = walk_parent(d, path, &name);
    const inode *n = parent == NULL ? NULL : dir_child(parent, name, strlen(name));
    if (n == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot remove %s: not found", path);
    if (n->is_dir && !dir_empty(n))
        return rq_fail(why, RQ_E_EXISTS, "cannot remove %s: not empty", path);
    return entry_set(d, parent, name, NULL);
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

static rq_err link_name(sim_disk *d, const char *from, const char *to, rq_error *why)
{
    const char *name;
    inode *n = walk(d, from);
    inode *parent = walk_parent(d, to, &name);
    if (n == NULL || parent == NULL)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot link %s: not found", to);
    if (n->is_dir) return rq_fail(why, RQ_E_PERMISSION, "cannot link %s: a folder", from);
    if (dir_child(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot link %s: it exists", to);
    if (bytes_free(d) < SECTOR) return no_space(why, "link", to); /* its folder may have to grow */
    return entry_set(d, parent, name, n);
}

static rq_err disk_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "link", to, true, &rc, why);
    if (how == FATE_FAIL) return rc;
    rq_err done = link_name(d, from, to, how == FATE_RUN ? why : NULL);
    return how == FATE_RUN ? done : rc;
}

static rq_err disk_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    fate how = call_begin(d, "sync_dir", dir, true, &rc, why);
    if (how != FATE_RUN) return rc;
    inode *n = walk(d, dir);
    if (n == NULL || !n->is_dir)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot sync %s: no folder", dir);
    if (d->sim->options.ignore_sync) return RQ_OK;
    for (entry *e = n->entries; e != NULL; e = e->next) {
        inode *old = e->disk;
        e->disk = inode_ref(e->now);
        inode_unref(d, old);
    }
    entries_tidy(n);
    return RQ_OK;
}

static rq_err disk_lock(rq_vfs *v, const char *path, rq_file **ret, rq_error *why)
{
    sim_disk *d = disk_of(v);
    rq_err rc;
    if (call_begin(d, "lock", path, true, &rc, why) != FATE_RUN) return rc;
    inode *n = walk(d, path);
    if (n == NULL) RQ_TRY(create(d, path, false, &n, why));
    if (n->locked) return rq_fail(why, RQ_E_LOCKED, "%s is in use by another server", path);
    sim_file *f;
    RQ_TRY(file_new(d, n, path, true, &f));
    n->locked = true;
    f->holds_lock = true;
    *ret = &f->base;
    return RQ_OK;
}

static void disk_vfs_free(rq_vfs *v)
{
    (void)v; /* the simulation's, see rq_sim_free */
}

/* --- the power ---------------------------------------------------------------------------- */

/* How much of what was not synced survives in one file: all, nothing, or something in between. */
static unsigned survival(sim_disk *d)
{
    static const unsigned percents[] = {0, 0, 20, 50, 80, 100, 100};
    return percents[rq_random_below(&d->random, RQ_ARRAY_LEN(percents))];
}

static void file_lose(sim_disk *d, inode *n)
{
    unsigned percent = survival(d);
    for (size_t s = 0; n->dirty_count > 0; s++)
        sector_clean(d, n, s, chance(d, percent));
    uint64_t size = n->disk_size;
    if (size != n->size) {
        uint64_t low = size < n->size ? size : n->size;
        uint64_t high = size < n->size ? n->size : size;
        switch (rq_random_below(&d->random, 3)) {
        case 0:
            break;
        case 1:
            size = n->size;
            break;
        default:
            size = low + rq_random_below(&d->random, high - low + 1);
            break;
        }
    }
    n->size = n->disk_size = size;
    if (n->cap > 0) {
        memset(n->disk + size, 0, n->cap - (size_t)size);
        memcpy(n->now, n->disk, n->cap);
    }
}

static void dir_lose(sim_disk *d, inode *dir)
{
    for (entry *e = dir->entries; e != NULL; e = e->next) {
        if (e->now == e->disk) continue;
        bool as_before = chance(d, 50);
        inode *kept = inode_ref(as_before ? e->disk : e->now);
        inode_unref(d, e->now);
        inode_unref(d, e->disk);
        e->now = kept;
        e->disk = inode_ref(kept);
    }
    entries_tidy(dir);
}

/* A new process: no open files, no locks, no injected failures. */
static void begin_life(sim_disk *d)
{
    for (inode *n = d->inodes; n != NULL; n = n->next)
        n->locked = false;
    d->life++;
    d->cut = false;
    d->cut_at = 0;
    d->fail_writes = RQ_OK;
    memset(d->fails, 0, sizeof d->fails);
}

void rq_sim_restart_process(rq_sim *sim)
{
    rq__sim_executor_reset(sim->executor);
    begin_life(sim->disk);
}

void rq_sim_restart(rq_sim *sim)
{
    sim_disk *d = sim->disk;
    rq__sim_executor_reset(sim->executor);
    /* Inodes may die on the way, so each is held. */
    size_t count = 0;
    for (const inode *n = d->inodes; n != NULL; n = n->next)
        count++;
    inode **all = calloc(count + 1, sizeof *all);
    RQ_ASSERT(all != NULL);
    size_t i = 0;
    for (inode *n = d->inodes; n != NULL; n = n->next)
        all[i++] = inode_ref(n);
    for (i = 0; i < count; i++)
        if (all[i]->is_dir) dir_lose(d, all[i]);
    for (i = 0; i < count; i++)
        if (!all[i]->is_dir) file_lose(d, all[i]);
    for (i = 0; i < count; i++)
        inode_unref(d, all[i]);
    free(all);
    begin_life(d);
}

uint64_t rq_sim_calls(const rq_sim *sim)
{
    return sim->disk->calls;
}

void rq_sim_cut_at(rq_sim *sim, uint64_t call)
{
    sim->disk->cut_at = call;
}

void rq_sim_cut_now(rq_sim *sim)
{
    sim->disk->cut = true;
}

bool rq_sim_is_cut(const rq_sim *sim)
{
    return sim->disk->cut;
}

void rq_sim_fail_at(rq_sim *sim, uint64_t call, rq_err rc)
{
    sim_disk *d = sim->disk;
    for (size_t i = 0; i < FAILS_MAX; i++) {
        if (d->fails[i].call > d->calls) continue;
        d->fails[i].call = call;
        d->fails[i].rc = rc;
        return;
    }
    RQ_ASSERT(false && "more than 8 pending failures");
}

void rq_sim_fail_writes(rq_sim *sim, rq_err rc)
{
    sim->disk->fail_writes = rc;
}

void rq_sim_quota(rq_sim *sim, uint64_t bytes)
{
    sim->disk->quota = bytes;
}

uint64_t rq_sim_used(const rq_sim *sim)
{
    return bytes_used(sim->disk);
}

bool rq_sim_flip_bit(rq_sim *sim, const char *path, uint64_t offset, unsigned bit)
{
    inode *n = walk(sim->disk, path);
    if (n == NULL || n->is_dir || offset >= n->size || bit > 7) return false;
    n->now[offset] ^= (uint8_t)(1u << bit);
    n->disk[offset] ^= (uint8_t)(1u << bit);
    return true;
}

void rq_sim_trace(rq_sim *sim, bool on)
{
    sim->disk->trace = on;
}

static rq_err tree_print(const inode *dir, const char *prefix, rq_buf *out)
{
    for (const entry *e = dir->entries; e != NULL; e = e->next) {
        const inode *n = e->now;
        if (n == NULL) continue;
        char path[RQ_PATH_MAX];
        int len =
            snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] == '\0' ? "" : "/", e->name);
        if (len < 0 || (size_t)len >= sizeof path) return RQ_E_INVALID;
        if (n->is_dir) {
            RQ_TRY(rq_buf_printf(out, "%s/\n", path));
            RQ_TRY(tree_print(n, path, out));
        } else {
            RQ_TRY(rq_buf_printf(out, "%s %llu %08x\n", path, (unsigned long long)n->size,
                                 rq_crc32c(0, n->now, (size_t)n->size)));
        }
    }
    return RQ_OK;
}

char *rq_sim_tree(rq_sim *sim)
{
    rq_buf out = {0};
    rq_err rc = tree_print(sim->disk->root, "", &out);
    if (rc == RQ_OK) rc = rq_buf_append_u8(&out, 0);
    if (rc != RQ_OK) {
        rq_buf_clear(&out);
        return NULL;
    }
    return (char *)out.ptr;
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
        .lock = disk_lock,
        .free = disk_vfs_free,
    };
    d->root = inode_ref(inode_new(d, true));
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
    inode_unref(d, d->root);
    RQ_ASSERT(d->inodes == NULL); /* else files are still open */
    free(d);
}
