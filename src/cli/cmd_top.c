/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rorqual top, like HBase's `hbase top`: the regions, tables, namespaces or servers of a cluster
 * with their requests per second, on a screen that refreshes. If the output is not a terminal, it
 * is printed once.
 *
 *   look ─► rates since the last look ─► rows of the mode, sorted ─► frame
 *     └──────────────── period, or a key that changes what is shown ◄──┘
 */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PERIOD_S 3
#define PERIOD_MAX_S 3600
#define FIRST_PERIOD_MS 1000 /* short, so that the first rates appear soon */

static const char help[] =
    "usage: rorqual top [--zk HOST:PORT | --bootstrap HOST:PORT | --data DIR]\n"
    "                   [--mode region|table|namespace|server] [--sort COLUMN]\n"
    "                   [--period SECONDS] [--once]\n\n" RQ__CLUSTER_HELP RQ__CLUSTER_HELP_DATA
    "  --mode MODE            what a line shows: region (default), table, namespace or server\n"
    "  --sort COLUMN          requests (default), reads, writes, size, memstore, files, regions or "
    "name\n"
    "  --period SECONDS       time between refreshes (3)\n"
    "  --once                 print once, with rates measured for a second; the default if the "
    "output\n"
    "                         is not a terminal\n"
    "Keys: r, t, n, s show regions, tables, namespaces, servers; left and right choose the column "
    "to\n"
    "sort by; o reverses the order; up, down, page up and page down scroll; + and - change the "
    "period;\n"
    "space refreshes; h or ? shows help; q or Ctrl-C ends.\n"
    "exit codes: 0 ended by the user; 1 the cluster does not answer; 2 wrong arguments\n";

typedef enum mode { REGIONS, TABLES, NAMESPACES, SERVERS, MODE_COUNT } mode;
static const char *const mode_names[] = {"region", "table", "namespace", "server"};

typedef enum column {
    NAME,
    COUNT,
    REQUESTS,
    READS,
    WRITES,
    SIZE,
    MEMSTORE,
    FILES,
    COLUMN_COUNT
} column;

static const struct {
    const char *option; /* of --sort */
    const char *title;
    int width;
} columns[] = {
    [NAME] = {"name", "NAME", 0},
    [COUNT] = {"regions", "REGIONS", 7},
    [REQUESTS] = {"requests", "REQ/S", 7},
    [READS] = {"reads", "READ/S", 7},
    [WRITES] = {"writes", "WRITE/S", 7},
    [SIZE] = {"size", "SIZE", 6},
    [MEMSTORE] = {"memstore", "MEMSTORE", 8},
    [FILES] = {"files", "FILES", 6},
};

#define NAME_WIDTH_MIN 16
#define LINE_MAX_BYTES 1024

typedef struct top {
    rq__cluster_where where;
    bool once, is_help;
    uint64_t period_s;
    mode mode;
    column sort;
    bool ascending;
    size_t scroll;
    rq__cluster now;
    const rq__cluster_row **rows; /* of the mode, in order */
    size_t row_count, row_cap;
} top;

/* --- arguments -------------------------------------------------------------------------------- */

static int set_mode(top *t, const char *name)
{
    for (int i = 0; i < MODE_COUNT; i++) {
        if (strcmp(name, mode_names[i]) != 0) continue;
        t->mode = (mode)i;
        return -1;
    }
    return rq__refuse("top", "--mode %s: neither region, table, namespace nor server", name);
}

static int set_sort(top *t, const char *name)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (strcmp(name, columns[i].option) != 0) continue;
        t->sort = (column)i;
        t->ascending = i == NAME;
        return -1;
    }
    return rq__refuse("top", "--sort %s: unknown column", name);
}

/* Exit code; -1: go on. */
static int parse(top *t, int argc, char **argv)
{
    const char *mode_name = NULL, *sort_name = NULL;
    const rq__option options[] = {
        RQ__CLUSTER_OPTIONS(&t->where),      RQ__CLUSTER_OPTION_DATA(&t->where),
        {"mode", .text = &mode_name},        {"sort", .text = &sort_name},
        {"period", .seconds = &t->period_s}, {"once", .flag = &t->once}};
    int code = rq__parse_options("top", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code < 0 && mode_name != NULL) code = set_mode(t, mode_name);
    if (code < 0 && sort_name != NULL) code = set_sort(t, sort_name);
    if (code >= 0) return code;
    if (optind < argc) return rq__refuse("top", "unknown argument '%s'", argv[optind]);
    return rq__cluster_where_resolve(&t->where, "top");
}

/* --- rows ------------------------------------------------------------------------------------- */

static double value_of(const rq__cluster_row *r, column c)
{
    switch (c) {
    case COUNT:
        return (double)r->regions;
    case REQUESTS:
        return r->reads_s + r->writes_s;
    case READS:
        return r->reads_s;
    case WRITES:
        return r->writes_s;
    case SIZE:
        return (double)r->bytes;
    case MEMSTORE:
        return (double)r->memstore_bytes;
    case FILES:
        return (double)r->files;
    default:
        return 0;
    }
}

/* Rows with equal values are sorted by name, so that lines keep their places. */
static int in_order(const void *a, const void *b, void *ctx)
{
    const top *t = ctx;
    const rq__cluster_row *x = *(const rq__cluster_row *const *)a;
    const rq__cluster_row *y = *(const rq__cluster_row *const *)b;
    double p = value_of(x, t->sort), q = value_of(y, t->sort);
    int order = p < q ? 1 : p > q ? -1 : 0;
    if (t->sort == NAME) order = -rq_slice_compare(x->name, y->name);
    if (order != 0) return t->ascending ? -order : order;
    order = rq_slice_compare(x->name, y->name);
    return order != 0 ? order : rq_slice_compare(x->encoded, y->encoded);
}

static rq_err arrange(top *t)
{
    const rq__cluster_rows *const of[] = {[REGIONS] = &t->now.regions,
                                          [TABLES] = &t->now.tables,
                                          [NAMESPACES] = &t->now.namespaces,
                                          [SERVERS] = &t->now.servers};
    const rq__cluster_rows *rows = of[t->mode];
    if (rows->count > t->row_cap) {
        void *more = realloc(t->rows, rows->count * sizeof(rq__cluster_row *));
        if (more == NULL) return RQ_E_NO_MEMORY;
        t->rows = more;
        t->row_cap = rows->count;
    }
    t->row_count = rows->count;
    for (size_t i = 0; i < rows->count; i++)
        t->rows[i] = &rows->list[i];
    if (rows->count > 1) qsort_r(t->rows, rows->count, sizeof *t->rows, in_order, t);
    return RQ_OK;
}

/* --- lines ------------------------------------------------------------------------------------ */

typedef struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
} line;

RQ_PRINTF(2, 3) static void put(line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(l->text + l->len, sizeof l->text - l->len, fmt, args);
    va_end(args);
    if (n > 0)
        l->len += (size_t)n < sizeof l->text - l->len ? (size_t)n : sizeof l->text - 1 - l->len;
}

/* The number of columns, from the left, that fit beside a name of NAME_WIDTH_MIN. */
static unsigned columns_shown(const top *t, unsigned width, unsigned *ret_name_width)
{
    unsigned left = width, shown = 1;
    for (column c = COUNT; c < COLUMN_COUNT; c++) {
        if (c == COUNT && t->mode == REGIONS) continue;
        unsigned need = (unsigned)columns[c].width + 1;
        if (left < need + NAME_WIDTH_MIN) break;
        left -= need;
        shown = c + 1U;
    }
    *ret_name_width = left;
    return shown;
}

static bool is_shown(const top *t, column c, unsigned shown)
{
    return c < shown && !(c == COUNT && t->mode == REGIONS);
}

static void put_header(const top *t, line *l, unsigned width)
{
    unsigned name_width, shown = columns_shown(t, width, &name_width);
    char title[32];
    snprintf(title, sizeof title, "%s%s", mode_names[t->mode], t->sort == NAME ? " *" : "");
    for (char *p = title; *p != '\0'; p++)
        if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
    put(l, "%-*.*s", (int)name_width, (int)name_width, title);
    for (column c = COUNT; c < COLUMN_COUNT; c++) {
        if (!is_shown(t, c, shown)) continue;
        /* The mark of the sort column takes the place of the space between columns. */
        bool sorts = t->sort == c;
        put(l, "%*s%s%s", columns[c].width + 1 - (int)strlen(columns[c].title) - sorts, "",
            sorts ? "*" : "", columns[c].title);
    }
}

/* Prints non-text bytes as \xNN; a longer name is cut and ends in "..". */
static void put_name(line *l, rq_slice name, unsigned width)
{
    char text[LINE_MAX_BYTES];
    rq_slice part = {name.ptr,
                     name.len < LINE_MAX_BYTES / 4 - 1 ? name.len : LINE_MAX_BYTES / 4 - 1};
    size_t len = rq_bytes_to_string(part, text, sizeof text);
    bool cut = len > width || part.len < name.len;
    if (cut && width > 2)
        put(l, "%.*s..", (int)width - 2, text);
    else
        put(l, "%-*.*s", (int)width, (int)width, text);
}

static void put_row(const top *t, line *l, const rq__cluster_row *r, unsigned width)
{
    unsigned name_width, shown = columns_shown(t, width, &name_width);
    put_name(l, r->name, name_width);
    for (column c = COUNT; c < COLUMN_COUNT; c++)
        if (is_shown(t, c, shown))
            put(l, " %*s", columns[c].width,
                RQ__AMOUNT(value_of(r, c), c == SIZE || c == MEMSTORE));
}

static void put_server(const top *t, line *l)
{
    const rq_cluster_status *s = &t->now.status;
    put(l, "%.*s:%u, ", (int)s->master.host.len, (const char *)s->master.host.ptr, s->master.port);
    if (s->rorqual.len > 0)
        put(l, "Rorqual %.*s, ", (int)s->rorqual.len, (const char *)s->rorqual.ptr);
    put(l, "HBase %.*s", (int)s->version.len, (const char *)s->version.ptr);
}

static void put_title(const top *t, line *l, bool is_terminal)
{
    char clock[16] = "";
    time_t now = (time_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000000);
    struct tm local;
    if (localtime_r(&now, &local) != NULL) strftime(clock, sizeof clock, "%H:%M:%S", &local);
    put(l, "rorqual top %s  ", clock);
    if (t->now.is_live)
        put_server(t, l);
    else
        put(l, "%s, stopped", t->where.data);
    if (is_terminal) put(l, "  (h: help)");
    /* Names that servers report may contain line ends and escape sequences. */
    for (size_t i = 0; i < l->len; i++)
        if ((unsigned char)l->text[i] < ' ' || (unsigned char)l->text[i] > '~') l->text[i] = '?';
}

static void put_summary(const top *t, line *l)
{
    const rq__cluster *c = &t->now;
    put(l,
        "%zu server%s, %zu dead; %zu tables; %" PRIu64 " regions, %zu not open; %" PRIu64
        " compacting",
        c->servers.count, c->servers.count == 1 ? "" : "s", c->status.dead_count, c->tables.count,
        c->total.regions, c->status.transition_count, c->total.compacting);
}

static void put_totals(const top *t, line *l)
{
    const rq__cluster_row *r = &t->now.total;
    put(l, "%s requests/s: %s reads, %s writes; %s in %" PRIu64 " files, memstores %s",
        RQ__AMOUNT(r->reads_s + r->writes_s, false), RQ__AMOUNT(r->reads_s, false),
        RQ__AMOUNT(r->writes_s, false), RQ__AMOUNT(r->bytes, true), r->files,
        RQ__AMOUNT(r->memstore_bytes, true));
}

/* --- once ------------------------------------------------------------------------------------- */

#define ONCE_COLUMNS 120

static void print_once(const top *t)
{
    line l = {.len = 0};
    put_title(t, &l, false);
    puts(l.text);
    l.len = 0;
    put_summary(t, &l);
    puts(l.text);
    l.len = 0;
    put_totals(t, &l);
    puts(l.text);
    l.len = 0;
    put_header(t, &l, ONCE_COLUMNS);
    printf("\n%s\n", l.text);
    for (size_t i = 0; i < t->row_count; i++) {
        l.len = 0;
        put_row(t, &l, t->rows[i], ONCE_COLUMNS);
        puts(l.text);
    }
}

/* --- the screen ------------------------------------------------------------------------------- */

#define HEAD_ROWS 5 /* title, summary, totals, a blank line, the header */

static void draw_help(rq__frame *f)
{
    static const char *const lines[] = {"r t n s      regions, tables, namespaces, servers",
                                        "left right   the column to sort by (marked with *)",
                                        "o            reverse the order",
                                        "up down      scroll; page up, page down too",
                                        "+ -          a longer, a shorter period",
                                        "space        refresh at once",
                                        "h ?          this help, and back",
                                        "q Ctrl-C     end"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lines); i++)
        rq__frame_line(f, false, lines[i]);
}

static void draw(top *t, rq__frame *f)
{
    line l = {.len = 0};
    rq__frame_begin(f);
    put_title(t, &l, true);
    rq__frame_line(f, false, l.text);
    l.len = 0;
    put_summary(t, &l);
    put(&l, "; every %" PRIu64 " s", t->period_s);
    rq__frame_line(f, false, l.text);
    l.len = 0;
    put_totals(t, &l);
    rq__frame_line(f, false, l.text);
    rq__frame_line(f, false, "");
    if (t->is_help) {
        draw_help(f);
        rq__frame_show(f);
        return;
    }
    l.len = 0;
    put_header(t, &l, f->columns);
    rq__frame_line(f, true, l.text);
    size_t room = f->rows > HEAD_ROWS ? f->rows - HEAD_ROWS : 0;
    size_t last = t->row_count > room ? t->row_count - room : 0;
    if (t->scroll > last) t->scroll = last;
    for (size_t i = t->scroll; i < t->row_count && i < t->scroll + room; i++) {
        l.len = 0;
        put_row(t, &l, t->rows[i], f->columns);
        rq__frame_line(f, false, l.text);
    }
    rq__frame_show(f);
}

static void change_sort(top *t, int by)
{
    int c = (int)t->sort;
    do
        c = (c + by + COLUMN_COUNT) % COLUMN_COUNT;
    while (c == COUNT && t->mode == REGIONS);
    t->sort = (column)c;
    t->ascending = c == NAME;
}

static void change_mode(top *t, mode m)
{
    t->mode = m;
    t->scroll = 0;
    if (m == REGIONS && t->sort == COUNT) t->sort = REQUESTS;
}

static void scroll(top *t, const rq__frame *f, int key)
{
    size_t page = f->rows > HEAD_ROWS ? f->rows - HEAD_ROWS : 1;
    size_t by = key == RQ__KEY_PAGE_UP || key == RQ__KEY_PAGE_DOWN ? page : 1;
    if (key == RQ__KEY_DOWN || key == RQ__KEY_PAGE_DOWN)
        t->scroll += by; /* draw() keeps it in bounds */
    else
        t->scroll = t->scroll > by ? t->scroll - by : 0;
}

typedef enum verdict { DRAW, LOOK, END } verdict;

static verdict take_key(top *t, const rq__frame *f, int key)
{
    static const char mode_keys[] = {'r', 't', 'n', 's'};
    for (int i = 0; i < MODE_COUNT; i++)
        if (key == mode_keys[i]) change_mode(t, (mode)i);
    switch (key) {
    case 'q':
    case 'Q':
    case RQ__KEY_CLOSED:
        return END;
    case ' ':
        return LOOK;
    case 'h':
    case '?':
        t->is_help = !t->is_help;
        return DRAW;
    case 'o':
        t->ascending = !t->ascending;
        return DRAW;
    case '+':
        if (t->period_s < PERIOD_MAX_S) t->period_s++;
        return DRAW;
    case '-':
        if (t->period_s > 1) t->period_s--;
        return DRAW;
    case RQ__KEY_LEFT:
    case RQ__KEY_RIGHT:
        change_sort(t, key == RQ__KEY_LEFT ? -1 : 1);
        return DRAW;
    case RQ__KEY_UP:
    case RQ__KEY_DOWN:
    case RQ__KEY_PAGE_UP:
    case RQ__KEY_PAGE_DOWN:
        scroll(t, f, key);
        return DRAW;
    default:
        return DRAW;
    }
}

/* Handles keys until the next look is due, a key asks for one, or the user quits. */
static rq_err wait_and_draw(top *t, rq__frame *f, int64_t due_ns, bool *ret_end)
{
    for (;;) {
        RQ_TRY(arrange(t));
        draw(t, f);
        int64_t left_ms = (due_ns - rq_client_now_ns()) / 1000000;
        if (left_ms <= 0) return RQ_OK;
        int key = rq__screen_key(left_ms);
        verdict v = key == RQ__KEY_NONE ? DRAW : take_key(t, f, key);
        *ret_end = v == END;
        if (v != DRAW) return RQ_OK;
    }
}

/* --- looks ------------------------------------------------------------------------------------ */

static rq_err look_again(top *t, rq__cluster_link *l, rq_error *why)
{
    rq__cluster before = t->now;
    rq_err rc = rq__cluster_look(l, &t->now, why);
    if (rc == RQ_OK) rq__cluster_rates(&t->now, &before);
    rq__cluster_clear(&before);
    return rc;
}

static rq_err run_screen(top *t, rq__cluster_link *l, rq_error *why)
{
    rq__frame frame = {.row = 0};
    bool ends = false;
    int64_t period_ns = (int64_t)FIRST_PERIOD_MS * 1000000;
    rq_err rc = RQ_OK;
    rq__screen_begin();
    while (rc == RQ_OK) {
        rc = wait_and_draw(t, &frame, t->now.taken_ns + period_ns, &ends);
        if (rc != RQ_OK || ends) break;
        rc = look_again(t, l, why);
        period_ns = (int64_t)t->period_s * 1000000000;
    }
    rq__screen_end();
    rq_buf_clear(&frame.bytes);
    return rc;
}

static rq_err run_once(top *t, rq__cluster_link *l, rq_error *why)
{
    if (t->now.is_live) {
        rq_clock_sleep_ns((uint64_t)FIRST_PERIOD_MS * 1000000);
        RQ_TRY(look_again(t, l, why));
    }
    RQ_TRY(arrange(t));
    print_once(t);
    return RQ_OK;
}

int rq__cmd_top(int argc, char **argv)
{
    top t = {.period_s = PERIOD_S, .sort = REQUESTS};
    rq__cluster_link link;
    rq_error why = {.code = RQ_OK};
    int code = parse(&t, argc, argv);
    if (code >= 0) return code;
    rq_err rc = rq__cluster_open(&t.where, &link, &why);
    if (rc == RQ_OK) rc = rq__cluster_look(&link, &t.now, &why);
    if (rc == RQ_OK)
        rc = t.once || !t.now.is_live || !rq__screen_is_possible() ? run_once(&t, &link, &why)
                                                                   : run_screen(&t, &link, &why);
    if (rc != RQ_OK) rq__cluster_print_failure(&t.where, "top", rc, &why);
    rq__cluster_clear(&t.now);
    rq__cluster_close(&link);
    free(t.rows);
    return rc == RQ_OK && fflush(stdout) == 0 ? 0 : 1;
}
