/* SPDX-License-Identifier: Apache-2.0 */
/* A run as a chart (SVG). Top: latency by percentile, on an axis where each further nine has the
 * same width. Bottom: over time, latency on the left axis and operations per second on the right.
 * Latencies are on a logarithmic scale of whole decades. */
#include "load/load.h"

#include "base/macros.h"

#include <math.h>

#define WIDTH 860
#define HEIGHT 760
#define LEFT 90
#define RIGHT 770
#define UPPER_TOP 70
#define UPPER_BOTTOM 370
#define LOWER_TOP 450
#define LOWER_BOTTOM 700

typedef struct axis {
    double low; /* log10 of microseconds, whole */
    double high;
    double top; /* on the page */
    double bottom;
} axis;

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double y_of(const axis *a, double microseconds)
{
    double l = log10(microseconds > 0.001 ? microseconds : 0.001);
    return a->bottom -
           (clamp(l, a->low, a->high) - a->low) / (a->high - a->low) * (a->bottom - a->top);
}

static axis make_axis(double low_us, double high_us, double top, double bottom)
{
    axis a = {floor(log10(low_us > 0.1 ? low_us : 0.1)), ceil(log10(high_us > 1 ? high_us : 1)),
              top, bottom};
    if (a.high <= a.low) a.high = a.low + 1;
    return a;
}

static void text(FILE *out, double x, double y, const char *anchor, const char *what)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, what);
}

static void line(FILE *out, double x1, double y1, double x2, double y2, const char *colour)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"1\"/>\n",
            x1, y1, x2, y2, colour);
}

static void latency_axis(FILE *out, const axis *a)
{
    char label[32];
    for (double d = a->low; d <= a->high; d++) {
        double us = pow(10, d);
        double y = y_of(a, us);
        line(out, LEFT, y, RIGHT, y, "#dddddd");
        if (us >= 1e6)
            snprintf(label, sizeof label, "%.0f s", us / 1e6);
        else if (us >= 1e3)
            snprintf(label, sizeof label, "%.0f ms", us / 1e3);
        else
            snprintf(label, sizeof label, "%g µs", us);
        text(out, LEFT - 8, y + 4, "end", label);
    }
}

static void curve_begin(FILE *out, const char *colour)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"", colour);
}

static void curve_end(FILE *out)
{
    fprintf(out, "\"/>\n");
}

/* --- over percentiles ------------------------------------------------------------------------- */

/* 0 at 0 %, 1 at 90 %, 2 at 99 %, … */
static double nines(double percent)
{
    return -log10(1 - percent / 100);
}

static void percentile_panel(FILE *out, const rq_histogram *h)
{
    static const struct {
        double percent;
        const char *label;
    } marks[] = {{0, "0"}, {50, "50"}, {90, "90"}, {99, "99"}, {99.9, "99.9"}, {99.99, "99.99 %"}};
    double low = h->total > 0 ? (double)h->min / 1e3 : 1;
    double high = h->total > 0 ? (double)h->max / 1e3 : 10;
    axis a = make_axis(low, high, UPPER_TOP, UPPER_BOTTOM);
    double scale = (RIGHT - LEFT) / nines(99.99);
    text(out, LEFT, UPPER_TOP - 12, "start", "latency over percentiles");
    latency_axis(out, &a);
    for (size_t i = 0; i < RQ_ARRAY_LEN(marks); i++) {
        double x = LEFT + nines(marks[i].percent) * scale;
        line(out, x, UPPER_TOP, x, UPPER_BOTTOM, "#dddddd");
        text(out, x, UPPER_BOTTOM + 18, "middle", marks[i].label);
    }
    if (h->total == 0) return;
    curve_begin(out, "#1f5fa8");
    for (int i = 0; i <= 200; i++) {
        double n = nines(99.99) * i / 200;
        double percent = 100 * (1 - pow(10, -n));
        fprintf(out, "%.1f,%.1f ", LEFT + n * scale,
                y_of(&a, (double)rq_histogram_percentile(h, percent) / 1e3));
    }
    curve_end(out);
}

/* --- over time -------------------------------------------------------------------------------- */

static void series_curve(FILE *out, const rq_load_report *r, const axis *a, double first,
                         double span, int which, const char *colour)
{
    curve_begin(out, colour);
    for (size_t i = 0; i < r->point_count; i++) {
        const rq_load_point *p = &r->points[i];
        uint64_t ns = which == 0 ? p->p50_ns : which == 1 ? p->p99_ns : p->max_ns;
        fprintf(out, "%.1f,%.1f ", LEFT + (p->at_s - first) / span * (RIGHT - LEFT),
                y_of(a, (double)ns / 1e3));
    }
    curve_end(out);
}

static void rate_curve(FILE *out, const rq_load_report *r, double first, double span, double most)
{
    char label[32];
    curve_begin(out, "#999999");
    for (size_t i = 0; i < r->point_count; i++)
        fprintf(out, "%.1f,%.1f ", LEFT + (r->points[i].at_s - first) / span * (RIGHT - LEFT),
                LOWER_BOTTOM - r->points[i].rate / most * (LOWER_BOTTOM - LOWER_TOP));
    curve_end(out);
    for (int i = 0; i <= 2; i++) {
        double rate = most * i / 2;
        if (rate >= 1e4)
            snprintf(label, sizeof label, "%.0f k/s", rate / 1e3);
        else
            snprintf(label, sizeof label, "%.0f/s", rate);
        text(out, RIGHT + 8, LOWER_BOTTOM - (LOWER_BOTTOM - LOWER_TOP) * i / 2.0 + 4, "start",
             label);
    }
}

static void legend(FILE *out)
{
    static const struct {
        const char *name;
        const char *colour;
    } entries[] = {{"p50", "#2a8a4a"},
                   {"p99", "#d07a12"},
                   {"max", "#b3261e"},
                   {"operations/s (right)", "#999999"}};
    double x = RIGHT - 300;
    for (size_t i = 0; i < RQ_ARRAY_LEN(entries); i++) {
        line(out, x, LOWER_TOP - 16, x + 16, LOWER_TOP - 16, entries[i].colour);
        text(out, x + 20, LOWER_TOP - 12, "start", entries[i].name);
        x += 55;
    }
}

static void time_panel(FILE *out, const rq_load_report *r)
{
    char label[32];
    double low = 1e12;
    double high = 1;
    double most = 1;
    text(out, LEFT, LOWER_TOP - 12, "start", "over time");
    legend(out);
    for (size_t i = 0; i < r->point_count; i++) {
        const rq_load_point *p = &r->points[i];
        if (p->p50_ns > 0) low = fmin(low, (double)p->p50_ns / 1e3);
        high = fmax(high, (double)p->max_ns / 1e3);
        most = fmax(most, p->rate);
    }
    axis a = make_axis(low < high ? low : 1, high, LOWER_TOP, LOWER_BOTTOM);
    latency_axis(out, &a);
    if (r->point_count < 2) return;
    double first = r->points[0].at_s;
    double span = r->points[r->point_count - 1].at_s - first;
    if (span <= 0) return;
    for (int i = 0; i <= 5; i++) {
        snprintf(label, sizeof label, "%.1f s", first + span * i / 5);
        text(out, LEFT + (RIGHT - LEFT) * i / 5.0, LOWER_BOTTOM + 18, "middle", label);
    }
    /* A line marks the start of the measurement, if something came before it. */
    if (first < 0) {
        double x = LEFT - first / span * (RIGHT - LEFT);
        line(out, x, LOWER_TOP, x, LOWER_BOTTOM, "#444444");
    }
    rate_curve(out, r, first, span, most);
    series_curve(out, r, &a, first, span, 2, "#b3261e");
    series_curve(out, r, &a, first, span, 1, "#d07a12");
    series_curve(out, r, &a, first, span, 0, "#2a8a4a");
}

void rq_load_plot(const rq_load_options *o, const rq_load_report *r, FILE *out)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    /* The workload's name is a fixed one: nothing to escape. */
    fprintf(out,
            "<text x=\"%d\" y=\"30\" font-size=\"16\">%s, %u × %u in flight: %.0f "
            "operations/s</text>\n",
            LEFT, o->workload, o->client.lanes, o->depth,
            r->seconds > 0 ? (double)r->operations / r->seconds : 0);
    percentile_panel(out, &r->latency);
    time_panel(out, r);
    fprintf(out, "</svg>\n");
}
