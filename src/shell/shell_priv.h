/* SPDX-License-Identifier: Apache-2.0 */
/* The shell's session, shared by the files of this room. mrb->ud points to it. */
#ifndef RQ_SHELL_SHELL_PRIV_H
#define RQ_SHELL_SHELL_PRIV_H

#include "shell/shell.h"

#include "base/buf.h"
#include "shell/rewrite.h"

#define MRB_NO_PRESYM /* Debian does not install the list of symbols */
#define MRB_USE_RATIONAL
#define MRB_USE_COMPLEX
#include <mruby.h>
#include <mruby/compile.h>
#include <signal.h>
#include <stdio.h>

/* display.c: text that may go to a pager, and the line of progress. */
typedef struct rq__display {
    rq_buf held;
    bool is_terminal; /* standard output is one */
    bool is_lost;     /* standard output cannot be written */
    bool is_off;      /* no pager: by \pager */
    bool is_holding;  /* text is held, until the screen is full */
    size_t held_lines;
    int64_t held_ns;
    FILE *pager; /* NULL: none runs */
    struct sigaction pipe_before;
    bool has_progress;
    int64_t progress_ns; /* the last change; 0: the statement has none yet */
    int64_t silence_ns;  /* since when a server has not answered */
    bool is_completing;  /* Tab: it waits for a moment only, and draws nothing */
} rq__display;

/* The error of text that mruby parses but cannot compile; mruby prints most reasons to standard error. */
#define RQ__TOO_LARGE                                                                              \
    "too many local variables (mruby has about 250), or too large an expression, or more than "    \
    "65535 different texts and numbers in one statement or file"

/* The error of input that the memory for scripts cannot hold. */
#define RQ__TOO_LONG                                                                               \
    "a line or statement is longer than the memory for scripts allows (HBASE_HEAPSIZE)"

/* memory.c: bytes that scripts use, and may. */
typedef struct rq__memory {
    size_t used, max;
    size_t held; /* of `used`: by rq__memory_hold */
    bool runs;   /* a script; otherwise the session, which may use a little more */
    /* No limit: mruby's compiler ends the process if memory is missing. The limit of the parsed text bounds the code. */
    bool compiles;
} rq__memory;

typedef struct rq__scanner rq__scanner;

typedef struct rq__shell {
    const rq_shell_options *options;
    mrb_state *mrb;
    rq__memory memory;       /* of mrb */
    rq_client_options where; /* the cluster, once known */
    bool is_open;            /* `where` is known */
    rq_client *client;       /* NULL: not connected */
    rq_op *op;
    rq_client *home; /* the session's own client while `client` is another's; else NULL */
    rq_op *home_op;
    char away[256], away_root[128]; /* where that cluster is */
    /* Buffers of a call and of an operation. They belong to the session because an exception of
     * Ruby unwinds C functions without freeing their memory. */
    rq_buf request, answer, more, rows;
    rq_buf rewritten;        /* a statement, as mruby reads it (rewrite.h) */
    bool stale;              /* a row of the last get or scan came from a replica */
    rq_scan_metrics metrics; /* of the last scan */
    rq__scanner *scanners;   /* with an operation (scans.c) */
    mrbc_context *locals;    /* of the statements: their local variables */
    unsigned local_count;    /* registers that these take, as of the last statement */
    int locals_seen;         /* of `locals`, those that hide no command */
    mrb_func_t evals[3];     /* mruby's own eval, instance_eval and class_eval */
    mrb_func_t caller;       /* likewise */
    bool bytes_in_base64;    /* in messages that are decoded */
    const char *left_packed; /* of the same: fields of this name are left as bytes; NULL: none */
    int line;                /* the number in the prompt */
    uint64_t begin;          /* that of the statement's first line */
    bool is_typed;           /* lines come from a terminal */
    bool at_prompt;          /* and output goes to one: by libedit */
    rq__display display;
    volatile sig_atomic_t interrupted;
    volatile sig_atomic_t is_reading; /* a line of the terminal, which Ctrl-C drops */
    int64_t interrupted_ns;           /* of the handler: when `interrupted` was set */
} rq__shell;

static inline rq__shell *rq__shell_of(mrb_state *mrb)
{
    return mrb->ud;
}

/* Define their classes and methods; before the preludes. */
void rq__define_bytes(mrb_state *mrb);
void rq__define_floats(mrb_state *mrb);
void rq__define_messages(mrb_state *mrb);
void rq__define_calls(mrb_state *mrb);
void rq__define_rows(mrb_state *mrb);
void rq__define_scans(mrb_state *mrb);
void rq__define_regexp(mrb_state *mrb);
void rq__define_times(mrb_state *mrb);
void rq__define_terminal(mrb_state *mrb);
void rq__define_web(mrb_state *mrb);
void rq__define_stat(mrb_state *mrb);
void rq__define_keys(mrb_state *mrb);
void rq__define_display(mrb_state *mrb);

/* link.c: connects if there is no connection; raises. */
rq_client *rq__shell_client(mrb_state *mrb);
/* Ends operations and connection; the next call connects again. */
void rq__shell_disconnect(rq__shell *s);
/* Raises Interrupt if Ctrl-C was pressed. */
void rq__shell_check_interrupt(mrb_state *mrb);
/* Raises HBaseError with the failure's Java class and text. */
void rq__raise_failure(mrb_state *mrb, rq_err rc, const char *java_class, rq_slice text,
                       bool retry);

/* Raises the error of a call, or an operation, that has got no answer in time. */
void rq__raise_silence(mrb_state *mrb);

/* scans.c: closes the client's scanners on the servers; a scan that goes on fails when the client is closed. */
void rq__scanners_end(rq__shell *s, rq_client *client);
/* scans.c: the client is about to be closed; its scanners cannot go on. REQUIRES: none has a step in
 * progress. */
void rq__scanners_lose(rq__shell *s, const rq_client *client);

/* display.c */
void rq__display_print(mrb_state *mrb, const char *text, size_t len);
/* Flushes standard output. False: output was lost, so a script must not end with exit code 0. */
bool rq__display_written(void);
/* Shows what is held, and erases the progress. */
void rq__display_flush(rq__shell *s);
/* A statement waits: what is held is shown after a while. */
void rq__display_waits(rq__shell *s);
/* Ends the statement's output: prints the held text, waits for the pager, erases the progress
 * line. */
void rq__display_end(rq__shell *s);
/* A wait for an answer begins. */
void rq__display_wait_begins(rq__shell *s);
/* The client's before_wait: a long wait is shown. `ctx` is the session. */
void rq__display_silence(void *ctx);
bool rq__display_wants_progress(rq__shell *s);
void rq__display_progress(rq__shell *s, const char *text);

/* NULL: no memory. `m` must outlive it. */
RQ_NODISCARD
mrb_state *rq__open_ruby(rq__memory *m);

/* Bytes that mruby may still allocate. */
size_t rq__memory_left(const rq__memory *m);
/* Bytes that a line or a statement may have: half of what is left, because buffers grow by doubling. */
size_t rq__memory_for_text(const rq__memory *m);
/* Charges `bytes` outside of mruby, instead of those of the last call. False: they are more than is left; nothing has
 * changed. */
RQ_NODISCARD
bool rq__memory_hold(rq__memory *m, size_t bytes);

/* message.c */
rq_slice rq__slice_of(mrb_value string);

/* statement.c */
typedef enum rq__statement {
    RQ__STATEMENT_WHOLE,
    RQ__STATEMENT_OPEN,  /* more lines belong to it */
    RQ__STATEMENT_WRONG, /* does not parse; *ret_error is the message, on the heap */
} rq__statement;
/* Rewrites the text (rewrite.c) and parses the result. `line` is the number of the text's first line. *ret_read: the
 * text that was parsed, valid until the next text is parsed. NULL: no memory. Syntax errors are in the parser. */
RQ_NODISCARD
struct mrb_parser_state *rq__statement_parse(rq__shell *s, mrbc_context *c, rq_slice text,
                                             uint64_t line, rq_slice *ret_read);
/* mruby's parser without memory for the tree; if it has none for this text either, the error has no text. */
#define RQ__NO_MEMORY_TO_PARSE "memory allocation error"
/* The text of the first error. REQUIRES: there is one. */
const char *rq__parser_error(const struct mrb_parser_state *p);
/* Of the text that `p` has parsed. */
rq__statement rq__statement_of(const struct mrb_parser_state *p, const char *text, size_t len);
/* A whole statement. */
typedef struct rq__parsed {
    struct mrb_parser_state *parser;
    rq_slice read; /* what it has parsed; valid until the next text is parsed */
} rq__parsed;
/* Parses `text` with the session's local variables. Sets *ret if the statement is complete; the caller then calls
 * rq__statement_run, and keeps `text` until that returns. */
rq__statement rq__statement_check(rq__shell *s, rq_slice text, rq__parsed *ret, char **ret_error);
/* Runs the statement, and frees its parser. mrb->exc is set if it raised. REQUIRES: no other text has been parsed. */
mrb_value rq__statement_run(rq__shell *s, rq__parsed *statement);
/* A local variable with a command's name would hide the command: warns and forgets the variable. */
void rq__statement_free_commands(rq__shell *s);

/* code.c: compiles what `p` has parsed of the text `read`, whose first line has the number `line`. NULL: mruby cannot
 * compile it, or a unit of code in it (a file, a statement, a block) has more than 65,535 different literals. */
RQ_NODISCARD
struct RProc *rq__compile(rq__shell *s, struct mrb_parser_state *p, rq_slice read, uint64_t line);
/* Makes eval, instance_eval and class_eval refuse such text, and understand what rewrite.c does. */
void rq__define_eval(mrb_state *mrb);

/* A unit of code that begins behind line 32,767 begins for
 * mruby in one of the lines from 1 to 32,768. */
static inline uint16_t rq__line_for_mruby(uint64_t first)
{
    uint64_t rest = first & ((1U << RQ__LINE_BITS) - 1);
    return (uint16_t)(first >> RQ__LINE_BITS == 0 ? first : 1 + rest);
}

/* The line that has this number for mruby, in a unit that begins in line `first`. */
static inline uint64_t rq__line_of_mruby(uint64_t first, uint16_t number)
{
    uint64_t part = first >> RQ__LINE_BITS;
    return part == 0 ? number : (part << RQ__LINE_BITS) + number - 1;
}

/* places.c: gives backtraces the full numbers of the lines of `code`. `first`: the number of its first line. */
void rq__mark_lines(mrb_state *mrb, const struct RProc *code, uint64_t first);
/* The backtrace of an exception, an array of "FILE:LINE:in `METHOD'"; nil: it has none. */
mrb_value rq__backtrace_of(mrb_state *mrb, mrb_value exception);
/* Also __dir__, require_relative. */
void rq__define_places(mrb_state *mrb);

/* load.c: Shell.load_file */
void rq__define_load(mrb_state *mrb);

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
