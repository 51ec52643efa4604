/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the log (base/log.h): format, escapes, truncation, and descriptors that accept no
 * bytes. */
#include "base/log.h"
#include "base/log_file.h"

#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#define TIME_LEN 24 /* 2026-11-23T16:45:38.123Z */

typedef struct output {
    rq_log log;
    rq_log_sink sink;
    char path[64];
    char text[65536];
} output;

static void open_output(output *o, rq_log_format format)
{
    strcpy(o->path, "/tmp/rorqual-test-log-XXXXXX");
    pthread_mutex_init(&o->sink.lock, NULL);
    o->sink.lost = 0;
    o->sink.is_torn = false;
    o->log = (rq_log){.fd = mkostemp(o->path, O_APPEND), .format = format, .sink = &o->sink};
    assert_true(o->log.fd >= 0);
}

static const char *close_output(output *o)
{
    int fd = open(o->path, O_RDONLY);
    ssize_t n = read(fd, o->text, sizeof o->text - 1);
    assert_true(n >= 0);
    o->text[n] = '\0';
    close(fd);
    close(o->log.fd);
    unlink(o->path);
    return o->text;
}

/* The lines without their times, which are checked for their form. */
static const char *without_times(char *text, const char *before)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    char *out = text;
    for (char *in = text, *end; *in != '\0'; in = end) {
        end = strchr(in, '\n');
        assert_non_null(end);
        end++;
        assert_memory_equal(in, before, strlen(before));
        in += strlen(before);
        for (size_t i = 0; i < TIME_LEN; i++)
            assert_true(form[i] == 'd' ? in[i] >= '0' && in[i] <= '9' : in[i] == form[i]);
        in += TIME_LEN;
        memmove(out, in, (size_t)(end - in));
        out += end - in;
    }
    *out = '\0';
    return text;
}

static void log_a_few(const rq_log *log)
{
    rq_log_info(log, "rpc", "%d calls\tend", 7);
    rq_log_event(log, RQ_LOG_WARN, "audit", "Create", rq_log_text("user", "bob"),
                 rq_log_text("empty", ""), rq_log_text("name", "a b=\"c\\"),
                 rq_log_number("n", UINT64_MAX), rq_log_ms("ms", 12045678));
}

static void a_text_line_quotes_what_is_no_word(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_TEXT);
    log_a_few(&o.log);
    close_output(&o);
    assert_string_equal(without_times(o.text, ""),
                        " INFO rpc: 7 calls\\tend\n"
                        " WARN audit: Create user=bob empty=\"\" name=\"a b=\\\"c\\\\\" "
                        "n=18446744073709551615 ms=12.045\n");
}

static void a_json_line_is_an_object(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_JSON);
    log_a_few(&o.log);
    close_output(&o);
    assert_string_equal(
        without_times(o.text, "{\"time\":\""),
        "\",\"level\":\"info\",\"subject\":\"rpc\",\"message\":\"7 calls\\tend\"}\n"
        "\",\"level\":\"warn\",\"subject\":\"audit\",\"message\":\"Create\",\"user\":\"bob\","
        "\"empty\":\"\",\"name\":\"a b=\\\"c\\\\\",\"n\":18446744073709551615,\"ms\":12.045}\n");
}

static void lines_for_the_journal_have_a_level(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_TEXT);
    o.log.for_journal = true;
    rq_log_error(&o.log, "a", "b");
    rq_log_debug(&o.log, "a", "b");
    close_output(&o);
    assert_memory_equal(o.text, "<3>2", 4);
    assert_memory_equal(strchr(o.text, '\n') + 1, "<7>2", 4);
}

static void a_level_keeps_lines_out(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_TEXT);
    o.log.level = RQ_LOG_WARN;
    rq_log_info(&o.log, "a", "unwanted");
    rq_log_warn(&o.log, "a", "wanted");
    rq_log all = rq_log_at(&o.log, RQ_LOG_DEBUG);
    rq_log_debug(&all, "a", "all");
    rq_log_error(NULL, "a", "nowhere");
    close_output(&o);
    assert_string_equal(without_times(o.text, ""), " WARN a: wanted\n DEBUG a: all\n");
}

/* Times are those of gmtime, over leap years and centuries. */
static void the_time_is_utc(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_TEXT);
    time_t before = time(NULL);
    rq_log_info(&o.log, "a", "b");
    time_t after = time(NULL);
    close_output(&o);
    char a[32], b[32];
    strftime(a, sizeof a, "%Y-%m-%dT%H:%M:%S", gmtime(&before));
    strftime(b, sizeof b, "%Y-%m-%dT%H:%M:%S", gmtime(&after));
    assert_true(strncmp(o.text, a, 19) >= 0 && strncmp(o.text, b, 19) <= 0);
}

/* --- strings that clients send ---------------------------------------------------------------- */

static size_t count_of(const char *text, char c)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == c;
    return n;
}

static void no_text_forges_a_line(void **state)
{
    (void)state;
    static output o;
    static const char forged[] =
        "x\n2026-11-23T00:00:00.000Z INFO audit: DeleteTable user=root\r\x1b[2J\x7f\xff\xc2\x9b"
        "\xe2\x80\xae\xe2\x80\xa8\xc3\xa9";
    open_output(&o, RQ_LOG_TEXT);
    rq_log_event(&o.log, RQ_LOG_INFO, "audit", "Get", rq_log_text("table", forged));
    rq_log_info(&o.log, "rpc", "table %s", forged);
    close_output(&o);
    assert_int_equal(count_of(o.text, '\n'), 2);
    assert_non_null(strstr(o.text, "table=\"x\\n2026-11-23T00:00:00.000Z INFO audit: DeleteTable "
                                   "user=root\\r\\x1b[2J\\x7f\\xff\\xc2\\x9b\\xe2\\x80\\xae"
                                   "\\xe2\\x80\\xa8\xc3\xa9\"\n"));
    for (const char *p = o.text; *p != '\0'; p++)
        assert_true(*p == '\n' || (unsigned char)*p >= ' ');
}

/* Parses the JSON that a log line can contain: one object of strings and numbers. */
static const char *skip_string(const char *p)
{
    if (*p++ != '"') return NULL;
    while (*p != '"') {
        if ((unsigned char)*p < ' ') return NULL;
        if (*p++ != '\\') continue;
        if (*p == 'u') {
            for (int i = 1; i <= 4; i++)
                if (strchr("0123456789abcdef", p[i]) == NULL || p[i] == '\0') return NULL;
        } else if (*p == '\0' || strchr("\"\\tnr", *p) == NULL) {
            return NULL;
        }
        p++;
    }
    return p + 1;
}

static bool is_json_line(const char *p)
{
    if (*p++ != '{') return false;
    for (;;) {
        if ((p = skip_string(p)) == NULL || *p++ != ':') return false;
        if (*p == '"') {
            if ((p = skip_string(p)) == NULL) return false;
        } else {
            size_t digits = strspn(p, "0123456789.");
            if (digits == 0) return false;
            p += digits;
        }
        if (*p == '}') return p[1] == '\n' && p[2] == '\0';
        if (*p++ != ',') return false;
    }
}

static void any_bytes_make_a_line(void **state)
{
    (void)state;
    static output o;
    uint64_t seed = unit_seed();
    srandom((unsigned)seed);
    for (int round = 0; round < 3000; round++) {
        static uint8_t bytes[6000];
        size_t lens[4];
        for (size_t i = 0; i < sizeof bytes; i++) /* mostly bytes that form UTF-8, or escapes */
            bytes[i] = (uint8_t)(random() % 4 == 0   ? random()
                                 : random() % 2 == 0 ? 0x80 + random() % 0x78
                                                     : "\n\"\\=a "[random() % 6]);
        for (size_t i = 0; i < 4; i++)
            lens[i] = (size_t)random() % (round % 7 == 0 ? sizeof bytes : 40);
        bytes[sizeof bytes - 1] = '\0';
        open_output(&o, round % 2 == 0 ? RQ_LOG_JSON : RQ_LOG_TEXT);
        rq_log_event(&o.log, RQ_LOG_INFO, "a",
                     (const char *)bytes + sizeof bytes - 1 - lens[3] % 6000,
                     rq_log_bytes("a", rq_slice_of(bytes, lens[0])),
                     rq_log_bytes("b", rq_slice_of(bytes, lens[1])),
                     rq_log_bytes("c", rq_slice_of(bytes, lens[2])), rq_log_number("d", 5),
                     rq_log_bytes("e", rq_slice_of(bytes, lens[0])),
                     rq_log_bytes("f", rq_slice_of(bytes, lens[1])),
                     rq_log_bytes("g", rq_slice_of(bytes, lens[2])),
                     rq_log_bytes("h", rq_slice_of(bytes, lens[0])));
        close_output(&o);
        assert_int_equal(count_of(o.text, '\n'), 1);
        assert_true(strlen(o.text) <= RQ_LOG_LINE_MAX);
        if (round % 2 == 0 && !is_json_line(o.text)) fail_msg("no JSON: %s", o.text);
    }
}

/* --- descriptors that accept no bytes --------------------------------------------------------- */

static void an_unread_pipe_blocks_no_thread(void **state)
{
    (void)state;
    static output o;
    int ends[2];
    open_output(&o, RQ_LOG_TEXT);
    int file = o.log.fd;
    assert_int_equal(pipe(ends), 0);
    o.log.fd = ends[1];
    for (int i = 0; i < 20000; i++)
        rq_log_info(&o.log, "a", "line %d of many that nobody reads", i);
    uint64_t lost = o.sink.lost;
    assert_true(lost > 10000);
    size_t got = 0;
    char some[4096];
    ssize_t n;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while ((n = read(ends[0], some, sizeof some)) > 0)
        got += (size_t)n;
    rq_log_info(&o.log, "a", "read again");
    n = read(ends[0], some, sizeof some - 1);
    assert_true(n > 0);
    some[n] = '\0';
    snprintf(o.text, sizeof o.text,
             " WARN log: lines were lost lines=%llu reason=\"nobody reads the log\"\n",
             (unsigned long long)lost);
    assert_non_null(strstr(some, o.text));
    assert_non_null(strstr(some, " INFO a: read again\n"));
    assert_true(got > 10000);
    close(ends[0]);
    close(ends[1]);
    o.log.fd = file;
    close_output(&o);
}

static void a_full_disk_is_reported_when_there_is_space(void **state)
{
    (void)state;
    static output o;
    open_output(&o, RQ_LOG_TEXT);
    int file = o.log.fd;
    o.log.fd = open("/dev/full", O_WRONLY);
    for (int i = 0; i < 3; i++)
        rq_log_info(&o.log, "a", "lost");
    close(o.log.fd);
    o.log.fd = file;
    rq_log_info(&o.log, "a", "there is space");
    close_output(&o);
    assert_string_equal(without_times(o.text, ""),
                        " WARN log: lines were lost lines=3 reason=\"No space left on device\"\n"
                        " INFO a: there is space\n");
}

/* A file that accepts only half of a line (here because of a size limit) contains whole lines
 * only. */
static void half_a_line_is_taken_back(void **state)
{
    (void)state;
    static output o;
    struct rlimit old, limit;
    open_output(&o, RQ_LOG_JSON);
    rq_log_info(&o.log, "a", "first");
    off_t size = lseek(o.log.fd, 0, SEEK_END);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = (rlim_t)size + 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    rq_log_info(&o.log, "a", "second");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(lseek(o.log.fd, 0, SEEK_END), size);
    rq_log_info(&o.log, "a", "third");
    close_output(&o);
    assert_int_equal(count_of(o.text, '\n'), 3);
    assert_null(strstr(o.text, "second"));
    assert_non_null(strstr(o.text, "\"lines\":1"));
    without_times(o.text, "{\"time\":\"");
}

/* --- files that are limited in size -------------------------------------------------------------- */

#define FILE_BYTES 4096

typedef struct rolling {
    char folder[64], path[96];
    rq_log_sink sink;
    rq_log log;
    rq_log_file file;
} rolling;

static void open_rolling(rolling *r, unsigned backups)
{
    rq_error why;
    *r = (rolling){.folder = "/tmp/rorqual-test-log-XXXXXX", .sink = RQ_LOG_SINK_INIT};
    assert_non_null(mkdtemp(r->folder));
    snprintf(r->path, sizeof r->path, "%s/log", r->folder);
    r->log.sink = &r->sink;
    r->file = (rq_log_file){.path = r->path, .bytes_max = FILE_BYTES, .backups = backups};
    assert_int_equal(rq_log_file_open(&r->file, &r->log, &why), RQ_OK);
}

/* The text of the `number`th former file, "" if there is none; removes the file. */
static size_t take_file(const rolling *r, unsigned number, char *ret, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, number == 0 ? "%s" : "%s.%u", r->path, number);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);
    assert_in_range(n, 0, size - 2);
    ret[n] = '\0';
    if (fd < 0) return 0;
    close(fd);
    unlink(path);
    return (size_t)n;
}

static void close_rolling(rolling *r)
{
    close(r->log.fd);
    assert_int_equal(rmdir(r->folder), 0); /* nothing else was left there */
}

static void a_full_file_makes_way_and_the_oldest_is_removed(void **state)
{
    (void)state;
    enum { LINES = 2000, BACKUPS = 3 };
    rolling r;
    char text[2 * FILE_BYTES];
    unsigned next = LINES;
    open_rolling(&r, BACKUPS);
    for (unsigned i = 0; i < LINES; i++)
        rq_log_info(&r.log, "test", "line %u", i);
    for (unsigned number = 0; number <= BACKUPS; number++) { /* the newest first */
        size_t len = take_file(&r, number, text, sizeof text);
        assert_true(number == 0 || (len >= FILE_BYTES && len < FILE_BYTES + 100));
        for (char *at; (at = strrchr(text, '\n')) != NULL && at != text; next--) {
            *at = '\0';
            char *line = strrchr(text, '\n');
            line = line == NULL ? text : line + 1;
            assert_int_equal(atoi(strstr(line, "line ") + 5), next - 1);
            line[0] = '\0';
        }
    }
    assert_true(next < LINES - BACKUPS * FILE_BYTES / 100 && next > 0);
    close_rolling(&r);
}

static void a_log_without_former_files_begins_anew(void **state)
{
    (void)state;
    rolling r;
    char text[2 * FILE_BYTES];
    open_rolling(&r, 0);
    for (unsigned i = 0; i < 1000; i++)
        rq_log_info(&r.log, "test", "line %u", i);
    assert_true(take_file(&r, 0, text, sizeof text) < FILE_BYTES + 100);
    close_rolling(&r);
}

/* As by a tool that rotates logs, which renames the file and then has it opened again. */
static void a_file_that_was_renamed_is_opened_again(void **state)
{
    (void)state;
    rolling r;
    char former[128], text[2 * FILE_BYTES];
    rq_error why;
    open_rolling(&r, 2);
    rq_log_info(&r.log, "test", "before");
    snprintf(former, sizeof former, "%s.1", r.path);
    assert_int_equal(rename(r.path, former), 0);
    assert_int_equal(rq_log_file_reopen(&r.file, &r.log, &why), RQ_OK);
    for (unsigned i = 0; i < 40; i++)
        rq_log_info(&r.log, "test", "after");
    assert_true(take_file(&r, 1, text, sizeof text) < 100);
    assert_non_null(strstr(text, "before"));
    size_t len = take_file(&r, 0, text, sizeof text);
    assert_int_equal(len % 40, 0);
    assert_true(len > 40 * TIME_LEN && strstr(text, "before") == NULL);
    close_rolling(&r);
}

/* Another process, or a tool, has rolled the file: the file at the path is a new one. */
static void a_file_that_another_process_renamed_is_not_rolled_again(void **state)
{
    (void)state;
    rolling r;
    char former[128], text[4 * FILE_BYTES];
    open_rolling(&r, 2);
    rq_log_info(&r.log, "test", "before");
    snprintf(former, sizeof former, "%s.1", r.path);
    assert_int_equal(rename(r.path, former), 0);
    int young = open(r.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(young, "young\n", 6), 6);
    close(young);
    for (unsigned i = 0; i < 2 * FILE_BYTES / TIME_LEN && r.file.bytes != 6; i++)
        rq_log_info(&r.log, "test", "after");
    rq_log_info(&r.log, "test", "last");
    assert_true(take_file(&r, 1, text, sizeof text) >= FILE_BYTES);
    assert_non_null(strstr(text, "before"));
    assert_true(take_file(&r, 0, text, sizeof text) < 100);
    assert_memory_equal(text, "young\n", 6);
    assert_non_null(strstr(text, "last"));
    close_rolling(&r);
}

/* The files are where the link leads to, and the link stays. */
static void a_link_to_a_file_stays(void **state)
{
    (void)state;
    rolling r;
    char path[96], text[4 * FILE_BYTES];
    rq_error why;
    open_rolling(&r, 1);
    memcpy(path, r.path, sizeof path);
    close(r.log.fd);
    snprintf(r.path, sizeof r.path, "%s/link", r.folder);
    assert_int_equal(symlink("log", r.path), 0);
    assert_int_equal(rq_log_file_open(&r.file, &r.log, &why), RQ_OK);
    for (unsigned i = 0; i < FILE_BYTES / TIME_LEN; i++)
        rq_log_info(&r.log, "test", "a line");
    assert_int_equal(readlink(r.path, text, sizeof text), 3);
    assert_int_equal(unlink(r.path), 0);
    memcpy(r.path, path, sizeof path);
    assert_true(take_file(&r, 1, text, sizeof text) >= FILE_BYTES);
    assert_true(take_file(&r, 0, text, sizeof text) > 0);
    close_rolling(&r);
}

/* The file makes way, but no other can be created: as when the process has no descriptors left. */
static void a_new_file_that_cannot_be_created_is_tried_again(void **state)
{
    (void)state;
    rolling r;
    char text[4 * FILE_BYTES];
    struct rlimit before, none;
    open_rolling(&r, 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < FILE_BYTES / TIME_LEN; i++)
        rq_log_info(&r.log, "test", "without");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    rq_log_info(&r.log, "test", "with");
    rq_log_info(&r.log, "test", "last");
    assert_true(take_file(&r, 1, text, sizeof text) >= FILE_BYTES);
    assert_non_null(strstr(text, "test: with\n"));
    assert_true(take_file(&r, 0, text, sizeof text) < 100);
    assert_non_null(strstr(text, "last"));
    close_rolling(&r);
}

static void *log_lines_of_a_file(void *ctx)
{
    rq_log *log = ctx;
    for (unsigned i = 0; i < 500; i++)
        rq_log_info(log, "test", "a line of some thread");
    return NULL;
}

static void threads_lose_no_line_of_a_file_that_makes_way(void **state)
{
    (void)state;
    enum { THREADS = 4, FILES = 60 };
    rolling r;
    pthread_t threads[THREADS];
    char text[2 * FILE_BYTES];
    unsigned lines = 0;
    open_rolling(&r, FILES);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_lines_of_a_file, &r.log), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned number = 0; number <= FILES; number++) {
        (void)take_file(&r, number, text, sizeof text);
        for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
            lines++;
    }
    assert_int_equal(lines, THREADS * 500);
    close_rolling(&r);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void a_limit_counts_what_it_holds_back(void **state)
{
    (void)state;
    const rq_log_rate rate = {2, 1000};
    rq_log_limit l = {0};
    uint64_t suppressed = 7;
    /* the first line passes, whatever the clock */
    assert_true(rq_log_limit_passes(&l, rate, 0, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_true(rq_log_limit_passes(&l, rate, 999, &suppressed));
    for (int i = 0; i < 1000000; i++)
        assert_false(rq_log_limit_passes(&l, rate, 1000, &suppressed));
    assert_true(rq_log_limit_passes(&l, rate, 1001, &suppressed));
    assert_int_equal(suppressed, 1000000);
    assert_true(rq_log_limit_passes(&l, rate, 1002, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_false(rq_log_limit_passes(&l, rate, 1003, &suppressed));
    assert_true(rq_log_limit_passes(&l, rate, 500, &suppressed)); /* the clock jumped back */
    assert_int_equal(suppressed, 1);
}

typedef struct limited {
    rq_log_limit limit;
    _Atomic uint64_t clock, passed, suppressed;
} limited;

enum { LIMITED_THREADS = 4, LIMITED_LINES = 100000 };

static void *log_many(void *ctx)
{
    limited *l = ctx;
    const rq_log_rate rate = {3, 1000};
    for (int i = 0; i < LIMITED_LINES; i++) {
        uint64_t suppressed, now = atomic_fetch_add(&l->clock, 1);
        if (!rq_log_limit_passes(&l->limit, rate, now, &suppressed)) continue;
        atomic_fetch_add(&l->passed, 1);
        atomic_fetch_add(&l->suppressed, suppressed);
    }
    return NULL;
}

static void threads_lose_no_line_of_a_limit(void **state)
{
    (void)state;
    limited l = {.clock = 1};
    pthread_t threads[LIMITED_THREADS];
    for (int i = 0; i < LIMITED_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, &l), 0);
    for (int i = 0; i < LIMITED_THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t last = atomic_load(&l.limit.suppressed);
    assert_int_equal(l.passed + l.suppressed + last, LIMITED_THREADS * LIMITED_LINES);
    assert_in_range(l.passed, 3, LIMITED_LINES);
}

static void a_limited_line_has_the_number_of_suppressed_ones(void **state)
{
    (void)state;
    output o;
    rq_log_limit limit = {0};
    open_output(&o, RQ_LOG_TEXT);
    rq_log_write_limited(&o.log, &limit, RQ_LOG_DEBUG, "rpc", "refused %s", "a");
    limit.suppressed = 41;
    rq_log_write_limited(&o.log, &limit, RQ_LOG_WARN, "rpc", "refused %s", "b");
    for (int i = 0; i < 100; i++)
        rq_log_write_limited(&o.log, &limit, RQ_LOG_WARN, "rpc", "refused %s", "c");
    rq_log off = rq_log_at(&o.log, RQ_LOG_ERROR);
    limit = (rq_log_limit){0};
    rq_log_write_limited(&off, &limit, RQ_LOG_WARN, "rpc", "refused %s", "d");
    rq_log_write_limited(NULL, &limit, RQ_LOG_WARN, "rpc", "refused %s", "e");
    /* lines below the log's level, or without a log, are not counted */
    assert_int_equal(limit.lines, 0);
    close_output(&o);
    assert_non_null(strstr(o.text, " DEBUG rpc: refused a\n"));
    assert_non_null(strstr(o.text, " WARN rpc: refused b suppressed=41\n"));
    assert_non_null(strstr(o.text, " WARN rpc: refused c\n"));
    assert_null(strstr(o.text, "refused d"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_quotes_what_is_no_word),
        cmocka_unit_test(a_json_line_is_an_object),
        cmocka_unit_test(lines_for_the_journal_have_a_level),
        cmocka_unit_test(a_level_keeps_lines_out),
        cmocka_unit_test(the_time_is_utc),
        cmocka_unit_test(no_text_forges_a_line),
        cmocka_unit_test(any_bytes_make_a_line),
        cmocka_unit_test(an_unread_pipe_blocks_no_thread),
        cmocka_unit_test(a_full_disk_is_reported_when_there_is_space),
        cmocka_unit_test(half_a_line_is_taken_back),
        cmocka_unit_test(a_full_file_makes_way_and_the_oldest_is_removed),
        cmocka_unit_test(a_log_without_former_files_begins_anew),
        cmocka_unit_test(a_file_that_was_renamed_is_opened_again),
        cmocka_unit_test(a_file_that_another_process_renamed_is_not_rolled_again),
        cmocka_unit_test(a_link_to_a_file_stays),
        cmocka_unit_test(a_new_file_that_cannot_be_created_is_tried_again),
        cmocka_unit_test(threads_lose_no_line_of_a_file_that_makes_way),
        cmocka_unit_test(a_limit_counts_what_it_holds_back),
        cmocka_unit_test(threads_lose_no_line_of_a_limit),
        cmocka_unit_test(a_limited_line_has_the_number_of_suppressed_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
