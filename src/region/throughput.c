/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit of compactions; contract in throughput.h. */
#include "region/throughput.h"

#include "region/engine_priv.h"

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)
/* Longest sleep at a time: delays the close of a region by no more than this. */
#define SLICE_NS (SECOND_NS / 20)
#define LOOK_NS (SECOND_NS / 20) /* time of writing at the limit between two checks */

static uint64_t bytes_setting(const rq_config *c, rq_setting id)
{
    int64_t v = rq_config_int(c, id);
    return v < 1 ? 1 : (uint64_t)v;
}

/* Sets the bounds; the effective limit follows at the next check. */
void rq__throughput_set(rq__throughput *t, const rq_config *c)
{
    static const char no_limit[] = "NoLimitThroughputController";
    rq_slice name = rq_slice_cstr(rq_config_text(c, RQ_SET_THROUGHPUT));
    size_t len = sizeof no_limit - 1;
    t->is_limited = name.len < len || memcmp(name.ptr + name.len - len, no_limit, len) != 0;
    uint64_t lower = bytes_setting(c, RQ_SET_THROUGHPUT_LOWER);
    uint64_t higher = bytes_setting(c, RQ_SET_THROUGHPUT_HIGHER);
    t->higher = higher < lower ? lower : higher;
    t->lower = lower;
    t->off_peak = bytes_setting(c, RQ_SET_THROUGHPUT_OFFPEAK);
    if (!t->is_limited) atomic_store(&t->limit, UINT64_MAX);
}

void rq__throughput_init(rq__throughput *t, const rq_config *c)
{
    rq__throughput_set(t, c);
    t->ticks_between_looks = (uint64_t)rq_config_int(c, RQ_SET_THROUGHPUT_TUNE) / 100;
    if (t->ticks_between_looks == 0) t->ticks_between_looks = 1;
    atomic_init(&t->limit, t->is_limited ? t->lower : UINT64_MAX);
}

/* HBASE: DefaultStoreFileManager.getCompactionPressure. */
static double pressure_of(const rq__region_store *s)
{
    size_t count = rq_store_version_now(s->store)->file_count;
    uint32_t min = rq__compaction_of(s)->min_files;
    uint32_t most = rq__compaction_of(s)->blocking_files;
    if (count <= min) return 0;
    return most <= min ? 2 : (double)(count - min) / (double)(most - min);
}

static double highest_pressure(rq_engine *e)
{
    double highest = 0;
    rq_epoch_member pin;
    rq_epoch_pin(e->env.epoch, &pin);
    pthread_mutex_lock(&e->lock);
    for (const rq_region *r = e->regions; r != NULL; r = r->next)
        for (size_t i = 0; i < r->store_count; i++) {
            double p = pressure_of(&r->stores[i]);
            if (p > highest) highest = p;
        }
    pthread_mutex_unlock(&e->lock);
    rq_epoch_unpin(e->env.epoch, &pin);
    return highest;
}

void rq__throughput_tune(rq_engine *e)
{
    rq__throughput *t = &e->throughput;
    double pressure = highest_pressure(e);
    uint64_t limit = UINT64_MAX;
    uint64_t lower = t->lower, higher = t->higher;
    if (higher < lower) higher = lower; /* a reload changes one after the other */
    if (pressure <= 1)
        limit = rq__engine_is_offpeak(e) ? t->off_peak
                                         : lower + (uint64_t)((double)(higher - lower) * pressure);
    atomic_store_explicit(&t->limit, limit, memory_order_relaxed);
}

/* --- one compaction --------------------------------------------------------------------------- */

void rq__pacing_begin(rq__pacing *p, rq_region *r)
{
    *p = (rq__pacing){.region = r, .since_ns = r->env.executor->now_ns(r->env.executor)};
    atomic_fetch_add(&r->engine->throughput.active, 1);
    /* with the current pressure, not that of a minute ago */
    if (r->engine->throughput.is_limited) rq__throughput_tune(r->engine);
}

void rq__pacing_end(rq__pacing *p)
{
    atomic_fetch_sub(&p->region->engine->throughput.active, 1);
}

static bool is_to_end(const rq_region *r)
{
    return atomic_load(&r->stop) || rq__engine_lacks_space(r->engine);
}

void rq__pacing_look(void *pacing, uint64_t bytes)
{
    rq__pacing *p = pacing;
    rq_region *r = p->region;
    const rq__throughput *t = &r->engine->throughput;
    uint64_t limit = atomic_load_explicit(&t->limit, memory_order_relaxed);
    unsigned sharing = atomic_load_explicit(&t->active, memory_order_relaxed);
    if (limit == UINT64_MAX || bytes <= p->bytes) return;
    double mine = (double)limit / (sharing > 0 ? sharing : 1);
    uint64_t due = (uint64_t)((double)(bytes - p->bytes) / mine * (double)SECOND_NS);
    if (due < LOOK_NS) return;
    rq_executor *ex = r->env.executor;
    uint64_t began = ex->now_ns(ex);
    for (uint64_t now = began; now - p->since_ns < due && !is_to_end(r); now = ex->now_ns(ex)) {
        /* The limit has grown with the pressure. */
        if (atomic_load_explicit(&t->limit, memory_order_relaxed) > 2 * limit) break;
        uint64_t left = due - (now - p->since_ns);
        ex->sleep(ex, left < SLICE_NS ? left : SLICE_NS);
    }
    p->since_ns = ex->now_ns(ex);
    p->slept_ns += p->since_ns - began;
    p->bytes = bytes;
}
