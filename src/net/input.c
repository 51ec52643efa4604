/* SPDX-License-Identifier: Apache-2.0 */
/* From reads to frames; contract in input.h. */
#include "net/input.h"

#include "base/asan.h"
#include "base/long_free.h"

#include <stdlib.h>

#define READ_MIN ((size_t)8 * 1024)   /* a read into less is not worth its system call */
#define READ_PROMPT ((size_t)1024)    /* when the budget is used up, by those that need little */
#define BIG_FIRST ((size_t)64 * 1024) /* first buffer of a growing frame */

/* ---- chunks ---------------------------------------------------------------------------------- */

/* `charged` bytes were taken from the budget already. */
static rq_chunk *chunk_alloc(rq_budget *budget, size_t cap, size_t charged)
{
    rq_chunk *c = malloc(sizeof *c + cap);
    if (c == NULL) {
        rq_budget_give(budget, charged);
        return NULL;
    }
    *c = (rq_chunk){.refs = 1, .budget = budget, .charged = charged, .cap = cap};
    return c;
}

void rq_chunk_unref(rq_chunk *c)
{
    if (c == NULL) return;
    if (--c->refs > 0) {
        if (RQ_UNLIKELY(c->overdraws) && c->refs == 1) rq_budget_end_overdraft(c->budget, c);
        return;
    }
    rq_budget_give(c->budget, c->charged);
    rq_budget_end_overdraft(c->budget, c); /* a frame that went over the ceiling has ended */
    rq_long_free(rq__budget_executor(c->budget), c, sizeof *c + c->cap);
}

void rq_chunk_pool_clear(rq_chunk_pool *p)
{
    rq_chunk_unref(p->current);
    p->current = NULL;
}

static bool take(rq_budget *budget, size_t bytes, bool prompt)
{
    return prompt ? rq_budget_try_reserve(budget, bytes) : rq_budget_try(budget, bytes);
}

/* Makes room for `need` bytes behind the used part of the shared chunk. */
static rq_err pool_room(rq_chunk_pool *p, const rq_input *in, size_t need)
{
    if (p->current != NULL && p->current->refs == 1) p->current->used = 0;
    if (p->current != NULL && p->current->cap - p->current->used >= need) return RQ_OK;
    size_t cap = need > RQ_CHUNK_BYTES ? need : RQ_CHUNK_BYTES;
    size_t charged = p->current == NULL ? 0 : cap; /* the first is part of the loop */
    bool overdraws = false;
    if (charged > 0 && !take(p->budget, charged, in->prompt)) {
        if (!in->prompt || !rq_budget_overdraw(p->budget, in)) return RQ_E_AGAIN;
        rq_budget_force(p->budget, charged);
        overdraws = true;
    }
    rq_chunk *c = chunk_alloc(p->budget, cap, charged);
    if (overdraws) rq__budget_pass_overdraft(p->budget, in, c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->overdraws = overdraws;
    rq_chunk_unref(p->current);
    p->current = c;
    return RQ_OK;
}

/* ---- frames that grow ------------------------------------------------------------------------ */

/* The length of the front frame including its header, or 0 while the header is incomplete. */
static size_t front_want(const rq_input *in)
{
    if (in->end - in->pos < RQ_FRAME_HEAD) return 0;
    return RQ_FRAME_HEAD + (size_t)rq_get_be32(in->chunk->bytes + in->pos);
}

/* As front_want, but also 0 for a frame that is too long to be accepted, and for input that is not made of
 * frames. */
static size_t taken_want(const rq_input *in)
{
    size_t want = in->chunk == NULL || in->never_big ? 0 : front_want(in);
    return want > RQ_FRAME_HEAD + in->frame_max ? 0 : want;
}

/* A chunk for a frame of `want` bytes. */
static rq_err charge(rq_budget *budget, const rq_input *in, size_t want, size_t bytes)
{
    if (take(budget, bytes, in->prompt && want <= RQ_INPUT_PROMPT)) return RQ_OK;
    if (!rq_budget_overdraw(budget, in)) return RQ_E_AGAIN;
    rq_budget_force(budget, bytes);
    return RQ_OK;
}

static size_t first_cap(const rq_input *in, size_t want)
{
    size_t have = in->end - in->pos;
    size_t cap = have * 2 > BIG_FIRST ? have * 2 : BIG_FIRST;
    return cap > want ? want : cap;
}

static size_t next_cap(const rq_input *in)
{
    return in->big->cap > in->big_want / 2 ? in->big_want : in->big->cap * 2;
}

/* Moves the front bytes, the beginning of a big frame, to a chunk of their own. */
static rq_err big_begin(rq_input *in, rq_budget *budget, size_t want)
{
    size_t have = in->end - in->pos;
    size_t cap = first_cap(in, want);
    RQ_TRY(charge(budget, in, want, cap));
    rq_chunk *c = chunk_alloc(budget, cap, cap);
    if (c == NULL) return RQ_E_NO_MEMORY;
    memcpy(c->bytes, in->chunk->bytes + in->pos, have);
    rq_chunk_unref(in->chunk);
    in->chunk = NULL;
    in->pos = in->end = 0;
    in->big = c;
    in->big_len = have;
    in->big_want = want;
    return RQ_OK;
}

static rq_err big_grow(rq_input *in, rq_budget *budget)
{
    size_t cap = next_cap(in);
    size_t more = cap - in->big->cap;
    RQ_TRY(charge(budget, in, in->big_want, more));
    rq_chunk *c = realloc(in->big, sizeof *c + cap);
    if (c == NULL) {
        rq_budget_give(budget, more);
        return RQ_E_NO_MEMORY;
    }
    c->cap = cap;
    c->charged += more;
    in->big = c;
    return RQ_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

void rq_input_clear(rq_input *in, rq_budget *budget)
{
    rq_chunk_unref(in->chunk);
    rq_chunk_unref(in->big);
    rq_budget_end_overdraft(budget, in);
    *in = (rq_input){.frame_max = in->frame_max};
}

/* A connection that is blocked keeps what it has read (stash), so reads get smaller as the budget
 * is used up: of a thousand blocked connections each may keep a whole read. */
static size_t read_most(const rq_input *in, const rq_budget *budget)
{
    size_t used = rq_budget_used(budget), max = rq_budget_max(budget);
    if (RQ_LIKELY(used <= max / 2)) return RQ_CHUNK_BYTES;
    if (used < max) return READ_MIN;
    return in->prompt ? READ_PROMPT : 0;
}

size_t rq_input_want(const rq_input *in)
{
    return in->big != NULL ? in->big_want : taken_want(in);
}

rq_input_need rq_input_needs(const rq_input *in)
{
    size_t want = rq_input_want(in);
    bool prompt = in->prompt && want <= RQ_INPUT_PROMPT;
    if (in->big != NULL) return (rq_input_need){next_cap(in) - in->big->cap, prompt};
    if (want > RQ_INPUT_BIG) return (rq_input_need){first_cap(in, want), prompt};
    return (rq_input_need){in->prompt ? RQ_CHUNK_BYTES : 0, prompt};
}

void *rq_input_buffer(rq_input *in, rq_chunk_pool *pool, size_t *ret_len, rq_err *ret_why)
{
    *ret_why = RQ_OK;
    size_t want = taken_want(in);
    if (want > RQ_INPUT_BIG && in->end - in->pos < want)
        *ret_why = big_begin(in, pool->budget, want);
    if (*ret_why == RQ_OK && in->big != NULL && in->big_len == in->big->cap)
        *ret_why = big_grow(in, pool->budget);
    if (*ret_why != RQ_OK) return NULL;
    if (in->big != NULL) {
        *ret_len = in->big->cap - in->big_len;
        return in->big->bytes + in->big_len;
    }
    size_t most = read_most(in, pool->budget);
    if (most == 0) {
        *ret_why = RQ_E_AGAIN;
        return NULL;
    }
    size_t have = in->end - in->pos;
    *ret_why = pool_room(pool, in, have + READ_MIN > want ? have + READ_MIN : want);
    if (*ret_why != RQ_OK) return NULL;
    rq_chunk *c = pool->current;
    RQ_UNPOISON(c->bytes + c->used, c->cap - c->used);
    /* The bytes we have are placed in front, but count only once new bytes have arrived: until then
     * the room belongs to whichever connection reads first. */
    if (have > 0) memcpy(c->bytes + c->used, in->chunk->bytes + in->pos, have);
    *ret_len = c->cap - c->used - have;
    if (*ret_len > most) *ret_len = most;
    return c->bytes + c->used + have;
}

void rq_input_received(rq_input *in, rq_chunk_pool *pool, size_t len)
{
    if (in->big != NULL) {
        in->big_len += len;
        RQ_ASSERT(in->big_len <= in->big->cap);
        if (in->big_len < in->big_want) return;
        in->chunk = in->big;
        in->end = in->big_want;
        in->big = NULL;
        in->big_len = in->big_want = 0;
        rq__budget_pass_overdraft(pool->budget, in, in->chunk);
        return;
    }
    rq_chunk *c = pool->current;
    size_t have = in->end - in->pos;
    rq_chunk_unref(in->chunk);
    c->refs++;
    in->chunk = c;
    in->pos = c->used;
    in->end = c->used + have + len;
    RQ_ASSERT(in->end <= c->cap);
    c->used = in->end;
    RQ_POISON(c->bytes + c->used, c->cap - c->used);
}

void rq_input_received_nothing(rq_chunk_pool *pool)
{
    rq_chunk *c = pool->current;
    if (c != NULL && RQ_UNLIKELY(c->overdraws) && c->refs == 1)
        rq_budget_end_overdraft(c->budget, c);
}

/* ---- consuming ------------------------------------------------------------------------------- */

rq_slice rq_input_peek(const rq_input *in)
{
    if (in->chunk == NULL) return (rq_slice){0};
    return rq_slice_of(in->chunk->bytes + in->pos, in->end - in->pos);
}

void rq_input_consume(rq_input *in, size_t len)
{
    RQ_ASSERT(len <= in->end - in->pos);
    in->pos += len;
}

/* Adjacent frames hide overruns: one frame's overrun would only read the next one. So under
 * AddressSanitizer each frame of the shared chunk is passed on as a copy with redzones. A frame in
 * a chunk of its own already ends there. */
static void copy_for_asan(rq_slice *frame, rq_chunk **owner)
{
    if (!RQ_ASAN || (*owner)->used == 0) return;
    rq_chunk *c = chunk_alloc((*owner)->budget, frame->len, 0);
    if (c == NULL) return;
    memcpy(c->bytes, frame->ptr, frame->len);
    *frame = rq_slice_of(c->bytes, frame->len);
    rq_chunk_unref(*owner);
    *owner = c;
}

rq_frame rq_input_frame(rq_input *in, rq_slice *ret, rq_chunk **ret_owner, size_t *ret_len)
{
    size_t want = in->chunk == NULL ? 0 : front_want(in);
    if (want == 0) return RQ_FRAME_MORE;
    size_t have = in->end - in->pos;
    *ret_len = want - RQ_FRAME_HEAD;
    const uint8_t *body = in->chunk->bytes + in->pos + RQ_FRAME_HEAD;
    if (*ret_len > in->frame_max) {
        *ret = rq_slice_of(body, (have < want ? have : want) - RQ_FRAME_HEAD);
        return RQ_FRAME_TOO_BIG;
    }
    if (have < want) return RQ_FRAME_MORE;
    *ret = rq_slice_of(body, *ret_len);
    *ret_owner = in->chunk;
    in->chunk->refs++;
    in->pos += want;
    copy_for_asan(ret, ret_owner);
    return RQ_FRAME_WHOLE;
}

/* Copies the rest of the shared chunk to a chunk of the connection's own. The copy is charged even if the budget is
 * used up: it is at most one read, and refusing it would lose bytes. */
static rq_err stash(rq_input *in, rq_budget *budget)
{
    size_t have = in->end - in->pos;
    rq_budget_force(budget, have);
    rq_chunk *c = chunk_alloc(budget, have, have);
    if (c == NULL) return RQ_E_NO_MEMORY;
    memcpy(c->bytes, in->chunk->bytes + in->pos, have);
    rq_chunk_unref(in->chunk);
    in->chunk = c;
    in->pos = 0;
    in->end = have;
    return RQ_OK;
}

rq_err rq_input_detach(rq_input *in, rq_chunk_pool *pool)
{
    if (in->chunk == NULL) return RQ_OK;
    size_t have = in->end - in->pos;
    if (have == 0) {
        rq_chunk_unref(in->chunk);
        in->chunk = NULL;
        in->pos = in->end = 0;
        return RQ_OK;
    }
    size_t want = taken_want(in);
    if (want > RQ_INPUT_BIG && have < want) {
        rq_err rc = big_begin(in, pool->budget, want);
        if (rc != RQ_E_AGAIN) return rc;
    }
    return in->chunk == pool->current ? stash(in, pool->budget) : RQ_OK;
}
