/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full screen on the terminal: frames that replace each other, and keys. What ends the process
 * (Ctrl-C, SIGTERM, SIGHUP) gives the terminal back as it was. One at a time, one thread.
 */
#ifndef RQ_CLI_SCREEN_H
#define RQ_CLI_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the standard output is a terminal that can show one. */
bool rq__screen_is_possible(void);
void rq__screen_begin(void);
/* NULL-safe to call twice; after it lines are printed as usual. */
void rq__screen_end(void);
void rq__screen_size(unsigned *ret_columns, unsigned *ret_rows);

/* A frame: lines from the top, cut at the terminal's edge. */
typedef struct rq__frame {
    rq_buf bytes;
    unsigned columns, rows; /* of the terminal */
    unsigned row;           /* lines so far */
    bool no_memory;
} rq__frame;

void rq__frame_begin(rq__frame *f);
/* Text in printable ASCII; the line's rest is blank. Beyond the last row it is left out. */
void rq__frame_line(rq__frame *f, bool reverse, const char *text);
/* Shows it. */
void rq__frame_show(rq__frame *f);

typedef enum rq__key {
    RQ__KEY_NONE = 0, /* the time is over, or the terminal's size has changed */
    RQ__KEY_UP = 256,
    RQ__KEY_DOWN,
    RQ__KEY_LEFT,
    RQ__KEY_RIGHT,
    RQ__KEY_PAGE_UP,
    RQ__KEY_PAGE_DOWN,
    RQ__KEY_CLOSED, /* nobody will press a key any more */
} rq__key;

/* The next key, a character or one of those above; waits for so long. */
int rq__screen_key(int64_t timeout_ms);

#endif
