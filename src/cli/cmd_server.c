/* SPDX-License-Identifier: Apache-2.0 */
/* `rorqual server`: reads its arguments, opens a server, says that it is ready, and waits for
 * SIGTERM or Ctrl-C to close it in order. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/notify.h"
#include "server/server.h"
#include "cli/text_pages.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: rorqual server [--data DIR] [--listen ADDR] [--advertise HOST] [--zk-port 2181]\n"
    "                      [--master-port 16000] [--rs-port 16020] [--config FILE]\n"
    "                      [-D name=value]... [--log debug|info|warn|error]\n\n"
    "  --data DIR        the data folder (default ./data), created when missing\n"
    "  --listen ADDR     numeric address to listen on (default 127.0.0.1)\n"
    "  --advertise HOST  the host clients are told (default: the listening address; where any\n"
    "                    is listened on, this host's name); also RORQUAL_ADVERTISE in the\n"
    "                    environment\n"
    "  --config FILE     settings: an hbase-site.xml, or lines of name=value\n"
    "  -D name=value     one setting; HBase's property names where HBase has them\n"
    "  --log LEVEL       what is told on the standard error (default warn)\n"
    "  --hints           print how clients connect, after the ready line\n"
    "Port 0 picks a free port; the line 'rorqual ready: …' names it. SIGTERM and Ctrl-C stop the\n"
    "server in order.\n"
    "exit codes: 0 stopped in order; 1 could not start, or not stopped in order; 2 wrong "
    "arguments\n";

typedef struct arguments {
    rq_server_options options;
    rq_config *config;
    bool hints;
} arguments;

static rq_err parse_port(const char *name, const char *text, uint16_t *ret, rq_error *why)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || v > 65535)
        return rq_fail(why, RQ_E_CONFIG, "--%s %s: not a port", name, text);
    *ret = (uint16_t)v;
    return RQ_OK;
}

static rq_err parse_level(const char *text, rq_log_level *ret, rq_error *why)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *ret = (rq_log_level)i;
        return RQ_OK;
    }
    return rq_fail(why, RQ_E_CONFIG, "--log %s: not one of debug, info, warn, error", text);
}

static rq_err apply(arguments *a, int option, const char *value, rq_error *why)
{
    rq_server_options *o = &a->options;
    switch (option) {
    case 'd':
        o->data = value;
        return RQ_OK;
    case 'l':
        o->listen = value;
        return RQ_OK;
    case 'a':
        o->advertise = value;
        return RQ_OK;
    case 'z':
        return parse_port("zk-port", value, &o->zk_port, why);
    case 'm':
        return parse_port("master-port", value, &o->master_port, why);
    case 'r':
        return parse_port("rs-port", value, &o->rs_port, why);
    case 'c':
        return rq_config_load(a->config, value, why);
    case 'D':
        return rq_config_set_pair(a->config, value, why);
    case 'H':
        a->hints = true;
        return RQ_OK;
    default: /* 'v' */
        return parse_level(value, &o->log.level, why);
    }
}

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"advertise", required_argument, NULL, 'a'},
        {"zk-port", required_argument, NULL, 'z'},
        {"master-port", required_argument, NULL, 'm'},
        {"rs-port", required_argument, NULL, 'r'},
        {"config", required_argument, NULL, 'c'},
        {"log", required_argument, NULL, 'v'},
        {"hints", no_argument, NULL, 'H'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    rq_error why = {.code = RQ_OK};
    while ((option = getopt_long(argc, argv, ":D:h", options, NULL)) != -1) {
        if (option == '?' || option == ':') return rq_refuse_option("server", option, argv);
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (apply(a, option, optarg, &why) != RQ_OK) {
            fprintf(stderr, "rorqual server: %s\n", why.message);
            return 2;
        }
    }
    if (optind < argc) return rq_refuse("server", "'%s' is no option", argv[optind]);
    return -1;
}

static void list_unused(const rq_config *config)
{
    for (size_t i = 0; rq_config_unused(config, i) != NULL; i++)
        fprintf(stderr, "rorqual: setting %s is HBase's and has no effect here\n",
                rq_config_unused(config, i));
}

/* Every thread inherits the mask: only this one takes the signals. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Each connection and each store file is an open file, and a login shell's soft limit is 1,024.
 * What the hard limit allows may be had for the asking; where even that is little, accepting waits.
 */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        fprintf(stderr, "rorqual: no more than %llu open files: %s\n", (unsigned long long)before,
                strerror(errno));
}

static void print_hints(const rq_server *server)
{
    uint16_t zk, rs;
    const char *host = rq_server_host(server, &zk, &rs);
    bool defaults = strcmp(host, "127.0.0.1") == 0 && zk == 2181;
    printf("  HBase's shell       %s\n",
           defaults ? "hbase shell" : "hbase shell, with in hbase-site.xml:");
    if (!defaults)
        printf("                      hbase.zookeeper.quorum=%s\n"
               "                      hbase.zookeeper.property.clientPort=%u\n",
               host, zk);
    printf(
        "  Java                ConnectionFactory.createConnection(HBaseConfiguration.create())%s\n"
        "  without ZooKeeper   hbase.client.registry.impl="
        "org.apache.hadoop.hbase.client.RpcConnectionRegistry\n"
        "                      hbase.client.bootstrap.servers=%s:%u\n"
        "  a load              rorqual bench --zk %s:%u get\n"
        "  Ctrl-C              stops it in order\n",
        defaults ? "" : ", same settings", host, rs, host, zk);
}

/* What the setting gives, the umask of whoever started the process does not take; and whatever the
 * process should make without a thought of modes gets no more. */
static rq_err set_umask(const rq_config *config, rq_error *why)
{
    unsigned mode;
    RQ_TRY(rq_server_folder_mode(config, &mode, why));
    (void)umask(0777 & ~mode);
    return RQ_OK;
}

#define PULSES_PER_PERIOD 4 /* one pulse that comes late is no reason for a restart */

/* Waits for SIGTERM or SIGINT. Meanwhile the service manager's watchdog is told that the server
 * runs, as long as its loops do. */
static int wait_for_signal(const sigset_t *signals, rq_server *server, const rq_notify *notify)
{
    uint64_t ns = notify->watchdog_ns / PULSES_PER_PERIOD;
    struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    for (;;) {
        int got = ns > 0 ? sigtimedwait(signals, NULL, &pause) : sigwaitinfo(signals, NULL);
        if (got > 0) return got;
        if (errno == EAGAIN && rq_server_pulse(server)) rq_notify_send(notify, "WATCHDOG=1");
    }
}

static int serve_until_signal(const arguments *a, rq_server *server, const sigset_t *signals,
                              const rq_notify *notify)
{
    rq_error why = {.code = RQ_OK};
    printf("rorqual ready: %s\n", rq_server_ready_text(server));
    if (a->hints) print_hints(server);
    fflush(stdout);
    rq_notify_send(notify, "READY=1\nSTATUS=%s", rq_server_ready_text(server));
    int got = wait_for_signal(signals, server, notify);
    rq_notify_send(notify, "STOPPING=1\nSTATUS=flushing");
    printf("rorqual stopping: %s\n", got == SIGINT ? "SIGINT" : "SIGTERM");
    fflush(stdout);
    if (rq_server_close(server, &why) != RQ_OK) {
        fprintf(stderr, "rorqual: not stopped in order: %s\n", why.message);
        return 1;
    }
    printf("rorqual stopped\n");
    return 0;
}

static int serve(const arguments *a)
{
    rq_error why = {.code = RQ_OK};
    rq_server *server;
    sigset_t signals;
    rq_notify notify;
    block_signals(&signals);
    raise_open_files();
    if (rq_config_int(a->config, RQ_SET_HUGE_TEXT) != 0) (void)rq_text_to_huge_pages();
    if (set_umask(a->config, &why) != RQ_OK ||
        rq_server_open(&a->options, &server, &why) != RQ_OK) {
        fprintf(stderr, "rorqual: %s\n", why.message);
        return 1;
    }
    rq_notify_open(&notify);
    int code = serve_until_signal(a, server, &signals, &notify);
    rq_notify_close(&notify);
    return code;
}

static void trim_allocator(void)
{
    (void)malloc_trim(0);
}

static const char *default_advertise(const rq_config *config)
{
    const char *environment = getenv("RORQUAL_ADVERTISE");
    if (environment != NULL && environment[0] != '\0') return environment;
    return rq_config_text(config, RQ_SET_ADVERTISE);
}

int rq_cmd_server(int argc, char **argv)
{
    arguments a = {.options = {.data = "data",
                               .listen = "127.0.0.1",
                               .zk_port = 2181,
                               .master_port = 16000,
                               .rs_port = 16020,
                               .trim = trim_allocator,
                               .log = {.fd = STDERR_FILENO, .level = RQ_LOG_WARN}}};
    /* Few arenas and an early return of large blocks: memory follows the load down again. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    if (rq_config_new(&a.config) != RQ_OK) {
        fprintf(stderr, "rorqual: out of memory\n");
        return 1;
    }
    int code = parse(&a, argc, argv);
    if (code < 0) {
        a.options.config = a.config;
        if (a.options.advertise == NULL) a.options.advertise = default_advertise(a.config);
        list_unused(a.config);
        code = serve(&a);
    }
    rq_config_free(a.config);
    return code;
}
