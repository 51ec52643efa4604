/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of scripts: at most HBASE_HEAPSIZE, which HBase's scripts give to Java's -Xmx (megabytes, or 500m, 4g), else a
 * quarter of the machine's memory, as Java takes. Beyond that mruby collects garbage, and then raises NoMemoryError. The text of
 * the statement that is being read is charged, too. */
#include "shell/shell_priv.h"

#include "base/machine.h"

#include <malloc.h>
#include <stdlib.h>

#define MEMORY_MIN ((size_t)64 << 20) /* the shell itself needs 2 MB */
#define MEGABYTES_MAX (SIZE_MAX >> 30)
/* The session itself may use more than scripts: to report that they have used everything up, and to read the next
 * statement. */
#define RESERVE ((size_t)8 << 20)

/* 0: not a size. */
static size_t size_of(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = 20;
    if (end == text || text[0] == '-' || n > MEGABYTES_MAX) return 0;
    if (*end == 'k' || *end == 'K') shift = 10;
    if (*end == 'g' || *end == 'G') shift = 30;
    bool is_whole = *end == '\0' || (strchr("kKmMgG", *end) != NULL && end[1] == '\0');
    return is_whole ? (size_t)n << shift : 0;
}

static size_t limit(void)
{
    const char *heap = getenv("HBASE_HEAPSIZE");
    size_t wanted = heap == NULL ? 0 : size_of(heap);
    if (wanted == 0) wanted = (size_t)(rq_machine_memory() / 4);
    return wanted < MEMORY_MIN ? MEMORY_MIN : wanted;
}

size_t rq__memory_left(const rq__memory *m)
{
    if (m->compiles) return SIZE_MAX;
    size_t max = m->max + (m->runs ? 0 : RESERVE);
    return max > m->used ? max - m->used : 0;
}

/* Whether NoMemoryError would be caught. If not, mruby would end the process; it is so only in the session's own C code,
 * between two calls of Ruby, which needs little: the text of an error, the registers of a statement. */
static bool can_raise(const mrb_state *mrb)
{
    return mrb != NULL && mrb->jmp != NULL;
}

static void *allocate(mrb_state *mrb, void *p, size_t size, void *ctx)
{
    rq__memory *m = ctx;
    size_t had = p == NULL ? 0 : malloc_usable_size(p);
    if (size == 0) {
        free(p);
        m->used -= had;
        return NULL;
    }
    if (size > had && size - had > rq__memory_left(m) && can_raise(mrb)) return NULL;
    void *q = realloc(p, size);
    if (q != NULL) m->used = m->used - had + malloc_usable_size(q);
    return q;
}

/* What mruby leaves; also if it leaves nothing, a statement can be read that gives memory back. */
static size_t for_text(const rq__memory *m)
{
    size_t others = m->used - m->held, left = m->max > others ? m->max - others : 0;
    return left > RESERVE / 2 ? left : RESERVE / 2;
}

size_t rq__memory_for_text(const rq__memory *m)
{
    return for_text(m) / 2;
}

bool rq__memory_hold(rq__memory *m, size_t bytes)
{
    if (bytes > for_text(m)) return false;
    m->used = m->used - m->held + bytes;
    m->held = bytes;
    return true;
}

mrb_state *rq__open_ruby(rq__memory *m)
{
    *m = (rq__memory){.max = limit()};
    return mrb_open_allocf(allocate, m);
}
