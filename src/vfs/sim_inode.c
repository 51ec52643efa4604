/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk's files and folders: bytes, sectors, names and space; described in
 * sim_disk_priv.h. Functions here only fail when out of memory; injected failures are decided in
 * sim_disk.c. */
#include <stdlib.h>

#include "vfs/sim_disk_priv.h"

bool rq__sim_chance(sim_disk *d, unsigned percent)
{
    return rq_random_below(&d->random, 100) < percent;
}

/* --- inodes ------------------------------------------------------------------------------- */

inode *rq__inode_new(sim_disk *d, bool is_dir)
{
    inode *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    n->is_dir = is_dir;
    n->next = d->inodes;
    if (n->next != NULL) n->next->prev = n;
    d->inodes = n;
    return n;
}

static void entries_free(sim_disk *d, inode *dir)
{
    entry *next;
    for (entry *e = dir->entries; e != NULL; e = next) {
        next = e->next;
        rq__inode_unref(d, e->now);
        rq__inode_unref(d, e->disk);
        free(e);
    }
    dir->entries = NULL;
}

void rq__inode_unref(sim_disk *d, inode *n)
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

inode *rq__inode_ref(inode *n)
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

void rq__sector_clean(sim_disk *d, inode *n, size_t sector, bool reaches_disk)
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

/* --- space ------------------------------------------------------------------------------------
 *
 * Each file or folder uses one sector, and each file the sectors up to its size, written or not. */

static uint64_t sectors_bytes(uint64_t size)
{
    return (size + SECTOR - 1) / SECTOR * SECTOR;
}

uint64_t rq__sim_bytes_used(const sim_disk *d)
{
    uint64_t used = 0;
    for (const inode *n = d->inodes; n != NULL; n = n->next)
        used += SECTOR + sectors_bytes(n->size);
    return used;
}

uint64_t rq__sim_bytes_free(const sim_disk *d)
{
    if (d->quota == 0) return UINT64_MAX;
    uint64_t used = rq__sim_bytes_used(d);
    return used < d->quota ? d->quota - used : 0;
}

uint64_t rq__end_with_room(const sim_disk *d, const inode *n, uint64_t end)
{
    uint64_t placed = sectors_bytes(n->size);
    if (end <= placed) return end;
    uint64_t room = rq__sim_bytes_free(d);
    return end - placed <= room ? end : placed + room / SECTOR * SECTOR;
}

static bool begins_page(const inode *n, uint64_t off, uint64_t len)
{
    uint64_t inside = (off + len) % PAGE_BYTES;
    return inside > 0 && inside <= len && off + len - inside + PAGE_BYTES <= n->size;
}

rq_err rq__inode_write(sim_disk *d, inode *n, const void *bytes, uint64_t len, uint64_t off)
{
    if (len == 0) return RQ_OK;
    if (!inode_reserve(n, off + len)) return RQ_E_NO_MEMORY;
    memcpy(n->now + off, bytes, (size_t)len);
    if (begins_page(n, off, len)) d->pages_begun++;
    bytes_touch(d, n, off, len);
    if (off + len > n->size) n->size = off + len;
    return RQ_OK;
}

rq_err rq__inode_truncate(sim_disk *d, inode *n, uint64_t size)
{
    if (!inode_reserve(n, size)) return RQ_E_NO_MEMORY;
    if (size < n->size) {
        memset(n->now + size, 0, (size_t)(n->size - size));
        bytes_touch(d, n, size, n->size - size);
    }
    n->size = size;
    return RQ_OK;
}

void rq__inode_sync(sim_disk *d, inode *n)
{
    for (size_t s = 0; n->dirty_count > 0; s++)
        rq__sector_clean(d, n, s, true);
    n->disk_size = n->size;
}

void rq__inode_sync_failed(sim_disk *d, inode *n)
{
    for (size_t s = 0; n->dirty_count > 0; s++)
        rq__sector_clean(d, n, s, rq__sim_chance(d, 50));
}

void rq__writeback_some(sim_disk *d)
{
    if (d->dirty_total == 0 || !rq__sim_chance(d, d->sim->options.writeback_percent)) return;
    uint64_t pick = rq_random_below(&d->random, d->dirty_total);
    for (inode *n = d->inodes; n != NULL; n = n->next) {
        if (pick >= n->dirty_count) {
            pick -= n->dirty_count;
            continue;
        }
        for (size_t s = 0;; s++) {
            if (n->dirty[s] != 0 && pick-- == 0) {
                rq__sector_clean(d, n, s, true);
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

rq_err rq__entry_set(sim_disk *d, inode *dir, const char *name, inode *target)
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
    e->now = rq__inode_ref(target);
    rq__inode_unref(d, old);
    dir->mtime_ms = d->sim->env.executor->now_ms(d->sim->env.executor);
    return RQ_OK;
}

void rq__entries_tidy(inode *dir)
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

inode *rq__dir_child(const inode *dir, const char *name, size_t len)
{
    if (!dir->is_dir) return NULL;
    const entry *e = entry_find(dir, name, len);
    return e == NULL ? NULL : e->now;
}

inode *rq__walk(const sim_disk *d, const char *path)
{
    inode *n = d->root;
    while (n != NULL && *path != '\0') {
        size_t len = strcspn(path, "/");
        n = rq__dir_child(n, path, len);
        path += len;
        if (*path == '/') path++;
    }
    return n;
}

inode *rq__walk_parent(const sim_disk *d, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash == NULL ? path : slash + 1;
    if (slash == NULL) return d->root;
    char parent[RQ_PATH_MAX];
    size_t len = (size_t)(slash - path);
    memcpy(parent, path, len);
    parent[len] = '\0';
    inode *n = rq__walk(d, parent);
    return n != NULL && n->is_dir ? n : NULL;
}

bool rq__dir_empty(const inode *dir)
{
    for (const entry *e = dir->entries; e != NULL; e = e->next)
        if (e->now != NULL) return false;
    return true;
}
