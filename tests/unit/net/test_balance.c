/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams leave a loop, and when: two loops without threads; the test sets their windows,
 * loads and clock. */
#include "net/loop_priv.h"

#include "base/clock.h"
#include "../base/unit.h"

#include <sys/mman.h>

#define WINDOW_NS 100000000ull
#define STREAMS 8

typedef struct world {
    rq_loops *loops;
    rq_stream streams[STREAMS];
    uint64_t now_ns;
    /* Bytes per stream and window while all streams are on one loop, and while both loops have
     * streams. */
    unsigned bytes_alone, bytes_spread;
    unsigned load_alone, load_spread; /* loads of a loop that has streams */
    unsigned load_helped;             /* load of the first loop while both loops have streams */
    unsigned stays;                   /* moves refused because the stream was in use */
} world;

static bool does_not_leave(rq_stream *s)
{
    (void)s;
    return false; /* the test moves the stream after the window */
}

static void count_stay(rq_stream *s)
{
    world *w = s->user;
    w->stays++;
}

static const rq_stream_events events = {.on_leave = does_not_leave, .on_move_end = count_stay};

static void init(world *w)
{
    *w = (world){.now_ns = 1000 * WINDOW_NS,
                 .bytes_alone = 1000,
                 .bytes_spread = 700,
                 .load_alone = 950,
                 .load_spread = 600,
                 .load_helped = 600};
    rq_loops_options o = {.count = 2};
    assert_int_equal(rq_loops_new(&o, &w->loops), RQ_OK);
    for (unsigned i = 0; i < STREAMS; i++) {
        rq_stream *s = &w->streams[i];
        *s = (rq_stream){
            .fd = -1, .loop = &w->loops->loop[0], .events = &events, .user = w, .opened = true};
        rq__stream_link(s);
    }
}

static void done(world *w)
{
    rq_loops_free(w->loops);
}

static unsigned count_of(const world *w, unsigned loop)
{
    unsigned count = 0;
    for (unsigned i = 0; i < STREAMS; i++)
        count += w->streams[i].loop->index == loop;
    return count;
}

/* Ends a window in which the loop's streams had this load and these bytes. */
static void loop_window(rq_loop *loop, unsigned load, unsigned bytes)
{
    rq_load *l = &loop->load;
    for (rq_stream *s = loop->streams; s != NULL; s = s->next) {
        rq__stream_worked(s, 100);
        rq__stream_carried(s, bytes);
    }
    l->turns = 1000000; /* short turns */
    l->window_ns = loop->now_ns - WINDOW_NS;
    l->cpu_ns = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - WINDOW_NS / 1000 * load;
    rq__loop_balance(loop);
}

/* Does what move.c does: takes the streams that were asked to leave from the loop. The first
 * `in_use` streams have a call in flight, and stay. */
static void move(world *w, rq_loop *loop, unsigned in_use)
{
    while (loop->leaving != NULL) {
        rq_stream *s = loop->leaving;
        if (s < w->streams + in_use) {
            rq__stream_stay(s);
            continue;
        }
        loop->leaving = s->next_leaving;
        rq__stream_unlink(s);
        s->loop = s->to;
        s->to = NULL;
        rq__stream_link(s);
    }
}

static void window(world *w, unsigned index, bool is_spread, unsigned in_use)
{
    rq_loop *loop = &w->loops->loop[index];
    loop->now_ns = w->now_ns + index * WINDOW_NS / 10;
    if (loop->streams == NULL) return; /* a loop without streams sleeps */
    unsigned load = !is_spread ? w->load_alone : index == 0 ? w->load_helped : w->load_spread;
    loop_window(loop, load, is_spread ? w->bytes_spread : w->bytes_alone);
    move(w, loop, in_use);
}

static bool is_spread(const world *w)
{
    return count_of(w, 0) > 0 && count_of(w, 1) > 0;
}

/* One window of each loop; the second loop's window ends a little later. */
static void windows(world *w, unsigned in_use)
{
    bool spread = is_spread(w);
    w->now_ns += WINDOW_NS;
    window(w, 0, spread, in_use);
    window(w, 1, spread, in_use);
}

/* Runs until a trial ends because less work was done on two loops. The second loop has not noticed
 * the end yet. */
static void end_trial(world *w)
{
    for (unsigned i = 0; i < 20 && w->loops->taken_back == 0; i++) {
        bool spread = is_spread(w);
        w->now_ns += WINDOW_NS;
        window(w, 0, spread, 0);
        if (w->loops->taken_back == 0) window(w, 1, spread, 0);
    }
    assert_int_equal(w->loops->taken_back, 1);
    assert_in_range(count_of(w, 1), 1, STREAMS - 1);
}

/* After that the second loop sleeps. Its last load came from the streams that moved back. */
static void what_a_trial_showed_is_heeded(void **state)
{
    (void)state;
    world w;
    init(&w);
    end_trial(&w);
    for (unsigned i = 0; i < 15; i++) { /* the next trial starts after 2 s */
        windows(&w, 0);
        assert_int_equal(count_of(&w, 1), 0);
    }
    assert_int_equal(w.loops->trials, 1);
    done(&w);
}

/* The first loop is busier than the second loop was. The second loop sleeps and has not moved its
 * streams back. */
static void streams_of_a_trial_are_not_followed_by_others(void **state)
{
    (void)state;
    world w;
    init(&w);
    w.load_helped = 900;
    end_trial(&w);
    unsigned helping = count_of(&w, 1);
    for (unsigned i = 0; i < 15; i++) {
        w.now_ns += WINDOW_NS;
        window(&w, 0, true, 0);
        assert_int_equal(count_of(&w, 1), helping);
    }
    window(&w, 1, true, 0);
    assert_int_equal(count_of(&w, 1), 0);
    done(&w);
}

/* Each attempt to move a stream keeps it from reading for a while. */
static void streams_in_use_are_sent_home_now_and_then(void **state)
{
    (void)state;
    world w;
    init(&w);
    end_trial(&w);
    unsigned helping = count_of(&w, 1);
    windows(&w, STREAMS);
    assert_int_equal(w.stays, helping);
    for (unsigned i = 0; i < 29; i++)
        windows(&w, STREAMS);
    assert_int_equal(w.stays, 3 * helping);
    assert_int_equal(count_of(&w, 1), helping);
    for (unsigned i = 0; i < 10; i++)
        windows(&w, 0);
    assert_int_equal(count_of(&w, 1), 0);
    done(&w);
}

/* There may be a hundred thousand of them. This one must not even be read while streams are chosen. */
static void streams_without_work_are_not_looked_at(void **state)
{
    (void)state;
    const size_t page = 65536;
    world w;
    init(&w);
    rq_loop *loop = &w.loops->loop[0];
    rq_stream *idle = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(idle != MAP_FAILED && sizeof *idle <= page);
    *idle = (rq_stream){.fd = -1, .loop = loop, .events = &events, .user = &w, .opened = true};
    for (unsigned i = 0; i < 6; i++) {
        loop->now_ns = w.now_ns += WINDOW_NS;
        for (unsigned k = 0; k < STREAMS; k++)
            if (w.streams[k].loop == loop) rq__stream_worked(&w.streams[k], 100);
        loop->load.turns = 1; /* long ones */
        loop->load.window_ns = loop->now_ns - WINDOW_NS;
        loop->load.cpu_ns = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - WINDOW_NS / 1000 * 900;
        rq__stream_link(idle); /* in front of the others */
        assert_int_equal(mprotect(idle, page, PROT_NONE), 0);
        rq__loop_balance(loop);
        assert_int_equal(mprotect(idle, page, PROT_READ | PROT_WRITE), 0);
        rq__stream_unlink(idle);
        move(&w, loop, 0);
    }
    assert_in_range(count_of(&w, 1), 1, STREAMS - 1);
    munmap(idle, page);
    done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_trial_showed_is_heeded),
        cmocka_unit_test(streams_of_a_trial_are_not_followed_by_others),
        cmocka_unit_test(streams_in_use_are_sent_home_now_and_then),
        cmocka_unit_test(streams_without_work_are_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
