/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated disk. Each file has two contents: what programs see (`now`) and what the disk holds
 * (`disk`), and a flag per 512-byte sector that tells where the first has yet to reach the second.
 * Each folder entry has two targets in the same way. sync copies; a power cut chooses.
 *
 * Files: sim_inode.c; calls: sim_disk.c; the power, failures on demand: sim_power.c.
 */
#ifndef RQ_VFS_SIM_DISK_PRIV_H
#define RQ_VFS_SIM_DISK_PRIV_H

#include "vfs/sim_priv.h"
#include "vfs/vfs_priv.h"

#define SECTOR 512
#define PAGE_BYTES 4096 /* what a system keeps in memory at least */
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
    uint64_t quota;   /* bytes all files may take together; 0: as many as they like */
    uint64_t dropped; /* bytes of drop_behind */
    uint64_t pages_begun;
    struct {
        uint64_t call;
        rq_err rc;
    } fails[FAILS_MAX];
    size_t dirty_total;
};

/* True in `percent` of the cases. */
bool rq__sim_chance(sim_disk *d, unsigned percent);

/* --- files and folders --- */
/* Without a reference; NULL: no memory. */
inode *rq__inode_new(sim_disk *d, bool is_dir);
/* Both take NULL. The last reference frees it, and what it alone holds. */
inode *rq__inode_ref(inode *n);
void rq__inode_unref(sim_disk *d, inode *n);
RQ_NODISCARD
rq_err rq__inode_write(sim_disk *d, inode *n, const void *bytes, uint64_t len, uint64_t off);
RQ_NODISCARD
rq_err rq__inode_truncate(sim_disk *d, inode *n, uint64_t size);
/* All of it is on disk. */
void rq__inode_sync(sim_disk *d, inode *n);
/* Some of it is, and nobody knows any more what is not. */
void rq__inode_sync_failed(sim_disk *d, inode *n);
/* A sector is not dirty any more, whether or not its bytes are on disk now. */
void rq__sector_clean(sim_disk *d, inode *n, size_t sector, bool reaches_disk);
/* The operating system writes a sector back for reasons of its own. */
void rq__writeback_some(sim_disk *d);

/* --- space --- */
uint64_t rq__sim_bytes_used(const sim_disk *d);
uint64_t rq__sim_bytes_free(const sim_disk *d);
/* Of a write up to `end`, where it has to stop. */
uint64_t rq__end_with_room(const sim_disk *d, const inode *n, uint64_t end);

/* --- names --- */
/* What the name stands for from now on; NULL: for nothing. */
RQ_NODISCARD
rq_err rq__entry_set(sim_disk *d, inode *dir, const char *name, inode *target);
/* Entries absent on both sides go. */
void rq__entries_tidy(inode *dir);
bool rq__dir_empty(const inode *dir);
inode *rq__dir_child(const inode *dir, const char *name, size_t len);
/* The inode of a path, or NULL. */
inode *rq__walk(const sim_disk *d, const char *path);
/* The folder a path's last part stands in, or NULL; *ret_name is the last part. */
inode *rq__walk_parent(const sim_disk *d, const char *path, const char **ret_name);

#endif
