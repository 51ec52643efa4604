/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends every call: checks the process, takes a slot, fills the failure.
 *
 * After a fork the child has a copy of the database's memory, but none of its threads, and shares
 * its files and sockets. The kernel wipes the page `home` in a child (MADV_WIPEONFORK), so a call
 * finds out by one load that it is in a child, without a system call and without global state.
 * Kernels that do not support MADV_WIPEONFORK: the process id is compared.
 */
#include "api/api_priv.h"

#include "base/clock.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct rq__home {
    _Atomic uint32_t here; /* 1; in a child of fork 0 */
    pid_t pid;             /* compared if it is not 0 */
} home;

#define HOME_BYTES 4096

static rq_err home_new(const home **ret, rq_error *why)
{
    home *h = mmap(NULL, HOME_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (h == MAP_FAILED) return rq_no_memory(why);
    if (madvise(h, HOME_BYTES, MADV_WIPEONFORK) != 0) h->pid = getpid();
    atomic_init(&h->here, 1);
    *ret = h;
    return RQ_OK;
}

bool rq_db_is_home(const rq_db *db)
{
    const home *h = db->home;
    if (RQ_UNLIKELY(atomic_load_explicit(&h->here, memory_order_relaxed) == 0)) return false;
    return RQ_LIKELY(h->pid == 0) || h->pid == getpid();
}

RQ_COLD static rq_err fail_forked(rq_error *why)
{
    return rq_fail(why, RQ_E_FORKED,
                   "the database was opened by the parent process, before a fork");
}

rq_err rq_db_needs_home(const rq_db *db, rq_failure *failure)
{
    rq_why why;
    if (RQ_LIKELY(rq_db_is_home(db))) return RQ_OK;
    rq_why_clear(&why);
    return rq_fill_failure(failure, fail_forked(&why.error), &why);
}

/* --- databases -------------------------------------------------------------------------------- */

rq_err rq_db_init(rq_db *db, const rq_backend *backend, uint32_t timeout_ms, rq_error *why)
{
    db->backend = backend;
    db->timeout_ms = timeout_ms;
    atomic_init(&db->refs, 1);
    RQ_TRY(rq__completions_new(db, why));
    return home_new(&db->home, why);
}

rq_db *rq__db_ref(rq_db *db)
{
    atomic_fetch_add_explicit(&db->refs, 1, memory_order_relaxed);
    return db;
}

void rq_db_unref(rq_db *db)
{
    if (atomic_fetch_sub_explicit(&db->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < RQ_SLOTS; i++)
        rq_arena_clear(&db->slots[i].arena);
    rq__completions_free(db);
    if (db->home != NULL) munmap((void *)(uintptr_t)db->home, HOME_BYTES);
    free(db);
}

static void pause_briefly(rq_db *db)
{
    (void)db;
    rq_clock_sleep_ns(100000);
}

static void wait_for_slots(rq_db *db)
{
    for (size_t i = 0; i < RQ_SLOTS; i++)
        while (atomic_load(&db->slots[i].busy))
            pause_briefly(db);
}

rq_err rq_disconnect(rq_db *db, rq_failure *failure)
{
    rq_why why;
    rq_why_clear(&why);
    if (db == NULL) return RQ_OK;
    RQ_TRY(rq_db_needs_home(db, failure));
    if (rq__completions_inside(db))
        return rq_fill_failure(
            failure, rq_fail(&why.error, RQ_E_STATE, "not allowed in a completion of the database"),
            &why);
    if (atomic_exchange(&db->closed, true)) return rq_fill_failure(failure, RQ_E_CLOSED, &why);
    rq__completions_stop(db);
    wait_for_slots(db);
    rq__completions_end(db);
    atomic_store(&db->is_ending, true);
    wait_for_slots(db);
    rq_err rc = db->backend->close(db, &why.error);
    atomic_store(&db->has_ended, true);
    rq_db_unref(db);
    return rq_fill_failure(failure, rc, &why);
}

/* --- slots ------------------------------------------------------------------------------------ */

static size_t slot_of_thread(void)
{
    uint64_t self = (uint64_t)(uintptr_t)pthread_self();
    return (size_t)(self * 0x9e3779b97f4a7c15u >> 57);
}
_Static_assert(RQ_SLOTS == 1 << (64 - 57), "slot_of_thread makes numbers of 7 bits");

static rq_slot *free_slot(rq_db *db, void (*pause)(rq_db *db))
{
    for (;;) {
        size_t first = slot_of_thread();
        for (size_t i = 0; i < RQ_SLOTS; i++) {
            rq_slot *s = &db->slots[(first + i) % RQ_SLOTS];
            if (!atomic_load_explicit(&s->busy, memory_order_relaxed) &&
                !atomic_exchange(&s->busy, true))
                return s;
        }
        pause(db); /* as many calls are running as there are slots */
    }
}

static rq_err take_slot(rq_db *db, void (*pause)(rq_db *db), rq_slot **ret, rq_why *why)
{
    if (RQ_UNLIKELY(!rq_db_is_home(db))) return fail_forked(&why->error);
    rq_slot *s = free_slot(db, pause);
    if (RQ_UNLIKELY(atomic_load(&db->closed))) {
        atomic_store(&s->busy, false);
        return rq_fail(&why->error, RQ_E_CLOSED, "the database is closed");
    }
    *ret = s;
    return RQ_OK;
}

rq_err rq__slot_take(rq_db *db, rq_slot **ret, rq_why *why)
{
    return take_slot(db, pause_briefly, ret, why);
}

rq_err rq__slot_take_for_call(rq_db *db, rq_slot **ret, rq_why *why)
{
    return take_slot(db, db->backend->pause != NULL ? db->backend->pause : pause_briefly, ret, why);
}

rq_slot *rq__slot_take_last(rq_db *db)
{
    rq_slot *s = free_slot(db, pause_briefly);
    if (RQ_LIKELY(!atomic_load(&db->is_ending))) return s;
    atomic_store(&s->busy, false);
    while (!atomic_load(&db->has_ended))
        pause_briefly(db);
    return NULL;
}

void rq__slot_give_back(rq_slot *slot)
{
    rq_arena_reset(&slot->arena);
    atomic_store_explicit(&slot->busy, false, memory_order_release);
}

/* --- failures --------------------------------------------------------------------------------- */

/* Part of the caller's struct, which may be an older and shorter one. */
#define HAS(to, field) ((to)->size >= offsetof(rq_failure, field) + sizeof(to)->field)

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = strnlen(from, size - 1);
    memcpy(to, from, len);
    to[len] = '\0';
}

rq_err rq_fill_failure(rq_failure *to, rq_err rc, const rq_why *why)
{
    if (RQ_LIKELY(rc == RQ_OK) || to == NULL) return rc;
    const char *text = why->error.message[0] != '\0' ? why->error.message : rq_err_text(rc);
    if (HAS(to, code)) to->code = rc;
    if (HAS(to, retryable))
        to->retryable = why->is_remote ? why->retryable : !rq_err_do_not_retry(rc);
    if (HAS(to, action)) to->action = why->action;
    if (HAS(to, hbase_class))
        copy_text(to->hbase_class, sizeof to->hbase_class,
                  why->is_remote && why->java_class[0] != '\0' ? why->java_class
                                                               : rq_err_java_class(rc));
    if (HAS(to, message)) copy_text(to->message, sizeof to->message, text);
    return rc;
}

rq_err rq_needs(const void *argument, const char *what, rq_failure *failure)
{
    rq_why why;
    if (RQ_LIKELY(argument != NULL)) return RQ_OK;
    rq_why_clear(&why);
    return rq_fill_failure(failure, rq_fail(&why.error, RQ_E_INVALID, "the %s is NULL", what),
                           &why);
}

rq_err rq_check_bytes(rq_bytes bytes, const char *what, rq_error *why)
{
    if (RQ_LIKELY(bytes.data != NULL || bytes.len == 0)) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "%s of %zu bytes has data NULL", what, bytes.len);
}

/* The size of the caller's struct in any version; a larger one is invalid. */
#define STRUCT_MAX 65536

rq_err rq_sized(void *to, size_t to_size, const void *from, size_t least, const char *what,
                rq_error *why)
{
    size_t size = 0;
    if (from == NULL) return rq_fail(why, RQ_E_INVALID, "the %s is NULL", what);
    memcpy(&size, from, sizeof size);
    if (size > STRUCT_MAX)
        return rq_fail(why, RQ_E_INVALID, "%s.size is %zu, which is invalid", what, size);
    if (size < least)
        return rq_fail(why, RQ_E_INVALID,
                       "%s.size is %zu, smaller than in any version of the library", what, size);
    if (size >
        to_size) { /* a field of a later version: this version would ignore what it asks for */
        const unsigned char *more = (const unsigned char *)from + to_size;
        for (size_t i = 0; i < size - to_size; i++)
            if (more[i] != 0)
                return rq_fail(why, RQ_E_UNSUPPORTED,
                               "%s has fields that this version of the library does not know",
                               what);
        size = to_size;
    }
    memcpy(to, from, size);
    memset((char *)to + size, 0, to_size - size);
    return RQ_OK;
}

rq_err rq_sized_result(const void *to, size_t least, const char *what, rq_error *why)
{
    size_t size = 0;
    memcpy(&size, to, sizeof size);
    if (size >= least && size <= STRUCT_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "%s.size is %zu, which is invalid", what, size);
}

void rq_fill_sized(void *to, const void *from, size_t from_size)
{
    size_t size = 0;
    memcpy(&size, to, sizeof size);
    size_t filled = size < from_size ? size : from_size;
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, filled - sizeof size);
}

const char *rq_version(void)
{
    return RQ_VERSION;
}
