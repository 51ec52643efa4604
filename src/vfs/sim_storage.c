/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the simulated shared storage. Each operation is atomic and touches one object: the
 * head of a log, one stripe, one named object or one set. */
#include <stdlib.h>

#include "vfs/sim_shared_priv.h"

typedef struct stripe {
    bool exists;
    uint64_t guard; /* the writer's token; 0: fenced */
    rq_buf bytes;
} stripe;

typedef struct ledger {
    rq_slog_ledger sealed; /* number; lengths once the log is sealed */
    stripe stripes[RQ_SLOG_STRIPES];
} ledger;

typedef enum log_state { LOG_OPEN, LOG_FENCED, LOG_CLOSED } log_state;

/* A thing with a name: a log's head, an object or a set. */
typedef struct thing {
    struct thing *next;
    enum { THING_LOG, THING_OBJECT, THING_SET } kind;
    char name[RQ_SHARED_NAME_MAX + 1];
    log_state state;
    bool sealed;
    uint64_t token;
    ledger *ledgers;
    size_t count; /* of ledgers, or keys */
    uint64_t generation;
    bool absent; /* an object that was removed */
    rq_buf bytes;
    char (*keys)[RQ_SHARED_NAME_MAX + 1]; /* sorted */
} thing;

struct sim_objects {
    thing *things;
};

rq_err rq__sim_objects_new(sim_objects **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void thing_free(thing *t)
{
    for (size_t i = 0; t->ledgers != NULL && i < t->count; i++)
        for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
            rq_buf_clear(&t->ledgers[i].stripes[k].bytes);
    free(t->ledgers);
    rq_buf_clear(&t->bytes);
    free(t->keys);
    free(t);
}

void rq__sim_objects_free(sim_objects *o)
{
    if (o == NULL) return;
    for (thing *t = o->things, *next; t != NULL; t = next) {
        next = t->next;
        thing_free(t);
    }
    free(o);
}

static thing *find(sim_objects *o, int kind, const char *name)
{
    thing *t = o->things;
    while (t != NULL && ((int)t->kind != kind || strcmp(t->name, name) != 0))
        t = t->next;
    return t;
}

static thing *make(sim_objects *o, int kind, const char *name)
{
    thing *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->kind = kind;
    memcpy(t->name, name, strlen(name) + 1);
    t->next = o->things;
    o->things = t;
    return t;
}

static void drop(sim_objects *o, thing *gone)
{
    thing **at = &o->things;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    thing_free(gone);
}

/* --- logs ---------------------------------------------------------------------------------- */

static ledger *ledger_of(thing *t, uint64_t number)
{
    for (size_t i = 0; t != NULL && i < t->count; i++)
        if (t->ledgers[i].sealed.number == number) return &t->ledgers[i];
    return NULL;
}

static bool owns(const thing *t, uint64_t token)
{
    return t != NULL && t->state == LOG_OPEN && t->token == token;
}

static rq_err begin(sim_objects *o, const sim_op *op)
{
    if (find(o, THING_LOG, op->name) != NULL) return RQ_E_EXISTS;
    thing *t = make(o, THING_LOG, op->name);
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->token = op->token;
    return RQ_OK;
}

/* Kept in order of their numbers. */
static rq_err add_ledger(thing *t, const sim_op *op)
{
    if (!owns(t, op->token)) return RQ_E_SERVER_ABORTED;
    if (ledger_of(t, op->number) != NULL) return RQ_E_EXISTS;
    ledger *more = realloc(t->ledgers, (t->count + 1) * sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    t->ledgers = more;
    size_t at = t->count++;
    for (; at > 0 && more[at - 1].sealed.number > op->number; at--)
        more[at] = more[at - 1];
    more[at] = (ledger){.sealed.number = op->number};
    return RQ_OK;
}

/* On a real storage stripes are objects of their own; here they are removed with their entry. */
static rq_err drop_ledger(thing *t, const sim_op *op)
{
    if (!owns(t, op->token)) return RQ_E_SERVER_ABORTED;
    ledger *s = ledger_of(t, op->number);
    if (s == NULL) return RQ_OK;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        rq_buf_clear(&s->stripes[k].bytes);
    t->count--;
    memmove(s, s + 1, (size_t)(t->ledgers + t->count - s) * sizeof *s);
    return RQ_OK;
}

/* A stripe that exists was made by whoever revoked the tenure. */
static rq_err create_stripe(thing *t, const sim_op *op)
{
    ledger *s = ledger_of(t, op->number);
    if (s == NULL || s->stripes[op->stripe].exists) return RQ_E_SERVER_ABORTED;
    s->stripes[op->stripe] = (stripe){.exists = true, .guard = op->token};
    return RQ_OK;
}

static rq_err append(thing *t, const sim_op *op)
{
    ledger *s = ledger_of(t, op->number);
    stripe *at = s == NULL ? NULL : &s->stripes[op->stripe];
    if (at == NULL || !at->exists || at->guard != op->token) return RQ_E_SERVER_ABORTED;
    if (at->bytes.len != op->off) return RQ_E_IO;
    return rq_buf_append(&at->bytes, op->bytes.ptr, op->bytes.len);
}

/* What the log's ledgers are cannot change any more. */
static rq_err fence(sim_objects *o, thing *t, sim_op *op, rq_arena *arena)
{
    if (t == NULL && op->token != 0) return RQ_E_NOT_FOUND;
    if (t == NULL) t = make(o, THING_LOG, op->name); /* no token opens this one */
    if (t == NULL) return RQ_E_NO_MEMORY;
    if (t->state == LOG_OPEN)
        t->state = op->token != 0 && owns(t, op->token) ? LOG_CLOSED : LOG_FENCED;
    op->closed = t->state == LOG_CLOSED;
    op->count = t->count;
    op->ledgers = rq_arena_calloc(arena, t->count, sizeof *op->ledgers);
    if (op->ledgers == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < t->count; i++)
        op->ledgers[i] = t->ledgers[i].sealed;
    return RQ_OK;
}

static rq_err fence_stripe(thing *t, sim_op *op)
{
    ledger *s = ledger_of(t, op->number);
    if (s == NULL) return RQ_E_NOT_FOUND;
    s->stripes[op->stripe].exists = true;
    s->stripes[op->stripe].guard = 0;
    op->off = s->stripes[op->stripe].bytes.len;
    return RQ_OK;
}

static rq_err seal(thing *t, const sim_op *op)
{
    /* Removed, and revoked again perhaps, since its ledgers were listed. */
    if (t == NULL || t->count != op->count) return RQ_E_NOT_FOUND;
    if (t->state == LOG_OPEN) return RQ_E_STATE;
    if (t->sealed) return RQ_OK;
    for (size_t i = 0; i < op->count; i++)
        t->ledgers[i].sealed = op->ledgers[i];
    t->sealed = true;
    return RQ_OK;
}

static rq_err lengths(sim_objects *o, thing *t, sim_op *op, rq_arena *arena)
{
    if (t == NULL) return RQ_E_NOT_FOUND;
    if (!t->sealed) return RQ_E_STATE;
    return fence(o, t, op, arena);
}

static rq_err read_stripe(thing *t, sim_op *op, rq_arena *arena)
{
    ledger *s = ledger_of(t, op->number);
    if (s == NULL) return RQ_E_NOT_FOUND;
    const rq_buf *b = &s->stripes[op->stripe].bytes;
    uint64_t left = op->off < b->len ? b->len - op->off : 0;
    size_t len = left < op->count ? (size_t)left : op->count;
    if (len > 0) op->bytes = rq_arena_copy(arena, rq_slice_of(b->ptr + op->off, len));
    return len > 0 && op->bytes.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err remove_log(sim_objects *o, thing *t)
{
    if (t == NULL) return RQ_OK;
    if (!t->sealed) return RQ_E_STATE;
    drop(o, t);
    return RQ_OK;
}

/* --- objects ------------------------------------------------------------------------------- */

static rq_err swap(sim_objects *o, sim_op *op)
{
    thing *t = find(o, THING_OBJECT, op->name);
    uint64_t now = t == NULL || t->absent ? 0 : t->generation;
    if (now != op->number) return RQ_E_CONFLICT;
    if (t == NULL) t = make(o, THING_OBJECT, op->name);
    if (t == NULL) return RQ_E_NO_MEMORY;
    rq_buf_reset(&t->bytes);
    RQ_TRY(rq_buf_append(&t->bytes, op->bytes.ptr, op->bytes.len));
    t->absent = op->removes;
    op->generation = ++t->generation;
    return RQ_OK;
}

static rq_err get(sim_objects *o, sim_op *op, rq_arena *arena)
{
    const thing *t = find(o, THING_OBJECT, op->name);
    if (t == NULL || t->absent) return RQ_E_NOT_FOUND;
    op->generation = t->generation;
    op->bytes = rq_arena_copy(arena, rq_buf_slice(&t->bytes));
    return op->bytes.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- sets ---------------------------------------------------------------------------------- */

static size_t place(const thing *t, const char *key)
{
    size_t at = 0;
    while (at < t->count && strcmp(t->keys[at], key) < 0)
        at++;
    return at;
}

static rq_err put(sim_objects *o, const sim_op *op)
{
    thing *t = find(o, THING_SET, op->name);
    if (t == NULL) t = make(o, THING_SET, op->name);
    if (t == NULL) return RQ_E_NO_MEMORY;
    size_t at = place(t, op->key);
    if (at < t->count && strcmp(t->keys[at], op->key) == 0) return RQ_OK;
    void *more = realloc(t->keys, (t->count + 1) * sizeof *t->keys);
    if (more == NULL) return RQ_E_NO_MEMORY;
    t->keys = more;
    memmove(t->keys + at + 1, t->keys + at, (t->count - at) * sizeof *t->keys);
    memcpy(t->keys[at], op->key, strlen(op->key) + 1);
    t->count++;
    return RQ_OK;
}

static rq_err del(sim_objects *o, const sim_op *op)
{
    thing *t = find(o, THING_SET, op->name);
    size_t at = t == NULL ? 0 : place(t, op->key);
    if (t == NULL || at == t->count || strcmp(t->keys[at], op->key) != 0) return RQ_OK;
    t->count--;
    memmove(t->keys + at, t->keys + at + 1, (t->count - at) * sizeof *t->keys);
    return RQ_OK;
}

static rq_err list(sim_objects *o, sim_op *op, rq_arena *arena)
{
    const thing *t = find(o, THING_SET, op->name);
    op->count = t == NULL ? 0 : t->count;
    op->keys = rq_arena_calloc(arena, op->count, sizeof *op->keys);
    if (op->keys == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < op->count; i++) {
        op->keys[i] = rq_arena_cstr(arena, rq_slice_cstr(t->keys[i]));
        if (op->keys[i] == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

rq_err rq__sim_execute(sim_objects *o, sim_op *op, rq_arena *arena)
{
    thing *log = find(o, THING_LOG, op->name);
    switch (op->verb) {
    case SIM_BEGIN:
        return begin(o, op);
    case SIM_LOOK:
        return owns(log, op->token) ? RQ_OK : RQ_E_SERVER_ABORTED;
    case SIM_ADD_LEDGER:
        return add_ledger(log, op);
    case SIM_CREATE_STRIPE:
        return create_stripe(log, op);
    case SIM_APPEND:
        return append(log, op);
    case SIM_FENCE:
        return fence(o, log, op, arena);
    case SIM_FENCE_STRIPE:
        return fence_stripe(log, op);
    case SIM_SEAL:
        return seal(log, op);
    case SIM_LENGTHS:
        return lengths(o, log, op, arena);
    case SIM_READ:
        return read_stripe(log, op, arena);
    case SIM_DROP:
        return drop_ledger(log, op);
    case SIM_REMOVE:
        return remove_log(o, log);
    case SIM_CAS:
        return swap(o, op);
    case SIM_GET:
        return get(o, op, arena);
    case SIM_PUT:
        return put(o, op);
    case SIM_DEL:
        return del(o, op);
    case SIM_LIST:
        return list(o, op, arena);
    }
    return RQ_E_UNSUPPORTED;
}
