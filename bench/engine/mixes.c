/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes of operations, as `rorqual bench` has them (src/load/workloads.def): each thread draws an
 * operation by the percentages gets, puts, rmws (a get, then a put), scans (1 to 100 rows) and
 * multis (a batch of gets; counts its rows), and a row by `draw`: 0 uniform, 1 zipfian over all
 * rows, 2 the latest. Puts that are inserts (draw 2, or together with scans) append after the last
 * row, with a sequence for each thread. The mix ends after `seconds`. With `rate` (of all threads),
 * latency counts from the time at which an operation was due. */
#include "driver.h"

#include "base/random.h"
#include "load/draw.h"

#include <stdlib.h>
#include <unistd.h>

#define SCAN_ROWS_MAX 100

typedef struct mixer {
    job *j;
    worker *w;
    rq_random random;
    rq_keys keys;
    uint64_t inserted;
    entry *entries; /* run.batch entries */
} mixer;

static uint64_t draw_row(mixer *m)
{
    return rq__keys_draw(&m->keys, run.rows, &m->random);
}

static void draw_into(mixer *m, uint8_t row[ROW_BYTES])
{
    row_of(draw_row(m), row);
}

static void must_be_there(bool there, const uint8_t row[ROW_BYTES])
{
    if (there) return;
    fprintf(stderr, "row %.32s is missing\n", (const char *)row);
    exit(1);
}

static void mix_get(mixer *m, uint8_t row[ROW_BYTES])
{
    draw_into(m, row);
    must_be_there(worker_get(m->w, row) >= 0, row);
}

static void mix_put(mixer *m, const uint8_t row[ROW_BYTES])
{
    entry e = {.value = value_of(rq_random_next(&m->random)), .value_len = run.value};
    memcpy(e.row, row, ROW_BYTES);
    worker_write(m->w, &e, 1);
}

static void mix_insert_or_put(mixer *m)
{
    uint8_t row[ROW_BYTES];
    if (run.draw == 2 || run.scans > 0)
        row_of(run.rows + m->j->index + run.threads * m->inserted++, row);
    else
        draw_into(m, row);
    mix_put(m, row);
}

static void mix_scan(mixer *m)
{
    uint8_t row[ROW_BYTES];
    draw_into(m, row);
    must_be_there(worker_scan(m->w, row, 1 + rq_random_below(&m->random, SCAN_ROWS_MAX)) > 0, row);
}

static void mix_multi(mixer *m)
{
    for (unsigned i = 0; i < run.batch; i++)
        draw_into(m, m->entries[i].row);
    if (worker_multi_get(m->w, m->entries, run.batch) == run.batch) return;
    fprintf(stderr, "rows of a batch are missing\n");
    exit(1);
}

/* Returns the number of operations that it counts as. */
static uint64_t mix_one(mixer *m)
{
    uint8_t row[ROW_BYTES];
    uint64_t dice = rq_random_below(&m->random, 100);
    if (dice < run.gets) {
        mix_get(m, row);
    } else if ((dice -= run.gets) < run.puts) {
        mix_insert_or_put(m);
    } else if ((dice -= run.puts) < run.rmws) {
        mix_get(m, row);
        mix_put(m, row);
    } else if (dice - run.rmws < run.scans) {
        mix_scan(m);
    } else {
        mix_multi(m);
        return run.batch;
    }
    return 1;
}

static double wait_until(double due)
{
    double now = seconds_of(CLOCK_MONOTONIC);
    if (due > now) usleep((useconds_t)((due - now) * 1e6));
    return due;
}

static void mixer_run(mixer *m)
{
    double due = seconds_of(CLOCK_MONOTONIC), end = due + (double)run.seconds;
    double step = run.rate > 0 ? (double)run.threads / (double)run.rate : 0;
    for (double now = due; now < end; now = seconds_of(CLOCK_MONOTONIC)) {
        double from = step > 0 ? wait_until(due += step) : now;
        m->j->done += mix_one(m);
        latency_add(m->j, (seconds_of(CLOCK_MONOTONIC) - from) * 1e6);
    }
}

void mix(job *j)
{
    static const rq_key_draw draws[] = {RQ_KEYS_UNIFORM, RQ_KEYS_ZIPFIAN, RQ_KEYS_LATEST};
    mixer m = {.j = j, .w = worker_new(run.open), .entries = calloc(run.batch, sizeof(entry))};
    if (m.entries == NULL || run.gets + run.puts + run.rmws + run.scans + run.multis != 100 ||
        run.draw >= sizeof draws / sizeof draws[0]) {
        fprintf(stderr, "mix: the shares are not 100 in all, or there is no such draw\n");
        exit(2);
    }
    rq_random_seed(&m.random, j->random);
    rq__keys_init(&m.keys, draws[run.draw], run.rows, 0.99);
    mixer_run(&m);
    free(m.entries);
    worker_free(m.w);
}
