/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a client could send: keys, names, numbers and texts, most of them plausible, some at
 * the limits of a field. */
#ifndef RQ_FUZZ_WIRE_DRAW_H
#define RQ_FUZZ_WIRE_DRAW_H

#include "base/buf.h"
#include "base/macros.h"
#include "base/random.h"

#include <stdlib.h>

/* Ends the fuzzer on errors that cannot happen or mean lack of memory. */
#define must(rc) RQ_ASSERT((rc) == RQ_OK)

static inline void put(rq_buf *b, const void *bytes, size_t len)
{
    must(rq_buf_append(b, bytes, len));
}

static inline void put_text(rq_buf *b, const char *text)
{
    put(b, text, strlen(text));
}

/* True in `percent` of a hundred cases. */
static inline bool chance(rq_random *r, unsigned percent)
{
    return rq_random_below(r, 100) < percent;
}

/* True once in `count` cases. */
static inline bool once_in(rq_random *r, unsigned count)
{
    return rq_random_below(r, count) == 0;
}

/* The random generator for one decision, which depends only on the run's seed and the decision's
 * position. */
void draw_seed(rq_random *r, uint64_t seed, uint64_t place);

/* A plausible number: mostly a small one, otherwise one next to a limit. */
uint64_t draw_number(rq_random *r);
/* A cell's timestamp in milliseconds; `now` is the clock. */
uint64_t draw_timestamp(rq_random *r, uint64_t now);
/* A count of elements, mostly small. */
unsigned draw_count(rq_random *r);

/* These append to `out`: */
void draw_row(rq_random *r, rq_buf *out);
void draw_family(rq_random *r, rq_buf *out);
void draw_qualifier(rq_random *r, rq_buf *out);
void draw_meta_family(rq_random *r, rq_buf *out); /* a family of hbase:meta */
void draw_meta_qualifier(rq_random *r, rq_buf *out);
void draw_value(rq_random *r, rq_buf *out);
void draw_regex(rq_random *r, rq_buf *out);
void draw_bytes(rq_random *r, rq_buf *out);
/* The name of a table, snapshot, namespace, user …: mostly begins with `prefix`. */
void draw_name(rq_random *r, const char *prefix, unsigned count, rq_buf *out);
/* A descriptor's attribute and its value. */
void draw_family_attribute(rq_random *r, rq_buf *name, rq_buf *value);
void draw_table_attribute(rq_random *r, rq_buf *name, rq_buf *value);
/* A column or table configuration. */
void draw_setting(rq_random *r, rq_buf *name, rq_buf *value);

/* Changes some bytes: flips, cuts, repeats. */
void draw_damage(rq_random *r, rq_buf *bytes);

#endif
