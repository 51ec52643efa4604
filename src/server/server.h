/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server as an object: everything that `rorqual server` runs, on one data folder. A process may
 * hold several, on different folders and ports.
 */
#ifndef RQ_SERVER_H
#define RQ_SERVER_H

#include "base/config.h"
#include "base/log.h"

#include <stdint.h>

typedef struct rq_server rq_server;

typedef struct rq_server_options {
    const char *data;      /* the folder; created when missing */
    const char *listen;    /* numeric address */
    const char *advertise; /* what clients are told; NULL: from the listening address */
    uint16_t zk_port, master_port, rs_port; /* 0: any free one */
    const rq_config *config;                /* read during open only */
    rq_log log;
    void (*trim)(
        void); /* returns the allocator's free memory to the system; NULL: none. Any thread */
} rq_server_options;

/* The mode of folders that the server makes, from rorqual.data.mode. */
RQ_NODISCARD
rq_err rq_server_folder_mode(const rq_config *config, unsigned *ret, rq_error *why);

/* Opens everything and serves. On failure one clear line is in `why`, and unless the failure came
 * from the data itself nothing on disk was touched. */
RQ_NODISCARD
rq_err rq_server_open(const rq_server_options *o, rq_server **ret, rq_error *why);
/* "zookeeper HOST:PORT, master HOST:PORT, regionserver HOST:PORT, data DIR" */
const char *rq_server_ready_text(const rq_server *s);
/* The host that clients are told, and the ports in use. */
const char *rq_server_host(const rq_server *s, uint16_t *ret_zk_port, uint16_t *ret_rs_port);
/* True when every event loop has run a task since the previous call. Never waits; one thread. */
bool rq_server_pulse(rq_server *s);
/* Finishes what runs, flushes, leaves an empty log. Always frees; the first error is returned. */
rq_err rq_server_close(rq_server *s, rq_error *why);

#endif
