/* SPDX-License-Identifier: Apache-2.0 */
/* See copy_progress.h. */
#include "cli/copy_progress.h"

#include "base/clock.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_NS INT64_C(10000000000)

static int64_t now_ns(void)
{
    return (int64_t)rq_clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* "12.3 GB" */
static const char *bytes_text(uint64_t bytes, char *buf, size_t len)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double n = (double)bytes;
    size_t u = 0;
    for (; n >= 1000 && u + 1 < sizeof units / sizeof units[0]; u++)
        n /= 1000;
    snprintf(buf, len, u == 0 ? "%.0f %s" : "%.1f %s", n, units[u]);
    return buf;
}

static void begin(void *ctx, const char *what, uint64_t bytes)
{
    rq_copy_progress *p = ctx;
    char text[32];
    rq__progress_end(&p->bar);
    p->what = what;
    p->done = 0;
    p->total = bytes;
    p->printed_ns = now_ns();
    rq__progress_begin(&p->bar, what);
    if (p->quiet) return;
    if (bytes == 0) rq__progress_name(&p->bar);
    if (p->bar.is_terminal) return;
    if (bytes > 0)
        fprintf(stderr, "%s %s\n", what, bytes_text(bytes, text, sizeof text));
    else
        fprintf(stderr, "%s\n", what);
}

static void step(void *ctx, uint64_t bytes)
{
    rq_copy_progress *p = ctx;
    p->done += bytes;
    if (p->quiet || p->total == 0) return;
    rq__progress_step(&p->bar, p->done, p->total);
    if (p->bar.is_terminal) return;
    int64_t now = now_ns();
    if (now - p->printed_ns < LINE_NS) return;
    p->printed_ns = now;
    uint64_t percent = p->done >= p->total ? 100 : p->done / (p->total / 100 + 1);
    fprintf(stderr, "%s: %" PRIu64 " %%\n", p->what, percent);
}

static void print_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    rq_copy_progress *p = ctx;
    (void)level;
    rq__progress_end(&p->bar);
    printf("PROBLEM  ");
    rq__print_bytes(rq_slice_cstr(place));
    if (place[0] != '\0') printf(": ");
    rq__print_bytes(rq_slice_cstr(text));
    putchar('\n');
}

void rq__copy_progress_init(rq_copy_progress *p, const char *command, bool quiet)
{
    *p = (rq_copy_progress){.command = command, .quiet = quiet};
    p->calls = (rq_backup_progress){
        .begin = begin, .step = step, .findings = {print_finding, step, p}, .ctx = p};
}

int rq__copy_progress_end(rq_copy_progress *p, const rq_backup_options *o,
                          const rq_backup_result *r, const char *verb, rq_err rc,
                          const rq_error *why)
{
    char all[32], linked[32];
    rq__progress_end(&p->bar);
    if (rc != RQ_OK) {
        fflush(stdout);
        fprintf(stderr, "rorqual %s: %s\n", p->command,
                why->message[0] != '\0' ? why->message : rq_err_text(rc));
        return 1;
    }
    if (p->quiet) return 0;
    printf("%s: %s %" PRIu64 " files, %s", o->target != NULL ? o->target : o->source, verb,
           r->files, bytes_text(r->bytes, all, sizeof all));
    if (r->linked_files > 0)
        printf(" (%s of them by links)", bytes_text(r->linked_bytes, linked, sizeof linked));
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : 1;
}
