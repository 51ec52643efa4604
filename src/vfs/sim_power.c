/* SPDX-License-Identifier: Apache-2.0 */
/* A test's control over the simulated disk: power off and on, failing calls, filling the disk,
 * flipping bits, inspecting files. Contracts in sim.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/checksum.h"
#include "vfs/sim_disk_priv.h"

/* --- the power ---------------------------------------------------------------------------- */

/* Share of a file's unsynced data that survives: all, nothing, or something in between. */
static unsigned survival(sim_disk *d)
{
    static const unsigned percents[] = {0, 0, 20, 50, 80, 100, 100};
    return percents[rq_random_below(&d->random, RQ_ARRAY_LEN(percents))];
}

static void file_lose(sim_disk *d, inode *n)
{
    unsigned percent = survival(d);
    for (size_t s = 0; n->dirty_count > 0; s++)
        rq__sector_clean(d, n, s, rq__sim_chance(d, percent));
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
        bool as_before = rq__sim_chance(d, 50);
        inode *kept = rq__inode_ref(as_before ? e->disk : e->now);
        rq__inode_unref(d, e->now);
        rq__inode_unref(d, e->disk);
        e->now = kept;
        e->disk = rq__inode_ref(kept);
    }
    rq__entries_tidy(dir);
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
        all[i++] = rq__inode_ref(n);
    for (i = 0; i < count; i++)
        if (all[i]->is_dir) dir_lose(d, all[i]);
    for (i = 0; i < count; i++)
        if (!all[i]->is_dir) file_lose(d, all[i]);
    for (i = 0; i < count; i++)
        rq__inode_unref(d, all[i]);
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
    return rq__sim_bytes_used(sim->disk);
}

uint64_t rq_sim_pages_begun(const rq_sim *sim)
{
    return sim->disk->pages_begun;
}

uint64_t rq_sim_dropped(const rq_sim *sim)
{
    return sim->disk->dropped;
}

bool rq_sim_flip_bit(rq_sim *sim, const char *path, uint64_t offset, unsigned bit)
{
    inode *n = rq__walk(sim->disk, path);
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
