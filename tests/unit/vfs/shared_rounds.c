/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_rounds.h. */
#include "shared_rounds.h"

#include "../../extents.h"

#include "base/random.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LSN_MAX 1000000
#define LEDGER_WRITES 80 /* small, so that the fence meets ledgers that are being made */
/* Exit codes of the writer. */
#define ENDED_BY_REVOKE 0
#define ENDED_BY_ERROR 9

void rounds_executor(door *d)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(rq_thread_executor_new(threads, &d->executor), RQ_OK);
}

/* --- the writer's process ------------------------------------------------------------------- */

typedef struct seen {
    _Atomic uint64_t acknowledged, valid_until_ns;
} seen;

typedef struct job {
    rq_slog_write write;
    rq_latch latch;
    uint8_t bytes[EXTENT_MAX];
} job;

static void written(rq_slog_write *w, rq_err rc)
{
    job *j = RQ_CONTAINER_OF(w, job, write);
    j->latch.executor->latch_open(&j->latch, rc);
}

static rq_err write_four(door *d, rq_slog *log, rq_lane *lane, uint64_t off[], uint64_t lsn)
{
    job jobs[RQ_SLOG_STRIPES];
    rq_err worst = RQ_OK;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        job *j = &jobs[k];
        size_t len = extent_make(lsn + k, j->bytes);
        j->write = (rq_slog_write){.stripe = k, .off = off[k], .lane = lane, .done = written};
        j->write.bytes = rq_slice_of(j->bytes, len);
        off[k] += len;
        d->executor->latch_init(d->executor, &j->latch);
        rq_slog_submit(log, &j->write);
    }
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq_err rc = d->executor->latch_wait(&jobs[k].latch);
        d->executor->latch_destroy(&jobs[k].latch);
        if (worst == RQ_OK) worst = rc;
    }
    return worst;
}

static bool again(const rounds *r, rq_err rc)
{
    return r->may_time_out && (rc == RQ_E_TIMEOUT || rc == RQ_E_STATE);
}

typedef struct writing {
    const rounds *r;
    door d;
    rq_tenure *tenure;
    rq_slog *log;
    rq_lane *lane;
    uint64_t ledger, off[RQ_SLOG_STRIPES];
} writing;

/* Begins the next ledger after a write with an unknown outcome. */
static rq_err next_ledger(writing *w)
{
    rq_err rc;
    rq_slog_close(w->log);
    w->log = NULL;
    memset(w->off, 0, sizeof w->off);
    do
        rc = rq_slog_open(w->tenure, w->ledger++, &w->log, NULL);
    while (again(w->r, rc));
    return rc;
}

static rq_err write_on(writing *w, uint64_t lsn)
{
    rq_err rc = write_four(&w->d, w->log, w->lane, w->off, lsn);
    while (again(w->r, rc)) {
        rc = next_ledger(w);
        if (rc == RQ_OK) rc = write_four(&w->d, w->log, w->lane, w->off, lsn);
    }
    return rc;
}

static void show(seen *shown, const writing *w, uint64_t acknowledged)
{
    uint64_t until_ns = rq_tenure_valid_until(w->tenure);
    atomic_store(&shown->acknowledged, acknowledged);
    if (until_ns > atomic_load(&shown->valid_until_ns)) /* only this thread stores the value */
        atomic_store(&shown->valid_until_ns, until_ns);
}

/* Writes until its tenure ends; writes a byte to the pipe once `after` writes are acknowledged. */
static void writer(const rounds *r, const char *name, seen *shown, int report_fd, uint64_t after)
{
    writing w = {.r = r};
    bool reported = false;
    alarm(120);
    r->open(&w.d, r->where);
    rq_err rc = w.d.executor->lane_new(w.d.executor, "test", &w.lane);
    if (rc == RQ_OK) rc = rq_tenure_begin(w.d.shared, name, &w.tenure, NULL);
    if (rc == RQ_OK) rc = next_ledger(&w);
    for (uint64_t lsn = 0; rc == RQ_OK && lsn < LSN_MAX - 4; lsn += RQ_SLOG_STRIPES) {
        rc = write_on(&w, lsn);
        if (rc == RQ_OK) show(shown, &w, lsn + RQ_SLOG_STRIPES);
        if (rc == RQ_OK && lsn % LEDGER_WRITES == 0) rc = next_ledger(&w);
        if (!reported && lsn >= after) reported = write(report_fd, "x", 1) == 1;
    }
    _exit(rc == RQ_E_SERVER_ABORTED ? ENDED_BY_REVOKE : ENDED_BY_ERROR);
}

/* --- the process that revokes --------------------------------------------------------------- */

/* Repeats a failing call, for at most a minute. */
static rq_err patiently(const rounds *r, rq_err (*call)(door *d, void *args), door *d, void *args)
{
    rq_err rc;
    unsigned tries = 0;
    do
        rc = call(d, args);
    while (again(r, rc) && ++tries < 30);
    return rc;
}

typedef struct revocation {
    const char *name;
    uint64_t quiet_ns;
} revocation;

static rq_err revoke_once(door *d, void *args)
{
    revocation *v = args;
    return rq_tenure_revoke(d->shared, v->name, &v->quiet_ns, NULL);
}

static void revoke_tenure(const rounds *r, door *d, const char *name, uint64_t *ret_quiet_ns)
{
    revocation v = {.name = name};
    assert_int_equal(patiently(r, revoke_once, d, &v), RQ_OK);
    *ret_quiet_ns = v.quiet_ns;
}

typedef struct reading {
    const char *name;
    rq_arena arena;
    rq_slog_ledger *ledgers, *ledger;
    size_t count, len, found;
    unsigned stripe;
    uint8_t *bytes;
} reading;

static rq_err lengths_once(door *d, void *args)
{
    reading *v = args;
    return rq_slog_lengths(d->shared, v->name, &v->arena, &v->ledgers, &v->count, NULL);
}

static rq_err read_once(door *d, void *args)
{
    reading *v = args;
    return rq_slog_read(d->shared, v->name, v->ledger, v->stripe, 0, v->bytes, v->len, &v->found,
                        NULL);
}

static rq_err remove_once(door *d, void *args)
{
    return rq_slog_remove(d->shared, args, NULL);
}

static void read_stripe(const rounds *r, door *d, reading *v, bool *present)
{
    size_t sealed = (size_t)v->ledger->lengths[v->stripe];
    v->len = sealed + 10; /* asks for more bytes than were sealed, which must not be returned */
    v->bytes = malloc(v->len);
    assert_non_null(v->bytes);
    assert_int_equal(patiently(r, read_once, d, v), RQ_OK);
    assert_int_equal(v->found, sealed);
    (void)extents_of(v->bytes, sealed, present, LSN_MAX);
    free(v->bytes);
}

static void read_sealed(const rounds *r, door *d, const char *name, bool *present,
                        uint64_t *ret_bytes)
{
    reading v = {.name = name};
    *ret_bytes = 0;
    assert_int_equal(patiently(r, lengths_once, d, &v), RQ_OK);
    assert_int_not_equal(v.count, 0);
    for (size_t i = 0; i < v.count; i++)
        for (v.stripe = 0; v.stripe < RQ_SLOG_STRIPES; v.stripe++) {
            v.ledger = &v.ledgers[i];
            read_stripe(r, d, &v, present);
            *ret_bytes += v.found;
        }
    rq_arena_clear(&v.arena);
}

static void check_acknowledged(const rounds *r, door *d, const char *name, const seen *shown,
                               uint64_t *ret_bytes)
{
    bool *present = calloc(LSN_MAX, sizeof *present);
    assert_non_null(present);
    read_sealed(r, d, name, present, ret_bytes);
    uint64_t acknowledged = atomic_load(&shown->acknowledged);
    for (uint64_t lsn = 0; lsn < acknowledged; lsn++)
        if (!present[lsn]) fail_msg("write %d is lost", (int)lsn);
    free(present);
}

static void meet(pid_t pid, round_kind kind)
{
    int status;
    if (kind == ROUND_STOPPED) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
    } else if (kind == ROUND_KILLED) {
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
}

/* A killed writer ends by the signal; the others end because they notice the revoke. */
static void part(pid_t pid, round_kind kind)
{
    int status;
    if (kind == ROUND_STOPPED) assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (kind == ROUND_KILLED)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ENDED_BY_REVOKE);
}

static pid_t start_writer(const rounds *r, const char *name, seen *shown, uint64_t after)
{
    char byte;
    int report[2];
    assert_int_equal(pipe(report), 0);
    pid_t pid = fork(); /* forks before this process has threads */
    assert_true(pid >= 0);
    if (pid == 0) writer(r, name, shown, report[1], after);
    close(report[1]);
    assert_int_equal(read(report[0], &byte, 1), 1);
    close(report[0]);
    return pid;
}

/* After the revoke the writer's lease had ended by the promised time. */
static void check_quiet(const rounds *r, const door *d, const seen *shown, uint64_t quiet_ns)
{
    if (r->revoke_waits) assert_true(rq_shared_now_ns(d->shared) >= quiet_ns);
    assert_int_not_equal(atomic_load(&shown->valid_until_ns), 0);
    assert_true(atomic_load(&shown->valid_until_ns) <= quiet_ns);
}

static void run_round(const rounds *r, const char *name, round_kind kind, uint64_t after)
{
    door d;
    uint64_t quiet_ns, later_ns, bytes, bytes_later;
    seen *shown =
        mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shown != MAP_FAILED);
    pid_t pid = start_writer(r, name, shown, after);
    meet(pid, kind);
    r->open(&d, r->where);
    revoke_tenure(r, &d, name, &quiet_ns);
    assert_int_not_equal(atomic_load(&shown->acknowledged), 0);
    check_acknowledged(r, &d, name, shown, &bytes);
    if (kind == ROUND_STOPPED) sleep((unsigned)(after % (seeds_number("STOPPED_SECONDS", 0) + 1)));
    part(pid, kind);
    check_quiet(r, &d, shown, quiet_ns);
    /* Bytes that the writer sent after it was continued must not exist. */
    revoke_tenure(r, &d, name, &later_ns);
    check_acknowledged(r, &d, name, shown, &bytes_later);
    assert_int_equal(bytes, bytes_later);
    assert_int_equal(patiently(r, remove_once, &d, (void *)name), RQ_OK);
    r->close(&d);
    munmap(shown, sizeof *shown);
}

void rounds_run(const rounds *r, round_kind kind)
{
    rq_random random;
    char name[48];
    uint64_t seed = unit_seed();
    rq_random_seed(&random, seed);
    for (uint64_t i = seeds_number("ROUNDS", 1); i > 0; i--) {
        snprintf(name, sizeof name, "host,%d,%llu", (int)getpid(),
                 (unsigned long long)(seed * 100000 + i) * 4 + kind);
        run_round(r, name, kind, rq_random_below(&random, 200));
    }
}

/* --- swaps by several processes ------------------------------------------------------------- */

#define SWAPPERS 4
#define SWAPS 40

typedef struct tally {
    _Atomic uint64_t succeeded, begun;
} tally;

/* A swap with an unknown outcome remains counted as begun. */
static rq_err swap_once(const rounds *r, door *d, tally *t, rq_arena *arena)
{
    rq_slice bytes;
    uint8_t value[8];
    uint64_t generation = 0, count = 0;
    rq_err rc = rq_object_get(d->shared, "counter", arena, &bytes, &generation, NULL);
    if (again(r, rc)) return RQ_OK;
    if (rc == RQ_OK) count = rq_get_be64(bytes.ptr);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    rq_put_be64(value, count + 1);
    atomic_fetch_add(&t->begun, 1);
    rc = rq_object_cas(d->shared, "counter", generation, rq_slice_of(value, 8), &generation, NULL);
    if (rc == RQ_OK) atomic_fetch_add(&t->succeeded, 1);
    if (rc == RQ_E_CONFLICT) atomic_fetch_sub(&t->begun, 1);
    bool unknown = again(r, rc) || (r->may_time_out && rc == RQ_E_IO);
    return rc == RQ_E_CONFLICT || unknown ? RQ_OK : rc;
}

static void swapper(const rounds *r, tally *t)
{
    door d;
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    alarm(120);
    r->open(&d, r->where);
    while (atomic_load(&t->succeeded) < SWAPS && rc == RQ_OK) {
        rc = swap_once(r, &d, t, &arena);
        rq_arena_reset(&arena);
    }
    _exit(rc == RQ_OK ? 0 : ENDED_BY_ERROR);
}

/* Waits until this swapper has made five more swaps. False: it has ended, or makes no progress. */
static bool others_go_on(const tally *t)
{
    uint64_t before = atomic_load(&t->succeeded);
    for (unsigned i = 0; i < 10000 && before + 5 < SWAPS; i++) {
        if (atomic_load(&t->succeeded) >= before + 5) return true;
        usleep(1000);
    }
    return false;
}

/* Stops and continues each swapper, and kills the first. While one is stopped, another makes at least
 * five swaps, so that the stopped one is late by several generations. */
static void disturb(const pid_t pids[], const tally tallies[])
{
    for (unsigned i = 0; i < SWAPPERS; i++) {
        kill(pids[i], SIGSTOP);
        /* waits for the next swapper, but not for the killed one */
        bool late = others_go_on(&tallies[i + 1 < SWAPPERS ? i + 1 : 1]);
        (void)late; /* the count is checked at the end in any case */
        if (i == 0) kill(pids[i], SIGKILL);
        kill(pids[i], SIGCONT);
    }
}

void rounds_swap(const rounds *r)
{
    pid_t pids[SWAPPERS];
    door d;
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t generation, least = 0, most = 0;
    tally *all = mmap(NULL, SWAPPERS * sizeof *all, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    for (unsigned i = 0; i < SWAPPERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) swapper(r, &all[i]);
    }
    disturb(pids, all);
    for (unsigned i = 0; i < SWAPPERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status) ? i == 0 : WEXITSTATUS(status) == 0);
        least += all[i].succeeded;
        most += all[i].begun;
    }
    r->open(&d, r->where);
    assert_int_equal(rq_object_get(d.shared, "counter", &arena, &bytes, &generation, NULL), RQ_OK);
    assert_in_range(rq_get_be64(bytes.ptr), least, most);
    assert_int_equal(generation, rq_get_be64(bytes.ptr));
    rq_arena_clear(&arena);
    r->close(&d);
    munmap(all, SWAPPERS * sizeof *all);
}
