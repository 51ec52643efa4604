/* SPDX-License-Identifier: Apache-2.0 */
/* `rorqual server`: reads its arguments, opens a server, says that it is ready, and waits for
 * signals: SIGTERM and Ctrl-C close it cleanly, SIGHUP reads the settings again, SIGUSR1 opens the
 * log file again, SIGQUIT logs what the server is doing. */
#include "base/address.h"
#include "base/log.h"
#include "base/log_file.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/crash.h"
#include "cli/notify.h"
#include "cli/site.h"
#include "cli/text_pages.h"
#include "cli/version.h"
#include "server/node.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION RQ_VERSION " (commit " RQ_COMMIT ")"

static const char help[] =
    "usage: rorqual server [--data DIR | --cluster zk=HOST:PORT/ROOT,store=STORE,secret=FILE]\n"
    "                      [--listen ADDRESS,...] [--advertise HOST]\n"
    "                      [--zk-port 2181] [--master-port 16000] [--rs-port 16020]\n"
    "                      [--http HOST:PORT] [--memory SIZE] [--config FILE]\n"
    "                      [-D name=value]... [--log debug|info|warn|error]\n"
    "                      [--log-format text|json] [--log-file PATH] [--check]\n"
    "\n"
    "  --data DIR        the data folder (default ./data), created when missing\n"
    "  --cluster zk=HOST:PORT[,HOST:PORT]...[/ROOT],store=STORE,secret=FILE\n"
    "                    run as a server of a cluster, which is registered in this ZooKeeper; "
    "FILE\n"
    "                    has the secret that all servers share. STORE is a folder that all "
    "servers\n"
    "                    see (for development), or\n"
    "                    rados:POOL[/NAMESPACE],files=FILES[,conf=FILE][,user=client.NAME]: a pool "
    "of\n"
    "                    Ceph; FILES is cephfs:[NAME]/PATH, or a folder for HFiles that all see. "
    "See\n"
    "                    docs/cluster/README.md\n"
    "  --listen ADDRESS,...  addresses or host names to listen on (default 127.0.0.1), an IPv6\n"
    "                    address in brackets: 127.0.0.1,[::1]\n"
    "  --advertise HOST  the host sent to clients (default: the first of --listen; if that is the\n"
    "                    wildcard address, this host's name); also RORQUAL_ADVERTISE in the "
    "environment\n"
    "  --zk-port PORT    port of the ZooKeeper protocol (default 2181, or the setting\n"
    "                    hbase.zookeeper.property.clientPort)\n"
    "  --master-port PORT  the master's port (default 16000, or the setting hbase.master.port)\n"
    "  --rs-port PORT    the region server's port (default 16020, or the setting\n"
    "                    hbase.regionserver.port)\n"
    "  --http HOST:PORT  address of the status page, metrics and health checks (default\n"
    "                    127.0.0.1:16010, or no pages if that port is in use, with --cluster the\n"
    "                    next free port; or the settings rorqual.http.address and\n"
    "                    hbase.master.info.port); PORT alone: on\n"
    "                    127.0.0.1; none: no pages\n"
    "  --memory SIZE     the memory budget (k, m, g; default an eighth of the machine's, at most\n"
    "                    512m); the setting rorqual.memory\n"
    "  --config FILE     settings: an hbase-site.xml, or lines of name=value\n"
    "  -D name=value     one setting; HBase's property names where HBase has them\n"
    "                    (rorqual settings lists them)\n"
    "  --log LEVEL       lowest level that is logged (default info); the setting "
    "rorqual.log.level\n"
    "  --log-format FORMAT  text, or json: one object per line; the setting rorqual.log.format\n"
    "  --log-file PATH   log to this file (default: standard error)\n"
    "  --check           show what a server with these options would do (ports, folder, memory,\n"
    "                    settings) without doing it; exit code 0, or 2 if it would not start\n"
    "  --hints           after the ready line, print how clients connect\n"
    "Port 0 picks a free port; the line 'rorqual ready: …' shows it.\n"
    "Signals: SIGTERM and Ctrl-C stop the server cleanly; SIGHUP reloads the settings that may "
    "change\n"
    "while the server runs; SIGUSR1 reopens the log file; SIGQUIT logs what threads and calls are\n"
    "doing.\n"
    "exit codes: 0 stopped cleanly; 1 could not start, or not stopped cleanly; 2 wrong arguments\n";

typedef struct arguments {
    rq_server_options options;
    rq_site site;
    rq_log_file log_file; /* path NULL: the log goes to standard error */
    rq_log log;
    rq_log_sink log_sink;
    bool hints, check;
    const char
        *standalone; /* an option that was given and a cluster's server does not have; or NULL */
} arguments;

/* What serves: one of the two. */
typedef struct running {
    rq_server *server;
    rq_node *node; /* of a cluster */
} running;

/* Options that set a setting. */
static const struct {
    int option;
    rq_setting setting;
} aliases[] = {
    {'z', RQ_SET_ZK_PORT},    {'m', RQ_SET_MASTER_PORT}, {'r', RQ_SET_RS_PORT},
    {'M', RQ_SET_MEMORY},     {'v', RQ_SET_LOG_LEVEL},   {'p', RQ_SET_HTTP},
    {'F', RQ_SET_LOG_FORMAT},
};

static bool add_alias(arguments *a, int option, const char *value)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(aliases); i++)
        if (aliases[i].option == option)
            return rq__site_add(&a->site, RQ_SITE_VALUE, aliases[i].setting, value);
    return true;
}

static const char *only_standalone(int option)
{
    switch (option) {
    case 'd':
        return "--data";
    case 'z':
        return "--zk-port";
    case 'H':
        return "--hints";
    default:
        return NULL;
    }
}

/* False: no memory. */
static bool apply(arguments *a, int option, const char *value)
{
    if (a->standalone == NULL) a->standalone = only_standalone(option);
    switch (option) {
    case 'd':
        a->options.data = value;
        return true;
    case 'k':
        a->options.cluster = value;
        return true;
    case 'l':
        a->options.listen = value;
        return true;
    case 'a':
        a->options.advertise = value;
        return true;
    case 'c':
        return rq__site_add(&a->site, RQ_SITE_FILE, (rq_setting)0, value);
    case 'D':
        return rq__site_add(&a->site, RQ_SITE_PAIR, (rq_setting)0, value);
    case 'f':
        a->log_file.path = value;
        return true;
    case 'H':
        a->hints = true;
        return true;
    case 'C':
        a->check = true;
        return true;
    default:
        return add_alias(a, option, value);
    }
}

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},
        {"cluster", required_argument, NULL, 'k'},
        {"listen", required_argument, NULL, 'l'},
        {"advertise", required_argument, NULL, 'a'},
        {"zk-port", required_argument, NULL, 'z'},
        {"master-port", required_argument, NULL, 'm'},
        {"rs-port", required_argument, NULL, 'r'},
        {"http", required_argument, NULL, 'p'},
        {"memory", required_argument, NULL, 'M'},
        {"config", required_argument, NULL, 'c'},
        {"log", required_argument, NULL, 'v'},
        {"log-format", required_argument, NULL, 'F'},
        {"log-file", required_argument, NULL, 'f'},
        {"hints", no_argument, NULL, 'H'},
        {"check", no_argument, NULL, 'C'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
        if (option == '?' || option == ':') return rq__refuse_option("server", option, argv);
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (!apply(a, option, optarg)) {
            fprintf(stderr, "rorqual server: out of memory\n");
            return 1;
        }
    }
    if (optind < argc) return rq__refuse("server", "unknown argument '%s'", argv[optind]);
    if (a->options.cluster != NULL && a->standalone != NULL)
        return rq__refuse("server", "%s is not supported together with --cluster", a->standalone);
    return -1;
}

static rq_err reread(void *ctx, rq_config **ret, rq_error *why)
{
    return rq__site_read(ctx, ret, why);
}

static const int signals_taken[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};

/* Every thread inherits the mask: only this thread takes the signals. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < RQ_ARRAY_LEN(signals_taken); i++)
        sigaddset(set, signals_taken[i]);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Each connection and each store file needs a file descriptor, and a login shell's soft limit is
 * 1,024. Raises it to the hard limit; if that is low too, accepting connections waits. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        fprintf(stderr, "rorqual: cannot raise the limit of open files above %llu: %s\n",
                (unsigned long long)before, strerror(errno));
}

static void print_hints(const rq_server *server)
{
    uint16_t zk, rs;
    const char *host = rq_server_host(server, &zk, &rs);
    bool defaults = strcmp(host, "127.0.0.1") == 0 && zk == 2181;
    /* HBase's clients only understand an IPv6 address in the quorum with its port. */
    const char *quorum = strchr(host, ':') != NULL ? RQ_HOST_PORT(host, zk) : host;
    printf("  shell               %s shell%s%s\n", program_invocation_name,
           defaults ? "" : " --zk ", defaults ? "" : RQ_HOST_PORT(host, zk));
    printf("  HBase's shell       %s\n",
           defaults ? "hbase shell" : "hbase shell, with in hbase-site.xml:");
    if (!defaults)
        printf("                      hbase.zookeeper.quorum=%s\n"
               "                      hbase.zookeeper.property.clientPort=%u\n",
               quorum, zk);
    printf(
        "  Java                ConnectionFactory.createConnection(HBaseConfiguration.create())%s\n"
        "  without ZooKeeper   hbase.client.registry.impl="
        "org.apache.hadoop.hbase.client.RpcConnectionRegistry\n"
        "                      hbase.client.bootstrap.servers=%s\n"
        "  a load test         %s bench --zk %s get\n"
        "  Ctrl-C              stops the server cleanly\n",
        defaults ? "" : ", same settings", RQ_HOST_PORT(host, rs), program_invocation_name,
        RQ_HOST_PORT(host, zk));
}

/* Sets the umask so that it does not remove permissions that the configured mode of the data folder
 * grants, and files created without an explicit mode do not get more. */
static rq_err set_umask(const rq_config *config, rq_error *why)
{
    unsigned mode;
    RQ_TRY(rq_server_folder_mode(config, &mode, why));
    (void)umask(0777 & ~mode);
    return RQ_OK;
}

static void reopen_log(arguments *a)
{
    rq_error why = {.code = RQ_OK};
    if (a->log_file.path != NULL && rq_log_file_reopen(&a->log_file, &a->log, &why) != RQ_OK)
        fprintf(stderr, "rorqual: %s\n", why.message);
}

#define PULSES_PER_PERIOD 4 /* several per period, so that a single late pulse causes no restart */

/* Whether the server's loops run: while they do, next_signal notifies the service manager's
 * watchdog. */
static bool pulse(const running *r)
{
    return r->node != NULL ? rq_node_pulse(r->node) : rq_server_pulse(r->server);
}

/* Waits for a signal. Meanwhile notifies the service manager's watchdog, if it has asked for that. */
static int next_signal(const sigset_t *signals, const running *r, const rq_notify *notify)
{
    uint64_t ns = notify->watchdog_ns / PULSES_PER_PERIOD;
    struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    for (;;) {
        int got = ns > 0 ? sigtimedwait(signals, NULL, &pause) : sigwaitinfo(signals, NULL);
        if (got > 0) return got;
        if (errno == EAGAIN && pulse(r)) rq__notify_send(notify, "WATCHDOG=1");
    }
}

static void report(const running *r)
{
    if (r->node != NULL)
        rq_node_report(r->node);
    else
        rq_server_report(r->server);
}

/* The log has the result. */
static void reload(const running *r)
{
    if (r->node != NULL)
        (void)rq_node_reload(r->node, NULL);
    else
        (void)rq_server_reload(r->server, NULL);
}

/* Returns SIGTERM or SIGINT. */
static int serve_signals(arguments *a, const running *r, const sigset_t *signals,
                         const rq_notify *notify)
{
    for (;;) {
        int number = next_signal(signals, r, notify);
        switch (number) {
        case SIGHUP:
            reload(r);
            break;
        case SIGUSR1:
            reopen_log(a);
            break;
        case SIGQUIT:
            report(r);
            break;
        case SIGTERM:
        case SIGINT:
            return number;
        default: /* SIGUSR2 means nothing, and ends nothing */
            break;
        }
    }
}

static void count_unused(const rq_config *c)
{
    size_t count = 0;
    while (rq_config_unused(c, count) != NULL)
        count++;
    if (count > 0)
        fprintf(stderr,
                "rorqual: %zu of the given settings are HBase's and have no effect; --log debug "
                "names them\n",
                count);
}

static int serve_until_signal(arguments *a, const running *r, const sigset_t *signals,
                              const rq_notify *notify)
{
    rq_error why = {.code = RQ_OK};
    const char *ready =
        r->node != NULL ? rq_node_ready_text(r->node) : rq_server_ready_text(r->server);
    count_unused(a->options.config);
    printf("rorqual ready: %s\n", ready);
    if (r->server != NULL && rq_server_folder_is_new(r->server))
        printf("new data folder %s\n", rq_server_folder(r->server));
    if (a->hints) print_hints(r->server);
    fflush(stdout);
    rq__notify_send(notify, "READY=1\nSTATUS=%s", ready);
    int number = serve_signals(a, r, signals, notify);
    rq__notify_send(notify, "STOPPING=1\nSTATUS=flushing");
    printf("rorqual stopping: %s\n", number == SIGINT ? "SIGINT" : "SIGTERM");
    fflush(stdout);
    rq_err rc = r->node != NULL ? rq_node_close(r->node, &why) : rq_server_close(r->server, &why);
    if (rc != RQ_OK) {
        fprintf(stderr, "rorqual: the server was not stopped cleanly: %s\n", why.message);
        return 1;
    }
    printf("rorqual stopped\n");
    return 0;
}

/* Names the command that helps after a refused start. */
static void print_advice(const char *folder, rq_err rc)
{
    if (rc == RQ_E_CORRUPT || rc == RQ_E_INVALID)
        fprintf(
            stderr,
            "rorqual: hint: rorqual fsck %s reports all damage; rorqual recover %s lists what to "
            "set "
            "aside so that the rest can be served, and asks first; rorqual restore brings back a "
            "backup\n",
            folder, folder);
    else if (rc == RQ_E_LOCKED)
        fprintf(stderr, "rorqual: hint: rorqual ping checks whether that server answers\n");
    else if (rc == RQ_E_STATE || rc == RQ_E_VERSION)
        fprintf(stderr, "rorqual: hint: rorqual fsck %s checks the folder\n", folder);
}

static rq_err open_either(const rq_server_options *o, running *ret, rq_error *why)
{
    return o->cluster != NULL ? rq_node_open(o, &ret->node, why)
                              : rq_server_open(o, &ret->server, why);
}

/* The regions are other servers' by now, so nothing is closed in order. */
static void end_lost(void *ctx, const rq_error *why)
{
    const arguments *a = ctx;
    fprintf(stderr, "rorqual: this server has left the cluster: %s\n", why->message);
    if (a->log_file.path != NULL)
        rq_log_event(&a->log, RQ_LOG_ERROR, "server", "lost", rq_log_text("why", why->message));
    _exit(1);
}

static int serve(arguments *a)
{
    rq_error why = {.code = RQ_OK};
    running r = {0};
    sigset_t signals;
    rq_notify notify;
    block_signals(&signals);
    raise_open_files();
    if (rq_config_int(a->options.config, RQ_SET_HUGE_TEXT) != 0) (void)rq__text_to_huge_pages();
    if (set_umask(a->options.config, &why) != RQ_OK ||
        open_either(&a->options, &r, &why) != RQ_OK) {
        fprintf(stderr, "rorqual: %s\n", why.message);
        /* The last error also goes to the log file, where operators look for it. */
        if (a->log_file.path != NULL)
            rq_log_event(&a->log, RQ_LOG_ERROR, "server", "not started",
                         rq_log_text("why", why.message));
        if (a->options.cluster == NULL) print_advice(a->options.data, why.code);
        return 1;
    }
    rq__notify_open(&notify);
    int code = serve_until_signal(a, &r, &signals, &notify);
    rq__notify_close(&notify);
    return code;
}

static void trim_allocator(void)
{
    (void)malloc_trim(0);
}

/* The signal is taken by the thread that waits for signals. */
static void end_process(void *ctx)
{
    (void)ctx;
    (void)kill(getpid(), SIGTERM);
}

static const char *default_advertise(const rq_config *config)
{
    const char *environment = getenv("RORQUAL_ADVERTISE");
    if (environment != NULL && environment[0] != '\0') return environment;
    return rq_config_text(config, RQ_SET_ADVERTISE);
}

/* Few arenas, and large blocks are returned early: memory use follows the load down again. */
static void set_allocator(void)
{
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

static void print_check(void *ctx, const char *subject, const char *text)
{
    (void)ctx;
    printf("%-9s %s\n", subject, text);
}

/* Whether the file, or a new one in its folder, can be written. Sets errno. */
static bool can_log_to(const char *path)
{
    struct stat st;
    char folder[PATH_MAX];
    size_t len = strlen(path);
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) return access(path, W_OK) == 0;
    if (len == 0)
        errno = ENOENT;
    else
        errno = len >= sizeof folder ? ENAMETOOLONG : EISDIR;
    if (len >= sizeof folder || len == 0 || path[len - 1] == '/' || stat(path, &st) == 0)
        return false;
    if (errno != ENOENT) return false;
    memcpy(folder, path, len + 1);
    return access(dirname(folder), W_OK | X_OK) == 0;
}

static rq_err check_log(const char *path, rq_error *why)
{
    if (can_log_to(path)) return RQ_OK;
    return rq_fail(why, RQ_E_IO, "cannot open the log file %s: %s", path, strerror(errno));
}

static int check(const arguments *a)
{
    rq_error why = {.code = RQ_OK};
    int code = rq_server_check(&a->options, print_check, NULL) == RQ_OK ? 0 : 2;
    if (a->log_file.path == NULL) return code;
    if (check_log(a->log_file.path, &why) == RQ_OK) {
        print_check(NULL, "log", a->log_file.path);
        return code;
    }
    print_check(NULL, "PROBLEM", why.message);
    return 2;
}

/* Whether the descriptor leads to systemd's journal, which takes a line's level from a prefix of
 * the line (systemd.exec(5), JOURNAL_STREAM). */
static bool is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static int start(arguments *a)
{
    rq_error why = {.code = RQ_OK};
    if (a->check) return check(a);
    a->log_file.bytes_max = (uint64_t)rq_config_int(a->options.config, RQ_SET_LOG_BYTES);
    a->log_file.backups = (unsigned)rq_config_int(a->options.config, RQ_SET_LOG_BACKUPS);
    if (a->log_file.path == NULL) {
        a->log.fd = STDERR_FILENO;
    } else if (rq_log_file_open(&a->log_file, &a->log, &why) != RQ_OK) {
        fprintf(stderr, "rorqual server: %s\n", why.message);
        return 1;
    }
    a->log.for_journal = is_journal(a->log.fd);
    rq__crash_watch(&a->log, VERSION);
    return serve(a);
}

static int run(arguments *a)
{
    rq_server_options *o = &a->options;
    rq_error why = {.code = RQ_OK};
    if (rq__site_read(&a->site, &o->config, &why) != RQ_OK) {
        fprintf(stderr, "rorqual server: %s\n", why.message);
        return 2;
    }
    if (o->advertise == NULL) o->advertise = default_advertise(o->config);
    int code = start(a);
    rq_config_free(o->config);
    return code;
}

int rq__cmd_server(int argc, char **argv)
{
    arguments a = {.options = {.data = "data",
                               .listen = "127.0.0.1",
                               .trim = trim_allocator,
                               .stop = end_process,
                               .reread = reread},
                   .log = {.fd = -1, .level = RQ_LOG_INFO},
                   .log_sink = RQ_LOG_SINK_INIT};
    a.options.reread_ctx = &a.site;
    a.options.log = &a.log;
    a.options.lost = end_lost;
    a.options.lost_ctx = &a;
    a.options.version = VERSION;
    a.log.sink = &a.log_sink;
    set_allocator();
    int code = parse(&a, argc, argv);
    if (code < 0) code = run(&a);
    rq__site_clear(&a.site);
    return code;
}
