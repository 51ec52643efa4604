/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only interface to storage. Paths are relative to the vfs's root, '/'-separated, without a
 * leading '/'.
 *
 * Durability rules (posix.c implements them; sim.c makes a program that breaks one fail):
 *  1. Written bytes, and the file's length, are durable after rq_file_sync.
 *  2. A created, linked or removed name is durable after rq_vfs_sync_dir of its folder; a new
 *     folder's own name after sync_dir of its parent.
 *  3. There is no rename: nothing may depend on one.
 *  4. After a failed sync the file's unsynced bytes are lost; sync is never retried on it.
 *
 * All operations are synchronous. Event loops may call only rq_file_try_read, which never waits for
 * a device and returns RQ_E_AGAIN instead, and rq_file_write for the log: a loop writes its staged
 * records into a preallocated WAL file, which is a copy into the page cache and waits for the
 * device only when the operating system limits writers. All other operations may block and run on
 * pools, on the log's lane, and in tools.
 *
 * Only regular files are opened, and opening does not wait for a peer: a FIFO, a socket, a device,
 * a folder or a loop of symbolic links under a file's name is RQ_E_CORRUPT. Errors: RQ_E_NOT_FOUND,
 * RQ_E_EXISTS (also for the removal of a folder that is not empty), RQ_E_NO_SPACE,
 * RQ_E_PERMISSION, RQ_E_NO_MEMORY, RQ_E_IO; `why` names the path and the operating system's error.
 * RQ_E_INVALID: the path is absolute, too long, or has an empty, "." or ".." part.
 *
 * Threads: several threads may read an open file while one writes it.
 */
#ifndef RQ_VFS_VFS_H
#define RQ_VFS_VFS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

typedef struct rq_vfs rq_vfs;
typedef struct rq_file rq_file;
struct rq_reads; /* reads.h */
struct rq_read;

#define RQ_NAME_MAX 255 /* bytes of a file's name, in every file system */

enum {
    RQ_OPEN_READ = 0,
    RQ_OPEN_WRITE = 1,  /* read and write */
    RQ_OPEN_CREATE = 2, /* with WRITE; an existing file is opened unchanged */
    RQ_OPEN_EXCL = 4,   /* with CREATE: RQ_E_EXISTS if the file exists */
    RQ_OPEN_RANDOM = 8, /* advice: no read-ahead */
    /* For a path given by a client, or in a folder that other users can write: follows no
     * symbolic link (RQ_E_PERMISSION), so that the file is below the root. */
    RQ_OPEN_BENEATH = 16,
};

typedef struct rq_stat {
    uint64_t size;
    int64_t mtime_ms;
    bool is_dir;
} rq_stat;

/* The best way to read bytes that are read once and in sequence. */
typedef enum rq_read_plan {
    RQ_READ_AHEAD,  /* by rq_file_in_sequence: the operating system reads ahead */
    RQ_READ_CACHED, /* by plain reads: most of the bytes are in the page cache */
    RQ_READ_PAST,   /* by large reads in advance: the page cache would not keep the bytes */
} rq_read_plan;

typedef struct rq_dir_entry {
    const char *name; /* in the arena passed to list */
    bool is_dir;      /* for a symbolic link: of its target */
    bool is_link;     /* a symbolic link: its target is not ours to remove */
} rq_dir_entry;

/* Identifies a file and its state. If two ids of a path are equal, the file was neither replaced
 * nor written in between. */
typedef struct rq_file_id {
    uint64_t device, inode;
    uint64_t size;
    int64_t written_ns; /* last change of the content */
    int64_t changed_ns; /* last change of content, owner, mode or link count */
} rq_file_id;

struct rq_file {
    rq_vfs *vfs;
};

struct rq_vfs {
    rq_err (*open)(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why);
    rq_err (*close)(rq_file *f);
    rq_err (*read)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len, rq_error *why);
    rq_err (*try_read)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len);
    rq_err (*write)(rq_file *f, const void *buf, size_t len, uint64_t off, rq_error *why);
    rq_err (*sync)(rq_file *f, rq_error *why);
    rq_err (*truncate)(rq_file *f, uint64_t size, rq_error *why);
    rq_err (*size)(rq_file *f, uint64_t *ret, rq_error *why);
    rq_err (*stat)(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why);
    rq_err (*list)(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                   size_t *ret_count, rq_error *why);
    rq_err (*mkdir)(rq_vfs *v, const char *path, rq_error *why);
    rq_err (*remove)(rq_vfs *v, const char *path, rq_error *why);
    rq_err (*link)(rq_vfs *v, const char *from, const char *to, rq_error *why);
    rq_err (*sync_dir)(rq_vfs *v, const char *dir, rq_error *why);
    rq_err (*lock)(rq_vfs *v, const char *path, rq_file **ret, rq_error *why);
    rq_err (*identify)(rq_file *f, rq_file_id *ret, rq_error *why);
    rq_err (*link_file)(rq_file *f, rq_vfs *to, const char *path, rq_error *why);
    /* NULL: rq_file_share fails */
    rq_err (*share_file)(rq_file *f, rq_vfs *to, const char *path, rq_error *why);
    rq_err (*remove_file)(rq_vfs *v, const char *path, const rq_file_id *id, rq_error *why);
    /* NULL: files have no mode */
    rq_err (*restrict_mode)(rq_vfs *v, const char *path, unsigned *ret_was, rq_error *why);
    rq_err (*opened_size)(rq_file *f, uint64_t *ret, rq_error *why); /* NULL: size */
    void (*drop_behind)(rq_file *f, uint64_t off, uint64_t len); /* NULL: there is no page cache */
    void (*in_sequence)(rq_file *f, bool on);                    /* NULL: the same */
    rq_read_plan (*plan_read)(rq_file *f, uint64_t off, uint64_t len); /* NULL: RQ_READ_AHEAD */
    /* NULL: read */
    rq_err (*read_past)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                        rq_error *why);
    /* NULL: no read is begun (reads.h). Like rq_file_begin_read; `r->task` is set */
    bool (*begin_read)(rq_file *f, struct rq_reads *q, struct rq_read *r, uint64_t off, size_t len);
    /* NULL: rq_vfs_sync_all fails */
    rq_err (*sync_all)(rq_vfs *v, rq_error *why);
    /* NULL: rq_vfs_defer does nothing */
    rq_err (*defer)(rq_vfs *v, bool on, rq_error *why);
    /* NULL: what an ended process held is free at once */
    rq_err (*evict)(rq_vfs *v, const char *client, rq_error *why);
    void (*free)(rq_vfs *v);
};

/* --- files ---------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq_vfs_open(rq_vfs *v, const char *path, int flags, rq_file **ret,
                                rq_error *why);
/* NULL is allowed. Unsynced bytes are left to the operating system. */
rq_err rq_file_close(rq_file *f);
/* A read past the page cache needs no copy if its offset, its length and its memory's address are multiples of this. */
#define RQ_READ_ALIGN 4096
/* Longest read past the page cache that a caller makes, in bytes. */
#define RQ_READ_PAST_MAX ((size_t)1 << 20)
/* Reads up to len bytes; fewer only at the end of the file. */
RQ_NODISCARD static inline rq_err rq_file_read(rq_file *f, void *buf, size_t len, uint64_t off,
                                               size_t *ret_len, rq_error *why)
{
    return f->vfs->read(f, buf, len, off, ret_len, why);
}
/* Like read, from the page cache only. RQ_E_AGAIN: it would have to wait, or it was not worth a try
 * because such reads have failed lately (posix_cached.c). */
RQ_NODISCARD static inline rq_err rq_file_try_read(rq_file *f, void *buf, size_t len, uint64_t off,
                                                   size_t *ret_len)
{
    return f->vfs->try_read(f, buf, len, off, ret_len);
}
/* Advice that these bytes will not be read again: the operating system may drop clean pages from
 * its cache at once. */
void rq_file_drop_behind(rq_file *f, uint64_t off, uint64_t len);
/* Advice for a file opened with RQ_OPEN_RANDOM: from now on (until `on` is false) some of its reads
 * come in sequence, and reading ahead of them pays. Never waits. */
void rq_file_in_sequence(rq_file *f, bool on);
/* How to read these bytes, of a file opened with RQ_OPEN_RANDOM. A hint. Never waits. */
rq_read_plan rq_file_plan_read(rq_file *f, uint64_t off, uint64_t len);
/* Like rq_file_read, for bytes whose plan is RQ_READ_PAST: reads past the page cache, even while rq_file_in_sequence is
 * on. One such read in sixteen uses the page cache. */
RQ_NODISCARD static inline rq_err rq_file_read_past(rq_file *f, void *buf, size_t len, uint64_t off,
                                                    size_t *ret_len, rq_error *why)
{
    return f->vfs->read_past == NULL ? f->vfs->read(f, buf, len, off, ret_len, why)
                                     : f->vfs->read_past(f, buf, len, off, ret_len, why);
}
/* Writes all `len` bytes, or returns an error. */
RQ_NODISCARD static inline rq_err rq_file_write(rq_file *f, const void *buf, size_t len,
                                                uint64_t off, rq_error *why)
{
    return f->vfs->write(f, buf, len, off, why);
}
RQ_NODISCARD static inline rq_err rq_file_sync(rq_file *f, rq_error *why)
{
    return f->vfs->sync(f, why);
}
RQ_NODISCARD rq_err rq_file_truncate(rq_file *f, uint64_t size, rq_error *why);
RQ_NODISCARD rq_err rq_file_size(rq_file *f, uint64_t *ret, rq_error *why);
/* The size when the file was opened, or at some moment since then. In a local folder this takes no system call, because
 * opening a file reads its size. */
RQ_NODISCARD rq_err rq_file_opened_size(rq_file *f, uint64_t *ret, rq_error *why);
RQ_NODISCARD rq_err rq_file_identify(rq_file *f, rq_file_id *ret, rq_error *why);
/* Makes another name for the open file in the vfs `to`, where it gets the mode of a new file. On
 * an error (another file system, another owner, more than one name) nothing was done, and the
 * caller can copy the bytes instead. */
RQ_NODISCARD rq_err rq_file_link(rq_file *f, rq_vfs *to, const char *path, rq_error *why);

/* Makes another name for an open file that nobody changes any more, in the vfs `to`; it may have
 * other names, and keeps its mode. On an error (another file system, no links there) nothing was
 * done, and the caller can copy the bytes instead. */
RQ_NODISCARD rq_err rq_file_share(rq_file *f, rq_vfs *to, const char *path, rq_error *why);

/* --- names ---------------------------------------------------------------------------------- */
/* A name that is too long for a file is RQ_E_NOT_FOUND; the other calls refuse it: RQ_E_INVALID. */
RQ_NODISCARD rq_err rq_vfs_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why);
/* An error other than absence is returned: it does not mean that there is nothing. */
RQ_NODISCARD rq_err rq_vfs_exists(rq_vfs *v, const char *path, bool *ret, rq_error *why);
/* Lists a folder, without "." and "..", sorted bytewise. */
RQ_NODISCARD rq_err rq_vfs_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                                size_t *ret_count, rq_error *why);
/* Like rq_vfs_list; an absent folder has no entries. */
RQ_NODISCARD rq_err rq_vfs_list_if_any(rq_vfs *v, const char *dir, rq_arena *arena,
                                       rq_dir_entry **ret, size_t *ret_count, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_mkdir(rq_vfs *v, const char *path, rq_error *why);
/* Creates the missing folders of a path, and syncs each parent that got a new name. */
RQ_NODISCARD rq_err rq_vfs_mkdirs(rq_vfs *v, const char *path, rq_error *why);
/* Removes a file or an empty folder. */
RQ_NODISCARD rq_err rq_vfs_remove(rq_vfs *v, const char *path, rq_error *why);
/* Removes the name if it still stands for that file (device and inode) and no symbolic link is
 * on the path; else RQ_E_CONFLICT. */
RQ_NODISCARD rq_err rq_vfs_remove_file(rq_vfs *v, const char *path, const rq_file_id *id,
                                       rq_error *why);
/* Removes a folder with its contents; an absent folder is no error. A symbolic link is removed,
 * its target is not. */
RQ_NODISCARD rq_err rq_vfs_remove_tree(rq_vfs *v, const char *path, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_link(rq_vfs *v, const char *from, const char *to, rq_error *why);
/* Moves a file to another name; makes the target's folder if missing. The new name is durable
 * when this returns; the removal of the old name is durable after the next sync_dir of its
 * folder. Repeat it after a crash or an error: a file that already has the new name is taken to
 * be this one. Another thread may remove the new folder while it is still empty. */
RQ_NODISCARD rq_err rq_vfs_move(rq_vfs *v, const char *from, const char *to, rq_error *why);
/* Makes a file's bytes durable, including those written through other open files or by other
 * processes. */
RQ_NODISCARD rq_err rq_vfs_sync_file(rq_vfs *v, const char *path, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_sync_dir(rq_vfs *v, const char *dir, rq_error *why);
/* Syncs the folder and all above it: after a batch (batch.h) that was killed, none of the path's names may be durable. */
RQ_NODISCARD rq_err rq_vfs_sync_path(rq_vfs *v, const char *dir, rq_error *why);
/* Syncs the folder that contains the path's last name. */
RQ_NODISCARD rq_err rq_vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why);
/*
 * Takes the exclusive right to use the root, until the file is closed. RQ_E_LOCKED names the
 * holder. It consists of two locks. The first is on the root folder itself: it survives the removal
 * of names in the folder, and is the same for every path to it. The second is on the file `path`
 * (created if missing, not a symbolic link), which holds the process id of the holder; older
 * versions know only this lock. path NULL: takes only the first lock and writes nothing.
 */
RQ_NODISCARD rq_err rq_vfs_lock(rq_vfs *v, const char *path, rq_file **ret, rq_error *why);
/* Removes permission bits that a newly made file or folder would not have; never adds any. Only
 * for files and folders of the process's user; "" is the root. An absent path and a symbolic
 * link are no errors. *ret_was: the former mode, or 0 when nothing changed. */
RQ_NODISCARD rq_err rq_vfs_restrict_mode(rq_vfs *v, const char *path, unsigned *ret_was,
                                         rq_error *why);

/* Makes all data durable that was written to the root's file system, by any process (syncfs), for
 * copies of many files. */
RQ_NODISCARD rq_err rq_vfs_sync_all(rq_vfs *v, rq_error *why);

/*
 * Defers syncs while a new root is laid out, which takes a hundred of them. After `on`, every sync
 * of a file or folder is only recorded. `off` performs them, files first, and returns when
 * everything is durable. In between nothing is durable and there is no order, so this is only for a
 * root that is discarded unless it is finished. `off` without `on` is allowed.
 */
RQ_NODISCARD
rq_err rq_vfs_defer(rq_vfs *v, bool on, rq_error *why);

/*
 * Some file systems keep what a process held (open files, locks) for a while after its end, and let others wait. There a
 * root is opened under a name of the process (cephfs.h), and this ends what the process still has: others need not wait,
 * and it never writes to the root again, should it still run. An unknown name is no error. Waits while the file system
 * does not answer. Elsewhere there are no such names, and nothing is done.
 */
bool rq_vfs_has_clients(const rq_vfs *v);
RQ_NODISCARD
rq_err rq_vfs_evict(rq_vfs *v, const char *client, rq_error *why);

/* --- whole small files ------------------------------------------------------------------------ */
/* Reads a file into the arena. RQ_E_INVALID: it is longer than max_len. */
RQ_NODISCARD rq_err rq_vfs_read_file(rq_vfs *v, const char *path, size_t max_len, rq_arena *arena,
                                     rq_slice *ret, rq_error *why);
/* Writes a new file; it and its name are durable when this returns. RQ_E_EXISTS: the file
 * exists. */
RQ_NODISCARD rq_err rq_vfs_write_new_file(rq_vfs *v, const char *path, rq_slice bytes,
                                          rq_error *why);

/* --- the swap -------------------------------------------------------------------------------- */
/*
 * Atomic replacement of a small object. `name` stands for two slots, name.0 and name.1, each with
 * magic, generation, length and CRC-32C. The newest valid slot counts, and only the older one is
 * ever overwritten. The new object is durable when this returns. Generation 0 means absent.
 * RQ_E_CONFLICT: the stored generation is not `expected`. RQ_E_CORRUPT: a committed object is
 * damaged (also from the functions below). RQ_E_INVALID: more than 256 MiB.
 *
 * A failed swap is undone. If the undo cannot be made durable either, the object is *in doubt*:
 * after a power cut either the old or the new one may be found. *in_doubt is then set; the caller
 * passes it to the next swap of the name, which either succeeds or leaves it set. Until it is
 * cleared the caller must delete nothing that either object refers to. in_doubt may be NULL if
 * nothing depends on it.
 */
RQ_NODISCARD rq_err rq_vfs_cas(rq_vfs *v, const char *name, uint64_t expected, rq_slice bytes,
                               uint64_t *ret_generation, bool *in_doubt, rq_error *why);
/* Reads the object, after making it durable if it may exist only in memory; so it may write.
 * RQ_E_NOT_FOUND: neither slot is valid and none was ever committed. */
RQ_NODISCARD rq_err rq_vfs_cas_read(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                                    uint64_t *ret_generation, rq_error *why);
/* Like rq_vfs_cas_read, but writes nothing; for tools. The result may not be durable yet.
 * *ret_other: the path of the other slot if it exists and is damaged; else NULL. */
RQ_NODISCARD rq_err rq_vfs_cas_peek(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                                    const char **ret_other, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_cas_remove(rq_vfs *v, const char *name, rq_error *why);

void rq_vfs_free(rq_vfs *v);

/* A vfs on the local folder `root`, which must exist. New folders have mode 0700, new files
 * 0600. */
RQ_NODISCARD rq_err rq_vfs_posix_new(const char *root, rq_vfs **ret, rq_error *why);
/* Sets the mode of new folders; new files get it without execute permission. REQUIRES: the vfs
 * was not used yet. */
void rq_vfs_posix_set_mode(rq_vfs *v, unsigned folder_mode);

/* Called after a write or sync that took longer than the limit, on the thread that made it, which
 * may be an event loop. */
typedef void (*rq_vfs_slow)(void *ctx, const char *what, const char *path, uint64_t bytes,
                            uint64_t ns);
/* `slow` is called for each write or sync of a file above the limit. REQUIRES: the vfs was not used
 * yet. */
void rq_vfs_posix_on_slow(rq_vfs *v, rq_vfs_slow slow, void *ctx);
/* The limit in nanoseconds; UINT64_MAX, as at first: none. Any thread. */
void rq_vfs_posix_set_slow(rq_vfs *v, uint64_t ns);

#endif
