/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual shell: HBase's shell on a cluster, on a data folder or in memory. For a folder or memory it
 * starts a server of its own on free ports of the loopback interface, when the first command needs it. */
#include "cli/args.h"
#include "cli/cli.h"

#include <stdio.h>

#ifdef RQ_SHELL

#include "cli/version.h"
#include "base/host_port.h"
#include "server/server.h"
#include "shell/shell.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRIES 7 /* HBASE: hbase.client.retries.number in its shell */

static const char help[] =
    "usage: rorqual shell [-n] [-y] [-d] [-D KEY=VALUE] [--json | --csv | --tsv]\n"
    "                     [--zk HOST:PORT | --bootstrap HOST:PORT | file:FOLDER | memory:]\n"
    "                     [SCRIPT [ARGUMENT...]]\n"
    "\n"
    "  --zk HOST:PORT,...     ZooKeeper of the cluster (127.0.0.1:2181)\n"
    "  --bootstrap HOST:PORT  a master or region server, instead of ZooKeeper\n"
    "  --zk-root PATH         parent znode (/hbase)\n"
    "  --user NAME            the user's name for the server\n"
    "  -n, --noninteractive   end at the first error, with exit code 1\n"
    "  -y, --yes              do not ask before commands that delete data (drop, truncate and "
    "others)\n"
    "  -d, --debug            print errors with their backtraces\n"
    "  -D KEY=VALUE           a setting of HBase's shell, such as hbase.zookeeper.quorum\n"
    "  --json, --csv, --tsv   print rows of get and scan in this format\n"
    "  --ruby                 run SCRIPT as 'hbase org.jruby.Main' does: results are not echoed\n"
    "  --top-level-defs       as in HBase's shell\n"
    "  --return-values        as in HBase's shell\n"
    "HBase 2.6's shell: its commands, scripts and output. file: opens a data folder that no "
    "server\n"
    "has open; memory: is an empty database, which is lost at the end. Without SCRIPT, statements "
    "are\n"
    "read from standard input, with a prompt if that is a terminal.\n"
    "exit codes: 0 the script ended; 1 an error ended the script; 2 wrong arguments; other codes "
    "are\n"
    "those that a script passes to exit\n";

typedef struct arguments {
    rq_shell_options options;
    const char *local; /* "file:FOLDER", "memory:"; NULL: a cluster */
    rq_server *server;
    rq_config *config;
    char folder[64]; /* of "memory:" */
    char data[80];   /* the database, in `folder` */
    int folder_lock; /* descriptor with the flock of `folder`; -1: none */
    char address[2048];
} arguments;

/* --- file: and memory: ------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Opens the folder and takes its flock; waits for the flock if `waits`. False: the folder was removed, belongs to
 * another user, or is in use by another process. */
static bool lock_folder(const char *folder, bool waits, int *ret)
{
    struct stat st;
    *ret = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret < 0) return false;
    bool is_own = fstat(*ret, &st) == 0 && st.st_uid == geteuid();
    int rc = is_own ? flock(*ret, LOCK_EX | (waits ? 0 : LOCK_NB)) : -1;
    if (rc == 0 && access(folder, F_OK) == 0) return true;
    (void)close(*ret);
    *ret = -1;
    return false;
}

/* Removes folders of shells that were killed, or whose terminal was closed: no process holds their flocks. */
static void remove_leftovers(const char *memory)
{
    glob_t found = {0};
    char pattern[64];
    int lock;
    snprintf(pattern, sizeof pattern, "%s/rorqual-memory-??????", memory);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!lock_folder(found.gl_pathv[i], false, &lock)) continue;
        (void)nftw(found.gl_pathv[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
        (void)close(lock);
    }
    globfree(&found);
}

/* Until the new folder is locked, another shell may remove it as a leftover; then another one is made. */
static rq_err make_folder(arguments *a, const char *memory, rq_error *why)
{
    do {
        snprintf(a->folder, sizeof a->folder, "%s/rorqual-memory-XXXXXX", memory);
        if (mkdtemp(a->folder) == NULL) {
            a->folder[0] = '\0';
            return rq_fail(why, RQ_E_IO, "cannot create a folder in %s", memory);
        }
    } while (!lock_folder(a->folder, true, &a->folder_lock) && access(a->folder, F_OK) != 0);
    if (a->folder_lock < 0) return rq_fail(why, RQ_E_IO, "cannot lock %s", a->folder);
    snprintf(a->data, sizeof a->data, "%s/data", a->folder);
    return mkdir(a->data, 0700) == 0 ? RQ_OK : rq_fail(why, RQ_E_IO, "cannot create %s", a->data);
}

static rq_err choose_folder(arguments *a, const char **ret, rq_error *why)
{
    if (strncmp(a->local, "file:", 5) == 0) {
        *ret = strncmp(a->local + 5, "///", 3) == 0 ? a->local + 7 : a->local + 5;
        return RQ_OK;
    }
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    remove_leftovers(memory);
    *ret = a->data;
    return make_folder(a, memory, why);
}

static rq_err set_ports(rq_config *c, rq_error *why)
{
    static const char *const zero[] = {"hbase.zookeeper.property.clientPort", "hbase.master.port",
                                       "hbase.regionserver.port"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(zero); i++)
        RQ_TRY(rq_config_set(c, zero[i], "0", why));
    RQ_TRY(rq_config_set(c, "hbase.master.info.port", "-1", why));
    return rq_config_check(c, 1 << 30, why);
}

static rq_err open_local(void *ctx, rq_client_options *client, rq_error *why)
{
    arguments *a = ctx;
    uint16_t zk, rs;
    rq_server_options o = {.listen = "127.0.0.1", .version = RQ_VERSION};
    RQ_TRY(rq_config_new(&a->config));
    RQ_TRY(set_ports(a->config, why));
    RQ_TRY(choose_folder(a, &o.data, why));
    o.config = a->config;
    RQ_TRY(rq_server_open(&o, &a->server, why));
    const char *host = rq_server_host(a->server, &zk, &rs);
    snprintf(a->address, sizeof a->address, "%s:%u", host, zk);
    client->zookeeper = a->address;
    client->bootstrap = NULL;
    return RQ_OK;
}

static void remove_folder(const char *folder)
{
    if (folder[0] != '\0' && nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "rorqual shell: cannot remove %s\n", folder);
}

static int close_local(arguments *a)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_server_close(a->server, &why);
    if (rc != RQ_OK) fprintf(stderr, "rorqual shell: %s\n", why.message);
    rq_config_free(a->config);
    remove_folder(a->folder);
    if (a->folder_lock >= 0) (void)close(a->folder_lock);
    return rc == RQ_OK ? 0 : 1;
}

/* --- arguments -------------------------------------------------------------------------------- */

/* The value of -D KEY=VALUE that was given last; NULL: none was. */
static const char *setting(const arguments *a, const char *key)
{
    size_t n = strlen(key);
    for (int i = a->options.setting_count; i-- > 0;)
        if (strncmp(a->options.settings[i], key, n) == 0 && a->options.settings[i][n] == '=')
            return a->options.settings[i] + n + 1;
    return NULL;
}

/* HBASE: jar-bootstrap.rb splits at each '=' and wants two parts. */
static int take_setting(arguments *a, char *pair)
{
    const char *mark = strchr(pair, '=');
    if (mark == NULL || mark == pair || mark[1] == '\0' || strchr(mark + 1, '=') != NULL)
        return rq__refuse("shell", "-D %s: not KEY=VALUE", pair);
    a->options.settings[a->options.setting_count++] = pair;
    return -1;
}

/* "HOST:PORT,…" of the hosts of hbase.zookeeper.quorum, which may have ports of their own. */
static int join_quorum(arguments *a, const char *hosts, const char *port)
{
    size_t used = 0;
    for (const char *at = hosts; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (used > 0) a->address[used++] = ',';
        used += (size_t)rq_host_with_port(a->address + used, sizeof a->address - used,
                                          rq_slice_of(at, n), rq_slice_cstr(port));
        if (used + 1 >= sizeof a->address)
            return rq__refuse("shell", "hbase.zookeeper.quorum is too long");
        at += n + (at[n] == ',');
    }
    return -1;
}

/* The number of a setting, if it was given; *to stays otherwise. */
static int number_setting(const arguments *a, const char *key, unsigned *to)
{
    const char *text = setting(a, key);
    uint64_t n;
    if (text == NULL) return -1;
    if (!rq__arg_number(text, &n) || n > INT32_MAX)
        return rq__refuse("shell", "-D %s=%s: not a number from 0 to %d", key, text, INT32_MAX);
    *to = (unsigned)n;
    return -1;
}

/* How long a call may take and how often it is repeated. */
static int use_limits(arguments *a)
{
    rq_client_options *c = &a->options.client;
    unsigned operation_ms = 0;
    int code = number_setting(a, "hbase.client.retries.number", &c->retries);
    if (code < 0) code = number_setting(a, "hbase.client.pause", &c->pause_ms);
    if (code < 0) code = number_setting(a, "hbase.rpc.timeout", &c->rpc_timeout_ms);
    if (code < 0) code = number_setting(a, "hbase.client.operation.timeout", &operation_ms);
    a->options.operation_ns = (int64_t)operation_ms * 1000000;
    return code;
}

/* The settings that say where the cluster is. */
static int use_settings(arguments *a)
{
    rq_client_options *c = &a->options.client;
    const char *hosts = setting(a, "hbase.zookeeper.quorum");
    const char *port = setting(a, "hbase.zookeeper.property.clientPort");
    const char *root = setting(a, "zookeeper.znode.parent");
    if (root != NULL && c->zk_root == NULL) c->zk_root = root;
    if (hosts == NULL && port == NULL) return -1;
    if (c->zookeeper != NULL)
        return rq__refuse("shell", "more than one cluster or folder is given");
    c->zookeeper = a->address;
    return join_quorum(a, hosts != NULL ? hosts : "127.0.0.1", port != NULL ? port : "2181");
}

enum { TOP_LEVEL = 256, RUBY, AS_JSON, AS_CSV, AS_TSV, ZK, BOOTSTRAP, ZK_ROOT, USER };

static const struct option known[] = {
    {"help", no_argument, NULL, 'h'},
    {"debug", no_argument, NULL, 'd'},
    {"noninteractive", no_argument, NULL, 'n'},
    {"yes", no_argument, NULL, 'y'},
    {"return-values", no_argument, NULL, 'r'},
    {"top-level-defs", no_argument, NULL, TOP_LEVEL},
    {"ruby", no_argument, NULL, RUBY},
    {"json", no_argument, NULL, AS_JSON},
    {"csv", no_argument, NULL, AS_CSV},
    {"tsv", no_argument, NULL, AS_TSV},
    {"zk", required_argument, NULL, ZK},
    {"bootstrap", required_argument, NULL, BOOTSTRAP},
    {"zk-root", required_argument, NULL, ZK_ROOT},
    {"user", required_argument, NULL, USER},
    {0},
};

static int take_option(arguments *a, int got, char **argv)
{
    rq_shell_options *o = &a->options;
    switch (got) {
    case 'h':
        fputs(help, stdout);
        return 0;
    case 'd':
        o->debug = true;
        return -1;
    case 'n':
        o->non_interactive = true;
        return -1;
    case 'y':
        o->yes = true;
        return -1;
    case 'r':
        fputs("[INFO] the -r | --return-values option is ignored. we always behave as though it "
              "was given.\n",
              stderr);
        return -1;
    case 'D':
        return take_setting(a, optarg);
    case TOP_LEVEL:
        o->top_level = true;
        return -1;
    case RUBY:
        o->plain = o->non_interactive = true;
        return -1;
    case AS_JSON:
        o->as = RQ_SHELL_AS_JSON;
        return -1;
    case AS_CSV:
        o->as = RQ_SHELL_AS_CSV;
        return -1;
    case AS_TSV:
        o->as = RQ_SHELL_AS_TSV;
        return -1;
    case ZK:
        o->client.zookeeper = optarg;
        return -1;
    case BOOTSTRAP:
        o->client.bootstrap = optarg;
        return -1;
    case ZK_ROOT:
        o->client.zk_root = optarg;
        return -1;
    case USER:
        o->client.user = optarg;
        return -1;
    default:
        return rq__refuse_option("shell", got, argv);
    }
}

/* A script's arguments. HBASE: jar-bootstrap.rb takes -DKEY=VALUE out of them, too. */
static int take_arguments(arguments *a, int argc, char **argv)
{
    rq_shell_options *o = &a->options;
    int code = -1;
    o->arguments = argv + optind;
    for (int i = optind; i < argc && code < 0; i++)
        if (strncmp(argv[i], "-D", 2) == 0 && strchr(argv[i], '=') != NULL)
            code = take_setting(a, argv[i] + 2);
        else
            o->arguments[o->argument_count++] = argv[i];
    return code;
}

static int take_rest(arguments *a, int argc, char **argv)
{
    rq_client_options *c = &a->options.client;
    if (optind < argc) a->options.script = argv[optind++];
    if (a->options.plain && a->options.script == NULL)
        return rq__refuse("shell", "--ruby needs a SCRIPT");
    int code = take_arguments(a, argc, argv);
    if (code < 0) code = use_settings(a);
    if (code < 0) code = use_limits(a);
    if (code >= 0) return code;
    if ((c->zookeeper != NULL) + (c->bootstrap != NULL) + (a->local != NULL) > 1)
        return rq__refuse("shell", "more than one cluster or folder is given");
    const char *at = c->zookeeper != NULL ? c->zookeeper : c->bootstrap;
    if (at != NULL && !rq_client_are_addresses(at, NULL))
        return rq__refuse("shell", "'%s' is not host:port", at);
    if (a->local != NULL && strcmp(a->local, "file:") == 0)
        return rq__refuse("shell", "file: needs a folder: file:/path, file:folder");
    if (at == NULL) c->zookeeper = "127.0.0.1:2181";
    const struct passwd *user = getpwuid(geteuid());
    if (c->user == NULL && user != NULL) c->user = user->pw_name;
    return -1;
}

/* file:FOLDER or memory: as the next argument. */
static bool take_local(arguments *a, int argc, char **argv)
{
    if (optind >= argc || a->local != NULL) return false;
    if (strncmp(argv[optind], "file:", 5) != 0 && strcmp(argv[optind], "memory:") != 0)
        return false;
    a->local = argv[optind++];
    return true;
}

static int parse(arguments *a, int argc, char **argv)
{
    int got, code;
    optind = 0;
    do
        while ((got = getopt_long(argc, argv, "+:hdnyrD:", known, NULL)) != -1)
            if ((code = take_option(a, got, argv)) >= 0) return code;
    while (take_local(a, argc, argv)); /* options may follow it */
    return take_rest(a, argc, argv);
}

int rq__cmd_shell(int argc, char **argv)
{
    arguments a = {.options = {.client = {.retries = RETRIES}, .version = RQ_VERSION},
                   .folder_lock = -1};
    a.options.settings = calloc((size_t)argc + 1, sizeof *a.options.settings);
    if (a.options.settings == NULL) return 1;
    int code = parse(&a, argc, argv);
    if (code < 0) {
        if (a.local != NULL) {
            a.options.open = open_local;
            a.options.ctx = &a;
        }
        code = rq_shell_run(&a.options);
        if (a.local != NULL && close_local(&a) != 0 && code == 0) code = 1;
    }
    free(a.options.settings);
    return code;
}

#else

int rq__cmd_shell(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return rq__refuse("shell", "this program was built without mruby and libedit, which the shell "
                               "needs");
}

#endif
