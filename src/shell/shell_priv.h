/* SPDX-License-Identifier: Apache-2.0 */
/* The shell's session, shared by the files of this room. mrb->ud points to it. */
#ifndef RQ_SHELL_SHELL_PRIV_H
#define RQ_SHELL_SHELL_PRIV_H

#include "shell/shell.h"

#include "base/buf.h"

#define MRB_NO_PRESYM /* Debian does not install the list of symbols */
#define MRB_USE_RATIONAL
#define MRB_USE_COMPLEX
#include <mruby.h>
#include <mruby/compile.h>
#include <signal.h>

typedef struct rq__shell {
    const rq_shell_options *options;
    mrb_state *mrb;
    rq_client_options where; /* the cluster, once known */
    bool is_open;            /* `where` is known */
    rq_client *client;       /* NULL: not connected */
    rq_op *op;
    /* Buffers of a call and an operation. They belong to the session, because an exception of Ruby
     * leaves the C functions below it. */
    rq_buf request, answer, more, rows;
    bool stale;              /* a row of the last get or scan came from a replica */
    rq_scan_metrics metrics; /* of the last scan */
    mrbc_context *locals;    /* of the statements: their local variables */
    bool bytes_in_base64;    /* in messages that are decoded */
    int line;                /* the number in the prompt */
    bool at_prompt;          /* lines come from a terminal by libedit */
    volatile sig_atomic_t interrupted;
} rq__shell;

static inline rq__shell *rq__shell_of(mrb_state *mrb)
{
    return mrb->ud;
}

/* Define their classes and methods; before the preludes. */
void rq__define_bytes(mrb_state *mrb);
void rq__define_messages(mrb_state *mrb);
void rq__define_calls(mrb_state *mrb);
void rq__define_rows(mrb_state *mrb);
void rq__define_regexp(mrb_state *mrb);
void rq__define_times(mrb_state *mrb);
void rq__define_terminal(mrb_state *mrb);
void rq__define_web(mrb_state *mrb);

/* link.c: connects if there is no connection; raises. */
rq_client *rq__shell_client(mrb_state *mrb);
/* Ends operations and connection; the next call connects again. */
void rq__shell_disconnect(rq__shell *s);
/* Raises Interrupt if Ctrl-C was pressed. */
void rq__shell_check_interrupt(mrb_state *mrb);
/* Raises HBaseError with the failure's Java class and text. */
void rq__raise_failure(mrb_state *mrb, rq_err rc, const char *java_class, rq_slice text,
                       bool retry);

/* message.c */
rq_slice rq__slice_of(mrb_value string);

/* statement.c */
typedef enum rq__statement {
    RQ__STATEMENT_WHOLE,
    RQ__STATEMENT_OPEN,  /* more lines belong to it */
    RQ__STATEMENT_WRONG, /* does not parse; *ret_error is the message, on the heap */
} rq__statement;
rq__statement rq__statement_check(rq__shell *s, const char *text, size_t len, char **ret_error);
/* Runs a whole statement with the session's local variables. mrb->exc is set if it raised. */
mrb_value rq__statement_run(rq__shell *s, const char *text, size_t len);

/* prompt.c: lines from a terminal. */
typedef struct rq__prompt rq__prompt;
RQ_NODISCARD
rq__prompt *rq__prompt_open(rq__shell *s);
void rq__prompt_close(rq__prompt *p);
/* The next line with its newline; valid until the next call. NULL: the end. *ret_interrupted: Ctrl-C
 * instead of a line. */
const char *rq__prompt_line(rq__prompt *p, const char *prompt, bool *ret_interrupted);
void rq__prompt_remember(rq__prompt *p, const char *statement);

#endif
