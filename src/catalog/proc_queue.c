/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of procedures as queues, one for each thing that is locked (a *key*: a namespace, a
 * table, a region):
 *
 *   kind works on     namespace   table       its regions
 *   a namespace       exclusive   -           -
 *   a table           shared      exclusive   -
 *   a table, shared   shared      shared      -
 *   regions           shared      shared      exclusive
 *
 * A snapshot is locked like a table of the namespace RQ_SNAPSHOT_NS: exclusively by the procedures
 * that make and delete it, shared by those that clone it.
 *
 * A procedure enters the queues of all its keys at once, with a *claim* in each. A claim is granted
 * when no claim before it in its queue excludes it; a procedure is ready when all its claims are
 * granted. All procedures enter in one order, so none waits for one that came later, and there is
 * no deadlock. The cost of entering, granting and leaving is constant for each claim, however many
 * procedures wait.
 *
 * Only rq__claims_new allocates memory: a claim is made together with the memory of a key. If the
 * key exists already, its own memory is added to the spares of the key, and each claim that leaves
 * takes one spare with it.
 */
#include "catalog/proc_priv.h"

#include <stdlib.h>

#include "base/digest.h"

#define BUCKETS 4096 /* of keys: three hex digits of their ids */

typedef struct rq__lock_key rq__lock_key;

/* Claims in one queue, in order of arrival. */
typedef struct claim_list {
    rq__claim *first, *last;
} claim_list;

struct rq__claim {
    rq__claim *next_of_proc; /* ascending by id */
    rq__claim *prev, *next;  /* in its key's list */
    rq__proc *proc;
    rq__lock_key *key;   /* set while the claim is in a queue */
    rq__lock_key *spare; /* memory for a key, while the claim is in no queue */
    char id[RQ_MD5_HEX_LEN + 1];
    bool exclusive, granted, is_region;
};

struct rq__lock_key {
    rq__lock_key *next; /* in its bucket, or among the spares */
    rq__lock_key *spares;
    claim_list granted, waiting;
    size_t shared, exclusive; /* numbers of granted claims */
    char id[RQ_MD5_HEX_LEN + 1];
};

struct rq__lock_table {
    rq__lock_key *buckets[BUCKETS];
};

/* --- claims made ------------------------------------------------------------------------------ */

/* Adds a claim on the key of type `type` for the names `a`, `b`. A key is identified by a hash, its
 * id: if two names had the same id, their procedures would only wait for each other. */
static rq_err add_claim(rq__proc *p, char type, rq_slice a, rq_slice b, bool exclusive)
{
    rq_buf name = {0};
    rq_err rc = rq_buf_append_u8(&name, (uint8_t)type);
    if (rc == RQ_OK) rc = rq_buf_append_varint(&name, a.len);
    if (rc == RQ_OK && a.len > 0) rc = rq_buf_append(&name, a.ptr, a.len);
    if (rc == RQ_OK && b.len > 0) rc = rq_buf_append(&name, b.ptr, b.len);
    char id[RQ_MD5_HEX_LEN + 1];
    if (rc == RQ_OK) rq_md5_hex(rq_buf_slice(&name), id);
    rq_buf_clear(&name);
    RQ_TRY(rc);
    rq__claim *c = calloc(1, sizeof *c);
    rq__lock_key *key = calloc(1, sizeof *key);
    if (c == NULL || key == NULL) {
        free(c);
        free(key);
        return RQ_E_NO_MEMORY;
    }
    c->spare = key;
    c->proc = p;
    c->exclusive = exclusive;
    c->is_region = type == 'r';
    memcpy(c->id, id, sizeof id);
    c->next_of_proc = p->claims;
    p->claims = c;
    return RQ_OK;
}

static rq_err add_region(void *ctx, rq_slice encoded)
{
    return add_claim(ctx, 'r', encoded, (rq_slice){NULL, 0}, true);
}

static rq_err add_claims(rq__proc *p)
{
    rq_lock_level level = p->ops->lock;
    rq_slice none = {NULL, 0};
    RQ_TRY(add_claim(p, 'n', p->ns, none, level == RQ_LOCK_NAMESPACE));
    if (level == RQ_LOCK_NAMESPACE) return RQ_OK; /* of others: shared, with TABLE_SHARED too */
    RQ_TRY(add_claim(p, 't', p->ns, p->qualifier, level == RQ_LOCK_TABLE));
    if (p->ops->payload->snapshot != NULL) {
        bool exclusive;
        rq_slice name = p->ops->payload->snapshot(p, &exclusive);
        RQ_TRY(add_claim(p, 't', RQ_SLICE_LIT(RQ_SNAPSHOT_NS), name, exclusive));
    }
    return level == RQ_LOCK_REGIONS ? rq__proc_each_region(p, add_region, p) : RQ_OK;
}

/* By id; of two claims on one key, the one that is in a queue comes first, so that the other one is freed. */
static bool comes_first(const rq__claim *a, const rq__claim *b)
{
    int c = memcmp(a->id, b->id, sizeof a->id);
    a->proc->claim_steps++;
    return c != 0 ? c < 0 : a->key != NULL;
}

static rq__claim *merged(rq__claim *a, rq__claim *b)
{
    rq__claim *list = NULL, **end = &list;
    while (a != NULL && b != NULL) {
        rq__claim **from = comes_first(a, b) ? &a : &b;
        *end = *from;
        end = &(*end)->next_of_proc;
        *from = *end;
    }
    *end = a != NULL ? a : b;
    return list;
}

/* Takes the first `count` claims off the list and sorts them. REQUIRES: count > 0. */
static rq__claim *sorted(rq__claim **list, size_t count)
{
    rq__claim *first = *list;
    if (count == 1) {
        *list = first->next_of_proc;
        first->next_of_proc = NULL;
        return first;
    }
    rq__claim *a = sorted(list, count / 2);
    rq__claim *b = sorted(list, count - count / 2);
    return merged(a, b);
}

static void free_claim(rq__claim *c)
{
    free(c->spare);
    free(c);
}

/* Sorts the claims, and leaves one on each key: a request may name a region twice, and rq__claims_new is called again
 * after prepare. */
static void drop_doubles(rq__proc *p)
{
    size_t count = 0;
    for (const rq__claim *c = p->claims; c != NULL; c = c->next_of_proc)
        count++;
    if (count > 0) p->claims = sorted(&p->claims, count);
    for (rq__claim *c = p->claims; c != NULL; c = c->next_of_proc) {
        rq__claim *next;
        while ((next = c->next_of_proc) != NULL && memcmp(c->id, next->id, sizeof c->id) == 0) {
            c->next_of_proc = next->next_of_proc;
            free_claim(next);
        }
    }
}

rq_err rq__claims_new(rq__proc *p)
{
    rq_err rc = add_claims(p);
    drop_doubles(p);
    return rc;
}

bool rq__claims_share_region(const rq__proc *p, const rq__proc *q)
{
    const rq__claim *a = p->claims, *b = q->claims;
    while (a != NULL && b != NULL) {
        int c = memcmp(a->id, b->id, sizeof a->id);
        if (c == 0 && a->is_region && b->is_region) return true;
        if (c <= 0) a = a->next_of_proc;
        if (c >= 0) b = b->next_of_proc;
    }
    return false;
}

void rq__claims_free(rq__proc *p)
{
    while (p->claims != NULL) {
        rq__claim *c = p->claims;
        p->claims = c->next_of_proc;
        free_claim(c);
    }
}

rq_err rq__lock_table_new(rq__lock_table **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void free_keys(rq__lock_key *k)
{
    while (k != NULL) {
        rq__lock_key *next = k->next;
        free_keys(k->spares);
        free(k);
        k = next;
    }
}

void rq__lock_table_free(rq__lock_table *t)
{
    for (size_t i = 0; t != NULL && i < BUCKETS; i++)
        free_keys(t->buckets[i]);
    free(t);
}

/* --- lists ------------------------------------------------------------------------------------ */

static void list_append(claim_list *l, rq__claim *c)
{
    c->prev = l->last;
    c->next = NULL;
    if (l->last == NULL)
        l->first = c;
    else
        l->last->next = c;
    l->last = c;
}

static void list_remove(claim_list *l, rq__claim *c)
{
    if (c->prev == NULL)
        l->first = c->next;
    else
        c->prev->next = c->next;
    if (c->next == NULL)
        l->last = c->prev;
    else
        c->next->prev = c->prev;
}

static rq__lock_key **bucket_of(const rq__procedures *ps, const char *id)
{
    unsigned n = 0;
    for (int i = 0; i < 3; i++)
        n = n * 16 + (unsigned)(id[i] <= '9' ? id[i] - '0' : id[i] - 'a' + 10);
    return &ps->locks->buckets[n];
}

static rq__lock_key *key_find(rq__procedures *ps, const char *id)
{
    rq__lock_key *k = *bucket_of(ps, id);
    for (; k != NULL && memcmp(k->id, id, sizeof k->id) != 0; k = k->next)
        ps->lock_steps++;
    return k;
}

/* The key of the claim, which takes over the claim's memory for a key. */
static rq__lock_key *key_take(rq__procedures *ps, rq__claim *c)
{
    rq__lock_key *k = key_find(ps, c->id), *mine = c->spare;
    c->spare = NULL;
    if (k != NULL) {
        mine->next = k->spares;
        k->spares = mine;
        return k;
    }
    rq__lock_key **bucket = bucket_of(ps, c->id);
    memset(mine, 0, sizeof *mine);
    memcpy(mine->id, c->id, sizeof mine->id);
    mine->next = *bucket;
    *bucket = mine;
    return mine;
}

/* Returns memory for a key to the claim: the key itself if it has no other claim. */
static void key_give_back(rq__procedures *ps, rq__claim *c)
{
    rq__lock_key *k = c->key;
    c->key = NULL;
    if (k->spares != NULL) {
        c->spare = k->spares;
        k->spares = c->spare->next;
        return;
    }
    rq__lock_key **at = bucket_of(ps, c->id);
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    c->spare = k;
}

/* --- queues ----------------------------------------------------------------------------------- */

static void make_ready(rq__procedures *ps, rq__proc *p)
{
    p->ready = true;
    p->ready_next = NULL;
    *ps->ready_end = p;
    ps->ready_end = &p->ready_next;
}

static void hold(rq__claim *c)
{
    list_append(&c->key->granted, c);
    c->granted = true;
    if (c->exclusive)
        c->key->exclusive++;
    else
        c->key->shared++;
}

static bool may_be_granted(const rq__lock_key *k, const rq__claim *c)
{
    return k->exclusive == 0 && (!c->exclusive || k->shared == 0);
}

/* Grants claims at the head that nothing excludes. */
static void grant_waiting(rq__procedures *ps, rq__lock_key *k)
{
    rq__claim *c;
    while ((c = k->waiting.first) != NULL && may_be_granted(k, c)) {
        ps->lock_steps++;
        list_remove(&k->waiting, c);
        hold(c);
        if (--c->proc->blocked == 0 && !c->proc->recording) make_ready(ps, c->proc);
    }
}

static bool is_refused(const rq__procedures *ps, rq__proc *p)
{
    for (const rq__proc *q = ps->parked; q != NULL; q = q->parked_next) {
        if (!rq__proc_parked_excludes(q, p)) continue;
        rq__proc_refuse(p, q);
        return true;
    }
    return false;
}

void rq__queue_skip(rq__procedures *ps, rq__proc *p)
{
    rq__queue_leave(ps, p);
    if (!p->ready) make_ready(ps, p);
}

void rq__queue_enter(rq__procedures *ps, rq__proc *p)
{
    if (!p->recording && is_refused(ps, p)) {
        make_ready(ps, p);
        return;
    }
    p->queued = true;
    p->blocked = 1; /* so that it does not become ready before it is in all queues */
    for (rq__claim *c = p->claims; c != NULL; c = c->next_of_proc) {
        ps->lock_steps++;
        c->key = key_take(ps, c);
        list_append(&c->key->waiting, c);
        p->blocked++;
        grant_waiting(ps, c->key);
    }
    if (--p->blocked == 0 && !p->recording) make_ready(ps, p);
}

void rq__queue_recorded(rq__procedures *ps, rq__proc *p)
{
    if (is_refused(ps, p))
        rq__queue_skip(ps, p);
    else if (p->blocked == 0)
        make_ready(ps, p);
}

void rq__queue_hold(rq__procedures *ps, rq__proc *p)
{
    for (rq__claim *c = p->claims; c != NULL; c = c->next_of_proc) {
        if (c->key != NULL) continue;
        c->key = key_take(ps, c);
        hold(c);
    }
    p->queued = true;
    p->blocked = 0;
}

bool rq__queue_is_free(rq__procedures *ps, const rq__proc *p)
{
    for (const rq__claim *c = p->claims; c != NULL; c = c->next_of_proc) {
        const rq__lock_key *k = key_find(ps, c->id);
        if (k != NULL && !may_be_granted(k, c)) return false;
    }
    return true;
}

void rq__queue_leave(rq__procedures *ps, rq__proc *p)
{
    if (!p->queued) return;
    p->queued = false;
    for (rq__claim *c = p->claims; c != NULL; c = c->next_of_proc) {
        rq__lock_key *k = c->key;
        ps->lock_steps++;
        list_remove(c->granted ? &k->granted : &k->waiting, c);
        if (c->granted && c->exclusive) k->exclusive--;
        if (c->granted && !c->exclusive) k->shared--;
        c->granted = false;
        grant_waiting(ps, k);
        key_give_back(ps, c);
    }
}

rq__proc *rq__queue_ready(rq__procedures *ps)
{
    rq__proc *p = ps->ready;
    if (p == NULL) return NULL;
    ps->ready = p->ready_next;
    if (ps->ready == NULL) ps->ready_end = &ps->ready;
    p->ready_next = NULL;
    p->ready = false;
    return p;
}

/* --- parked ones ------------------------------------------------------------------------------ */

void rq__queue_park(rq__procedures *ps, rq__proc *parked)
{
    rq__proc *list = NULL;
    for (const rq__claim *mine = parked->claims; mine != NULL; mine = mine->next_of_proc) {
        const rq__claim *c = mine->key == NULL ? NULL : mine->key->waiting.first;
        for (; c != NULL; c = c->next) {
            rq__proc *p = c->proc;
            if (p->refused || p->recording || !rq__proc_parked_excludes(parked, p)) continue;
            rq__proc_refuse(p, parked);
            p->parked_next = list; /* in use for parked ones only */
            list = p;
        }
    }
    for (rq__proc *p = list, *next; p != NULL; p = next) {
        next = p->parked_next;
        p->parked_next = NULL;
        rq__queue_skip(ps, p);
    }
    rq__queue_leave(ps, parked);
}

void rq__queue_add_parked(rq__procedures *ps, rq__proc *p)
{
    p->parked_next = ps->parked;
    ps->parked = p;
}

void rq__queue_remove_parked(rq__procedures *ps, rq__proc *p)
{
    rq__proc **at = &ps->parked;
    while (*at != NULL && *at != p)
        at = &(*at)->parked_next;
    if (*at != NULL) *at = p->parked_next;
}
