/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of scripts: at most HBASE_HEAPSIZE, which HBase's scripts give to Java's -Xmx (megabytes, or 500m, 4g), else a
 * quarter of the machine's memory, as Java takes. Beyond that mruby collects garbage, and then raises NoMemoryError. */
#include "shell/shell_priv.h"

#include "base/machine.h"

#include <malloc.h>
#include <stdlib.h>

#define MEMORY_MIN ((size_t)64 << 20) /* the shell itself needs 2 MB */
#define MEGABYTES_MAX (SIZE_MAX >> 30)

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

static void *allocate(mrb_state *mrb, void *p, size_t size, void *ctx)
{
    rq__memory *m = ctx;
    size_t had = p == NULL ? 0 : malloc_usable_size(p);
    (void)mrb;
    if (size == 0) {
        free(p);
        m->used -= had;
        return NULL;
    }
    if (size > had && size - had > m->max - m->used) return NULL;
    void *q = realloc(p, size);
    if (q != NULL) m->used = m->used - had + malloc_usable_size(q);
    if (m->used > m->max) m->max = m->used; /* by the allocator's rounding */
    return q;
}

mrb_state *rq__open_ruby(rq__memory *m)
{
    *m = (rq__memory){.max = limit()};
    return mrb_open_allocf(allocate, m);
}
