/* SPDX-License-Identifier: Apache-2.0 */
/* A run from creating the table to the last check. The loop starts due operations in free slots,
 * then lets the client work until the next one is due.
 *
 * With a rate, the time at which operation k is due depends only on the rate and the ramp; if all
 * slots are taken the operation waits, and its waiting counts as latency. Ramp-up without a rate
 * opens the slots one after the other. */
#include "base/clock.h"
#include "load/load_priv.h"

#include "base/macros.h"
#include "base/suggest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define LOAD_BATCH 100
#define SWEEP_BATCH 100
#define SECOND_NS 1000000000
#define IDLE_WAIT_NS 50000000
#define FAILURE_PAUSE_NS 1000000
#define BUSY_KEYS_PAUSE_NS 50000
#define SERIES_POINTS 60
#define INTERVAL_MIN_S 0.1
#define LIVE_PERIOD_NS 500000000
/* Width of the progress line, in columns; a longer one would wrap, and \r would not return to it. */
#define LIVE_COLUMNS 79
#define IDLE_MAX 1000000
#define TIME_MAX_S 1e9 /* of a run's parts: 31 years; their sum is still a number of nanoseconds */
#define RECORDS_DEFAULT 100000
#define APP_RECORDS_DEFAULT 1000

static const rq__workload workloads[] = {
#define X(name, help, kind, sorted, draw, ...)                                                     \
    {name, help, RQ__LOAD_##kind, sorted, RQ_KEYS_##draw, {__VA_ARGS__}},
#include "load/workloads.def"
#undef X
};

static const struct {
    const char *name;
    rq_err (*begin)(rq__slot *s);
} steps[] = {
#define X(id, name, start) {name, start},
#include "load/steps.def"
#undef X
};

const char *rq__load_step_name(rq_load_step step)
{
    return steps[step].name;
}

const rq_load_workload_line *rq_load_workloads(void)
{
    static const rq_load_workload_line lines[] = {
#define X(name, help, kind, sorted, draw, ...) {name, help},
#include "load/workloads.def"
#undef X
        {NULL, NULL},
    };
    return lines;
}

void rq_load_options_init(rq_load_options *o)
{
    *o = (rq_load_options){
        .client = {.lanes = 1, .retries = 7},
        .workload = "mixed",
        .table = "rorqual_bench",
        .records = RECORDS_DEFAULT,
        .regions = 1,
        .families = 1,
        .columns = 1,
        .key_len = {RQ_SIZES_FIXED, RQ_ROW_DIGITS, RQ_ROW_DIGITS},
        .value_len = {RQ_SIZES_FIXED, 1000, 1000},
        .sorted = -1,
        .draw = -1,
        .theta = 0.99,
        .depth = 1,
        .batch = 50,
        .scan_rows = {RQ_SIZES_UNIFORM, 1, 100},
        .followers = 20,
        .posts = 5,
        .events = 100,
        .newest = 10,
        .seconds = 10,
        .give_up_s = 15,
        .seed = 1,
    };
}

void rq_load_report_clear(rq_load_report *r)
{
    rq_histogram_clear(&r->latency);
    for (size_t i = 0; i < RQ_LOAD_STEPS; i++)
        rq_histogram_clear(&r->steps[i]);
    free(r->points);
    r->points = NULL;
    r->point_count = 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

static rq_load_error *error_of(rq_load_report *r, rq_slice kind)
{
    for (size_t i = 0; i < r->error_count; i++)
        if (rq_slice_eq(kind, rq_slice_cstr(r->errors[i].kind))) return &r->errors[i];
    /* The last line counts all kinds that have no line of their own. */
    if (r->error_count == RQ_LOAD_ERROR_KINDS) return &r->errors[RQ_LOAD_ERROR_KINDS - 1];
    rq_load_error *e = &r->errors[r->error_count++];
    size_t len = kind.len < sizeof e->kind ? kind.len : sizeof e->kind - 1;
    *e = (rq_load_error){0};
    if (len > 0) memcpy(e->kind, kind.ptr, len);
    return e;
}

static void note_retry(void *ctx, rq_slice kind)
{
    rq__bench *b = ctx;
    error_of(b->report, kind)->retried++;
    b->interval_errors++;
}

void rq__note_wrong(rq__bench *b, uint64_t key, const char *what)
{
    if (b->report->wrong++ == 0)
        snprintf(b->report->wrong_text, sizeof b->report->wrong_text, "key %llu: %s",
                 (unsigned long long)key, what);
}

/* --- a place's operation ---------------------------------------------------------------------- */

static void add_latency(rq__bench *b, rq_load_step step, uint64_t ns)
{
    rq_histogram *h = &b->report->steps[step];
    if (h->counts == NULL && rq_histogram_init(h) != RQ_OK) {
        b->fatal = true;
        return;
    }
    rq_histogram_add(h, ns);
    rq_histogram_add(&b->report->latency, ns);
    b->report->operations++;
}

/* Ends the slot's operation. An error is counted by its kind. */
static void end_slot(rq__slot *s, rq_err err, rq_slice kind, rq_slice text)
{
    rq__bench *b = s->bench;
    int64_t now = rq_client_now_ns();
    if (err == RQ_OK) {
        b->last_success_ns = now;
        b->done_total++;
        uint64_t took = now > s->due_ns ? (uint64_t)(now - s->due_ns) : 0;
        if (!b->loading && !b->sweeping) rq_histogram_add(&b->interval, took);
        if (s->counts) add_latency(b, s->step, took);
    } else {
        rq_load_error *e =
            error_of(b->report, kind.len > 0 ? kind : rq_slice_cstr(rq_err_name(err)));
        if (e->failed++ == 0 && text.len > 0)
            snprintf(e->text, sizeof e->text, "%.*s", (int)(text.len > 190 ? 190 : text.len),
                     (const char *)text.ptr);
        b->report->failed++;
        b->failures_total++;
        b->interval_errors++;
        s->not_before_ns = now + FAILURE_PAUSE_NS;
    }
    b->busy--;
    s->next_free = b->free_slots;
    b->free_slots = s;
}

void rq__slot_end_result(rq__slot *s, const rq_op_result *r)
{
    end_slot(s, r->err, r->kind, r->text);
}

void rq__slot_broken(rq__slot *s, rq_err err)
{
    s->bench->fatal = true;
    end_slot(s, err, RQ_SLICE_LIT("Generator"), RQ_SLICE_LIT("out of memory"));
}

static rq__slot *take_slot(rq__bench *b, int64_t due_ns)
{
    rq__slot *s = b->free_slots;
    b->free_slots = s->next_free;
    b->busy++;
    s->due_ns = due_ns;
    s->counts = !b->loading && !b->sweeping && due_ns >= b->begin_ns && due_ns < b->end_ns;
    return s;
}

static rq_load_step draw_step(rq__bench *b)
{
    const rq__workload *w = b->workload;
    unsigned dice = w->shares[0].percent == 100 ? 0 : (unsigned)rq_random_below(&b->random, 100);
    for (int i = 0; i < RQ__SHARES_MAX; i++) {
        if (dice < w->shares[i].percent) return w->shares[i].step;
        dice -= w->shares[i].percent;
    }
    return w->shares[0].step;
}

static void begin_step(rq__bench *b, int64_t due_ns)
{
    rq__slot *s = take_slot(b, due_ns);
    s->rows_wanted = s->rows_got = 0;
    s->step = draw_step(b);
    rq_err rc = steps[s->step].begin(s);
    if (rc == RQ_OK) return;
    if (rc != RQ_E_AGAIN) {
        rq__slot_broken(s, rc);
        return;
    }
    /* All keys it tried are being written to: try again a little later. */
    b->busy--;
    s->not_before_ns = rq_client_now_ns() + BUSY_KEYS_PAUSE_NS;
    s->next_free = b->free_slots;
    b->free_slots = s;
}

/* --- loading and sweeping: ranges ------------------------------------------------------------- */

static bool stopped(const rq__bench *b)
{
    return b->fatal || (b->o->stop != NULL && *b->o->stop != 0);
}

static void live_line(const rq__bench *b, const char *what, double share, double rate)
{
    if (b->o->live == NULL) return;
    fprintf(b->o->live, "\r%-10s %5.1f %%  %10.0f/s  %llu failed  %llu wrong\033[K", what,
            share * 100, rate, (unsigned long long)b->report->failed,
            (unsigned long long)b->report->wrong);
    fflush(b->o->live);
}

static bool gives_up(rq__bench *b, int64_t now)
{
    bool up =
        b->failures_total > 0 && (double)(now - b->last_success_ns) > b->o->give_up_s * SECOND_NS;
    b->report->gave_up |= up;
    return up;
}

/* Runs `begin` over [0, count) in parts; false: it was interrupted. */
static bool run_range(rq__bench *b, const char *what, uint64_t count, uint64_t part,
                      rq_err (*begin)(rq__slot *s, uint64_t first, uint64_t count))
{
    uint64_t next = 0;
    int64_t begun = rq_client_now_ns();
    int64_t shown = begun;
    uint64_t failed = b->report->failed;
    b->last_success_ns = begun;
    while (next < count || b->busy > 0) {
        int64_t now = rq_client_now_ns();
        bool broken = stopped(b) || gives_up(b, now) || b->report->failed > failed;
        while (!broken && next < count && b->free_slots != NULL) {
            uint64_t n = count - next < part ? count - next : part;
            rq__slot *s = take_slot(b, now);
            rq_err rc = begin(s, next, n);
            if (rc != RQ_OK) rq__slot_broken(s, rc);
            next += n;
        }
        if (broken && b->busy == 0) break;
        rq_client_poll(b->client, IDLE_WAIT_NS);
        if (now - shown > LIVE_PERIOD_NS) {
            shown = now;
            live_line(b, what, (double)next / (double)count,
                      (double)next * SECOND_NS / (double)(now - begun + 1));
        }
    }
    return next >= count && !b->fatal && b->report->failed == failed;
}

/* --- the series ------------------------------------------------------------------------------- */

static void add_point(rq__bench *b, int64_t now)
{
    rq_load_report *r = b->report;
    if (r->point_count == b->point_cap) {
        size_t cap = b->point_cap == 0 ? 128 : b->point_cap * 2;
        rq_load_point *points = realloc(r->points, cap * sizeof *points);
        if (points == NULL) {
            b->fatal = true;
            return;
        }
        r->points = points;
        b->point_cap = cap;
    }
    const rq_histogram *h = &b->interval;
    r->points[r->point_count++] = (rq_load_point){
        .at_s = (double)(now - b->begin_ns) / SECOND_NS,
        .rate = (double)h->total * SECOND_NS / (double)(now - b->interval_begin_ns),
        .p50_ns = rq_histogram_percentile(h, 50),
        .p99_ns = rq_histogram_percentile(h, 99),
        .p999_ns = rq_histogram_percentile(h, 99.9),
        .max_ns = h->max,
        .errors = b->interval_errors,
    };
    rq_histogram_reset(&b->interval);
    b->interval_errors = 0;
    b->interval_begin_ns = now;
}

static void show_point(const rq__bench *b, const rq_load_point *p)
{
    char line[256];
    int n;
    if (b->o->live == NULL) return;
    n = snprintf(line, sizeof line, "%6.1f s %9.0f/s  ms: p50 %.3f, p99 %.3f, max %.3f", p->at_s,
                 p->rate, (double)p->p50_ns / 1e6, (double)p->p99_ns / 1e6,
                 (double)p->max_ns / 1e6);
    if (b->report->failed > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, "; %" PRIu64 " failed", b->report->failed);
    if (b->report->wrong > 0)
        snprintf(line + n, sizeof line - (size_t)n, "; %" PRIu64 " wrong", b->report->wrong);
    fprintf(b->o->live, "\r%.*s\033[K", LIVE_COLUMNS, line);
    fflush(b->o->live);
}

/* --- the measured run ------------------------------------------------------------------------- */

typedef struct schedule {
    int64_t start_ns;
    double rate;
    double ramp_s;
    uint64_t next;
} schedule;

/* When operation k is due. During the ramp the rate grows linearly, so k = rate t^2 / (2 ramp). */
static int64_t due_at(const schedule *s, uint64_t k)
{
    double in_ramp = s->rate * s->ramp_s / 2;
    double t = (double)k < in_ramp ? sqrt(2 * (double)k * s->ramp_s / s->rate)
                                   : s->ramp_s + ((double)k - in_ramp) / s->rate;
    if (t > TIME_MAX_S) t = TIME_MAX_S; /* the rate may be tiny */
    return s->start_ns + (int64_t)(t * SECOND_NS);
}

/* Slots that may be used now: all, or those the ramp has opened. */
static size_t places_open(const rq__bench *b, const schedule *s, int64_t now)
{
    double share = (double)(now - s->start_ns) / (s->ramp_s * SECOND_NS);
    if (s->rate > 0 || s->ramp_s <= 0 || share >= 1) return b->slot_count;
    return 1 + (size_t)(share * (double)(b->slot_count - 1));
}

/* Starts operations that are due; returns how long the client may wait. */
static int64_t begin_due(rq__bench *b, schedule *s)
{
    int64_t now = rq_client_now_ns();
    size_t open = places_open(b, s, now);
    while (b->free_slots != NULL && b->busy < open && now < b->end_ns && !b->fatal) {
        int64_t not_before = b->free_slots->not_before_ns;
        int64_t due = s->rate > 0 ? due_at(s, s->next) : now;
        if (not_before > now || due > now) {
            int64_t wait = (not_before > due ? not_before : due) - now;
            return wait < IDLE_WAIT_NS ? wait : IDLE_WAIT_NS;
        }
        s->next++;
        begin_step(b, due);
    }
    return IDLE_WAIT_NS;
}

typedef struct usage {
    double server_s;
    double own_s;
} usage;

static usage usage_now(const rq_load_options *o)
{
    return (usage){rq__process_cpu_s(o->server_pid), rq__process_cpu_s((int)getpid())};
}

static void measure(rq__bench *b)
{
    const rq_load_options *o = b->o;
    rq_load_report *r = b->report;
    double total_s = o->ramp_s + o->warm_s + o->seconds;
    double interval_s = o->interval_s > 0 ? o->interval_s : total_s / SERIES_POINTS;
    if (interval_s < INTERVAL_MIN_S) interval_s = INTERVAL_MIN_S;
    schedule s = {rq_client_now_ns(), o->rate, o->ramp_s, 0};
    usage before = {-1, -1};
    bool begun = false;
    rq_client_traffic earlier = {0};
    int64_t now = s.start_ns;
    b->begin_ns = s.start_ns + (int64_t)((o->ramp_s + o->warm_s) * SECOND_NS);
    b->end_ns = b->begin_ns + (int64_t)(o->seconds * SECOND_NS);
    b->interval_begin_ns = b->last_success_ns = now;
    while (now < b->end_ns && !stopped(b) && !gives_up(b, now) &&
           (o->operations == 0 || r->operations < o->operations)) {
        int64_t wait = begin_due(b, &s);
        rq_client_poll(b->client, o->awake ? 0 : wait);
        now = rq_client_now_ns();
        if (!begun && now >= b->begin_ns) {
            begun = true;
            before = usage_now(o);
            earlier = rq_client_traffic_now(b->client);
        }
        if ((double)(now - b->interval_begin_ns) >= interval_s * SECOND_NS) {
            add_point(b, now);
            if (r->point_count > 0) show_point(b, &r->points[r->point_count - 1]);
        }
    }
    usage after = usage_now(o);
    r->seconds = now > b->begin_ns ? (double)(now - b->begin_ns) / SECOND_NS : 0;
    if (begun && before.server_s >= 0 && after.server_s >= 0)
        r->server_cpu_s = after.server_s - before.server_s;
    if (begun) r->own_cpu_s = after.own_s - before.own_s;
    r->traffic = rq_client_traffic_now(b->client);
    r->traffic.calls -= earlier.calls;
    r->traffic.sent -= earlier.sent;
    r->traffic.received -= earlier.received;
    if (b->interval.total > 0) add_point(b, now);
    rq__process_memory(o->server_pid, &r->server_rss, &r->server_peak_rss);
    r->stopped = o->stop != NULL && *o->stop != 0;
    /* Operations in progress still finish, but are not counted. */
    b->end_ns = now < b->end_ns ? now : b->end_ns;
    for (size_t i = 0; i < b->slot_count; i++)
        b->slots[i].counts = false;
    while (b->busy > 0)
        rq_client_poll(b->client, IDLE_WAIT_NS);
}

/* --- before and after ------------------------------------------------------------------------- */

static bool counts_things(const rq__bench *b)
{
    return b->workload->shares[0].step == RQ_LOAD_INCREMENT ||
           b->workload->shares[0].step == RQ_LOAD_APPEND;
}

static bool ingests(const rq__bench *b)
{
    return b->workload->shares[0].step == RQ_LOAD_INGEST;
}

static rq_err remember(rq__bench *b)
{
    const rq_load_options *o = b->o;
    bool conditions = b->workload->shares[0].step == RQ_LOAD_CHECK_AND_PUT;
    if (rq__is_app(b)) {
        b->posts = calloc(o->records, sizeof *b->posts);
        b->posts_sent = calloc(o->records, sizeof *b->posts_sent);
        return b->posts != NULL && b->posts_sent != NULL ? RQ_OK : RQ_E_NO_MEMORY;
    }
    if (counts_things(b)) {
        b->counters = calloc(o->records, sizeof *b->counters);
        b->counters_sent = calloc(o->records, sizeof *b->counters_sent);
        return b->counters != NULL && b->counters_sent != NULL ? RQ_OK : RQ_E_NO_MEMORY;
    }
    return (o->verify && !o->reuse) || conditions ? rq__rows_history(&b->rows, o->records) : RQ_OK;
}

static rq_err open_bench(rq__bench *b, rq_error *why)
{
    const rq_load_options *o = b->o;
    rq_client_options client = o->client;
    b->rows = (rq_rows){
        .hashed = o->sorted < 0 ? !b->workload->sorted : o->sorted == 0,
        .key_len = o->key_len,
        .value_len = o->value_len,
        .families = o->families,
        .columns = o->columns,
        .base = rq_clock_ns(CLOCK_REALTIME) / 1000000000 * 1000,
    };
    rq__rows_name(&b->rows);
    rq_random_seed(&b->random, o->seed);
    rq__keys_init(&b->keys, o->draw < 0 ? b->workload->draw : (rq_key_draw)o->draw, o->records,
                  o->theta);
    b->inserted = b->issued = ingests(b) ? 0 : o->records;
    if (rq_histogram_init(&b->interval) != RQ_OK ||
        rq_histogram_init(&b->report->latency) != RQ_OK || remember(b) != RQ_OK)
        return rq_no_memory(why);
    client.lanes += o->idle;
    client.on_retry = note_retry;
    client.ctx = b;
    RQ_TRY(rq_client_open(&client, &b->client, why));
    RQ_TRY(rq__make_tables(b, why));
    if (rq__open_places(b) != RQ_OK) return rq_no_memory(why);
    return rq__open_idle(b, why);
}

static void close_bench(rq__bench *b)
{
    rq__close_places(b);
    rq_client_close(b->client);
    rq__rows_clear(&b->rows);
    rq_histogram_clear(&b->interval);
    free(b->counters);
    free(b->counters_sent);
    free(b->posts);
    free(b->posts_sent);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* The first error that failed operations, for the user. */
static const char *first_failure(const rq_load_report *r)
{
    for (size_t i = 0; i < r->error_count; i++)
        if (r->errors[i].failed > 0)
            return r->errors[i].text[0] != 0 ? r->errors[i].text : r->errors[i].kind;
    return "no request was answered";
}

static rq_err load(rq__bench *b, rq_error *why)
{
    const rq_load_options *o = b->o;
    if (o->reuse || b->workload->kind == RQ__LOAD_NOTHING) return RQ_OK;
    uint64_t items = rq__is_app(b) ? rq__app_items(b) : o->records;
    uint64_t part = LOAD_BATCH;
    int64_t begun = rq_client_now_ns();
    if (b->workload->kind == RQ__LOAD_TIMELINE) part = 1 + LOAD_BATCH / (o->followers + 1);
    b->loading = true;
    bool whole = run_range(b, "loading", items, part,
                           rq__is_app(b) ? rq__begin_load_app : rq__begin_load_rows);
    b->loading = false;
    b->report->load_seconds = (double)(rq_client_now_ns() - begun) / SECOND_NS;
    b->report->loaded = items;
    if (o->stop != NULL && *o->stop != 0)
        return rq_fail(why, RQ_E_CANCELLED, "stopped while loading");
    if (!whole) return rq_fail(why, RQ_E_IO, "loading failed: %s", first_failure(b->report));
    if (b->posts != NULL)
        for (uint64_t i = 0; i < o->records; i++)
            b->posts[i] = b->posts_sent[i] = o->posts;
    rq__table_names n = rq__table_names_of(b);
    for (int i = 0; o->flush && i < n.count; i++)
        RQ_TRY(rq_client_flush_table(b->client, n.name[i], why));
    return RQ_OK;
}

static rq_err begin_sweep_part(rq__slot *s, uint64_t first, uint64_t count)
{
    s->step = RQ_LOAD_MULTI_GET;
    return rq__begin_sweep(s, first, count);
}

static void sweep(rq__bench *b)
{
    uint64_t keys = counts_things(b) ? b->o->records : b->issued;
    if (!b->o->verify || rq__is_app(b) || b->fatal || b->report->stopped || b->report->gave_up)
        return;
    b->sweeping = true;
    if (!run_range(b, "verifying", keys, SWEEP_BATCH, begin_sweep_part) && !b->report->stopped)
        rq__note_wrong(b, 0, "the table could not be read completely");
    b->sweeping = false;
}

static const rq__workload *find_workload(const char *name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(workloads); i++)
        if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
    return NULL;
}

static rq_err unknown_workload(const char *name, rq_error *why)
{
    rq_suggestion s = rq_suggest(name);
    for (size_t i = 0; i < RQ_ARRAY_LEN(workloads); i++)
        rq_suggest_consider(&s, workloads[i].name);
    if (s.best == NULL) return rq_fail(why, RQ_E_INVALID, "unknown workload '%s'", name);
    return rq_fail(why, RQ_E_INVALID, "unknown workload '%s'; did you mean '%s'?", name, s.best);
}

static rq_err check_options(const rq_load_options *o, const rq__workload *w, rq_error *why)
{
    if (w == NULL) return unknown_workload(o->workload, why);
    if (o->records == 0 || o->records > UINT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "records must be 1 to 4294967295");
    if (o->families == 0 || o->families > 16 || o->columns < o->families ||
        o->columns > RQ_COLUMNS_MAX)
        return rq_fail(
            why, RQ_E_INVALID,
            "families must be 1 to 16, and columns at least as many as families and at most %d",
            RQ_COLUMNS_MAX);
    if (o->regions == 0 || o->regions > 100000 || o->depth == 0 || o->batch == 0)
        return rq_fail(why, RQ_E_INVALID, "regions, depth and batch must be at least 1");
    if (!(o->seconds <= TIME_MAX_S && o->ramp_s <= TIME_MAX_S && o->warm_s <= TIME_MAX_S))
        return rq_fail(why, RQ_E_INVALID, "seconds, ramp and warm must be at most %.0f",
                       TIME_MAX_S);
    if (o->idle > IDLE_MAX)
        return rq_fail(why, RQ_E_INVALID, "idle must be at most %d connections", IDLE_MAX);
    if (o->key_len.low < RQ_ROW_DIGITS || rq__sizes_max(&o->key_len) > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_INVALID, "keys must have %d to %d bytes", RQ_ROW_DIGITS,
                       RQ_ROW_LEN_MAX);
    if (o->verify && (o->value_len.kind == RQ_SIZES_EXPONENTIAL || o->value_len.low < 8))
        return rq_fail(why, RQ_E_INVALID, "verified values need at least 8 bytes");
    if (w->kind == RQ__LOAD_TIMELINE &&
        (o->followers == 0 || o->followers >= o->records || o->posts == 0))
        return rq_fail(
            why, RQ_E_INVALID,
            "followers must be 1 to the number of users minus one, and posts at least 1");
    if (w->kind >= RQ__LOAD_TIMELINE && (o->records > 99999999 || o->events == 0 || o->newest == 0))
        return rq_fail(why, RQ_E_INVALID,
                       "users must be at most 99999999, and events and newest at least 1");
    if (o->reuse && (o->verify || w->shares[0].step == RQ_LOAD_CHECK_AND_PUT ||
                     w->shares[0].step == RQ_LOAD_PUBLISH))
        for (int i = 0; i < RQ__SHARES_MAX; i++)
            if (w->shares[i].percent > 0 && w->shares[i].step != RQ_LOAD_GET &&
                w->shares[i].step != RQ_LOAD_MULTI_GET && w->shares[i].step != RQ_LOAD_SCAN_LONG)
                return rq_fail(why, RQ_E_INVALID,
                               "this workload must load its own rows: --reuse is not possible");
    return RQ_OK;
}

rq_err rq_load_run(const rq_load_options *given, rq_load_report *ret, rq_error *why)
{
    rq_load_options o = *given;
    const rq__workload *w = find_workload(o.workload);
    if (w != NULL && w->kind >= RQ__LOAD_TIMELINE && !o.records_set)
        o.records = APP_RECORDS_DEFAULT;
    *ret = (rq_load_report){.server_cpu_s = -1, .own_cpu_s = -1, .server_rss = -1};
    ret->server_peak_rss = -1;
    RQ_TRY(check_options(&o, w, why));
    rq__bench b = {.o = &o, .workload = w, .report = ret};
    rq_err rc = open_bench(&b, why);
    if (rc == RQ_OK) rc = load(&b, why);
    if (rc == RQ_OK) {
        measure(&b);
        sweep(&b);
        ret->regions = rq_client_table_regions(b.table);
        ret->servers = rq_client_table_servers(b.table);
        ret->connects = rq_client_connects(b.client);
        snprintf(ret->cluster_id, sizeof ret->cluster_id, "%s", rq_client_cluster_id(b.client));
        if (b.fatal) rc = rq_no_memory(why);
    }
    if (o.live != NULL) fprintf(o.live, "\r\033[K");
    if (!o.keep && !ret->gave_up) {
        rq_error drop_why = {0};
        rq_err drop_rc = rq__drop_tables(&b, &drop_why);
        if (rc == RQ_OK && drop_rc != RQ_OK)
            rc = rq_fail(why, drop_rc, "the table could not be dropped: %s", drop_why.message);
    }
    close_bench(&b);
    return rc;
}
