/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, in Ruby, compiled when the program is built: prelude/NAME.rb. The build writes
 * preludes.c. */
#ifndef RQ_SHELL_PRELUDES_H
#define RQ_SHELL_PRELUDES_H

#include <stddef.h>
#include <stdint.h>

typedef struct rq__prelude {
    const char *name;
    const uint8_t *code; /* of mrbc */
    size_t len;
} rq__prelude;

extern const rq__prelude rq__preludes[];
extern const size_t rq__prelude_count;

#endif
