/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared folder on a real file system, with real threads and clocks: bad names, damaged files, and
 * a writer in a process of its own that is stopped, continued and killed while another process revokes
 * its tenure. ROUNDS=n rounds of each kind (default 1; a round takes the second of the lease).
 */
#include "../../extents.h"
#include "../base/unit.h"

#include "base/random.h"
#include "vfs/shared.h"
#include "vfs/vfs.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LSN_MAX 1000000
#define NAME "host,16020,1"
/* How the writer ends. */
#define ENDED_BY_REVOKE 0
#define ENDED_BY_ERROR 9

typedef struct door {
    rq_executor *executor;
    rq_vfs *vfs;
    rq_shared *shared;
} door;

static void door_open(door *d, const char *folder)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(rq_thread_executor_new(threads, &d->executor), RQ_OK);
    assert_int_equal(rq_vfs_posix_new(folder, &d->vfs, NULL), RQ_OK);
    assert_int_equal(rq_shared_posix_new(d->vfs, d->executor, NULL, NULL, &d->shared), RQ_OK);
}

static void door_close(door *d)
{
    rq_shared_free(d->shared);
    rq_vfs_free(d->vfs);
    rq_thread_executor_free(d->executor);
}

static void make_folder(char path[static 64])
{
    strcpy(path, "/tmp/rq-shared-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static void remove_folder(door *d, const char *path)
{
    assert_int_equal(rq_vfs_remove_tree(d->vfs, "tenure", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(d->vfs, "object", NULL), RQ_OK);
    door_close(d);
    assert_int_equal(rmdir(path), 0);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    char folder[64], longest[RQ_SHARED_NAME_MAX + 2];
    door d;
    uint64_t n;
    make_folder(folder);
    door_open(&d, folder);
    memset(longest, 'a', sizeof longest);
    longest[RQ_SHARED_NAME_MAX + 1] = '\0';
    const char *bad[] = {"", ".", "..", "a/b", "a b", "a\n", "\xc3\xa4", longest};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_tenure *t;
        assert_int_equal(rq_tenure_begin(d.shared, bad[i], &t, NULL), RQ_E_INVALID);
        assert_int_equal(rq_object_cas(d.shared, bad[i], 0, RQ_SLICE_LIT("x"), &n, NULL),
                         RQ_E_INVALID);
        assert_int_equal(rq_set_put(d.shared, "set", bad[i], NULL), RQ_E_INVALID);
    }
    longest[RQ_SHARED_NAME_MAX] = '\0';
    assert_int_equal(rq_object_cas(d.shared, longest, 0, RQ_SLICE_LIT("x"), &n, NULL), RQ_OK);
    remove_folder(&d, folder);
}

static void damage_is_reported_and_not_overwritten(void **state)
{
    (void)state;
    char folder[64];
    door d;
    uint64_t n;
    rq_arena arena = {0};
    rq_slice found;
    rq_file *f;
    rq_error why = {.code = RQ_OK};
    make_folder(folder);
    door_open(&d, folder);
    assert_int_equal(rq_object_cas(d.shared, "o", 0, RQ_SLICE_LIT("bytes"), &n, NULL), RQ_OK);
    assert_int_equal(rq_vfs_open(d.vfs, "object/o/1", RQ_OPEN_WRITE, &f, NULL), RQ_OK);
    assert_int_equal(rq_file_write(f, "X", 1, 40, NULL), RQ_OK);
    rq_file_close(f);
    assert_int_equal(rq_object_get(d.shared, "o", &arena, &found, &n, &why), RQ_E_CORRUPT);
    assert_non_null(strstr(why.message, "object/o/1"));
    assert_int_equal(rq_object_cas(d.shared, "o", 1, RQ_SLICE_LIT("y"), &n, NULL), RQ_E_CORRUPT);
    rq_arena_clear(&arena);
    remove_folder(&d, folder);
}

/* --- the writer's process ------------------------------------------------------------------- */

typedef struct seen {
    _Atomic uint64_t acknowledged;
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

/* Writes until its tenure ends; tells by a byte that `after` writes are acknowledged. */
static void writer(const char *folder, seen *shown, int tell, uint64_t after)
{
    door d;
    rq_tenure *tenure;
    rq_slog *log = NULL;
    rq_lane *lane;
    uint64_t off[RQ_SLOG_STRIPES] = {0};
    bool told = false;
    alarm(120);
    door_open(&d, folder);
    rq_err rc = d.executor->lane_new(d.executor, "test", &lane);
    if (rc == RQ_OK) rc = rq_tenure_begin(d.shared, NAME, &tenure, NULL);
    if (rc == RQ_OK) rc = rq_slog_open(tenure, 0, &log, NULL);
    for (uint64_t lsn = 0; rc == RQ_OK && lsn < LSN_MAX - 4; lsn += RQ_SLOG_STRIPES) {
        rc = write_four(&d, log, lane, off, lsn);
        if (rc == RQ_OK) atomic_store(&shown->acknowledged, lsn + RQ_SLOG_STRIPES);
        if (!told && lsn >= after) told = write(tell, "x", 1) == 1;
    }
    _exit(rc == RQ_E_SERVER_ABORTED ? ENDED_BY_REVOKE : ENDED_BY_ERROR);
}

/* --- who revokes ---------------------------------------------------------------------------- */

static void read_sealed(door *d, bool *present, uint64_t *ret_bytes)
{
    rq_arena arena = {0};
    rq_slog_segment *segments = NULL;
    size_t count = 0, len = 0;
    *ret_bytes = 0;
    assert_int_equal(rq_slog_lengths(d->shared, NAME, &arena, &segments, &count, NULL), RQ_OK);
    assert_int_equal(count, 1);
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        size_t wanted = (size_t)segments[0].lengths[k] + 10; /* no more comes than was sealed */
        uint8_t *bytes = malloc(wanted);
        assert_non_null(bytes);
        assert_int_equal(
            rq_slog_read(d->shared, NAME, &segments[0], k, 0, bytes, wanted, &len, NULL), RQ_OK);
        assert_int_equal(len, segments[0].lengths[k]);
        (void)extents_of(bytes, len, present, LSN_MAX);
        *ret_bytes += len;
        free(bytes);
    }
    rq_arena_clear(&arena);
}

static void check_acknowledged(door *d, const seen *shown, uint64_t *ret_bytes)
{
    bool *present = calloc(LSN_MAX, sizeof *present);
    assert_non_null(present);
    read_sealed(d, present, ret_bytes);
    uint64_t acknowledged = atomic_load(&shown->acknowledged);
    for (uint64_t lsn = 0; lsn < acknowledged; lsn++)
        if (!present[lsn]) fail_msg("write %d is lost", (int)lsn);
    free(present);
}

typedef enum round_kind { STOPPED, KILLED, RUNNING } round_kind;

static void meet(pid_t pid, round_kind kind)
{
    int status;
    if (kind == STOPPED) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
    } else if (kind == KILLED) {
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
}

/* A writer that was killed ends by that; the others notice that they were revoked. */
static void part(pid_t pid, round_kind kind)
{
    int status;
    if (kind == STOPPED) assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (kind == KILLED)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ENDED_BY_REVOKE);
}

static void run_round(round_kind kind, uint64_t after)
{
    char folder[64], byte;
    int told[2];
    door d;
    uint64_t quiet_ns, bytes, bytes_later;
    seen *shown =
        mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shown != MAP_FAILED);
    make_folder(folder);
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork(); /* before this process has threads */
    assert_true(pid >= 0);
    if (pid == 0) writer(folder, shown, told[1], after);
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    meet(pid, kind);
    door_open(&d, folder);
    assert_int_equal(rq_tenure_revoke(d.shared, NAME, &quiet_ns, NULL), RQ_OK);
    assert_true(rq_shared_now_ns(d.shared) >= quiet_ns);
    assert_int_not_equal(atomic_load(&shown->acknowledged), 0);
    check_acknowledged(&d, shown, &bytes);
    part(pid, kind);
    /* What it wrote after it was continued is not there. */
    assert_int_equal(rq_tenure_revoke(d.shared, NAME, &quiet_ns, NULL), RQ_OK);
    check_acknowledged(&d, shown, &bytes_later);
    assert_int_equal(bytes, bytes_later);
    assert_int_equal(rq_slog_remove(d.shared, NAME, NULL), RQ_OK);
    remove_folder(&d, folder);
    munmap(shown, sizeof *shown);
}

static void run_rounds(round_kind kind)
{
    rq_random random;
    rq_random_seed(&random, unit_seed());
    for (uint64_t i = seeds_number("ROUNDS", 1); i > 0; i--)
        run_round(kind, rq_random_below(&random, 200));
}

static void a_stopped_writer_is_revoked_and_ends_when_it_continues(void **state)
{
    (void)state;
    run_rounds(STOPPED);
}

static void a_killed_writer_loses_nothing_acknowledged(void **state)
{
    (void)state;
    run_rounds(KILLED);
}

static void a_running_writer_ends_when_it_is_revoked(void **state)
{
    (void)state;
    run_rounds(RUNNING);
}

/* --- swaps by several processes ------------------------------------------------------------- */

#define SWAPPERS 4
#define SWAPS 40

typedef struct tally {
    _Atomic uint64_t succeeded, begun;
} tally;

/* Counts up; `begun` is ahead by one while a swap is under way. */
static void swapper(const char *folder, tally *t)
{
    door d;
    rq_arena arena = {0};
    alarm(120);
    door_open(&d, folder);
    while (atomic_load(&t->succeeded) < SWAPS) {
        rq_slice bytes;
        uint8_t value[8];
        uint64_t generation = 0, count = 0;
        rq_err rc = rq_object_get(d.shared, "counter", &arena, &bytes, &generation, NULL);
        if (rc == RQ_OK) count = rq_get_be64(bytes.ptr);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) _exit(ENDED_BY_ERROR);
        rq_put_be64(value, count + 1);
        atomic_store(&t->begun, t->succeeded + 1);
        rc = rq_object_cas(d.shared, "counter", generation, rq_slice_of(value, 8), &generation,
                           NULL);
        if (rc == RQ_OK) atomic_fetch_add(&t->succeeded, 1);
        if (rc == RQ_E_CONFLICT) atomic_store(&t->begun, t->succeeded);
        if (rc != RQ_OK && rc != RQ_E_CONFLICT) _exit(ENDED_BY_ERROR);
        rq_arena_reset(&arena);
    }
    _exit(0);
}

/* Stops and continues them, and kills the first: while others go on, each may be late by many
 * generations. */
static void disturb(const pid_t pids[], const tally tallies[])
{
    uint64_t before;
    for (unsigned i = 0; i < SWAPPERS; i++) {
        const tally *next = &tallies[i + 1 < SWAPPERS ? i + 1 : 1]; /* not the killed one */
        kill(pids[i], SIGSTOP);
        before = atomic_load(&next->succeeded);
        while (before < SWAPS && atomic_load(&next->succeeded) < before + 5 && before + 5 < SWAPS)
            usleep(1000);
        if (i == 0) kill(pids[i], SIGKILL);
        kill(pids[i], SIGCONT);
    }
}

static void swaps_of_several_processes_are_counted_once_each(void **state)
{
    (void)state;
    char folder[64];
    pid_t pids[SWAPPERS];
    door d;
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t generation, least = 0, most = 0;
    tally *all = mmap(NULL, SWAPPERS * sizeof *all, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    make_folder(folder);
    for (unsigned i = 0; i < SWAPPERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) swapper(folder, &all[i]);
    }
    disturb(pids, all);
    for (unsigned i = 0; i < SWAPPERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status) ? i == 0 : WEXITSTATUS(status) == 0);
        least += all[i].succeeded;
        most += all[i].begun;
    }
    door_open(&d, folder);
    assert_int_equal(rq_object_get(d.shared, "counter", &arena, &bytes, &generation, NULL), RQ_OK);
    assert_in_range(rq_get_be64(bytes.ptr), least, most);
    assert_int_equal(generation, rq_get_be64(bytes.ptr));
    rq_arena_clear(&arena);
    remove_folder(&d, folder);
    munmap(all, SWAPPERS * sizeof *all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(damage_is_reported_and_not_overwritten),
        cmocka_unit_test(a_stopped_writer_is_revoked_and_ends_when_it_continues),
        cmocka_unit_test(a_killed_writer_loses_nothing_acknowledged),
        cmocka_unit_test(a_running_writer_ends_when_it_is_revoked),
        cmocka_unit_test(swaps_of_several_processes_are_counted_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
