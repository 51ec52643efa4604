/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of the log (log.h). A line is composed on the stack, by async-signal-safe functions, and
 * written with one write(2), so that lines of several threads never mix.
 *
 * poll(2) before each write keeps the write from blocking: a pipe is writable while it has room for
 * PIPE_BUF bytes, which no line exceeds. The sink's lock keeps two threads from using the same
 * room. Regular files are always writable: their bytes go to the page cache.
 */
#include "base/log.h"
#include "base/clock.h"
#include "base/log_file.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(RQ_LOG_LINE_MAX <= PIPE_BUF, "a pipe takes a line whole");

#define MESSAGE_MAX 2048
#define VALUE_MAX 512 /* of a value, escaped */
#define CUT "..."
#define CRASH_WAIT_MS 1000
#define END_ROOM 16 /* for the mark of a cut, a closing quote and brace, and the end of the line */

typedef struct line {
    bool is_json;
    size_t len;
    char bytes[RQ_LOG_LINE_MAX];
} line;

/* --- characters ------------------------------------------------------------------------------- */

/* Control characters, and those that break lines, join, or turn the direction of text around. */
static bool is_harmless(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } harmful[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                   {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                   {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(harmful); i++)
        if (c >= harmful[i].first && c <= harmful[i].last) return false;
    return true;
}

static size_t put_hex(char *out, const char *prefix, uint32_t value, unsigned digits)
{
    size_t len = strlen(prefix);
    memcpy(out, prefix, len);
    while (digits-- > 0)
        out[len++] = "0123456789abcdef"[value >> (4 * digits) & 15];
    return len;
}

static size_t escape_byte(char *out, uint8_t byte, bool is_json)
{
    return put_hex(out, is_json ? "\\\\x" : "\\x", byte, 2);
}

static size_t escape_json_point(char *out, uint32_t c)
{
    if (c < 0x10000) return put_hex(out, "\\u", c, 4);
    size_t len = put_hex(out, "\\u", 0xd800 + ((c - 0x10000) >> 10), 4);
    return len + put_hex(out + len, "\\u", 0xdc00 + ((c - 0x10000) & 0x3ff), 4);
}

#define ESCAPED_MAX 20 /* bytes: a code point of four, each as \\xNN */

typedef enum place { FREE_TEXT, IN_QUOTES, IN_JSON } place;

/* Writes the text's first character as it stands in the log. Returns the bytes taken from the
 * text. */
static size_t escape_one(rq_slice s, place where, char out[ESCAPED_MAX], size_t *ret_len)
{
    static const char names[] = {
        ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    uint32_t c = 0;
    size_t taken = rq_utf8_take(s, &c);
    size_t len = 0;
    if (taken == 0) {
        *ret_len = escape_byte(out, s.ptr[0], where == IN_JSON);
        return 1;
    }
    bool is_named = c < sizeof names && names[c] != 0;
    if (is_named && (c < ' ' || where != FREE_TEXT)) {
        out[len++] = '\\';
        out[len++] = names[c];
    } else if (is_harmless(c)) {
        memcpy(out, s.ptr, taken);
        len = taken;
    } else if (where == IN_JSON) {
        len = escape_json_point(out, c);
    } else {
        for (size_t i = 0; i < taken; i++)
            len += escape_byte(out + len, s.ptr[i], false);
    }
    *ret_len = len;
    return taken;
}

/* --- parts of a line -------------------------------------------------------------------------- */

static bool has_room(const line *l, size_t len)
{
    return l->len + len + END_ROOM <= sizeof l->bytes;
}

static void put(line *l, const char *text)
{
    size_t len = strlen(text);
    if (!has_room(l, len)) return;
    memcpy(l->bytes + l->len, text, len);
    l->len += len;
}

/* Writes at most `max` bytes and leaves room for the "..." of a cut text and a closing quote. */
static void put_escaped(line *l, rq_slice s, place where, size_t max)
{
    size_t end = l->len + max;
    while (s.len > 0) {
        char out[ESCAPED_MAX];
        size_t len;
        size_t taken = escape_one(s, where, out, &len);
        if (l->len + len > end || !has_room(l, len)) {
            memcpy(l->bytes + l->len, CUT, sizeof CUT - 1);
            l->len += sizeof CUT - 1;
            return;
        }
        memcpy(l->bytes + l->len, out, len);
        l->len += len;
        s.ptr += taken;
        s.len -= taken;
    }
}

static void put_decimal(line *l, uint64_t value, unsigned digits_min)
{
    char text[24];
    size_t at = sizeof text;
    text[--at] = '\0';
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || sizeof text - 1 - at < digits_min);
    put(l, text + at);
}

/* 2026-11-23T16:45:38.123Z. Years are counted from March 1st, so that a leap day is the last day of
 * its year. (gmtime_r is not async-signal-safe.) */
static void put_time(line *l)
{
    uint64_t now_ms = rq_clock_ns(CLOCK_REALTIME) / 1000000, seconds = now_ms / 1000;
    uint64_t days = seconds / 86400 + 719468;
    uint64_t era = days / 146097, day = days % 146097; /* of 400 years */
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    uint64_t month = (5 * day + 2) / 153;
    day = day - (153 * month + 2) / 5 + 1;
    year += 400 * era + (month >= 10);
    month = month < 10 ? month + 3 : month - 9;
    const struct {
        uint64_t value;
        unsigned digits;
        const char *end;
    } parts[] = {{year, 4, "-"},
                 {month, 2, "-"},
                 {day, 2, "T"},
                 {seconds / 3600 % 24, 2, ":"},
                 {seconds / 60 % 60, 2, ":"},
                 {seconds % 60, 2, "."},
                 {now_ms % 1000, 3, "Z"}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(parts); i++) {
        put_decimal(l, parts[i].value, parts[i].digits);
        put(l, parts[i].end);
    }
}

static bool is_plain_word(rq_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || strchr("\"\\=", s.ptr[i]) != NULL) return false;
    return s.len > 0;
}

static void put_quoted(line *l, rq_slice s, size_t max)
{
    put(l, "\"");
    put_escaped(l, s, l->is_json ? IN_JSON : IN_QUOTES, max);
    l->bytes[l->len++] = '"'; /* END_ROOM reserves this byte */
}

static void put_field(line *l, const rq_log_field *f)
{
    /* A field that does not fit is left out whole. */
    if (!has_room(l, strlen(f->key) + 64)) return;
    put(l, l->is_json ? ",\"" : " ");
    put(l, f->key);
    put(l, l->is_json ? "\":" : "=");
    if (f->kind == RQ_LOG_FIELD_BYTES && !l->is_json && is_plain_word(f->bytes)) {
        put_escaped(l, f->bytes, FREE_TEXT, VALUE_MAX);
    } else if (f->kind == RQ_LOG_FIELD_BYTES) {
        put_quoted(l, f->bytes, VALUE_MAX);
    } else if (f->kind == RQ_LOG_FIELD_NUMBER) {
        put_decimal(l, f->number, 1);
    } else {
        put_decimal(l, f->number / 1000000, 1);
        put(l, ".");
        put_decimal(l, f->number / 1000 % 1000, 3);
    }
}

static void begin(line *l, const rq_log *log, rq_log_level level, const char *subject)
{
    static const char *const names[][2] = {
        {"DEBUG", "debug"}, {"INFO", "info"}, {"WARN", "warn"}, {"ERROR", "error"}};
    static const char *const priorities[] = {"<7>", "<6>", "<4>", "<3>"}; /* syslog's */
    l->is_json = log->format == RQ_LOG_JSON;
    l->len = 0;
    if (log->for_journal) put(l, priorities[level]);
    put(l, l->is_json ? "{\"time\":\"" : "");
    put_time(l);
    put(l, l->is_json ? "\",\"level\":\"" : " ");
    put(l, names[level][l->is_json]);
    put(l, l->is_json ? "\",\"subject\":\"" : " ");
    put(l, subject);
    put(l, l->is_json ? "\",\"message\":" : ": ");
}

static void put_message(line *l, rq_slice message)
{
    if (l->is_json)
        put_quoted(l, message, MESSAGE_MAX);
    else
        put_escaped(l, message, FREE_TEXT, MESSAGE_MAX);
}

static void end(line *l)
{
    if (l->is_json) l->bytes[l->len++] = '}';
    l->bytes[l->len++] = '\n';
}

static void compose(line *l, const rq_log *log, rq_log_level level, const char *subject,
                    rq_slice message, const rq_log_field *fields, size_t count)
{
    begin(l, log, level, subject);
    put_message(l, message);
    for (size_t i = 0; i < count; i++)
        put_field(l, &fields[i]);
    end(l);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* After a partial write to a regular file, truncates the file to where the line began, unless
 * another process has appended since. */
static bool take_back(int fd, size_t written)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at != st.st_size || at < (off_t)written) return false;
    if (ftruncate(fd, at - (off_t)written) != 0) return false;
    return lseek(fd, at - (off_t)written, SEEK_SET) >= 0;
}

static ssize_t write_again(int fd, const char *bytes, size_t len)
{
    ssize_t n;
    do
        n = write(fd, bytes, len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* 0 or errno. */
static int write_line(const rq_log *log, const line *l, bool *is_torn)
{
    struct pollfd p = {.fd = log->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 0) return EAGAIN;
    if (*is_torn && write_again(log->fd, "\n", 1) != 1) return errno;
    *is_torn = false;
    ssize_t n = write_again(log->fd, l->bytes, l->len);
    if (n == (ssize_t)l->len) return 0;
    if (n < 0) return errno;
    *is_torn = n > 0 && !take_back(log->fd, (size_t)n);
    return ENOSPC;
}

/* REQUIRES: the sink's lock. */
static int write_loss(const rq_log *log, rq_log_sink *sink)
{
    line l;
    const rq_log_field fields[] = {rq_log_number("lines", sink->lost),
                                   rq_log_text("reason", sink->lost_errno == EAGAIN
                                                             ? "nobody reads the log"
                                                             : strerror(sink->lost_errno))};
    compose(&l, log, RQ_LOG_WARN, "log", RQ_SLICE_LIT("lines were lost"), fields,
            RQ_ARRAY_LEN(fields));
    int error = write_line(log, &l, &sink->is_torn);
    if (error == 0) sink->lost = 0;
    return error;
}

static void emit(const rq_log *log, rq_log_level level, const line *l)
{
    rq_log_sink *sink = log->sink;
    bool is_torn = false;
    if (sink == NULL) {
        (void)write_line(log, l, &is_torn);
        return;
    }
    pthread_mutex_lock(&sink->lock);
    sink->lines[level]++;
    int error = sink->lost > 0 ? write_loss(log, sink) : 0;
    if (error == 0) error = write_line(log, l, &sink->is_torn);
    if (error != 0) {
        sink->lost++;
        sink->lost_errno = error;
    } else if (sink->file != NULL) {
        rq__log_file_grew(sink->file, l->len);
    }
    pthread_mutex_unlock(&sink->lock);
}

/* --- public functions ------------------------------------------------------------------------- */

rq_log rq_log_at(const rq_log *log, rq_log_level level)
{
    return (rq_log){.fd = log->fd,
                    .level = level,
                    .format = log->format,
                    .for_journal = log->for_journal,
                    .sink = log->sink};
}

void rq_log_get_lines(const rq_log *log, uint64_t ret[RQ_LOG_LEVELS])
{
    memset(ret, 0, RQ_LOG_LEVELS * sizeof *ret);
    if (log == NULL || log->sink == NULL) return;
    pthread_mutex_lock(&log->sink->lock);
    memcpy(ret, log->sink->lines, sizeof log->sink->lines);
    pthread_mutex_unlock(&log->sink->lock);
}

bool rq_log_limit_passes(rq_log_limit *l, rq_log_rate rate, uint64_t now_ns,
                         uint64_t *ret_suppressed)
{
    uint64_t since = atomic_load(&l->since_ns), now = now_ns == 0 ? 1 : now_ns;
    bool is_over = since == 0 || now - since >= rate.period_ns;
    *ret_suppressed = 0;
    if (is_over && atomic_compare_exchange_strong(&l->since_ns, &since, now))
        atomic_store(&l->lines, 0);
    if (atomic_fetch_add(&l->lines, 1) >= rate.lines) {
        atomic_fetch_add(&l->suppressed, 1);
        return false;
    }
    if (atomic_load(&l->suppressed) > 0) *ret_suppressed = atomic_exchange(&l->suppressed, 0);
    return true;
}

RQ_PRINTF(5, 0)
static void write_format(const rq_log *log, rq_log_level level, const char *subject,
                         uint64_t suppressed, const char *fmt, va_list args)
{
    char message[MESSAGE_MAX + 1];
    const rq_log_field field = rq_log_number("suppressed", suppressed);
    line l;
    if (vsnprintf(message, sizeof message, fmt, args) < 0) return;
    compose(&l, log, level, subject, rq_slice_cstr(message), &field, suppressed > 0);
    emit(log, level, &l);
}

void rq_log_write(const rq_log *log, rq_log_level level, const char *subject, const char *fmt, ...)
{
    va_list args;
    if (!rq_log_takes(log, level)) return;
    va_start(args, fmt);
    write_format(log, level, subject, 0, fmt, args);
    va_end(args);
}

void rq_log_write_rated(const rq_log *log, rq_log_limit *limit, rq_log_rate rate,
                        rq_log_level level, const char *subject, const char *fmt, ...)
{
    va_list args;
    uint64_t suppressed;
    if (!rq_log_takes(log, level)) return;
    if (!rq_log_limit_passes(limit, rate, rq_clock_ns(CLOCK_MONOTONIC), &suppressed)) return;
    va_start(args, fmt);
    write_format(log, level, subject, suppressed, fmt, args);
    va_end(args);
}

void rq_log_write_fields(const rq_log *log, rq_log_level level, const char *subject,
                         const char *message, const rq_log_field *fields, size_t count)
{
    if (!rq_log_takes(log, level)) return;
    line l;
    compose(&l, log, level, subject, rq_slice_cstr(message), fields, count);
    emit(log, level, &l);
}

bool rq_log_write_crash(const rq_log *log, const char *message, const rq_log_field *fields,
                        size_t count)
{
    line l;
    struct pollfd p = {.fd = log->fd, .events = POLLOUT};
    compose(&l, log, RQ_LOG_ERROR, "crash", rq_slice_cstr(message), fields, count);
    if (log->fd < 0 || poll(&p, 1, CRASH_WAIT_MS) == 0) return false;
    return write_again(log->fd, l.bytes, l.len) == (ssize_t)l.len;
}
