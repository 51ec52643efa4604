/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated disk. Each file has two contents: what programs see (`now`) and what the disk holds
 * (`disk`), and a dirty flag for each 512-byte sector in which they differ. Each folder entry has
 * two targets in the same way. A sync copies `now` to `disk`; a power cut chooses between them.
 *
 * Files: sim_inode.c has inodes and folders, sim_disk.c the vfs operations, sim_power.c power cuts
 * and injected failures.
 */
#ifndef RQ_VFS_SIM_DISK_PRIV_H
#define RQ_VFS_SIM_DISK_PRIV_H

#include "vfs/sim_priv.h"
#include "vfs/vfs_priv.h"

#define SECTOR 512
#define PAGE_BYTES 4096 /* the operating system's page size */
#define FAILS_MAX 8

typedef struct inode inode;

typedef struct entry {
    struct entry *next;
    inode *now, *disk; /* NULL: absent */
    char name[];
} entry;

struct inode {
    inode *next, *prev; /* all inodes, in order of creation */
    unsigned refs;      /* entries (now and disk count separately) and open files */
    bool is_dir;
    bool locked;
    int64_t mtime_ms;
    entry *entries; /* of a folder */
    uint8_t *now, *disk;
    uint8_t *dirty; /* one flag per sector */
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
    uint64_t quota;   /* limit of all files' bytes; 0: none */
    uint64_t dropped; /* bytes passed to drop_behind */
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
/* Makes an inode with no reference. NULL: memory is exhausted. */
inode *rq__inode_new(sim_disk *d, bool is_dir);
/* Both accept NULL. Dropping the last reference frees the inode and what only it refers to. */
inode *rq__inode_ref(inode *n);
void rq__inode_unref(sim_disk *d, inode *n);
RQ_NODISCARD
rq_err rq__inode_write(sim_disk *d, inode *n, const void *bytes, uint64_t len, uint64_t off);
RQ_NODISCARD
rq_err rq__inode_truncate(sim_disk *d, inode *n, uint64_t size);
/* Copies all of the file to disk. */
void rq__inode_sync(sim_disk *d, inode *n);
/* Copies a random part to disk and marks the file clean, as a failed fsync does. */
void rq__inode_sync_failed(sim_disk *d, inode *n);
/* Marks a sector clean; `reaches_disk`: copies it to disk first. */
void rq__sector_clean(sim_disk *d, inode *n, size_t sector, bool reaches_disk);
/* Writes some random sector back, as an operating system does. */
void rq__writeback_some(sim_disk *d);

/* --- space --- */
uint64_t rq__sim_bytes_used(const sim_disk *d);
uint64_t rq__sim_bytes_free(const sim_disk *d);
/* Where a write that would end at `end` has to stop for lack of space. */
uint64_t rq__end_with_room(const sim_disk *d, const inode *n, uint64_t end);

/* --- names --- */
/* Makes the name stand for `target`; NULL removes the name. */
RQ_NODISCARD
rq_err rq__entry_set(sim_disk *d, inode *dir, const char *name, inode *target);
/* Frees entries that are absent in both states. */
void rq__entries_tidy(inode *dir);
bool rq__dir_empty(const inode *dir);
inode *rq__dir_child(const inode *dir, const char *name, size_t len);
/* Finds the inode of a path; NULL: none. */
inode *rq__walk(const sim_disk *d, const char *path);
/* Finds the folder that contains a path's last part; NULL: none. *ret_name is the last part. */
inode *rq__walk_parent(const sim_disk *d, const char *path, const char **ret_name);

#endif
