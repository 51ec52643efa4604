/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that no thread waits for, by io_uring: they bring the bytes that ordinary reads bring, or are left to ordinary reads.
 * The kernel's record of evictions is replaced: everything was evicted long ago. Skipped if the kernel refuses
 * io_uring, or the file system direct reads. */
#include "../base/unit.h"

#include "base/random.h"
#include "vfs/posix_priv.h"
#include "vfs/reads_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (((size_t)1 << 20) + 1234)
#define PLENTY ((uint64_t)64 << 20)

/* --- the kernel, with failures ----------------------------------------------------------------- */

static struct {
    int setup_errno;  /* 0: the call is made */
    int real_refusal; /* errno of the last real io_uring_setup; 0: it succeeded, or none was made */
    int enter_errno;
    unsigned enter_failures; /* so many calls fail */
    unsigned enter_most;     /* of entries in a call; 0: any number */
    unsigned setups, enters;
} kernel;

/* No more than the caller passes may be read. */
static int count_arguments(long number)
{
    return number == SYS_io_uring_setup ? 2 : number == SYS_io_uring_enter ? 6 : 4;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6] = {0};
    va_list list;
    va_start(list, number);
    for (int i = 0; i < count_arguments(number); i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup) {
        kernel.setups++;
        errno = kernel.setup_errno;
        if (kernel.setup_errno != 0) return -1;
    }
    if (number == SYS_io_uring_enter) {
        kernel.enters++;
        errno = kernel.enter_errno;
        if (kernel.enter_failures > 0) return kernel.enter_failures--, -1;
        if (kernel.enter_most > 0 && a[1] > (long)kernel.enter_most) a[1] = kernel.enter_most;
    }
    long rc = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_uring_setup) kernel.real_refusal = rc < 0 ? errno : 0;
    return rc;
}

bool __wrap_rq__cached_look(rq__cached *c, int fd, uint64_t off, uint64_t len,
                            rq__cached_counts *ret);
bool __wrap_rq__cached_look(rq__cached *c, int fd, uint64_t off, uint64_t len,
                            rq__cached_counts *ret)
{
    (void)c, (void)fd, (void)off;
    *ret = (rq__cached_counts){.pages = len / 4096 + 1, .evicted = len / 4096 + 1};
    return true;
}

/* --- a lane that the test drives ---------------------------------------------------------------- */

typedef struct test_lane {
    rq_lane base;
    rq_task *first, **end;
    rq_task *watched;
    int fd;
} test_lane;

static void lane_post(rq_lane *base, rq_task *task)
{
    test_lane *l = (test_lane *)base;
    task->next = NULL;
    *l->end = task;
    l->end = &task->next;
}

static bool lane_watch(rq_lane *base, int fd, rq_task *task)
{
    test_lane *l = (test_lane *)base;
    assert_null(l->watched);
    l->watched = task;
    l->fd = fd;
    return true;
}

static void lane_run(test_lane *l)
{
    while (l->first != NULL) {
        rq_task *task = l->first;
        l->first = task->next;
        if (l->first == NULL) l->end = &l->first;
        task->run(task);
    }
}

/* --- the world ----------------------------------------------------------------------------------- */

typedef struct world {
    char root[64];
    uint8_t bytes[SIZE];
    rq_vfs *vfs;
    rq_file *file;
    test_lane lane;
    rq_reads_shared shared;
    rq_reads *reads;
} world;

typedef struct one {
    rq_read read;
    rq_task task;
    uint64_t off;
    size_t len;
    bool begun, ended;
} one;

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    rq_random random;
    rq_error why;
    if (w == NULL) return -1;
    memset(&kernel, 0, sizeof kernel);
    rq_random_seed(&random, 1);
    for (size_t i = 0; i < SIZE; i++)
        w->bytes[i] = (uint8_t)rq_random_below(&random, 256);
    strcpy(w->root, "rorqual-reads-XXXXXX"); /* not in /tmp, which may be a tmpfs */
    if (mkdtemp(w->root) == NULL) return -1;
    if (rq_vfs_posix_new(w->root, &w->vfs, &why) != RQ_OK ||
        rq_vfs_write_new_file(w->vfs, "f", rq_slice_of(w->bytes, SIZE), &why) != RQ_OK ||
        rq_vfs_open(w->vfs, "f", RQ_OPEN_RANDOM, &w->file, &why) != RQ_OK)
        return -1;
    w->lane = (test_lane){.base = {lane_post, lane_watch}, .end = NULL};
    w->lane.end = &w->lane.first;
    w->shared.bytes_max = PLENTY;
    *state = w;
    return rq_reads_new(&w->lane.base, &w->shared, &w->reads) == RQ_OK ? 0 : -1;
}

static int end(void **state)
{
    world *w = *state;
    lane_run(&w->lane);
    bool clean = w->shared.bytes == 0;
    rq_reads_free(w->reads);
    rq_file_close(w->file);
    (void)!rq_vfs_remove(w->vfs, "f", NULL);
    rq_vfs_free(w->vfs);
    int rc = rmdir(w->root);
    free(w);
    return clean ? rc : -1;
}

static void run_ended(rq_task *task)
{
    RQ_CONTAINER_OF(task, one, task)->ended = true;
}

static bool begin_one(world *w, one *o, uint64_t off, size_t len)
{
    *o = (one){.off = off, .len = len, .task = {NULL, run_ended}};
    o->begun = rq_file_begin_read(w->file, w->reads, &o->read, off, len, &o->task);
    return o->begun;
}

static void read_by_thread(world *w, uint64_t off, size_t len)
{
    static uint8_t got[SIZE];
    size_t n;
    rq_error why;
    assert_int_equal(rq_file_read(w->file, got, len, off, &n, &why), RQ_OK);
    assert_int_equal(n, len);
    assert_memory_equal(got, w->bytes + off, len);
}

static void skip_without_direct_reads(const world *w)
{
    char path[80];
    snprintf(path, sizeof path, "%s/f", w->root);
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) skip();
    close(fd);
}

/* Opens the descriptor for direct reads, and the ring. A ring that cannot be used fails the test, unless the kernel has no
 * io_uring or forbids it. */
static void warm(world *w)
{
    one o;
    skip_without_direct_reads(w);
    read_by_thread(w, 0, 65536);
    read_by_thread(w, 65536, 65536);
    bool begun = begin_one(w, &o, 0, 65536);
    int refused = kernel.real_refusal;
    if (!begun && (refused == ENOSYS || refused == EPERM)) skip();
    if (!begun) fail_msg("no read was begun; io_uring_setup: %s", strerror(refused));
    lane_run(&w->lane);
    struct pollfd p = {w->lane.fd, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 10000), 1);
    w->lane.watched->run(w->lane.watched);
    lane_run(&w->lane);
    rq_read_end(&o.read);
    kernel.setups = kernel.enters = 0;
    w->shared.begun = w->shared.failed = 0;
}

/* Waits until all that were begun have ended. */
static void finish(world *w, const one *list, size_t count)
{
    for (;;) {
        size_t left = 0;
        lane_run(&w->lane);
        for (size_t i = 0; i < count; i++)
            left += list[i].begun && !list[i].ended;
        if (left == 0) return;
        struct pollfd p = {w->lane.fd, POLLIN, 0};
        assert_int_equal(poll(&p, 1, 10000), 1);
        w->lane.watched->run(w->lane.watched);
    }
}

static bool has_right_bytes(const world *w, const one *o)
{
    rq_slice got;
    uint64_t from;
    if (!rq_read_has(&o->read, o->off, o->len, &got, &from)) return false;
    assert_true(from <= o->off && from + got.len >= o->off + o->len);
    assert_memory_equal(got.ptr + (o->off - from), w->bytes + o->off, o->len);
    return true;
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void begun_reads_bring_the_bytes_of_ordinary_reads(void **state)
{
    world *w = *state;
    rq_random random;
    static one list[40];
    unsigned begun = 0;
    warm(w);
    rq_random_seed(&random, unit_seed());
    for (int round = 0; round < 50; round++) {
        size_t count = 1 + rq_random_below(&random, 40);
        for (size_t i = 0; i < count; i++) {
            size_t len = 16384 + rq_random_below(&random, 100000);
            uint64_t off = rq_random_below(&random, SIZE - len + 1);
            if (i % 4 == 0) off = SIZE - len; /* the file's end is inside a block of the device */
            begun += begin_one(w, &list[i], off, len);
        }
        finish(w, list, count);
        for (size_t i = 0; i < count; i++) {
            if (list[i].begun) assert_true(has_right_bytes(w, &list[i]));
            read_by_thread(w, list[i].off, list[i].len);
            rq_read_end(&list[i].read);
        }
    }
    assert_true(begun > 0);
    assert_int_equal(w->shared.begun, begun);
    assert_int_equal(w->shared.failed, 0);
}

/* That read goes through the page cache, so that the kernel's record of evictions stays up to date. */
static void one_read_in_sixteen_is_left_to_threads(void **state)
{
    world *w = *state;
    one o;
    unsigned refused = 0;
    warm(w);
    for (int i = 0; i < 160; i++) {
        if (!begin_one(w, &o, 65536, 65536)) {
            refused++;
            read_by_thread(w, 65536, 65536);
        }
        finish(w, &o, 1);
        rq_read_end(&o.read);
    }
    assert_in_range(refused, 9, 11);
}

static size_t begin_some(world *w, one *list, size_t count)
{
    size_t begun = 0;
    for (size_t tries = 0; begun < count && tries < count + 16; tries++) {
        if (begin_one(w, &list[begun], 65536 * (tries % 8), 65536))
            begun++;
        else
            read_by_thread(w, 0, 65536); /* its turn */
    }
    return begun;
}

static void reads_of_one_iteration_are_submitted_together(void **state)
{
    world *w = *state;
    static one list[14];
    warm(w);
    assert_int_equal(begin_some(w, list, 14), 14);
    assert_int_equal(kernel.enters, 0);
    finish(w, list, 14);
    assert_int_equal(kernel.enters, 1);
    for (int i = 0; i < 14; i++) {
        assert_true(has_right_bytes(w, &list[i]));
        rq_read_end(&list[i].read);
    }
}

static void no_more_reads_are_begun_than_the_queue_has_entries(void **state)
{
    world *w = *state;
    static one list[200];
    warm(w);
    for (int round = 0; round < 3; round++) {
        size_t begun = begin_some(w, list, 200);
        assert_int_equal(begun, w->reads->uring.entries);
        finish(w, list, begun);
        for (size_t i = 0; i < begun; i++) {
            assert_true(has_right_bytes(w, &list[i]));
            rq_read_end(&list[i].read);
        }
        assert_int_equal(w->shared.bytes, 0);
    }
}

static void memory_is_limited(void **state)
{
    world *w = *state;
    static one list[10];
    warm(w);
    w->shared.bytes_max = 3 * (65536 + RQ_READ_ALIGN);
    assert_int_equal(begin_some(w, list, 10), 3);
    assert_int_equal(w->shared.bytes, w->shared.bytes_max);
    finish(w, list, 3);
    for (size_t i = 0; i < 3; i++)
        rq_read_end(&list[i].read);
    assert_int_equal(w->shared.bytes, 0);
    w->shared.bytes_max = 65536;
    assert_int_equal(begin_some(w, list, 10), 0);
    w->shared.bytes_max = PLENTY;
}

/* The kernel has no memory, a signal arrives, or it takes some of the entries only. */
static void reads_that_the_kernel_refuses_end_with_its_error(void **state)
{
    world *w = *state;
    static one list[12];
    static const int errors[] = {EAGAIN, EBUSY, ENOMEM, EPERM};
    warm(w);
    for (size_t e = 0; e < RQ_ARRAY_LEN(errors); e++) {
        kernel.enter_errno = errors[e];
        kernel.enter_failures = 1;
        assert_int_equal(begin_some(w, list, 12), 12);
        finish(w, list, 12);
        for (size_t i = 0; i < 12; i++) {
            assert_int_equal(list[i].read.got, -errors[e]);
            assert_false(has_right_bytes(w, &list[i]));
            rq_read_end(&list[i].read);
        }
        assert_int_equal(w->reads->uring.flying, 0);
    }
    assert_int_equal(w->shared.failed, 4 * 12);
    kernel.enter_errno = EINTR;
    kernel.enter_failures = 3;
    kernel.enter_most = 5;
    kernel.enters = 0;
    assert_int_equal(begin_some(w, list, 12), 12);
    finish(w, list, 12);
    assert_int_equal(kernel.enters, 3 + 3);
    for (size_t i = 0; i < 12; i++) {
        assert_true(has_right_bytes(w, &list[i]));
        rq_read_end(&list[i].read);
    }
}

static void check_refused(world *w, unsigned setups)
{
    one o;
    skip_without_direct_reads(w);
    read_by_thread(w, 0, 65536);
    read_by_thread(w, 0, 65536);
    kernel.setups = 0;
    for (int i = 0; i < 20; i++)
        assert_false(begin_one(w, &o, 65536, 65536));
    assert_int_equal(kernel.setups, setups);
}

/* As in a container, or before Linux 5.1. */
static void without_io_uring_threads_read(void **state)
{
    world *w = *state;
    kernel.setup_errno = EPERM;
    check_refused(w, 1);
    assert_null(w->lane.watched);
}

/* Before Linux 5.19 a flag is unknown. */
static void an_unknown_flag_is_left_out(void **state)
{
    world *w = *state;
    kernel.setup_errno = EINVAL;
    check_refused(w, 2);
}

static void a_lane_without_descriptors_has_no_ring(void **state)
{
    world *w = *state;
    w->lane.base.watch = NULL;
    check_refused(w, 0);
}

static bool refuse_watch(rq_lane *base, int fd, rq_task *task)
{
    (void)base, (void)fd, (void)task;
    return false;
}

static void a_lane_that_cannot_wait_now_has_no_ring(void **state)
{
    world *w = *state;
    w->lane.base.watch = refuse_watch;
    kernel.setups = 0;
    one o;
    read_by_thread(w, 0, 65536);
    read_by_thread(w, 0, 65536);
    for (int i = 0; i < 20; i++)
        assert_false(begin_one(w, &o, 65536, 65536));
    assert_int_equal(w->reads->uring.fd, -1); /* closed */
}

static void failed_and_short_reads_are_noticed(void **state)
{
    world *w = *state;
    warm(w);
    one o = {.off = 0, .len = 65536, .task = {NULL, run_ended}, .begun = true};
    o.read.task = &o.task;
    assert_true(rq__read_take(w->reads, &o.read, o.off, o.len));
    rq__uring_read(w->reads, -1, &o.read);
    finish(w, &o, 1);
    assert_int_equal(o.read.got, -EBADF);
    assert_false(has_right_bytes(w, &o));
    rq_read_end(&o.read);
    rq_read_end(&o.read); /* no-op */

    one past;
    assert_int_equal(begin_one(w, &past, SIZE - 20000, 40000),
                     true); /* a damaged index could ask for it */
    finish(w, &past, 1);
    assert_false(has_right_bytes(w, &past));
    rq_read_end(&past.read);
    assert_int_equal(w->shared.failed, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(begun_reads_bring_the_bytes_of_ordinary_reads),
        TEST(one_read_in_sixteen_is_left_to_threads),
        TEST(reads_of_one_iteration_are_submitted_together),
        TEST(no_more_reads_are_begun_than_the_queue_has_entries),
        TEST(memory_is_limited),
        TEST(reads_that_the_kernel_refuses_end_with_its_error),
        TEST(without_io_uring_threads_read),
        TEST(an_unknown_flag_is_left_out),
        TEST(a_lane_without_descriptors_has_no_ring),
        TEST(a_lane_that_cannot_wait_now_has_no_ring),
        TEST(failed_and_short_reads_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
