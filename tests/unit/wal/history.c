/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of the log; see history.h. */
#include "history.h"

#include "base/random.h"

const char *const history_names[REGIONS] = {
    "1588230740",
    "0123456789abcdef0123456789abcdef",
    "fedcba9876543210fedcba9876543210",
    "00000000000000000000000000000001",
};

static rq_slice table_of(int region)
{
    return region == 0 ? RQ_SLICE_LIT("hbase:meta") : RQ_SLICE_LIT("ns:table");
}

static void fault(history *h, const char *fmt, ...) RQ_PRINTF(2, 3);

static void fault(history *h, const char *fmt, ...)
{
    if (h->fault[0] != '\0') return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(h->fault, sizeof h->fault, fmt, args);
    va_end(args);
}

void history_init(history *h, rq_sim *sim, const rq_wal_options *options)
{
    memset(h, 0, sizeof *h);
    h->sim = sim;
    if (options != NULL) h->options = *options;
    assert_int_equal(rq_sim_lane_new(sim, &h->lane), RQ_OK);
    for (int r = 0; r < REGIONS; r++)
        h->next_sequence_id[r] = 1;
}

void history_clear(history *h)
{
    rq_executor *ex = rq_sim_env(h->sim)->executor;
    ex->lane_free(ex, h->lane);
    for (size_t i = 0; i < h->count; i++)
        free(h->records[i]);
    free(h->records);
}

void history_payload(int region, uint64_t sequence_id, uint8_t *out, size_t len)
{
    rq_random r;
    rq_random_seed(&r, (uint64_t)region * 1000003 + sequence_id);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)rq_random_next(&r);
}

/* --- replay ------------------------------------------------------------------------------- */

static int region_of(rq_slice encoded)
{
    for (int r = 0; r < REGIONS; r++)
        if (rq_slice_eq(rq_slice_cstr(history_names[r]), encoded)) return r;
    return -1;
}

static bool payload_right(const rq_wal_record *r, int region)
{
    uint8_t *expected = malloc(r->payload.len + 1);
    assert_non_null(expected);
    history_payload(region, r->sequence_id, expected, r->payload.len);
    bool right = r->payload.len == 0 || memcmp(expected, r->payload.ptr, r->payload.len) == 0;
    free(expected);
    return right;
}

static rq_err replayed(void *ctx, const rq_wal_record *r)
{
    history *h = ctx;
    int region = region_of(r->region);
    if (region < 0 || !rq_slice_eq(r->table, table_of(region))) {
        fault(h, "a record of a region that never was");
        return RQ_OK;
    }
    if (r->kind == RQ_WAL_EDIT && !payload_right(r, region))
        fault(h, "region %d record %llu is altered", region, (unsigned long long)r->sequence_id);
    /* Records that are no longer in the log must have been flushed. */
    while (h->next_found < h->count) {
        staged *s = h->records[h->next_found++];
        if (s->region == region && s->sequence_id == r->sequence_id) {
            s->found = true;
            return RQ_OK;
        }
        if (!h->tolerant && s->holds && s->sequence_id > h->flushed[s->region]) {
            fault(h, "region %d record %llu is missing in front of region %d record %llu",
                  s->region, (unsigned long long)s->sequence_id, region,
                  (unsigned long long)r->sequence_id);
            return RQ_OK;
        }
    }
    fault(h, "region %d record %llu was never staged, or comes twice", region,
          (unsigned long long)r->sequence_id);
    return RQ_OK;
}

static void corrupt_place(void *ctx, const rq_error *why)
{
    (void)why;
    ((history *)ctx)->corrupt_places++;
}

static void log_failed(void *ctx, const rq_error *why)
{
    (void)why;
    ((history *)ctx)->failures++;
}

bool history_open(history *h, rq_error *why)
{
    rq_wal_options options = h->options;
    options.ctx = h;
    options.on_corrupt = corrupt_place;
    options.on_failed = log_failed;
    if (rq_wal_open(rq_sim_env(h->sim), &options, &h->wal, why) != RQ_OK) {
        h->wal = NULL;
        return false;
    }
    h->next_found = 0;
    for (size_t i = 0; i < h->count; i++)
        h->records[i]->found = false;
    if (rq_wal_replay(h->wal, replayed, h, why) != RQ_OK) {
        rq_wal_close(h->wal, false, NULL);
        h->wal = NULL;
        return false;
    }
    /* Lost records must not reappear. */
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        staged *s = h->records[i];
        bool needed = s->holds && s->sequence_id > h->flushed[s->region];
        bool promised = s->durable || (h->killed && s->acknowledged);
        if (promised && needed && !s->found)
            fault(h, "region %d record %llu was promised and is lost", s->region,
                  (unsigned long long)s->sequence_id);
        if (!s->found) {
            free(s);
            continue;
        }
        s->durable = true; /* a record that was replayed must stay */
        h->records[kept++] = s;
    }
    h->count = kept;
    memset(h->last_lsn, 0, sizeof h->last_lsn);
    for (int r = 0; r < REGIONS; r++) {
        if (rq_wal_region_open(h->wal, history_names[r], table_of(r), h, &h->regions[r]) != RQ_OK)
            fault(h, "region %d cannot be opened", r);
        rq_wal_region_flushed(h->regions[r], h->flushed[r]);
    }
    assert_int_equal(rq_wal_join(h->wal, h->lane, &h->member), RQ_OK);
    return h->fault[0] == '\0';
}

/* --- appending ---------------------------------------------------------------------------- */

static void acknowledged(rq_wal_waiter *w, rq_err rc)
{
    staged *s = RQ_CONTAINER_OF(w, staged, waiter);
    history *h = s->h;
    h->pending--;
    if (rc != RQ_OK) {
        s->refused = true;
        return;
    }
    s->acknowledged = true;
    s->durable = s->synced || h->options.sync == RQ_WAL_SYNC;
    if (s->lsn < h->last_lsn[s->synced]) h->out_of_order = true;
    h->last_lsn[s->synced] = s->lsn;
}

staged *history_stage(history *h, int region, size_t size, rq_wal_kind kind, rq_err *ret)
{
    if (h->count == h->cap) {
        h->cap = h->cap == 0 ? 64 : h->cap * 2;
        h->records = realloc(h->records, h->cap * sizeof *h->records);
        assert_non_null(h->records);
    }
    staged *s = calloc(1, sizeof *s);
    uint8_t *payload = malloc(size + 1);
    assert_true(s != NULL && payload != NULL);
    s->h = h;
    s->region = region;
    s->sequence_id = h->next_sequence_id[region]++;
    s->holds = rq__wal_kind_holds(kind);
    s->waiter.run = acknowledged;
    history_payload(region, s->sequence_id, payload, size);
    rq_wal_record r = {.kind = kind,
                       .sequence_id = s->sequence_id,
                       .write_time_ms = 1767225600000,
                       .payload = rq_slice_of(payload, size / 2)};
    rq_slice more = rq_slice_of(payload + size / 2, size - size / 2);
    *ret = rq_wal_stage(h->wal, h->regions[region], &r, &more, 1, &s->lsn);
    free(payload);
    if (*ret != RQ_OK) {
        free(s);
        return NULL;
    }
    h->records[h->count++] = s;
    return s;
}

void history_wait(history *h, staged *s, bool synced)
{
    s->synced = synced;
    h->pending++;
    rq_wal_wait(h->member, &s->waiter, s->lsn, synced);
}

void history_flush(history *h, int region)
{
    uint64_t upto = 0;
    for (size_t i = 0; i < h->count; i++) {
        const staged *s = h->records[i];
        if (s->region == region && s->durable && s->sequence_id > upto) upto = s->sequence_id;
    }
    if (upto <= h->flushed[region]) return;
    h->flushed[region] = upto;
    rq_wal_region_flushed(h->regions[region], upto);
}

rq_err history_close(history *h, bool clean)
{
    if (h->wal == NULL) return RQ_E_STATE;
    rq_wal_push(h->wal, h->member);
    for (int i = 0; i < 1000 && h->pending > 0; i++)
        rq_sim_advance(h->sim, 100000000);
    if (h->pending > 0) fault(h, "%d records are never answered", h->pending);
    rq_sim_run(h->sim);
    rq_wal_leave(h->member);
    for (int r = 0; r < REGIONS; r++)
        rq_wal_region_close(h->regions[r]);
    rq_error why = {0};
    rq_err rc = rq_wal_close(h->wal, clean, &why);
    h->wal = NULL;
    rq_sim_run(h->sim);
    if (h->out_of_order) fault(h, "waiters ran out of order");
    return rc;
}

/* --- random operations -------------------------------------------------------------------- */

static uint64_t pick(history *h, uint64_t bound)
{
    return rq_sim_random(h->sim) % bound;
}

static void step(history *h)
{
    rq_err rc;
    switch (pick(h, 16)) {
    case 0:
        history_flush(h, (int)pick(h, REGIONS));
        break;
    case 1:
        rq_wal_roll(h->wal);
        break;
    case 2:
        rq_sim_advance(h->sim, pick(h, 2000000000));
        break;
    case 3:
        rq_sim_run(h->sim);
        break;
    case 4:
        rq_sim_step(h->sim);
        break;
    case 5:
    case 6:
    case 7:
        rq_wal_push(h->wal, pick(h, 2) == 0 ? h->member : NULL);
        break;
    default: {
        size_t size = pick(h, 20) == 0 ? pick(h, 6000) : pick(h, 300);
        rq_wal_kind kind = pick(h, 10) == 0 ? RQ_WAL_FLUSH : RQ_WAL_EDIT;
        staged *s = history_stage(h, (int)pick(h, REGIONS), size, kind, &rc);
        if (s != NULL && pick(h, 8) != 0) history_wait(h, s, pick(h, 3) == 0);
        break;
    }
    }
}

void history_steps(history *h, int steps)
{
    for (int i = 0; i < steps; i++)
        step(h);
}
