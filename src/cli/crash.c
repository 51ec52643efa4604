/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a crash (crash.h). Everything in the handler is async-signal-safe. backtrace(3) is
 * safe once its library is loaded, which rq__crash_watch ensures by calling it.
 * backtrace_symbols_fd writes to a pipe, from which each frame is read back and written as a line
 * of the log.
 *
 * The first thread that crashes reports; others wait for the process to end. A fault inside the
 * report ends the process at once, because the fault's signal is blocked then.
 */
#include "cli/crash.h"

#include "base/address.h"
#include "rpc/call.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define OWN_FRAMES 1 /* the handler's, which the reader need not see */
#define STACK_BYTES 65536

#if RQ_TSAN
#define IS_SANITIZED 1
#else
#define IS_SANITIZED RQ_ASAN
#endif

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"},
               {SIGABRT, "SIGABRT"},
               {SIGBUS, "SIGBUS"},
               {SIGFPE, "SIGFPE"},
               {SIGILL, "SIGILL"}};

/* File scope, because a signal handler gets no other argument. Set once, before there are
 * threads. */
static struct {
    const rq_log *log;
    const char *version;
    atomic_flag begun;
    uint8_t stack[STACK_BYTES]; /* for the main thread, should it have used up its own */
} watch = {.begun = ATOMIC_FLAG_INIT};

static const char *name_of(int number)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(signals); i++)
        if (signals[i].number == number) return signals[i].name;
    return "?";
}

static const char *hex(uintptr_t value, char text[2 + 2 * sizeof value + 1])
{
    char *p = text + 2 + 2 * sizeof value;
    *p = '\0';
    do {
        *--p = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value > 0);
    *--p = 'x';
    *--p = '0';
    return p;
}

static bool log_signal(const rq_log *log, int number, const siginfo_t *info)
{
    char address[2 + 2 * sizeof(uintptr_t) + 1];
    char thread[17] = "";
    (void)prctl(PR_GET_NAME, thread);
    bool is_sent = info->si_code <= 0; /* by kill(2), or by the process itself */
    const rq_log_field fields[] = {
        rq_log_text("signal", name_of(number)),
        is_sent ? rq_log_number("sender", (uint64_t)info->si_pid)
                : rq_log_text("address", hex((uintptr_t)info->si_addr, address)),
        rq_log_text("thread", thread),
        rq_log_number("tid", (uint64_t)gettid()),
        rq_log_number("pid", (uint64_t)getpid()),
        rq_log_text("version", watch.version),
    };
    return rq_log_write_crash(log, "the server crashed", fields, RQ_ARRAY_LEN(fields));
}

static bool log_request(const rq_log *log)
{
    const rq_call *call = rq_call_in_hand();
    if (call == NULL) return rq_log_write_crash(log, "no request in hand", NULL, 0);
    const rq_log_field fields[] = {
        rq_log_text("method", call->method->name),
        rq_log_bytes("user",
                     rq_slice_of((const uint8_t *)call->client->user, call->client->user_len)),
        rq_log_text("address", call->client->host),
        rq_log_number("port", call->client->port),
        rq_log_number("call", call->id),
        rq_log_number("bytes", call->request_bytes),
    };
    return rq_log_write_crash(log, "request in hand", fields, RQ_ARRAY_LEN(fields));
}

/* "rorqual(+0x1234) [0x5555…]"; only the address if there is no pipe. */
static const char *frame_text(void *frame, const int pipe_ends[2], char *text, size_t size)
{
    backtrace_symbols_fd(&frame, 1, pipe_ends[1]);
    ssize_t n = read(pipe_ends[0], text, size - 1);
    if (n <= 0) return hex((uintptr_t)frame, text);
    text[n] = '\0';
    char *newline = strchr(text, '\n');
    if (newline != NULL) *newline = '\0';
    return text;
}

static void log_frames(const rq_log *log)
{
    void *frames[FRAMES_MAX];
    char text[1024];
    int pipe_ends[2] = {-1, -1};
    int count = backtrace(frames, FRAMES_MAX);
    bool written = pipe2(pipe_ends, O_NONBLOCK | O_CLOEXEC) == 0 || count > 0;
    for (int i = OWN_FRAMES; i < count && written; i++) {
        const rq_log_field fields[] = {
            rq_log_number("frame", (uint64_t)(i - OWN_FRAMES)),
            rq_log_text("at", frame_text(frames[i], pipe_ends, text, sizeof text))};
        written = rq_log_write_crash(log, "backtrace", fields, RQ_ARRAY_LEN(fields));
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (atomic_flag_test_and_set(&watch.begun))
        for (;;)
            (void)pause();
    (void)signal(number, SIG_DFL);
    rq_log errors = rq_log_at(watch.log, RQ_LOG_ERROR);
    errors.fd = STDERR_FILENO;
    if (log_signal(watch.log, number, info)) {
        log_frames(watch.log);
        (void)log_request(watch.log); /* last: what is broken may be what it reads */
    }
    if (watch.log->fd != STDERR_FILENO) (void)log_signal(&errors, number, info);
    /* A fault happens again when this returns; a signal that was sent does not. */
    if (info->si_code <= 0) (void)raise(number);
}

void rq__crash_watch(const rq_log *log, const char *version)
{
    void *frame;
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = watch.stack, .ss_size = sizeof watch.stack};
    if (IS_SANITIZED) return;
    watch.log = log;
    watch.version = version;
    (void)backtrace(&frame, 1); /* loads its library */
    (void)sigaltstack(&stack, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < RQ_ARRAY_LEN(signals); i++)
        sigaddset(&action.sa_mask, signals[i].number);
    for (size_t i = 0; i < RQ_ARRAY_LEN(signals); i++)
        (void)sigaction(signals[i].number, &action, NULL);
}
