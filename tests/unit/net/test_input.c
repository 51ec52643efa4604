/* SPDX-License-Identifier: Apache-2.0 */
/* Input of any read size is divided into frames: the same complete frames result, however the bytes
 * arrive. */
#include "base/buf.h"
#include "net/input.h"

#include "base/random.h"
#include "../base/unit.h"

#define FRAME_MAX ((size_t)256 << 20)

struct held {
    rq_slice bytes;
    rq_chunk *owner;
    unsigned number;
};

struct feed {
    rq_budget *budget;
    rq_chunk_pool pool;
    rq_input in;
    struct held held[64]; /* frames that are still in use */
    unsigned held_count;
    unsigned frames;
};

static size_t frame_len(unsigned i)
{
    /* Tiny, ordinary, around the limit of a shared chunk, big, empty. */
    static const size_t lens[] = {1,     0,     100, 1200,  16380,  16384,
                                  16381, 70000, 3,   65536, 300000, 17};
    return lens[i % RQ_ARRAY_LEN(lens)];
}

static uint8_t frame_byte(unsigned i, size_t at)
{
    return (uint8_t)(i * 31 + at * 7 + at / 251);
}

static void check_frame(unsigned i, rq_slice bytes)
{
    assert_int_equal(bytes.len, frame_len(i));
    for (size_t at = 0; at<bytes.len; at += bytes.len> 1000 ? 97 : 1)
        assert_int_equal(bytes.ptr[at], frame_byte(i, at));
}

static void release_one(struct feed *f, unsigned which)
{
    /* the frame's bytes have not changed */
    check_frame(f->held[which].number, f->held[which].bytes);
    rq_chunk_unref(f->held[which].owner);
    f->held[which] = f->held[--f->held_count];
}

static void take_frames(struct feed *f, rq_random *r)
{
    rq_slice bytes;
    rq_chunk *owner;
    size_t len;
    while (rq_input_frame(&f->in, &bytes, &owner, &len) == RQ_FRAME_WHOLE) {
        check_frame(f->frames, bytes);
        if (f->held_count < RQ_ARRAY_LEN(f->held) && rq_random_below(r, 3) == 0)
            f->held[f->held_count++] = (struct held){bytes, owner, f->frames};
        else
            rq_chunk_unref(owner);
        f->frames++;
    }
    assert_int_equal(rq_input_detach(&f->in, &f->pool), RQ_OK);
    while (f->held_count > 0 && rq_random_below(r, 2) == 0)
        release_one(f, (unsigned)rq_random_below(r, f->held_count));
}

static uint8_t *make_stream(unsigned frames, size_t *ret_len)
{
    rq_buf b = {0};
    for (unsigned i = 0; i < frames; i++) {
        assert_int_equal(rq_buf_append_be32(&b, (uint32_t)frame_len(i)), RQ_OK);
        for (size_t at = 0; at < frame_len(i); at++)
            assert_int_equal(rq_buf_append_u8(&b, frame_byte(i, at)), RQ_OK);
    }
    *ret_len = b.len;
    return b.ptr;
}

static void feed_stream(size_t step_max, uint64_t seed)
{
    enum { FRAMES = 60 };
    struct feed f = {.in.frame_max = (size_t)1 << 20};
    rq_random r;
    rq_random_seed(&r, seed);
    assert_int_equal(rq_budget_new((size_t)64 << 20, &f.budget), RQ_OK);
    f.pool.budget = f.budget;
    size_t len, at = 0;
    uint8_t *stream = make_stream(FRAMES, &len);
    while (at < len) {
        size_t room;
        rq_err why;
        uint8_t *p = rq_input_buffer(&f.in, &f.pool, &room, &why);
        assert_non_null(p);
        assert_true(room > 0);
        size_t n = 1 + (size_t)rq_random_below(&r, step_max);
        if (n > room) n = room;
        if (n > len - at) n = len - at;
        memcpy(p, stream + at, n);
        at += n;
        rq_input_received(&f.in, &f.pool, n);
        take_frames(&f, &r);
    }
    assert_int_equal(f.frames, FRAMES);
    assert_false(rq_input_partial(&f.in));
    while (f.held_count > 0)
        release_one(&f, 0);
    rq_input_clear(&f.in, f.budget);
    rq_chunk_pool_clear(&f.pool);
    assert_int_equal(rq_budget_used(f.budget), 0);
    rq_budget_free(f.budget);
    free(stream);
}

static void frames_survive_every_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        feed_stream(1, seed);
        feed_stream(7, seed);
        feed_stream(1500, seed);
        feed_stream(100000, seed);
    }
}

static void put_bytes(rq_input *in, rq_chunk_pool *pool, const void *bytes, size_t len)
{
    size_t room;
    rq_err why;
    uint8_t *p = rq_input_buffer(in, pool, &room, &why);
    assert_non_null(p);
    assert_true(room >= len);
    memcpy(p, bytes, len);
    rq_input_received(in, pool, len);
}

static void a_frame_over_the_limit_is_reported_at_once(void **state)
{
    (void)state;
    rq_budget *budget;
    assert_int_equal(rq_budget_new((size_t)1 << 30, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input in = {.frame_max = 255};
    rq_slice bytes;
    rq_chunk *owner;
    size_t len;
    put_bytes(&in, &pool, "\0\0\1\0rest", 8); /* a length of 256 */
    assert_int_equal(rq_input_frame(&in, &bytes, &owner, &len), RQ_FRAME_TOO_BIG);
    assert_int_equal(len, 256);
    assert_true(rq_slice_eq(bytes, RQ_SLICE_LIT("rest")));
    in.frame_max = 256;
    assert_int_equal(rq_input_frame(&in, &bytes, &owner, &len), RQ_FRAME_MORE);
    rq_input_clear(&in, budget);
    put_bytes(&in, &pool, "\xff\xff\xff\xff", 4);
    assert_int_equal(rq_input_frame(&in, &bytes, &owner, &len), RQ_FRAME_TOO_BIG);
    assert_int_equal(len, UINT32_MAX);
    /* Also if the length was detached before it was checked: the frame is not received. */
    assert_int_equal(rq_input_detach(&in, &pool), RQ_OK);
    assert_null(in.big);
    assert_int_equal(rq_input_needs(&in).bytes, 0);
    put_bytes(&in, &pool, "more", 4);
    assert_null(in.big);
    assert_int_equal(rq_input_frame(&in, &bytes, &owner, &len), RQ_FRAME_TOO_BIG);
    assert_true(rq_slice_eq(bytes, RQ_SLICE_LIT("more")));
    rq_input_clear(&in, budget);
    rq_chunk_pool_clear(&pool);
    rq_budget_free(budget);
}

static void memory_follows_what_was_sent(void **state)
{
    (void)state;
    rq_budget *budget;
    assert_int_equal(rq_budget_new((size_t)1 << 30, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input in = {.frame_max = FRAME_MAX};
    put_bytes(&in, &pool, "\x10\0\0\0", 4); /* 256 MiB announced, nothing sent */
    assert_int_equal(rq_input_detach(&in, &pool), RQ_OK);
    assert_true(rq_budget_used(budget) <= 64 * 1024);
    rq_input_clear(&in, budget);
    rq_chunk_pool_clear(&pool);
    assert_int_equal(rq_budget_used(budget), 0);
    rq_budget_free(budget);
}

static void a_spent_budget_stops_all_but_one(void **state)
{
    (void)state;
    rq_budget *budget;
    assert_int_equal(rq_budget_new(100 * 1024, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input a = {.frame_max = FRAME_MAX}, b = {.frame_max = FRAME_MAX};
    size_t room;
    rq_err why;
    put_bytes(&a, &pool, "\0\x10\0\0", 4); /* a length of 1 MiB each */
    assert_int_equal(rq_input_detach(&a, &pool), RQ_OK);
    put_bytes(&b, &pool, "\0\x10\0\0", 4);
    /* exceeds the budget: takes the overdraft */
    assert_int_equal(rq_input_detach(&b, &pool), RQ_OK);
    /* b continues until its frame is complete */
    for (int i = 0; i < 1000; i++) {
        uint8_t *p = rq_input_buffer(&b, &pool, &room, &why);
        if (p == NULL) break;
        memset(p, 0, room);
        rq_input_received(&b, &pool, room);
        if (b.big == NULL) break;
    }
    assert_null(b.big);
    assert_int_equal(b.end, 4 + (1 << 20));
    /* a had one piece; the next is refused until bytes are given back. */
    uint8_t *p = rq_input_buffer(&a, &pool, &room, &why);
    assert_non_null(p);
    memset(p, 0, room);
    rq_input_received(&a, &pool, room);
    assert_null(rq_input_buffer(&a, &pool, &room, &why));
    assert_int_equal(why, RQ_E_AGAIN);
    rq_input_clear(&b, budget); /* until then a complete frame is charged above the limit */
    assert_non_null(rq_input_buffer(&a, &pool, &room, &why));
    rq_input_clear(&a, budget);
    rq_chunk_pool_clear(&pool);
    assert_int_equal(rq_budget_used(budget), 0);
    rq_budget_free(budget);
}

/* 1,000 blocked connections keep their received input; another connection can still be read. */
static void kept_reads_leave_room_for_others(void **state)
{
    (void)state;
    enum { PEERS = 1000 };
    rq_budget *budget;
    size_t max = (size_t)8 << 20, room, most = 0;
    assert_int_equal(rq_budget_new(max, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input *peers = calloc(PEERS, sizeof *peers);
    rq_err why;
    assert_non_null(peers);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < PEERS; i++) {
            /* not prompt, as with calls in flight, from the second round on */
            peers[i].prompt = round == 0;
            uint8_t *p = rq_input_buffer(&peers[i], &pool, &room, &why);
            if (p == NULL) continue;
            memset(p, 0, room); /* frames of length 0, which are not taken */
            rq_input_received(&peers[i], &pool, room);
            assert_int_equal(rq_input_detach(&peers[i], &pool), RQ_OK);
            if (rq_budget_used(budget) > most) most = rq_budget_used(budget);
        }
    assert_in_range(most, max, max * 5 / 4);
    rq_input bystander = {0};
    assert_null(rq_input_buffer(&bystander, &pool, &room, &why));
    assert_int_equal(why, RQ_E_AGAIN);
    bystander.prompt = true;
    assert_non_null(rq_input_buffer(&bystander, &pool, &room, &why));
    /* Calls that pin the shared chunk do not prevent the read: a prompt connection may use the
     * reserve. */
    rq_chunk *pinned = pool.current;
    pinned->refs++;
    pinned->used = pinned->cap;
    assert_non_null(rq_input_buffer(&bystander, &pool, &room, &why));
    rq_chunk_unref(pinned);
    /* Nor when the reserve is used up: then one chunk takes the overdraft, until no call uses the
     * chunk. */
    size_t reserve = max * 5 / 4 - rq_budget_used(budget);
    assert_true(rq_budget_try_reserve(budget, reserve));
    pinned = pool.current;
    pinned->refs++;
    pinned->used = pinned->cap;
    uint8_t *p = rq_input_buffer(&bystander, &pool, &room, &why);
    assert_non_null(p);
    p[0] = 0;
    rq_input_received(&bystander, &pool, 1);
    assert_true(rq_budget_overdraws(budget, pool.current));
    rq_input_clear(&bystander, budget);
    assert_false(rq_budget_overdraws(budget, pool.current));
    rq_chunk_unref(pinned);
    rq_budget_give(budget, reserve);
    for (int i = 0; i < PEERS; i++)
        rq_input_clear(&peers[i], budget);
    free(peers);
    rq_chunk_pool_clear(&pool);
    assert_int_equal(rq_budget_used(budget), 0);
    rq_budget_free(budget);
}

/* A lane that counts posted tasks. */
struct lane {
    rq_lane lane;
    unsigned posted;
};

static void count_post(rq_lane *lane, rq_task *task)
{
    (void)task;
    RQ_CONTAINER_OF(lane, struct lane, lane)->posted++;
}

/* Feeds the length of a frame of `want` bytes and the frame's first bytes; returns the result of
 * the next read. */
static rq_err begin_frame(rq_input *in, rq_chunk_pool *pool, uint32_t want)
{
    size_t room;
    rq_err why;
    uint8_t *p = rq_input_buffer(in, pool, &room, &why);
    assert_non_null(p);
    rq_put_be32(p, want);
    memset(p + 4, 0, 100);
    rq_input_received(in, pool, 104);
    assert_int_equal(rq_input_detach(in, pool), RQ_OK);
    return rq_input_buffer(in, pool, &room, &why) != NULL ? RQ_OK : why;
}

/* The read that took the overdraft finds no bytes, as a second read after a full one does. */
static void a_read_that_finds_nothing_keeps_no_overdraft(void **state)
{
    (void)state;
    rq_budget *budget;
    size_t max = (size_t)1 << 20, room;
    rq_err why;
    assert_int_equal(rq_budget_new(max, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input first = {.prompt = true, .frame_max = FRAME_MAX}, second = {0};
    assert_non_null(rq_input_buffer(&first, &pool, &room, &why));
    rq_chunk *pinned = pool.current; /* a call uses the whole chunk */
    pinned->refs++;
    pinned->used = pinned->cap;
    assert_true(rq_budget_try_reserve(budget, max * 5 / 4));
    assert_non_null(rq_input_buffer(&first, &pool, &room, &why));
    assert_true(rq_budget_overdraws(budget, pool.current));
    rq_input_received_nothing(&pool);
    assert_true(rq_budget_overdraw(budget, &second));
    rq_budget_end_overdraft(budget, &second);
    rq_chunk_unref(pinned);
    rq_budget_give(budget, max * 5 / 4);
    rq_chunk_pool_clear(&pool);
    rq_budget_free(budget);
}

/* Otherwise it would be woken for the reserve, which it may not use, and queue again endlessly. */
static void a_large_frame_does_not_wait_for_the_reserve(void **state)
{
    (void)state;
    struct lane lane = {.lane.post = count_post};
    rq_budget *budget;
    size_t max = (size_t)1 << 20;
    assert_int_equal(rq_budget_new(max, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input in = {.prompt = true, .frame_max = FRAME_MAX};
    assert_true(rq_budget_overdraw(budget, &budget)); /* another frame has the overdraft */
    assert_true(rq_budget_try(budget, max - 1000));
    assert_int_equal(begin_frame(&in, &pool, 300000), RQ_E_AGAIN);
    rq_input_need need = rq_input_needs(&in);
    rq_budget_waiter waiter = {.lane = &lane.lane, .bytes = need.bytes, .prompt = need.prompt};
    rq_budget_wait(budget, &waiter);
    assert_int_equal(lane.posted, 0);
    rq_budget_give(budget, max - 1000);
    assert_int_equal(lane.posted, 1);
    rq_budget_woken(budget, &waiter);
    rq_budget_end_overdraft(budget, &budget);
    rq_input_clear(&in, budget);
    rq_chunk_pool_clear(&pool);
    assert_int_equal(rq_budget_used(budget), 0);
    rq_budget_free(budget);
}

/* The bytes that a waiter asks for are the bytes that the next attempt charges. */
static void needs_are_what_is_taken(void **state)
{
    (void)state;
    rq_budget *budget;
    assert_int_equal(rq_budget_new((size_t)8 << 20, &budget), RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input in = {.frame_max = FRAME_MAX};
    /* the first 64 KiB of the frame are charged */
    assert_int_equal(begin_frame(&in, &pool, 1000000), RQ_OK);
    for (int i = 0; i < 3; i++) {
        size_t room, used = rq_budget_used(budget);
        rq_err why;
        size_t left = in.big->cap - in.big_len;
        rq_input_received(&in, &pool, left);
        rq_input_need need = rq_input_needs(&in);
        assert_false(need.prompt);
        assert_non_null(rq_input_buffer(&in, &pool, &room, &why));
        assert_int_equal(rq_budget_used(budget), used + need.bytes);
    }
    rq_input_clear(&in, budget);
    rq_chunk_pool_clear(&pool);
    rq_budget_free(budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_survive_every_cut),
        cmocka_unit_test(a_frame_over_the_limit_is_reported_at_once),
        cmocka_unit_test(memory_follows_what_was_sent),
        cmocka_unit_test(a_spent_budget_stops_all_but_one),
        cmocka_unit_test(kept_reads_leave_room_for_others),
        cmocka_unit_test(a_read_that_finds_nothing_keeps_no_overdraft),
        cmocka_unit_test(a_large_frame_does_not_wait_for_the_reserve),
        cmocka_unit_test(needs_are_what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
