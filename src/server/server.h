/* SPDX-License-Identifier: Apache-2.0 */
/* A server as an object: everything that `rorqual server` runs, on one data folder. A process may
 * have several, on different folders and ports. */
#ifndef RQ_SERVER_H
#define RQ_SERVER_H

#include "base/config.h"
#include "net/memory.h"

#include <stdint.h>

struct rq_gate_policy;

typedef struct rq_server rq_server;

typedef struct rq_server_options {
    const char *data;      /* the folder; created when missing. rq_node_open: unused */
    const char *listen;    /* comma-separated addresses and names (listen.h) */
    const char *advertise; /* the host sent to clients; NULL: derived from the listening address */
    /* "zk=HOST:PORT/ROOT,store=STORE,secret=FILE" (cluster.h), for rq_node_open alone. NULL: standalone. */
    const char *cluster;
    /* For rq_node_open: called once, on any thread, when the process has lost its place in the cluster: it must end at
     * once, without rq_node_close. */
    void (*lost)(void *ctx, const rq_error *why);
    void *lost_ctx;
    rq_config *config;   /* checked; must outlive the server, which changes it on reload */
    struct rq_log *log;  /* NULL: none; outlives the server, which sets its level and format from
                            * the configuration, again when it reloads */
    const char *version; /* for the log: "0.1.0 (commit abc)" */
    /* Reads the configuration from its sources again and checks it; NULL: no reload. */
    rq_err (*reread)(void *ctx, rq_config **ret, rq_error *why);
    void *reread_ctx;
    void (*trim)(
        void); /* returns the allocator's free memory to the system; NULL: none. Any thread */
    /* May refuse and delay operations (ops/gate.h); outlives the server. NULL: all pass. */
    const struct rq_gate_policy *policy;
    /* Begins the end of the process, which leads to rq_server_close or rq_node_close; called on any thread, for
     * StopServer, StopMaster and Shutdown of clients; must not block. NULL: these are refused. */
    void (*stop)(void *ctx);
    void *stop_ctx;
    /* Transform of every connection, e.g. TLS (net/transform.h); copied. NULL: none. Without a
     * budget of its own its memory is charged to the requests' budget. */
    const rq_transform_kind *transform;
} rq_server_options;

/* The mode of folders that the server creates, from rorqual.data.mode. */
RQ_NODISCARD
rq_err rq_server_folder_mode(const rq_config *config, unsigned *ret, rq_error *why);

/* Receives a line of rq_server_check. `subject` is one of "listen", "clients", "data", "memory",
 * "setting", "no effect", "note", "PROBLEM". */
typedef void (*rq_server_line)(void *ctx, const char *subject, const char *text);
/* Reports what a server with these options would do, without doing it. Returns the first problem
 * that would prevent the start. A port in use is only a note. */
RQ_NODISCARD
rq_err rq_server_check(const rq_server_options *o, rq_server_line line, void *ctx);

/* Opens everything and serves. On failure `why` has one clear line. A failure that comes from the
 * options (settings, addresses, ports in use) leaves the disk untouched. */
RQ_NODISCARD
rq_err rq_server_open(const rq_server_options *o, rq_server **ret, rq_error *why);
/* "zookeeper HOST:PORT, master HOST:PORT, regionserver HOST:PORT, http HOST:PORT, data DIR";
 * without http if there are no pages. */
const char *rq_server_ready_text(const rq_server *s);
/* The folder was empty or missing before. */
bool rq_server_folder_is_new(const rq_server *s);
/* The absolute path of the data folder. */
const char *rq_server_folder(const rq_server *s);
/* The host sent to clients, and the ports in use. */
const char *rq_server_host(const rq_server *s, uint16_t *ret_zk_port, uint16_t *ret_rs_port);
typedef enum rq_server_port {
    RQ_PORT_ZOOKEEPER,
    RQ_PORT_MASTER,
    RQ_PORT_REGION_SERVER
} rq_server_port;
/* Opens a connection in memory, served like a TCP connection to `port`. Any thread but a loop's.
 * Errors as rq_memory_connect. */
RQ_NODISCARD
rq_err rq_server_connect(rq_server *s, rq_server_port port, rq_memory_peer **ret);
/* Reads the configuration again and applies the settings that change without a restart
 * (rq_setting_info.reloads); logs them, and those that need a restart. Do not call it on a loop. */
rq_err rq_server_reload(rq_server *s, rq_error *why);
/* Logs what the server is doing: its loops, connections, calls in flight, procedures and queues.
 * Waits for the loops for at most some seconds. Do not call it on a loop. */
void rq_server_report(rq_server *s);
/* True if every event loop has run a task since the previous call. Never blocks; one thread. */
bool rq_server_pulse(rq_server *s);
/* Finishes running calls, flushes, and leaves an empty log. Always frees; returns the first error,
 * after which the log has what was not flushed. NULL is fine. */
rq_err rq_server_close(rq_server *s, rq_error *why);

#endif
