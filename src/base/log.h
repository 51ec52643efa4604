/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's log: one line per event, written to a file descriptor. Only the edges log
 * (services, the roots of background jobs, the command line); libraries return errors. Callable
 * from any thread.
 *
 *   text   2026-11-23T16:45:38.123Z INFO flush: flushed region=1588230740 bytes=4096 ms=3.120
 *   json   {"time":"2026-11-23T16:45:38.123Z","level":"info","subject":"flush","message":"flushed",
 *          "region":"1588230740","bytes":4096,"ms":3.120}
 *
 * Rules:
 *  1. A line is one line, whatever clients call their tables: control characters, invalid UTF-8 and
 *     characters that change the direction of text are escaped. In text a value is quoted unless it
 *     is a plain word, so that it cannot look like another field. A JSON line is always valid JSON.
 *  2. A line has at most RQ_LOG_LINE_MAX bytes, so that a pipe takes it whole. Longer values are
 *     cut and end in "...".
 *  3. Logging does not wait for a reader: a line that a pipe, socket or terminal has no room for is
 *     dropped. Dropped lines and failed writes are counted in rq_log.sink; the next line that can
 *     be written is preceded by one with their number and the reason.
 *  4. A line that a remote peer can cause has a limit (rq_log_limit), so that peers cannot fill the disk. Lines above
 *     the limit are counted, and the next line of the limit has their number as `suppressed`. The audit log has a limit
 *     for each host, so that a client can hide calls of its own host only.
 *  5. A log file's size is limited, too (log_file.h).
 */
#ifndef RQ_BASE_LOG_H
#define RQ_BASE_LOG_H

#include "base/bytes.h"
#include "base/macros.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RQ_LOG_LINE_MAX 4096

typedef enum rq_log_level { RQ_LOG_DEBUG, RQ_LOG_INFO, RQ_LOG_WARN, RQ_LOG_ERROR } rq_log_level;
#define RQ_LOG_LEVELS 4
typedef enum rq_log_format { RQ_LOG_TEXT, RQ_LOG_JSON } rq_log_format;

/* State shared by all copies of a log that write to one file descriptor. */
typedef struct rq_log_sink {
    pthread_mutex_t lock;
    uint64_t lost RQ_GUARDED_BY(lock); /* lines lost since the last line that was written */
    int lost_errno RQ_GUARDED_BY(lock);
    bool is_torn RQ_GUARDED_BY(lock);                  /* the file ends in the middle of a line */
    uint64_t lines[RQ_LOG_LEVELS] RQ_GUARDED_BY(lock); /* lines logged, lost ones included */
    struct rq_log_file *file
        RQ_GUARDED_BY(lock); /* log_file.h; NULL: the log has not opened its output itself */
} rq_log_sink;

#define RQ_LOG_SINK_INIT                                                                           \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

typedef struct rq_log {
    int fd;                       /* -1: no output */
    _Atomic rq_log_level level;   /* may change while other threads log */
    _Atomic rq_log_format format; /* may change while other threads log */
    bool for_journal;             /* lines begin with their priority, "<6>", as sd-daemon(3) says */
    rq_log_sink *sink;            /* NULL: lines are not counted */
} rq_log;

/* Limits the lines of one cause: of a call site, or of one peer, table or other key there. Belongs to the object that
 * logs. All zeros: nothing was logged yet. It allocates nothing, and is used only when there is something to log. */
typedef struct rq_log_limit {
    _Atomic uint64_t since_ns;   /* the period's begin; 0: none has begun */
    _Atomic uint64_t lines;      /* in the period, suppressed ones included */
    _Atomic uint64_t suppressed; /* since the last line that was logged */
} rq_log_limit;

/* `lines` in a period of `period_ns`. */
typedef struct rq_log_rate {
    unsigned lines;
    uint64_t period_ns;
} rq_log_rate;

/* The rate of rq_log_write_limited. */
#define RQ_LOG_PEER_RATE ((rq_log_rate){5, UINT64_C(1000000000)})

/* Whether a line may be logged now. If so, *ret_suppressed is the number of lines that were not since the last one. Any
 * thread; each line is either logged or counted. When a period begins while several threads log, a line more or less may
 * be logged. `now_ns` is of any clock that the limit's callers share; if it jumps back, a period begins. */
bool rq_log_limit_passes(rq_log_limit *l, rq_log_rate rate, uint64_t now_ns,
                         uint64_t *ret_suppressed);

/* A key and its value. The key is a literal of letters, digits and '_'. */
typedef struct rq_log_field {
    const char *key;
    enum { RQ_LOG_FIELD_BYTES, RQ_LOG_FIELD_NUMBER, RQ_LOG_FIELD_MS } kind;
    rq_slice bytes;
    uint64_t number;
} rq_log_field;

static inline rq_log_field rq_log_bytes(const char *key, rq_slice value)
{
    return (rq_log_field){key, RQ_LOG_FIELD_BYTES, value, 0};
}

static inline rq_log_field rq_log_text(const char *key, const char *value)
{
    return rq_log_bytes(key, rq_slice_cstr(value));
}

static inline rq_log_field rq_log_number(const char *key, uint64_t value)
{
    return (rq_log_field){key, RQ_LOG_FIELD_NUMBER, {NULL, 0}, value};
}

/* Nanoseconds, written as milliseconds with three decimals. */
static inline rq_log_field rq_log_ms(const char *key, uint64_t ns)
{
    return (rq_log_field){key, RQ_LOG_FIELD_MS, {NULL, 0}, ns};
}

/* Whether a line of this level would be written, for callers whose fields are costly to gather. */
static inline bool rq_log_takes(const rq_log *log, rq_log_level level)
{
    return log != NULL && log->fd >= 0 && level >= log->level;
}

/* A copy of the log: the same output and sink, another level. */
rq_log rq_log_at(const rq_log *log, rq_log_level level);
/* Lines logged so far, by level; 0 for a log without a sink. Any thread. */
void rq_log_get_lines(const rq_log *log, uint64_t ret[RQ_LOG_LEVELS]);

RQ_COLD
void rq_log_write(const rq_log *log, rq_log_level level, const char *subject, const char *fmt, ...)
    RQ_PRINTF(4, 5);
/* rq_log_write within the limit, by the monotonic clock. */
RQ_COLD
void rq_log_write_rated(const rq_log *log, rq_log_limit *limit, rq_log_rate rate,
                        rq_log_level level, const char *subject, const char *fmt, ...)
    RQ_PRINTF(6, 7);
#define rq_log_write_limited(log, limit, level, ...)                                               \
    rq_log_write_rated(log, limit, RQ_LOG_PEER_RATE, level, __VA_ARGS__)
/* Logs a message with fields. Fields are borrowed during the call. */
RQ_COLD
void rq_log_write_fields(const rq_log *log, rq_log_level level, const char *subject,
                         const char *message, const rq_log_field *fields, size_t count);
/* rq_log_write_fields for signal handlers, with the subject `crash`: async-signal-safe, takes no
 * lock. Waits at most 1 s until the descriptor is writable. False: the line was not written. */
RQ_COLD
bool rq_log_write_crash(const rq_log *log, const char *message, const rq_log_field *fields,
                        size_t count);

#define rq_log_debug(log, ...) rq_log_write(log, RQ_LOG_DEBUG, __VA_ARGS__)
#define rq_log_info(log, ...) rq_log_write(log, RQ_LOG_INFO, __VA_ARGS__)
#define rq_log_warn(log, ...) rq_log_write(log, RQ_LOG_WARN, __VA_ARGS__)
#define rq_log_error(log, ...) rq_log_write(log, RQ_LOG_ERROR, __VA_ARGS__)

/* rq_log_event(log, level, subject, message, rq_log_text("region", name), …) */
#define rq_log_event(log, level, subject, message, ...)                                            \
    rq_log_write_fields(log, level, subject, message, (const rq_log_field[]){__VA_ARGS__},         \
                        sizeof((const rq_log_field[]){__VA_ARGS__}) / sizeof(rq_log_field))

#endif
