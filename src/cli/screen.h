/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full screen on the terminal: frames that replace each other, and keys. Signals that end the
 * process (Ctrl-C, SIGTERM, SIGHUP) restore the terminal. One screen at a time, one thread.
 */
#ifndef RQ_CLI_SCREEN_H
#define RQ_CLI_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the standard output is a terminal that can show one. */
bool rq__screen_is_possible(void);
void rq__screen_begin(void);
/* Restores the terminal. May be called twice. */
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
/* Appends a line of printable ASCII. Lines below the screen's last row are left out. */
void rq__frame_line(rq__frame *f, bool reverse, const char *text);
/* Shows the frame. */
void rq__frame_show(rq__frame *f);

typedef enum rq__key {
    RQ__KEY_NONE = 0, /* time-out, or the terminal's size has changed */
    RQ__KEY_UP = 256,
    RQ__KEY_DOWN,
    RQ__KEY_LEFT,
    RQ__KEY_RIGHT,
    RQ__KEY_PAGE_UP,
    RQ__KEY_PAGE_DOWN,
    RQ__KEY_CLOSED, /* the input has ended */
} rq__key;

/* The next key: a character or a constant above. Waits at most `timeout_ms`. */
int rq__screen_key(int64_t timeout_ms);

#endif
