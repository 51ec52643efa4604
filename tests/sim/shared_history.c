/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_history.h. */
#include "shared_history.h"

#include <inttypes.h>

#define NAMES 5

static uint64_t below(history *h, uint64_t bound)
{
    return rq_random_below(&h->random, bound);
}

/* --- operations on one form ----------------------------------------------------------------- */

static void tenure_name(unsigned i, char ret[static 32])
{
    snprintf(ret, 32, "host,16020,%u", i);
}

void form_release(form *f, unsigned i)
{
    rq_slog_close(f->logs[i]);
    rq_tenure_free(f->tenures[i]);
    f->logs[i] = NULL;
    f->tenures[i] = NULL;
}

typedef struct append_wait {
    rq_slog_write write;
    rq_latch latch;
} append_wait;

static void appended(rq_slog_write *w, rq_err rc)
{
    append_wait *a = RQ_CONTAINER_OF(w, append_wait, write);
    a->latch.executor->latch_open(&a->latch, rc);
}

rq_err form_append(form *f, const step *s)
{
    append_wait a = {.write = {.stripe = s->stripe, .bytes = s->bytes, .lane = f->lane}};
    a.write.off = f->off[s->tenure][s->stripe];
    a.write.done = appended;
    f->executor->latch_init(f->executor, &a.latch);
    rq_slog_submit(f->logs[s->tenure], &a.write);
    rq_err rc = f->wait(f, &a.latch);
    if (rc == RQ_OK) f->off[s->tenure][s->stripe] += s->bytes.len;
    return rc;
}

rq_err form_open_log(form *f, const step *s)
{
    rq_slog_close(f->logs[s->tenure]);
    f->logs[s->tenure] = NULL;
    memset(f->off[s->tenure], 0, sizeof f->off[0]);
    return rq_slog_open(f->tenures[s->tenure], s->number, &f->logs[s->tenure], NULL);
}

static void read_ledger(form *f, const char *name, const rq_slog_ledger *ledger, answer *a)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES && a->rc == RQ_OK; k++) {
        uint8_t buf[5000];
        size_t len = 0;
        a->rc = rq_slog_read(f->shared, name, ledger, k, ledger->number % 3, buf, sizeof buf, &len,
                             NULL);
        assert_int_equal(rq_buf_append_be64(&a->bytes, ledger->lengths[k]), RQ_OK);
        assert_int_equal(rq_buf_append(&a->bytes, buf, len), RQ_OK);
    }
}

void form_read_all(form *f, const char *name, answer *a)
{
    rq_slog_ledger *ledgers;
    size_t count = 0;
    a->rc = rq_slog_lengths(f->shared, name, &f->arena, &ledgers, &count, NULL);
    if (a->rc != RQ_OK) return;
    a->number = count;
    for (size_t i = 0; i < count; i++)
        read_ledger(f, name, &ledgers[i], a);
}

void form_list_set(form *f, const char *name, answer *a)
{
    const char **keys;
    size_t count;
    a->rc = rq_set_list(f->shared, name, &f->arena, &keys, &count, NULL);
    for (size_t i = 0; a->rc == RQ_OK && i < count; i++)
        assert_int_equal(rq_buf_printf(&a->bytes, "%s\n", keys[i]), RQ_OK);
}

static void get_object(form *f, const char *name, answer *a)
{
    rq_slice bytes;
    a->rc = rq_object_get(f->shared, name, &f->arena, &bytes, &a->number, NULL);
    if (a->rc == RQ_OK) assert_int_equal(rq_buf_append(&a->bytes, bytes.ptr, bytes.len), RQ_OK);
}

static void perform(form *f, const step *s, answer *a)
{
    char tenure[32];
    uint64_t quiet_ns;
    tenure_name(s->tenure, tenure);
    switch (s->kind) {
    case 0:
        form_release(f, s->tenure);
        a->rc = rq_tenure_begin(f->shared, tenure, &f->tenures[s->tenure], NULL);
        break;
    case 1:
        a->rc = rq_tenure_revoke(f->shared, tenure, &quiet_ns, NULL);
        break;
    case 2:
        if (f->tenures[s->tenure] != NULL) a->rc = rq_tenure_end(f->tenures[s->tenure], NULL);
        break;
    case 3:
        if (f->tenures[s->tenure] != NULL) a->rc = form_open_log(f, s);
        break;
    case 4:
        form_read_all(f, tenure, a);
        break;
    case 5:
        a->rc = rq_slog_remove(f->shared, tenure, NULL);
        break;
    case 6:
        a->rc = rq_object_cas(f->shared, s->name, s->number, s->bytes, &a->number, NULL);
        break;
    case 7:
        get_object(f, s->name, a);
        break;
    case 8:
        a->rc = rq_object_remove(f->shared, s->name, s->number, NULL);
        break;
    case 9:
        a->rc = rq_set_put(f->shared, s->name, s->key, NULL);
        break;
    case 10:
        a->rc = rq_set_del(f->shared, s->name, s->key, NULL);
        break;
    case 11:
        form_list_set(f, s->name, a);
        break;
    case 12:
        if (f->tenures[s->tenure] != NULL)
            a->rc = rq_slog_drop(f->tenures[s->tenure], s->number, NULL);
        break;
    default:
        if (f->logs[s->tenure] != NULL) a->rc = form_append(f, s);
    }
}

/* --- histories ------------------------------------------------------------------------------ */

static const char *const names[NAMES] = {"a", "region-1.manifest", "meta,1:x", "bad/name", ""};

static step choose(history *h, uint8_t bytes[static EXTENT_MAX], const uint64_t generations[])
{
    static const unsigned kinds[] = {0, 0, 1, 2,  3,  3,  3,  4,  4,  5,  6,  6,  6,  6,  7,  7,
                                     8, 9, 9, 10, 11, 12, 12, 13, 13, 13, 13, 13, 13, 13, 13, 13};
    unsigned which = (unsigned)below(h, below(h, 20) == 0 ? NAMES : 3);
    step s = {.kind = kinds[below(h, RQ_ARRAY_LEN(kinds))],
              .tenure = (unsigned)below(h, HISTORY_TENURES),
              .stripe = (unsigned)below(h, RQ_SLOG_STRIPES),
              .name = names[which],
              .key = names[below(h, NAMES)]};
    s.bytes = rq_slice_of(bytes, extent_make(below(h, 1000), bytes));
    bool object = s.kind == 6 || s.kind == 8;
    s.number = object && below(h, 4) > 0 ? generations[which] : below(h, HISTORY_LEDGERS);
    return s;
}

static void compare(const history *h, unsigned at, const step *s, answer a[2],
                    uint64_t generations[])
{
    bool same = a[0].rc == a[1].rc && a[0].number == a[1].number &&
                rq_slice_eq(rq_buf_slice(&a[0].bytes), rq_buf_slice(&a[1].bytes));
    if (!same)
        fail_msg("RQ_SEED=%" PRIu64 ", step %u, kind %u, %s: %d %" PRIu64 " and %d %" PRIu64,
                 h->seed, at, s->kind, s->name, a[0].rc, a[0].number, a[1].rc, a[1].number);
    for (unsigned i = 0; i < NAMES; i++) {
        if (names[i] != s->name || a[0].rc != RQ_OK) continue;
        if (s->kind == 6 || s->kind == 7) generations[i] = a[0].number;
        if (s->kind == 8) generations[i] = 0;
    }
}

/* shared.h forbids taking a removed name again, dropping an open ledger, and reopening a dropped
 * ledger. */
static bool is_forbidden(const history *h, const step *s)
{
    bool is_open = h->forms[0].logs[s->tenure] != NULL && h->open[s->tenure] == s->number;
    return (s->kind == 0 && h->removed[s->tenure]) || (s->kind == 12 && is_open) ||
           (s->kind == 3 && h->dropped[s->tenure][s->number]);
}

static void note_done(history *h, const step *s, rq_err rc)
{
    if (rc != RQ_OK) return;
    if (s->kind == 3) h->open[s->tenure] = s->number;
    if (s->kind == 5) h->removed[s->tenure] = true;
    if (s->kind == 12) h->dropped[s->tenure][s->number] = true;
}

static bool take_step(history *h, unsigned at, uint64_t generations[], rq_err *ret_rc,
                      unsigned *ret_kind)
{
    uint8_t bytes[EXTENT_MAX];
    answer a[2] = {0};
    step s = choose(h, bytes, generations);
    if (is_forbidden(h, &s)) return false;
    for (unsigned k = 0; k < 2; k++) {
        perform(&h->forms[k], &s, &a[k]);
        rq_arena_reset(&h->forms[k].arena);
    }
    compare(h, at, &s, a, generations);
    note_done(h, &s, a[0].rc);
    *ret_rc = a[0].rc;
    *ret_kind = s.kind;
    rq_buf_clear(&a[0].bytes);
    rq_buf_clear(&a[1].bytes);
    return true;
}

void history_run(history *h, unsigned good[HISTORY_KINDS], unsigned bad[HISTORY_KINDS])
{
    uint64_t generations[NAMES] = {0};
    rq_err rc;
    unsigned kind;
    rq_random_seed(&h->random, h->seed);
    for (unsigned i = 0; i < HISTORY_STEPS; i++)
        if (take_step(h, i, generations, &rc, &kind))
            *(rc == RQ_OK ? &good[kind] : &bad[kind]) += 1;
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned t = 0; t < HISTORY_TENURES; t++)
            form_release(&h->forms[k], t);
        rq_arena_clear(&h->forms[k].arena);
    }
}

void history_check(const unsigned good[HISTORY_KINDS], const unsigned bad[HISTORY_KINDS])
{
    for (unsigned i = 0; i < HISTORY_KINDS; i++)
        if (good[i] == 0 || (bad[i] == 0 && i != 1 && i != 2 && i != 11)) /* steps 1, 2 and 11
                                                                           * seldom fail */
            fail_msg("step %u: %u succeeded, %u failed", i, good[i], bad[i]);
}
