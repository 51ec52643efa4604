/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server as an object: everything that `rorqual server` runs, on one data folder. A process may
 * hold several, on different folders and ports.
 */
#ifndef RQ_SERVER_H
#define RQ_SERVER_H

#include "base/config.h"
#include <stdint.h>

typedef struct rq_server rq_server;

typedef struct rq_server_options {
    const char *data;      /* the folder; created when missing */
    const char *listen;    /* addresses and names, with commas between them (listen.h) */
    const char *advertise; /* what clients are told; NULL: from the listening address */
    rq_config *config;     /* checked; outlives the server, which changes it when it reloads */
    struct rq_log *log;    /* NULL: none; outlives the server, which sets its level and format from
                            * the configuration, again when it reloads */
    const char *version;   /* for the log: "0.1.0 (commit abc)" */
    /* Makes the configuration anew from its sources, checked; NULL: there are none. */
    rq_err (*reread)(void *ctx, rq_config **ret, rq_error *why);
    void *reread_ctx;
    void (*trim)(
        void); /* returns the allocator's free memory to the system; NULL: none. Any thread */
} rq_server_options;

/* The mode of folders that the server makes, from rorqual.data.mode. */
RQ_NODISCARD
rq_err rq_server_folder_mode(const rq_config *config, unsigned *ret, rq_error *why);

/* A line of what rq_server_check finds: "listen", "clients", "data", "memory", "setting", "no effect",
 * "note", "PROBLEM". */
typedef void (*rq_server_line)(void *ctx, const char *subject, const char *text);
/* Says what a server with these options would do, and does none of it. The first problem is returned:
 * what would refuse the start. A port that is in use is a note. */
RQ_NODISCARD
rq_err rq_server_check(const rq_server_options *o, rq_server_line line, void *ctx);

/* Opens everything and serves. On failure one clear line is in `why`, and unless the failure came
 * from the data itself nothing on disk was touched. */
RQ_NODISCARD
rq_err rq_server_open(const rq_server_options *o, rq_server **ret, rq_error *why);
/* "zookeeper HOST:PORT, master HOST:PORT, regionserver HOST:PORT, data DIR" */
const char *rq_server_ready_text(const rq_server *s);
/* The folder was empty or missing before. */
bool rq_server_folder_is_new(const rq_server *s);
/* The absolute path of the data folder. */
const char *rq_server_folder(const rq_server *s);
/* The host that clients are told, and the ports in use. */
const char *rq_server_host(const rq_server *s, uint16_t *ret_zk_port, uint16_t *ret_rs_port);
/* Reads the configuration again and takes over the settings that change without a restart
 * (rq_setting_info.reloads); the log names them, and those that need a restart. Not on a loop. */
rq_err rq_server_reload(rq_server *s, rq_error *why);
/* Logs what the server is doing: its loops, connections, calls in flight, procedures and queues. Waits
 * for the loops for some seconds at most. Not on a loop. */
void rq_server_report(rq_server *s);
/* True when every event loop has run a task since the previous call. Never waits; one thread. */
bool rq_server_pulse(rq_server *s);
/* Finishes what runs, flushes, leaves an empty log. Always frees; the first error is returned. */
rq_err rq_server_close(rq_server *s, rq_error *why);

#endif
