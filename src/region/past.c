/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of closed regions, by table and in total. Adding them keeps the counters of a table
 * from decreasing when its regions are moved, split, merged or reopened, and the counters of the
 * server when a table is dropped.
 */
#include "region/engine_priv.h"

#include <stdlib.h>
#include <string.h>

struct rq__past {
    rq__past *next;
    rq_request_counts counts;
    size_t ns_len, qualifier_len;
    uint8_t name[]; /* both */
};

static rq_slice ns_of(const rq__past *p)
{
    return rq_slice_of(p->name, p->ns_len);
}

static rq_slice qualifier_of(const rq__past *p)
{
    return rq_slice_of(p->name + p->ns_len, p->qualifier_len);
}

/* REQUIRES: the engine's lock. */
static rq__past **find(rq_engine *e, rq_slice ns, rq_slice qualifier)
{
    rq__past **at = &e->past;
    while (*at != NULL &&
           !(rq_slice_eq(ns_of(*at), ns) && rq_slice_eq(qualifier_of(*at), qualifier)))
        at = &(*at)->next;
    return at;
}

static rq__past *add(rq_engine *e, rq_slice ns, rq_slice qualifier)
{
    rq__past *p = calloc(1, sizeof *p + ns.len + qualifier.len);
    if (p == NULL) return NULL;
    memcpy(p->name, ns.ptr, ns.len);
    memcpy(p->name + ns.len, qualifier.ptr, qualifier.len);
    p->ns_len = ns.len;
    p->qualifier_len = qualifier.len;
    p->next = e->past;
    e->past = p;
    return p;
}

static void add_counts(rq_request_counts *to, const rq_request_counts *by)
{
    to->reads += by->reads;
    to->filtered_reads += by->filtered_reads;
    to->writes += by->writes;
}

void rq__past_add(rq_engine *e, const rq_region *r)
{
    rq_request_counts counts;
    rq__region_counts(r, &counts);
    add_counts(&e->past_all, &counts);
    if (counts.reads == 0 && counts.writes == 0) return;
    rq__past *p = *find(e, r->info.ns, r->info.qualifier);
    if (p == NULL) p = add(e, r->info.ns, r->info.qualifier);
    if (p != NULL) add_counts(&p->counts, &counts); /* without memory the table begins anew */
}

void rq_engine_past_counts(rq_engine *e, rq_request_counts *ret)
{
    pthread_mutex_lock(&e->lock);
    *ret = e->past_all;
    pthread_mutex_unlock(&e->lock);
}

void rq_engine_forget_table(rq_engine *e, rq_slice ns, rq_slice qualifier)
{
    pthread_mutex_lock(&e->lock);
    rq__past **at = find(e, ns, qualifier);
    rq__past *p = *at;
    if (p != NULL) *at = p->next;
    pthread_mutex_unlock(&e->lock);
    free(p);
    rq__table_times_forget(&e->table_times, ns, qualifier);
}

void rq__past_clear(rq_engine *e)
{
    for (rq__past *p = e->past; p != NULL; p = e->past) {
        e->past = p->next;
        free(p);
    }
}

static rq_err list_past(const rq_engine *e, rq_arena *arena, rq_engine_survey *s)
{
    size_t count = 0;
    for (const rq__past *p = e->past; p != NULL; p = p->next)
        count++;
    rq_table_past *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    s->past = list;
    for (const rq__past *p = e->past; p != NULL; p = p->next) {
        list[s->past_count] = (rq_table_past){.ns = rq_arena_copy(arena, ns_of(p)),
                                              .qualifier = rq_arena_copy(arena, qualifier_of(p)),
                                              .counts = p->counts};
        if (list[s->past_count].ns.ptr == NULL || list[s->past_count].qualifier.ptr == NULL)
            return RQ_E_NO_MEMORY;
        s->past_count++;
    }
    return RQ_OK;
}

rq_err rq_engine_survey_take(rq_engine *e, rq_arena *arena, rq_engine_survey *ret)
{
    rq_engine_survey s = {0};
    pthread_mutex_lock(&e->lock);
    s.past_all = e->past_all;
    rq_err rc = list_past(e, arena, &s);
    if (rc == RQ_OK) rc = rq__engine_list(e, arena, &s.regions, &s.region_count);
    pthread_mutex_unlock(&e->lock);
    if (rc == RQ_OK) *ret = s;
    return rc;
}
