/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only door to storage. Paths are relative to the vfs's root, '/'-separated, no leading '/'.
 *
 * Durability rules (posix.c keeps them, sim.c punishes whoever forgets one):
 *  1. Written bytes are durable after rq_file_sync; the length with them.
 *  2. A created, linked or removed name is durable after rq_vfs_sync_dir of its folder; a new
 *     folder's own name after sync_dir of its parent.
 *  3. There is no rename: nothing may depend on one.
 *  4. After a failed sync the file's unsynced bytes are lost; sync is never retried on it.
 * All verbs are synchronous and may block: pools and tools only. The one exception is
 * rq_file_try_read, which never waits for a device and answers RQ_E_AGAIN instead.
 * Only regular files are opened, and opening does not wait for a peer: a FIFO, a socket, a device,
 * a folder or a loop of symbolic links under a file's name is RQ_E_CORRUPT. Errors: RQ_E_NOT_FOUND,
 * RQ_E_EXISTS, RQ_E_NO_SPACE, RQ_E_PERMISSION, RQ_E_IO; `why` names the path and what the operating
 * system said.
 */
#ifndef RQ_VFS_VFS_H
#define RQ_VFS_VFS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

typedef struct rq_vfs rq_vfs;
typedef struct rq_file rq_file;

enum {
    RQ_OPEN_READ = 0,
    RQ_OPEN_WRITE = 1,  /* read and write */
    RQ_OPEN_CREATE = 2, /* with WRITE; existing files are opened as they are */
    RQ_OPEN_EXCL = 4,   /* with CREATE: RQ_E_EXISTS if there */
    RQ_OPEN_RANDOM = 8, /* advice: no read-ahead */
    /* The path comes from a client, or others may write its folder: no symbolic link is followed
     * (RQ_E_PERMISSION), so that the file lies below the root. */
    RQ_OPEN_BENEATH = 16,
};

typedef struct rq_stat {
    uint64_t size;
    int64_t mtime_ms;
    bool is_dir;
} rq_stat;

typedef struct rq_dir_entry {
    const char *name; /* in the arena given to list */
    bool is_dir;      /* of a symbolic link: what it leads to */
    bool is_link;     /* a symbolic one: what is below it is not ours to remove */
} rq_dir_entry;

/* Which file, in which state. Two equal ones: the file was neither replaced nor written in between.
 */
typedef struct rq_file_id {
    uint64_t device, inode;
    uint64_t size;
    int64_t written_ns; /* last change of the content */
    int64_t changed_ns; /* last change of the content, the owner, the mode or the number of names */
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
    rq_err (*remove_file)(rq_vfs *v, const char *path, const rq_file_id *id, rq_error *why);
    /* NULL: files have no mode. */
    rq_err (*restrict_mode)(rq_vfs *v, const char *path, unsigned *ret_was, rq_error *why);
    void (*drop_behind)(rq_file *f, uint64_t off, uint64_t len); /* NULL: pages are not known */
    /* NULL: rq_vfs_defer changes nothing. */
    rq_err (*defer)(rq_vfs *v, bool on, rq_error *why);
    void (*free)(rq_vfs *v);
};

/* --- files ---------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq_vfs_open(rq_vfs *v, const char *path, int flags, rq_file **ret,
                                rq_error *why);
/* NULL is fine. Unsynced bytes stay with the operating system. */
rq_err rq_file_close(rq_file *f);
/* Reads up to len bytes; fewer only at the end of the file. */
RQ_NODISCARD rq_err rq_file_read(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                                 rq_error *why);
/* Like read, from the page cache alone (preadv2 RWF_NOWAIT): RQ_E_AGAIN when it would wait. */
RQ_NODISCARD rq_err rq_file_try_read(rq_file *f, void *buf, size_t len, uint64_t off,
                                     size_t *ret_len);
/* Advice: nobody is expected to read these bytes again. What the operating system keeps of them in
 * memory, and is on the device, may go at once. */
void rq_file_drop_behind(rq_file *f, uint64_t off, uint64_t len);
/* All of it or an error. */
RQ_NODISCARD rq_err rq_file_write(rq_file *f, const void *buf, size_t len, uint64_t off,
                                  rq_error *why);
RQ_NODISCARD rq_err rq_file_sync(rq_file *f, rq_error *why);
RQ_NODISCARD rq_err rq_file_truncate(rq_file *f, uint64_t size, rq_error *why);
RQ_NODISCARD rq_err rq_file_size(rq_file *f, uint64_t *ret, rq_error *why);
RQ_NODISCARD rq_err rq_file_identify(rq_file *f, rq_file_id *ret, rq_error *why);
/* Another name for the open file, in the storage `to`, where it gets the mode of a file made there.
 * An error (another file system, another owner, a second name elsewhere): nothing was done, and the
 * bytes can be copied instead. */
RQ_NODISCARD rq_err rq_file_link(rq_file *f, rq_vfs *to, const char *path, rq_error *why);

/* --- names ---------------------------------------------------------------------------------- */
RQ_NODISCARD rq_err rq_vfs_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why);
/* Names without "." and "..", sorted by bytes. */
RQ_NODISCARD rq_err rq_vfs_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                                size_t *ret_count, rq_error *why);
/* The same of a folder that need not be there: then nothing is in it. */
RQ_NODISCARD rq_err rq_vfs_list_if_any(rq_vfs *v, const char *dir, rq_arena *arena,
                                       rq_dir_entry **ret, size_t *ret_count, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_mkdir(rq_vfs *v, const char *path, rq_error *why);
/* Creates what is missing on the way and syncs each parent it added a name to. */
RQ_NODISCARD rq_err rq_vfs_mkdirs(rq_vfs *v, const char *path, rq_error *why);
/* A file or an empty folder. */
RQ_NODISCARD rq_err rq_vfs_remove(rq_vfs *v, const char *path, rq_error *why);
/* The name goes if it still stands for that file (device and inode), with no symbolic link on the
 * way; else RQ_E_CONFLICT. */
RQ_NODISCARD rq_err rq_vfs_remove_file(rq_vfs *v, const char *path, const rq_file_id *id,
                                       rq_error *why);
/* A folder with all it holds; absent is fine. A symbolic link goes, what it leads to stays. */
RQ_NODISCARD rq_err rq_vfs_remove_tree(rq_vfs *v, const char *path, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_link(rq_vfs *v, const char *from, const char *to, rq_error *why);
/* Gives a file another name, in a folder that is made for it. The new name is durable; that the old
 * one is gone is so after the next sync_dir of its folder. To be repeated after a crash or an
 * error: a file that has the new name already is taken for this one. Somebody may remove the folder
 * while it is empty. */
RQ_NODISCARD rq_err rq_vfs_move(rq_vfs *v, const char *from, const char *to, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_sync_dir(rq_vfs *v, const char *dir, rq_error *why);
/* The folder that the path's last name stands in. */
RQ_NODISCARD rq_err rq_vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why);
/*
 * The exclusive right to use the root, held until the file is closed; RQ_E_LOCKED names the holder.
 * Two locks make it: one on the root folder itself, which lasts when names in it are removed and is
 * the same under every path to it, and one on the file `path` (made when missing, not a symbolic
 * link), where a holder's number stands. Versions before the first lock knew only the second.
 * path NULL: the first alone; nothing is written.
 */
RQ_NODISCARD rq_err rq_vfs_lock(rq_vfs *v, const char *path, rq_file **ret, rq_error *why);
/* Takes from the mode of a file or folder of the process's user ("": the root) what one made here
 * would not have; never adds. Absent, or a symbolic link, is fine. *ret_was: the former mode, 0
 * when nothing changed. */
RQ_NODISCARD rq_err rq_vfs_restrict_mode(rq_vfs *v, const char *path, unsigned *ret_was,
                                         rq_error *why);

/*
 * Laying out a new root takes a hundred syncs that nobody waits for one by one. Between on and off
 * every sync of a file or folder is only remembered; `off` performs them, files first, and returns
 * when all is durable: nothing in between is, in no particular order. For a root that is thrown
 * away unless it is finished. Off without on is fine.
 */
RQ_NODISCARD
rq_err rq_vfs_defer(rq_vfs *v, bool on, rq_error *why);

/* --- whole small files ------------------------------------------------------------------------ */
/* Bytes in the arena. RQ_E_INVALID above max_len. */
RQ_NODISCARD rq_err rq_vfs_read_file(rq_vfs *v, const char *path, size_t max_len, rq_arena *arena,
                                     rq_slice *ret, rq_error *why);
/* A new file (RQ_E_EXISTS if there), durable with its name when this returns. */
RQ_NODISCARD rq_err rq_vfs_write_new_file(rq_vfs *v, const char *path, rq_slice bytes,
                                          rq_error *why);

/* --- the swap -------------------------------------------------------------------------------- */
/*
 * A small object replaced as a whole: `name` stands for the two slots name.0 and name.1, each with
 * magic, generation, length and CRC-32C; the newest valid one counts and only the older is ever
 * overwritten. Durable when it returns. generation 0 = absent. RQ_E_CONFLICT when the stored
 * generation is not `expected`.
 *
 * A failed swap is undone; where that cannot be made durable either, the object is *in doubt*: a
 * power cut may leave the former or the new one. *in_doubt is then set, and given to the next swap
 * of the name, which succeeds for certain or leaves the doubt. Until then nothing may go that
 * either of the two names. NULL: the caller does nothing that depends on it.
 */
RQ_NODISCARD rq_err rq_vfs_cas(rq_vfs *v, const char *name, uint64_t expected, rq_slice bytes,
                               uint64_t *ret_generation, bool *in_doubt, rq_error *why);
/* RQ_E_NOT_FOUND when neither slot holds a valid object and none was ever committed. */
RQ_NODISCARD rq_err rq_vfs_cas_read(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                                    uint64_t *ret_generation, rq_error *why);
/* The same without a byte written, for tools: what it shows may not be durable yet. *ret_other: the
 * slot that does not count, when it is there and damaged; else NULL. */
RQ_NODISCARD rq_err rq_vfs_cas_peek(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                                    const char **ret_other, rq_error *why);
RQ_NODISCARD rq_err rq_vfs_cas_remove(rq_vfs *v, const char *name, rq_error *why);

void rq_vfs_free(rq_vfs *v);

/* Below `root`, which must exist. New folders have mode 0700, new files 0600. */
RQ_NODISCARD rq_err rq_vfs_posix_new(const char *root, rq_vfs **ret, rq_error *why);
/* The mode of new folders; files get it without the permission to execute. Before its first use. */
void rq_vfs_posix_set_mode(rq_vfs *v, unsigned folder_mode);

#endif
