/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A greeting between servers whose steps an attacker chooses: honest, changed and invented messages
 * of three callers, one of which has another secret, in any order on one connection.
 *
 * Each step: the action (one byte), the caller or the change (one byte), and for invented messages
 * a length and the bytes. Invariants: only a caller's own unchanged proof for this connection's
 * challenge is accepted, under the proven name; a caller accepts no server with another secret.
 */
#include "cluster/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLERS 3
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

static const rq_server_name names[CALLERS] = {
    {.host = "a", .port = 1, .start_code = 5, .text = "a,1,5"},
    {.host = "a", .port = 1, .start_code = 6, .text = "a,1,6"},
    {.host = "c", .port = 3, .start_code = 5, .text = "c,3,5"}};
static const rq_server_name self = {.host = "s", .port = 9, .start_code = 9, .text = "s,9,9"};

typedef struct round {
    rq_arena arena;
    rq_secret right, wrong;
    rq_caller callers[CALLERS];
    rq_called called;
    rq_slice challenge; /* the called side's last response to a hello */
    uint8_t next_nonce;
} round;

typedef enum step {
    HELLO,
    CHANGED_HELLO,
    MADE_UP_HELLO,
    PROOF,
    CHANGED_PROOF,
    MADE_UP_PROOF,
    MADE_UP_CHALLENGE,
    STEPS
} step;

static void begin(round *r)
{
    *r = (round){0};
    memset(r->right.key, 1, sizeof r->right.key);
    memset(r->wrong.key, 2, sizeof r->wrong.key);
    for (size_t i = 0; i < CALLERS; i++) {
        r->callers[i] =
            (rq_caller){.secret = i == 2 ? &r->wrong : &r->right, .from = &names[i], .to = &self};
        memset(r->callers[i].nonce, (int)i + 1, RQ_NONCE_LEN);
    }
}

static rq_slice changed(round *r, rq_slice s, uint8_t how)
{
    uint8_t *copy = rq_arena_alloc(&r->arena, s.len + 1);
    MUST(copy != NULL);
    memcpy(copy, s.ptr, s.len);
    copy[how % s.len] ^= (uint8_t)(1 + how / 7);
    return rq_slice_of(copy, s.len);
}

static void say_hello(round *r, rq_slice hello)
{
    const rq_server_name *const list[] = {&self};
    uint8_t nonce[RQ_NONCE_LEN];
    rq_slice answer;
    memset(nonce, r->next_nonce++, sizeof nonce);
    rq_called_state before = r->called.state;
    rq_err rc = rq_called_hello(&r->called, list, 1, nonce, hello, &r->arena, &answer, NULL);
    MUST((rc == RQ_OK) == (r->called.state == RQ_CALLED_CHALLENGED));
    MUST(rc != RQ_OK || before == RQ_CALLED_NEW);
    if (rc == RQ_OK) r->challenge = answer;
}

/* `by`: the caller who made the proof; -1: none. */
static void say_proof(round *r, rq_slice proof, int by)
{
    rq_slice answer;
    rq_err rc = rq_called_prove(&r->called, &r->right, proof, &r->arena, &answer, NULL);
    MUST((rc == RQ_OK) == (r->called.state == RQ_CALLED_PROVEN));
    if (rc != RQ_OK) return;
    MUST(by == 0 || by == 1);
    MUST(strcmp(r->called.from->text, names[by].text) == 0);
    MUST(memcmp(r->called.theirs, r->callers[by].nonce, RQ_NONCE_LEN) == 0);
    for (int i = 0; i < CALLERS; i++)
        MUST((rq_caller_check(&r->callers[i], answer, NULL) == RQ_OK) == (i == by));
}

static void run(round *r, step what, uint8_t how, rq_slice bytes)
{
    int by = how % CALLERS;
    rq_slice m;
    switch (what) {
    case HELLO:
    case CHANGED_HELLO:
        MUST(rq_caller_hello(&r->callers[by], &r->arena, &m) == RQ_OK);
        say_hello(r, what == HELLO ? m : changed(r, m, how));
        return;
    case PROOF:
    case CHANGED_PROOF:
        if (r->challenge.len == 0) return;
        MUST(rq_caller_prove(&r->callers[by], r->challenge, &r->arena, &m, NULL) == RQ_OK);
        say_proof(r, what == PROOF ? m : changed(r, m, how), what == PROOF ? by : -1);
        return;
    case MADE_UP_HELLO:
        say_hello(r, bytes);
        return;
    case MADE_UP_PROOF:
        say_proof(r, bytes, -1);
        return;
    default:
        (void)!rq_caller_prove(&r->callers[by], bytes, &r->arena, &m, NULL);
        MUST(rq_caller_check(&r->callers[by], bytes, NULL) != RQ_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    round r;
    begin(&r);
    rq_cursor c = rq_cursor_of(rq_slice_of(data, size));
    rq_slice head, bytes;
    while (rq_cursor_bytes(&c, 2, &head)) {
        step what = head.ptr[0] % STEPS;
        size_t len = head.ptr[1] < rq_cursor_left(&c) ? head.ptr[1] : rq_cursor_left(&c);
        bool made_up = what == MADE_UP_HELLO || what == MADE_UP_PROOF || what == MADE_UP_CHALLENGE;
        if (!rq_cursor_bytes(&c, made_up ? len : 0, &bytes)) break;
        run(&r, what, head.ptr[1], bytes);
    }
    rq_called_clear(&r.called);
    rq_arena_clear(&r.arena);
    return 0;
}
