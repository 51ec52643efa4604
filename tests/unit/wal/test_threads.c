/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads on a real disk: loops that stage, wait and push, pool tasks that block, flushes that
 * release WAL files, rolls and growth in between. Under TSan this tests the locking rules. */
#include "../base/unit.h"

#include "vfs/shared.h"
#include "vfs/vfs.h"
#include "wal/head.h"
#include "wal/sealed.h"
#include "wal/wal.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOOPS 4
#define BLOCKERS 2
#define RECORDS 1500

static const rq_wal_options options = {
    .dir = "log",
    .file_bytes = 256 << 10,
    .max_log_bytes = 1 << 20,
    .staging_bytes = 16 << 10,
    .staging_bytes_max = 1 << 20,
};

typedef struct bench {
    char root[64];
    rq_env env;
    rq_wal *wal;
    _Atomic int pressed;
    rq_shared *shared; /* NULL: the log is in local files */
    rq_tenure *tenure;
} bench;

#define SERVER "host,16020,1"

/* Simulates an event loop: its tasks run on a separate lane; one task is one iteration. */
typedef struct loop {
    bench *b;
    rq_lane *lane;
    rq_wal_member *member;
    rq_wal_region *region;
    rq_task iteration;
    rq_latch done;
    int staged;
    int acknowledged;
    bool out_of_order;
    uint64_t acknowledged_id;
} loop;

static void make_name(int i, char name[static 16])
{
    snprintf(name, 16, "region-%d", i);
}

/* A few records are long: these are copied without the mutex. */
static rq_err stage(rq_wal *wal, rq_wal_region *region, uint64_t id, rq_lsn *ret)
{
    uint8_t payload[48 << 10];
    size_t len = id % 50 == 7 ? sizeof payload : 64 + id * 7919 % 960;
    memset(payload, (int)id, len);
    rq_wal_record r = {
        .kind = RQ_WAL_EDIT, .sequence_id = id, .payload = rq_slice_of(payload, len)};
    return rq_wal_stage(wal, region, &r, NULL, 0, ret);
}

typedef struct ticket {
    rq_wal_waiter waiter;
    loop *l;
    uint64_t id;
} ticket;

static void ticket_run(rq_wal_waiter *w, rq_err rc)
{
    ticket *t = RQ_CONTAINER_OF(w, ticket, waiter);
    loop *l = t->l;
    if (rc != RQ_OK || t->id != l->acknowledged_id + 1) l->out_of_order = true;
    l->acknowledged_id = t->id;
    free(t);
    if (++l->acknowledged % 100 == 0) rq_wal_region_flushed(l->region, l->acknowledged_id);
    if (l->acknowledged == RECORDS)
        l->done.executor->latch_open(&l->done, RQ_OK);
    else if (l->acknowledged == l->staged)
        rq_lane_post(l->lane, &l->iteration);
}

static void iterate(rq_task *task)
{
    loop *l = RQ_CONTAINER_OF(task, loop, iteration);
    for (int i = 0; i < 1 + l->staged % 7 && l->staged < RECORDS; i++) {
        ticket *t = calloc(1, sizeof *t);
        assert_non_null(t);
        rq_lsn lsn;
        rq_err rc = stage(l->b->wal, l->region, (uint64_t)l->staged + 1, &lsn);
        if (rc == RQ_E_REGION_TOO_BUSY) {
            free(t);
            if (l->acknowledged == l->staged) rq_lane_post(l->lane, &l->iteration);
            break;
        }
        assert_int_equal(rc, RQ_OK);
        *t = (ticket){.waiter.run = ticket_run, .l = l, .id = (uint64_t)l->staged + 1};
        l->staged++;
        rq_wal_wait(l->member, &t->waiter, lsn, false);
    }
    rq_wal_push(l->b->wal, l->member);
}

typedef struct blocker {
    bench *b;
    rq_wal_region *region;
    rq_task task;
    rq_latch done;
    int index;
} blocker;

static void block(rq_task *task)
{
    blocker *k = RQ_CONTAINER_OF(task, blocker, task);
    for (uint64_t id = 1; id <= RECORDS / 5;) {
        rq_lsn lsn;
        rq_err rc = stage(k->b->wal, k->region, id, &lsn);
        if (rc == RQ_E_REGION_TOO_BUSY) continue;
        assert_int_equal(rc, RQ_OK);
        assert_int_equal(rq_wal_wait_blocking(k->b->wal, lsn, id % 3 == 0), RQ_OK);
        if (id % 50 == 0) rq_wal_roll(k->b->wal);
        bool stops_flushing = k->index == 1 && id > RECORDS / 10;
        if (id % 32 == 0 && !stops_flushing) rq_wal_region_flushed(k->region, id);
        id++;
    }
    k->done.executor->latch_open(&k->done, RQ_OK);
}

static void on_pressure(void *ctx, rq_wal_region *holder, bool urgent)
{
    if (!urgent) return;
    (void)holder;
    atomic_fetch_add(&((bench *)ctx)->pressed, 1);
}

typedef struct tally {
    uint64_t last[LOOPS + BLOCKERS];
    bool wrong;
} tally;

static rq_err count_record(void *ctx, const rq_wal_record *r)
{
    tally *t = ctx;
    int i = r->region.ptr[r->region.len - 1] - '0';
    if (t->last[i] != 0 && r->sequence_id != t->last[i] + 1) t->wrong = true;
    t->last[i] = r->sequence_id;
    for (size_t b = 0; b < r->payload.len; b++)
        if (r->payload.ptr[b] != (uint8_t)r->sequence_id) t->wrong = true;
    return RQ_OK;
}

static void bench_open(bench *b, rq_wal_sync sync, tally *t)
{
    rq_wal_options o = options;
    rq_error why = {0};
    o.sync = sync;
    o.on_pressure = on_pressure;
    o.ctx = b;
    o.tenure = b->tenure;
    o.server_name = SERVER;
    if (rq_wal_open(&b->env, &o, &b->wal, &why) != RQ_OK ||
        rq_wal_replay(b->wal, t == NULL ? NULL : count_record, t, &why) != RQ_OK)
        fail_msg("%s", why.message);
}

static void run_all(bench *b, rq_wal_sync sync)
{
    rq_executor *ex = b->env.executor;
    bench_open(b, sync, NULL);
    loop *loops = calloc(LOOPS, sizeof *loops);
    assert_non_null(loops);
    blocker blockers[BLOCKERS] = {0};
    char name[16];
    for (int i = 0; i < LOOPS; i++) {
        loop *l = &loops[i];
        l->b = b;
        l->iteration.run = iterate;
        make_name(i, name);
        ex->latch_init(ex, &l->done);
        assert_int_equal(ex->lane_new(ex, name, &l->lane), RQ_OK);
        assert_int_equal(rq_wal_join(b->wal, l->lane, &l->member), RQ_OK);
        assert_int_equal(rq_wal_region_open(b->wal, name, RQ_SLICE_LIT("t"), l, &l->region), RQ_OK);
    }
    for (int i = 0; i < BLOCKERS; i++) {
        blockers[i] = (blocker){.b = b, .task.run = block, .index = i};
        make_name(LOOPS + i, name);
        ex->latch_init(ex, &blockers[i].done);
        assert_int_equal(
            rq_wal_region_open(b->wal, name, RQ_SLICE_LIT("t"), NULL, &blockers[i].region), RQ_OK);
    }
    for (int i = 0; i < LOOPS; i++)
        rq_lane_post(loops[i].lane, &loops[i].iteration);
    for (int i = 0; i < BLOCKERS; i++)
        ex->submit(ex, RQ_POOL_WORK, &blockers[i].task);
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(ex->latch_wait(&loops[i].done), RQ_OK);
    for (int i = 0; i < BLOCKERS; i++)
        assert_int_equal(ex->latch_wait(&blockers[i].done), RQ_OK);
    rq_wal_stats stats;
    rq_wal_get_stats(b->wal, &stats);
    assert_int_equal(stats.records, LOOPS * RECORDS + BLOCKERS * (RECORDS / 5));
    assert_true(stats.rolls > 2);
    assert_true(stats.recycled > 0);
    assert_true(stats.writes < stats.records);
    for (int i = 0; i < LOOPS; i++) {
        assert_false(loops[i].out_of_order);
        ex->lane_free(ex, loops[i].lane);
        rq_wal_leave(loops[i].member);
        rq_wal_region_close(loops[i].region);
        ex->latch_destroy(&loops[i].done);
    }
    for (int i = 0; i < BLOCKERS; i++) {
        rq_wal_region_close(blockers[i].region);
        ex->latch_destroy(&blockers[i].done);
    }
    free(loops);
    assert_int_equal(rq_wal_close(b->wal, false, NULL), RQ_OK);
}

static void all_of_it(rq_wal_sync sync)
{
    bench b = {.root = "/tmp/rorqual-wal-XXXXXX"};
    assert_non_null(mkdtemp(b.root));
    unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 2};
    rq_vfs *v;
    assert_int_equal(rq_thread_executor_new(threads, &b.env.executor), RQ_OK);
    assert_int_equal(rq_vfs_posix_new(b.root, &v, NULL), RQ_OK);
    b.env.vfs = v;
    run_all(&b, sync);
    tally t = {0};
    bench_open(&b, sync, &t);
    assert_false(t.wrong);
    for (int i = 0; i < LOOPS; i++)
        assert_true(t.last[i] == RECORDS ||
                    t.last[i] == 0); /* last is 0 if all is flushed and the WAL files are
                                      * released */
    assert_int_equal(t.last[LOOPS + 1], RECORDS / 5);
    assert_int_equal(rq_wal_close(b.wal, false, NULL), RQ_OK);
    rq_thread_executor_free(b.env.executor);
    assert_int_equal(rq_vfs_remove_tree(v, "log", NULL), RQ_OK);
    rq_vfs_free(v);
    assert_int_equal(rmdir(b.root), 0);
}

/* Reads a log on shared storage, as another server does. */
static void read_sealed(bench *b, tally *t)
{
    rq_wal_sealed *l = NULL;
    rq_wal_record r;
    uint64_t quiet_ns;
    rq_error why = {0};
    if (rq_wal_fence(b->shared, SERVER, "other,16020,1", &quiet_ns, &why) != RQ_OK ||
        rq_wal_sealed_open(b->shared, SERVER, 0, &l, &why) != RQ_OK)
        fail_msg("%s", why.message);
    rq_err rc;
    while ((rc = rq_wal_sealed_next(l, &r, &why)) == RQ_OK)
        (void)!count_record(t, &r);
    if (rc != RQ_E_END) fail_msg("%s", why.message);
    rq_wal_sealed_close(l);
}

static void threads_share_a_log_on_shared_storage(void **state)
{
    (void)state;
    bench b = {.root = "/tmp/rorqual-wal-XXXXXX"};
    assert_non_null(mkdtemp(b.root));
    unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 2};
    rq_vfs *v;
    assert_int_equal(rq_thread_executor_new(threads, &b.env.executor), RQ_OK);
    assert_int_equal(rq_vfs_posix_new(b.root, &v, NULL), RQ_OK);
    b.env.vfs = v;
    assert_int_equal(rq_shared_posix_new(v, b.env.executor, NULL, NULL, &b.shared), RQ_OK);
    assert_int_equal(rq_tenure_begin(b.shared, SERVER, &b.tenure, NULL), RQ_OK);
    run_all(&b, RQ_WAL_SYNC);
    tally t = {0};
    read_sealed(&b, &t);
    assert_false(t.wrong);
    for (int i = 0; i < LOOPS; i++)
        assert_true(t.last[i] == RECORDS || t.last[i] == 0);
    assert_int_equal(t.last[LOOPS + 1], RECORDS / 5);
    rq_tenure_free(b.tenure);
    assert_int_equal(rq_wal_retire(b.shared, SERVER, NULL), RQ_OK);
    rq_shared_free(b.shared);
    rq_thread_executor_free(b.env.executor);
    assert_int_equal(rq_vfs_remove_tree(v, "tenure", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(v, "object", NULL), RQ_OK);
    rq_vfs_free(v);
    assert_int_equal(rmdir(b.root), 0);
}

/* --- a long record, while it is copied ---------------------------------------------------- */

#define PAGE 4096
#define GIVE_UP_S 20

/* Two pages whose reads fault: the checksum is computed from the first page, then from the second.
 * A second read of the first page shows that the record is being copied. */
static struct {
    uint8_t *pages;
    unsigned reads; /* reads of the first page */
    sem_t is_copying, may_go_on;
    bool gave_up;
} trap;

static void set_readable(uint8_t *page, bool on)
{
    if (mprotect(page, PAGE, on ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) abort();
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    size_t at = (size_t)((uint8_t *)info->si_addr - trap.pages);
    (void)context;
    if (at >= (size_t)2 * PAGE) {
        (void)signal(number, SIG_DFL);
        return;
    }
    set_readable(trap.pages + at / PAGE * PAGE, true);
    if (at >= PAGE) set_readable(trap.pages, false);
    if (at >= PAGE || ++trap.reads < 2) return;
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += GIVE_UP_S;
    sem_post(&trap.is_copying);
    trap.gave_up = sem_timedwait(&trap.may_go_on, &end) != 0;
}

static void begin_trap(struct sigaction *former)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    trap.pages =
        mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(trap.pages != MAP_FAILED);
    memset(trap.pages, 1, (size_t)2 * PAGE);
    assert_int_equal(sem_init(&trap.is_copying, 0, 0), 0);
    assert_int_equal(sem_init(&trap.may_go_on, 0, 0), 0);
    assert_int_equal(sigaction(SIGSEGV, &action, former), 0);
    set_readable(trap.pages, false);
    set_readable(trap.pages + PAGE, false);
}

static void end_trap(const struct sigaction *former)
{
    assert_int_equal(sigaction(SIGSEGV, former, NULL), 0);
    assert_int_equal(sem_destroy(&trap.is_copying), 0);
    assert_int_equal(sem_destroy(&trap.may_go_on), 0);
    assert_int_equal(munmap(trap.pages, (size_t)2 * PAGE), 0);
}

static void stage_long(rq_task *task)
{
    blocker *k = RQ_CONTAINER_OF(task, blocker, task);
    static uint8_t rest[256 << 10];
    memset(rest, 1, sizeof rest);
    rq_slice pieces[3] = {rq_slice_of(trap.pages, PAGE), rq_slice_of(trap.pages + PAGE, PAGE),
                          rq_slice_of(rest, sizeof rest)};
    rq_wal_record r = {.kind = RQ_WAL_EDIT, .sequence_id = 1};
    rq_lsn lsn;
    assert_int_equal(rq_wal_stage(k->b->wal, k->region, &r, pieces, 3, &lsn), RQ_OK);
    k->done.executor->latch_open(&k->done, RQ_OK);
}

static void open_two_regions(bench *b, rq_wal_region **ret)
{
    char name[16];
    for (int i = 0; i < 2; i++) {
        make_name(i, name);
        assert_int_equal(rq_wal_region_open(b->wal, name, RQ_SLICE_LIT("t"), NULL, &ret[i]), RQ_OK);
    }
}

/* While one thread copies a long record, others stage records; the log writes nothing until the copy is complete. */
static void a_long_record_holds_no_other(void **state)
{
    (void)state;
    bench b = {.root = "/tmp/rorqual-wal-XXXXXX"};
    assert_non_null(mkdtemp(b.root));
    unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 2};
    rq_vfs *v;
    struct sigaction former;
    assert_int_equal(rq_thread_executor_new(threads, &b.env.executor), RQ_OK);
    assert_int_equal(rq_vfs_posix_new(b.root, &v, NULL), RQ_OK);
    b.env.vfs = v;
    bench_open(&b, RQ_WAL_SYNC, NULL);
    rq_wal_region *regions[2];
    open_two_regions(&b, regions);
    rq_lsn lsn;
    for (uint64_t id = 1; id < 400; id++) { /* lets the ring grow before the copy begins */
        rq_err rc = stage(b.wal, regions[1], id, &lsn);
        if (rc == RQ_E_REGION_TOO_BUSY) fail_msg("the ring is full");
    }
    assert_int_equal(rq_wal_wait_blocking(b.wal, lsn, true), RQ_OK);
    begin_trap(&former);
    blocker k = {.b = &b, .region = regions[0], .task.run = stage_long};
    b.env.executor->latch_init(b.env.executor, &k.done);
    b.env.executor->submit(b.env.executor, RQ_POOL_WORK, &k.task);
    while (sem_wait(&trap.is_copying) != 0)
        continue;
    assert_int_equal(stage(b.wal, regions[1], 400, &lsn), RQ_OK);
    rq_wal_push(b.wal, NULL);
    rq_wal_stats stats;
    rq_wal_get_stats(b.wal, &stats);
    assert_true(stats.staged >= lsn && stats.written < lsn);
    sem_post(&trap.may_go_on);
    assert_int_equal(b.env.executor->latch_wait(&k.done), RQ_OK);
    assert_false(trap.gave_up);
    assert_int_equal(rq_wal_wait_blocking(b.wal, lsn, true), RQ_OK);
    end_trap(&former);
    b.env.executor->latch_destroy(&k.done);
    rq_wal_region_close(regions[0]);
    rq_wal_region_close(regions[1]);
    assert_int_equal(rq_wal_close(b.wal, false, NULL), RQ_OK);
    tally t = {0};
    bench_open(&b, RQ_WAL_SYNC, &t);
    assert_false(t.wrong);
    assert_int_equal(t.last[0], 1);
    assert_int_equal(t.last[1], 400);
    assert_int_equal(rq_wal_close(b.wal, false, NULL), RQ_OK);
    rq_thread_executor_free(b.env.executor);
    assert_int_equal(rq_vfs_remove_tree(v, "log", NULL), RQ_OK);
    rq_vfs_free(v);
    assert_int_equal(rmdir(b.root), 0);
}

static void threads_share_the_log_synced(void **state)
{
    (void)state;
    all_of_it(RQ_WAL_SYNC);
}

static void threads_share_the_log_handed_over(void **state)
{
    (void)state;
    all_of_it(RQ_WAL_HANDOVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_record_holds_no_other),
        cmocka_unit_test(threads_share_the_log_synced),
        cmocka_unit_test(threads_share_the_log_handed_over),
        cmocka_unit_test(threads_share_a_log_on_shared_storage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
