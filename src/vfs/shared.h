/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second interface to storage: data that several servers share. It stores logs that exactly
 * one server may write, small objects that are compared and swapped, and sets of names.
 *
 * The storage decides who may write, not a clock, a master or ZooKeeper:
 *  1. A *tenure* is one server incarnation's right to write its log. Its name is a ServerName
 *     (host,port,startcode), is taken once and never again.
 *  2. Any server may revoke it, any number of times. It then has ended forever: the lengths
 *     returned by rq_slog_lengths never change again.
 *  3. A write that was acknowledged (done with RQ_OK) lies within these lengths. A write that was
 *     not acknowledged may lie within them, whole or in part, or not at all.
 *  4. Once a revoke has returned, no write that is submitted later is acknowledged. A server that
 *     was paused meanwhile learns it at its next write (RQ_E_SERVER_ABORTED).
 *  5. A server may answer reads while rq_shared_now_ns is less than rq_tenure_valid_until. The
 *     server that takes over may answer once its own clock has reached the time that
 *     rq_tenure_revoke returned.
 *
 * Each server measures durations by its own clock only (CLOCK_BOOTTIME, which runs while the
 * machine sleeps); clocks are never compared. It is assumed that the rates of two clocks differ by
 * less than 1 %: a lease of RQ_SHARED_LEASE_NS is used for 95 % of it.
 *
 * Implementations: shared_posix.c, a folder that all servers see (development: rule 3 rests on the
 * rates of clocks, because a file system does not check a guard at each write); shared_rados.c,
 * Ceph's RADOS, which checks a guard at each write (shared_rados.h); sim_shared.c, a simulated storage
 * that does the same.
 *
 * Names of tenures, objects and sets, and keys of sets: 1 … RQ_SHARED_NAME_MAX of the characters
 * A-Z a-z 0-9 . , _ - : and no '.' at the beginning; others are RQ_E_INVALID.
 *
 * All functions block, and run on pools and in tools, except rq_tenure_valid_until,
 * rq_tenure_quiet_in, rq_shared_now_ns and rq_slog_submit. Any thread may call them; a tenure and its logs are freed by
 * one thread, when no other uses them. `why` may be NULL.
 */
#ifndef RQ_VFS_SHARED_H
#define RQ_VFS_SHARED_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/executor.h"

typedef struct rq_shared rq_shared;
typedef struct rq_tenure rq_tenure;
typedef struct rq_slog rq_slog;

#define RQ_SHARED_NAME_MAX 200
#define RQ_SHARED_LEASE_NS UINT64_C(1000000000)
#define RQ_SLOG_STRIPES 4
#define RQ_OBJECT_BYTES_MAX (256u << 20)

/* --- tenures ---------------------------------------------------------------------------------- */
/* RQ_E_EXISTS: the name was taken before, or revoked; take a higher start code. */
RQ_NODISCARD rq_err rq_tenure_begin(rq_shared *s, const char *server_name, rq_tenure **ret,
                                    rq_error *why);
/* The time until which reads may be answered, by rq_shared_now_ns; 0 once the tenure has ended. One
 * atomic load. Renewed in the background. */
uint64_t rq_tenure_valid_until(const rq_tenure *t);
/* Ends the tenure in order: seals its log. REQUIRES: no write is in flight. On an error it may or
 * may not have ended; revoke it. */
RQ_NODISCARD rq_err rq_tenure_end(rq_tenure *t, rq_error *why);
/* Releases the memory. A tenure that was not ended stays open, as after a crash, until it is
 * revoked. NULL is allowed. REQUIRES: its logs are closed. */
void rq_tenure_free(rq_tenure *t);
/* Ends another server's tenure and seals its log. When it returns RQ_OK, rules 2 to 4 hold.
 * *ret_quiet_ns: the time, by rq_shared_now_ns, from which that server answers no read; a later revoke of the tenure, by
 * the same server, returns no later time, unless it has forgotten the first one. A name that
 * was never taken can no longer be taken afterwards; a name that is removed meanwhile is no error.
 * On an error call it again. */
RQ_NODISCARD rq_err rq_tenure_revoke(rq_shared *s, const char *server_name, uint64_t *ret_quiet_ns,
                                     rq_error *why);
/* Another server has revoked this tenure (its rq_tenure_revoke has returned RQ_OK), and said that the former owner answers no
 * reads any more after `in_ns`, by that server's clock. From now on a revoke by this server returns no later time than
 * `in_ns` from now. Never blocks. */
void rq_tenure_quiet_in(rq_shared *s, const char *server_name, uint64_t in_ns);
/* How often the lease had run out and was renewed later, and for how long together. Any thread. */
void rq_tenure_lapses(const rq_tenure *t, uint64_t *ret_count, uint64_t *ret_ns);
/* The clock of this server's durations, in nanoseconds. */
uint64_t rq_shared_now_ns(const rq_shared *s);

/* --- a tenure's log --------------------------------------------------------------------------- */
/* One ledger of a log: RQ_SLOG_STRIPES byte strings that only grow. The caller distributes what it
 * writes over them, and recognizes incomplete writes by its own checksums. */
typedef struct rq_slog_ledger {
    uint64_t number;
    uint64_t lengths[RQ_SLOG_STRIPES];
} rq_slog_ledger;

/* A write in flight. The caller owns the struct and the bytes, and keeps both until `done` is called
 * on `lane`. */
typedef struct rq_slog_write {
    unsigned stripe;
    uint64_t off; /* the stripe's length: what was acknowledged there */
    rq_slice bytes;
    rq_lane *lane;
    /* RQ_OK: the write is acknowledged. RQ_E_SERVER_ABORTED: the tenure has ended. Other errors:
     * the outcome is unknown, and the stripe accepts no more writes (RQ_E_STATE): continue in a new
     * ledger. */
    void (*done)(struct rq_slog_write *w, rq_err rc);
    /* the implementation's */
    rq_task task;
    rq_slog *log;
    rq_err rc;
} rq_slog_write;

/* Creates a ledger. RQ_E_EXISTS: the tenure has one with this number. RQ_E_SERVER_ABORTED: the
 * tenure has ended. After another error take a higher number. */
RQ_NODISCARD rq_err rq_slog_open(rq_tenure *t, uint64_t number, rq_slog **ret, rq_error *why);
/* Appends. Call it on `w->lane`, which is the same for all writes of a log. REQUIRES: no other write is in
 * flight on this stripe (guarded writes of one object do not pipeline, and delay a fence), and `off` is the
 * stripe's length. */
void rq_slog_submit(rq_slog *log, rq_slog_write *w);
/* The stripe's name on the storage, for the operator: of the object in the pool, or of the file below the shared folder. */
#define RQ_SLOG_NAME_MAX (RQ_SHARED_NAME_MAX + 40)
void rq_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX]);
/* NULL is allowed. REQUIRES: no write is in flight. */
void rq_slog_close(rq_slog *log);
/* Removes a ledger of one's own log; an absent one is no error. The server that ends the tenure
 * may find the ledger, a part of it, or nothing. RQ_E_SERVER_ABORTED: the tenure has ended; the
 * rest is removed with the log. REQUIRES: the ledger is closed, and is not opened again. */
RQ_NODISCARD rq_err rq_slog_drop(rq_tenure *t, uint64_t number, rq_error *why);
/* The ledgers of an ended tenure, by number. RQ_E_STATE: it has not ended. RQ_E_NOT_FOUND: there
 * is none. */
RQ_NODISCARD rq_err rq_slog_lengths(rq_shared *s, const char *server_name, rq_arena *arena,
                                    rq_slog_ledger **ret, size_t *ret_count, rq_error *why);
/* Reads of an ended tenure's ledger, as rq_slog_lengths returned it; fewer than `len` bytes only at
 * the sealed length. */
RQ_NODISCARD rq_err rq_slog_read(rq_shared *s, const char *server_name,
                                 const rq_slog_ledger *ledger, unsigned stripe, uint64_t off,
                                 void *buf, size_t len, size_t *ret_len, rq_error *why);
/* Removes an ended tenure and its log; one that is absent is no error. RQ_E_STATE: it has not
 * ended. REQUIRES: no server takes the name again. */
RQ_NODISCARD rq_err rq_slog_remove(rq_shared *s, const char *server_name, rq_error *why);

/* --- objects ---------------------------------------------------------------------------------- */
/* Replaces an object if its generation is `expected`; 0: if it is absent. The new object is durable
 * when this returns, and its generation is higher than any that the name ever had. RQ_E_CONFLICT:
 * the generation is another; nothing was changed. RQ_E_INVALID: more than RQ_OBJECT_BYTES_MAX.
 * Other errors: the outcome is unknown; read the object again: its bytes must show who wrote them. */
RQ_NODISCARD rq_err rq_object_cas(rq_shared *s, const char *name, uint64_t expected, rq_slice bytes,
                                  uint64_t *ret_generation, rq_error *why);
/*
 * Swaps until the outcome is certain. *generation: in, of the object that is replaced; out, of the
 * new one. When a swap's answer was lost or the generation is another, the object is read: with
 * these bytes, the swap succeeded; if `again` (NULL: nothing) recognizes its bytes as written by the
 * caller, an earlier swap of the caller arrived late, and this one is repeated on top of it. Otherwise
 * RQ_E_CONFLICT: another server replaced the object, perhaps after this swap was applied. Another
 * error: the storage did not answer; the outcome is unknown, and the same bytes may be swapped
 * again. REQUIRES: no other server writes the same bytes, nor does the caller twice.
 */
RQ_NODISCARD rq_err rq_object_swap(rq_shared *s, const char *name, uint64_t *generation,
                                   rq_slice bytes, bool (*again)(void *ctx, rq_slice bytes),
                                   void *ctx, rq_error *why);
/* RQ_E_NOT_FOUND: absent. What is returned is durable. */
RQ_NODISCARD rq_err rq_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                                  uint64_t *ret_generation, rq_error *why);
/* RQ_E_CONFLICT: the generation is not `expected`. Other errors as for rq_object_cas. */
RQ_NODISCARD rq_err rq_object_remove(rq_shared *s, const char *name, uint64_t expected,
                                     rq_error *why);

/* --- sets ------------------------------------------------------------------------------------- */
/* Adds a key; one that is there is no error. Durable when this returns. */
RQ_NODISCARD rq_err rq_set_put(rq_shared *s, const char *name, const char *key, rq_error *why);
/* One that is absent is no error. */
RQ_NODISCARD rq_err rq_set_del(rq_shared *s, const char *name, const char *key, rq_error *why);
/* The keys, sorted bytewise; of an absent set: none. */
RQ_NODISCARD rq_err rq_set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                                size_t *ret_count, rq_error *why);

/* REQUIRES: its tenures are freed. NULL is allowed. */
void rq_shared_free(rq_shared *s);

/* --- implementations -------------------------------------------------------------------------- */
struct rq_vfs;
/* A shared folder: the root of `vfs`, which is borrowed. Appends run on lanes of `executor`. `clock`
 * NULL: CLOCK_BOOTTIME. */
RQ_NODISCARD rq_err rq_shared_posix_new(struct rq_vfs *vfs, rq_executor *executor,
                                        uint64_t (*clock)(void *ctx), void *clock_ctx,
                                        rq_shared **ret);

struct rq_shared {
    rq_err (*tenure_begin)(rq_shared *s, const char *name, rq_tenure **ret, rq_error *why);
    rq_err (*tenure_end)(rq_tenure *t, rq_error *why);
    void (*tenure_free)(rq_tenure *t);
    rq_err (*tenure_revoke)(rq_shared *s, const char *name, uint64_t *ret_quiet_ns, rq_error *why);
    /* NULL: a revoke returns only when the lease has run out, so there is no time to note. */
    void (*tenure_quiet)(rq_shared *s, const char *name, uint64_t quiet_ns);
    uint64_t (*now_ns)(const rq_shared *s);
    rq_err (*slog_open)(rq_tenure *t, uint64_t number, rq_slog **ret, rq_error *why);
    void (*slog_submit)(rq_slog *log, rq_slog_write *w);
    void (*slog_name)(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX]);
    void (*slog_close)(rq_slog *log);
    rq_err (*slog_drop)(rq_tenure *t, uint64_t number, rq_error *why);
    rq_err (*slog_lengths)(rq_shared *s, const char *name, rq_arena *arena, rq_slog_ledger **ret,
                           size_t *ret_count, rq_error *why);
    rq_err (*slog_read)(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                        uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why);
    rq_err (*slog_remove)(rq_shared *s, const char *name, rq_error *why);
    rq_err (*object_cas)(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                         uint64_t *ret_generation, rq_error *why);
    rq_err (*object_get)(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                         uint64_t *ret_generation, rq_error *why);
    rq_err (*set_put)(rq_shared *s, const char *name, const char *key, rq_error *why);
    rq_err (*set_del)(rq_shared *s, const char *name, const char *key, rq_error *why);
    rq_err (*set_list)(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                       size_t *ret_count, rq_error *why);
    void (*free)(rq_shared *s);
};

struct rq_tenure {
    rq_shared *shared;
    _Atomic uint64_t valid_until_ns; /* 0: ended */
    _Atomic uint64_t lapses, lapsed_ns;
};

struct rq_slog {
    rq_tenure *tenure;
    uint64_t number;
    struct {
        uint64_t length;
        bool busy, failed;
    } stripes[RQ_SLOG_STRIPES];
};

#endif
