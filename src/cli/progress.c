/* SPDX-License-Identifier: Apache-2.0 */
/* The bar (progress.h). */
#include "cli/progress.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define FIRST_NS 1000000000
#define EACH_NS 100000000
#define WIDTH 40
#define WIPE "\033[K" /* to the end of the line: what was there may be longer */

static int64_t now_ns(void)
{
    return (int64_t)rq_clock_ns(CLOCK_MONOTONIC_COARSE);
}

void rq__progress_begin(rq_progress *p, const char *what)
{
    *p = (rq_progress){.what = what, .begin_ns = now_ns(), .is_terminal = isatty(STDERR_FILENO)};
}

/* "50 s", "3 min", "5 h" */
static const char *duration_text(double seconds, char *buf, size_t len)
{
    double n = seconds < 120 ? seconds : seconds < 7200 ? seconds / 60 : seconds / 3600;
    snprintf(buf, len, "%.0f %s", n, seconds < 120 ? "s" : seconds < 7200 ? "min" : "h");
    return buf;
}

void rq__progress_step(rq_progress *p, uint64_t done, uint64_t total)
{
    if (!p->is_terminal || total == 0) return;
    int64_t now = now_ns();
    if (now - p->begin_ns < FIRST_NS || now - p->drawn_ns < EACH_NS) return;
    double share = done >= total ? 1 : (double)done / (double)total;
    double left = share > 0 ? (double)(now - p->begin_ns) * (1 - share) / share / 1e9 : 0;
    int filled = (int)(share * WIDTH);
    static const char full[] = "########################################";
    static const char empty[] = "                                        ";
    char text[32];
    fprintf(stderr, "\r%.30s [%.*s%.*s] %3.0f %%, %s left " WIPE, p->what, filled, full,
            WIDTH - filled, empty, share * 100, duration_text(left, text, sizeof text));
    fflush(stderr);
    p->drawn_ns = now;
    p->is_drawn = true;
}

void rq__progress_name(rq_progress *p)
{
    if (!p->is_terminal) return;
    fprintf(stderr, "\r%.70s " WIPE, p->what);
    fflush(stderr);
    p->is_drawn = true;
}

void rq__progress_end(rq_progress *p)
{
    if (p->is_drawn) fputs("\r" WIPE, stderr);
    p->is_drawn = false;
}
