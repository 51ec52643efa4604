/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of slow and large calls; contract in slow_log.h. Records are reference-counted: a reader
 * takes references under the lock and reads the records without it. */
#include "rpc/slow_log.h"

#include "base/bytes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    rq_slow_call call; /* must be first: lists point at it */
    _Atomic unsigned refs;
    char texts[];
} record;

struct rq_slow_ring {
    pthread_mutex_t lock;
    unsigned places;
    unsigned next RQ_GUARDED_BY(lock);  /* where the next record goes */
    unsigned count RQ_GUARDED_BY(lock); /* records there are */
    record *records[] RQ_GUARDED_BY(lock);
};

static void record_unref(record *r)
{
    if (r != NULL && atomic_fetch_sub(&r->refs, 1) == 1) free(r);
}

/* --- limits ----------------------------------------------------------------------------------- */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void set_relaxed(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint64_t get_relaxed(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* HBase compares whole milliseconds: 10000 means 10,001 ms and more. */
static uint64_t ns_of(int64_t ms)
{
    return ms < 0 ? RQ_SLOW_NEVER : ((uint64_t)ms + 1) * 1000000;
}

static uint64_t bytes_of(int64_t bytes)
{
    return bytes < 0 ? RQ_SLOW_NEVER : (uint64_t)bytes;
}

/* The limit for scans, or without one that of other calls. */
static int64_t for_scans(const rq_config *c, rq_setting scans, rq_setting others)
{
    bool is_set = rq_config_given(c, scans) ||
                  strcmp(rq_config_text(c, scans), rq_setting_get(scans)->fallback) != 0;
    return rq_config_int(c, is_set ? scans : others);
}

rq_slow_limits rq_slow_limits_of(const rq_config *c)
{
    return (rq_slow_limits){.ns = ns_of(rq_config_int(c, RQ_SET_WARN_TIME)),
                            .scan_ns = ns_of(for_scans(c, RQ_SET_WARN_TIME_SCAN, RQ_SET_WARN_TIME)),
                            .bytes = bytes_of(rq_config_int(c, RQ_SET_WARN_SIZE)),
                            .scan_bytes =
                                bytes_of(for_scans(c, RQ_SET_WARN_SIZE_SCAN, RQ_SET_WARN_SIZE)),
                            .keeps = rq_config_int(c, RQ_SET_SLOW_KEPT) != 0};
}

void rq_slow_log_set(rq_slow_log *l, const rq_slow_limits *limits)
{
    uint64_t ns = lesser(limits->ns, limits->scan_ns);
    set_relaxed(&l->ns, limits->ns);
    set_relaxed(&l->scan_ns, limits->scan_ns);
    set_relaxed(&l->bytes, limits->bytes);
    set_relaxed(&l->scan_bytes, limits->scan_bytes);
    atomic_store_explicit(&l->keeps, limits->keeps, memory_order_relaxed);
    set_relaxed(&l->look_ns, ns == RQ_SLOW_NEVER     ? ns
                             : ns > RQ_SLOW_SLACK_NS ? ns - RQ_SLOW_SLACK_NS
                                                     : 0);
    set_relaxed(&l->look_bytes, lesser(limits->bytes, limits->scan_bytes));
}

bool rq__slow_log_judge(const rq_slow_log *l, bool is_scan, rq_slow_call *call)
{
    call->is_slow = call->ns >= get_relaxed(is_scan ? &l->scan_ns : &l->ns);
    call->is_large = call->answer_bytes > get_relaxed(is_scan ? &l->scan_bytes : &l->bytes);
    return call->is_slow || call->is_large;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_slow_log_new(unsigned places, const rq_slow_limits *limits, rq_slow_log **ret)
{
    rq_slow_log *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    l->ring = calloc(1, sizeof *l->ring + places * sizeof(record *));
    if (l->ring == NULL) {
        free(l);
        return RQ_E_NO_MEMORY;
    }
    pthread_mutex_init(&l->ring->lock, NULL);
    l->ring->places = places;
    rq_slow_log_set(l, limits);
    *ret = l;
    return RQ_OK;
}

bool rq_slow_log_clear(rq_slow_log *l)
{
    struct rq_slow_ring *ring = l->ring;
    pthread_mutex_lock(&ring->lock);
    for (unsigned i = 0; i < ring->places; i++) {
        record_unref(ring->records[i]);
        ring->records[i] = NULL;
    }
    ring->next = ring->count = 0;
    pthread_mutex_unlock(&ring->lock);
    return atomic_load_explicit(&l->keeps, memory_order_relaxed);
}

void rq_slow_log_free(rq_slow_log *l)
{
    if (l == NULL) return;
    rq_slow_log_clear(l);
    pthread_mutex_destroy(&l->ring->lock);
    free(l->ring);
    free(l);
}

uint64_t rq_slow_log_count(const rq_slow_log *l, bool large)
{
    return get_relaxed(large ? &l->large_count : &l->slow_count);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Bytes of a user's name that are kept: clients choose their names, of up to 16 kB. */
#define USER_KEPT_MAX 255

static const char *keep_bytes(char **to, const char *text, size_t len)
{
    char *kept = memcpy(*to, text, len);
    kept[len] = '\0';
    *to += len + 1;
    return kept;
}

static const char *keep_text(char **to, const char *text)
{
    return keep_bytes(to, text, strlen(text));
}

static record *record_new(const rq_slow_call *call)
{
    const char *failure = call->failure == NULL ? "" : call->failure;
    size_t user_len = rq_text_beginning(rq_slice_cstr(call->user), USER_KEPT_MAX).len;
    size_t size = strlen(call->client) + user_len + strlen(call->region) + strlen(call->param) +
                  strlen(failure) + 5;
    record *r = malloc(sizeof *r + size);
    if (r == NULL) return NULL;
    char *next = r->texts;
    r->call = *call;
    r->call.client = keep_text(&next, call->client);
    r->call.user = keep_bytes(&next, call->user, user_len);
    r->call.region = keep_text(&next, call->region);
    r->call.param = keep_text(&next, call->param);
    if (call->failure != NULL) r->call.failure = keep_text(&next, failure);
    atomic_init(&r->refs, 1);
    return r;
}

void rq__slow_log_add(rq_slow_log *l, const rq_slow_call *call)
{
    struct rq_slow_ring *ring = l->ring;
    if (call->is_slow) atomic_fetch_add_explicit(&l->slow_count, 1, memory_order_relaxed);
    if (call->is_large) atomic_fetch_add_explicit(&l->large_count, 1, memory_order_relaxed);
    if (ring->places == 0 || !atomic_load_explicit(&l->keeps, memory_order_relaxed)) return;
    record *r = record_new(call);
    if (r == NULL) return;
    pthread_mutex_lock(&ring->lock);
    record *oldest = ring->records[ring->next];
    ring->records[ring->next] = r;
    ring->next = (ring->next + 1) % ring->places;
    if (ring->count < ring->places) ring->count++;
    pthread_mutex_unlock(&ring->lock);
    record_unref(oldest);
}

static void take_list(struct rq_slow_ring *ring, rq_slow_list *ret)
{
    for (unsigned i = 1; i <= ring->count; i++) {
        record *r = ring->records[(ring->next + ring->places - i) % ring->places];
        atomic_fetch_add(&r->refs, 1);
        ret->calls[ret->count++] = &r->call;
    }
}

rq_err rq_slow_log_list(rq_slow_log *l, rq_slow_list *ret)
{
    *ret = (rq_slow_list){0};
    ret->calls = malloc((l->ring->places + 1) * sizeof *ret->calls);
    if (ret->calls == NULL) return RQ_E_NO_MEMORY;
    pthread_mutex_lock(&l->ring->lock);
    take_list(l->ring, ret);
    pthread_mutex_unlock(&l->ring->lock);
    return RQ_OK;
}

void rq_slow_list_release(rq_slow_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        record_unref((record *)(uintptr_t)list->calls[i]);
    free(list->calls);
    *list = (rq_slow_list){0};
}
