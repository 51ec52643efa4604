/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's shell: Ruby (mruby) with HBase's commands, whose output is that of HBase 2.6's shell, byte for
 * byte. A script, standard input, or a prompt. */
#ifndef RQ_SHELL_SHELL_H
#define RQ_SHELL_SHELL_H

#include "client/client.h"

typedef enum rq_shell_as {
    RQ_SHELL_AS_HBASE, /* HBase's output */
    RQ_SHELL_AS_JSON,
    RQ_SHELL_AS_CSV,
    RQ_SHELL_AS_TSV,
} rq_shell_as;

typedef struct rq_shell_options {
    rq_client_options client; /* which cluster; not used if `open` is set */
    int64_t
        operation_ns; /* the longest time of a get or a change, repetitions included; 0: no limit */
    /* Called once before the first command that needs a cluster; may start a server. Sets the
     * address in *client. NULL: the address is already in `client`. */
    rq_err (*open)(void *ctx, rq_client_options *client, rq_error *why);
    void *ctx;
    const char *script; /* a file; NULL: standard input */
    char **arguments;   /* of the script */
    int argument_count;
    char **settings; /* "key=value" of -D */
    int setting_count;
    bool plain;           /* --ruby: the script is run as a whole, and nothing else */
    bool non_interactive; /* -n: ends at the first error, with exit code 1 */
    bool debug;           /* -d: errors with their backtraces */
    bool top_level; /* --top-level-defs: commands are methods of main. Here they always are, so it
                     * changes nothing. */
    bool yes;       /* -y: no questions before drop, truncate … */
    rq_shell_as as;
    const char *version; /* of this program */
} rq_shell_options;

/* Runs a session and returns the exit code for the process. Only one session per process, because the session handles
 * SIGINT (Ctrl-C). */
int rq_shell_run(const rq_shell_options *o);

#endif
