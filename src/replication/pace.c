/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in pace.h. */
#include "replication/pace.h"

#define CATCHING_UP ((uint64_t)8 << 20) /* bytes of the log; below, a batch or two end it */
#define BATCH_BYTES ((uint64_t)512 << 10)
#define REST_MAX_NS ((uint64_t)50 * 1000 * 1000)
#define GATHER_NS ((uint64_t)10 * 1000 * 1000) /* between the begins of two batches */
#define LOOK_NS ((uint64_t)1000 * 1000 * 1000)

uint64_t rq__pace_batch_bytes(uint64_t backlog, uint64_t most)
{
    return backlog > CATCHING_UP && most > BATCH_BYTES ? BATCH_BYTES : most;
}

/* Once a second: sets `hurries` if the backlog has not shrunk. */
static void look(rq__pace *p, uint64_t now_ns, uint64_t backlog)
{
    if (p->looked_ns != 0 && now_ns - p->looked_ns < LOOK_NS) return;
    p->hurries = p->looked_ns != 0 && backlog >= p->backlog;
    p->looked_ns = now_ns;
    p->backlog = backlog;
}

uint64_t rq__pace_gather_ns(const rq__pace_batch *b)
{
    uint64_t took = b->confirmed_ns - b->begun_ns;
    return b->reached_end && took < GATHER_NS ? GATHER_NS - took : 0;
}

uint64_t rq__pace_rest_ns(rq__pace *p, const rq__pace_batch *b)
{
    if (b->backlog <= CATCHING_UP) {
        *p = (rq__pace){.hurries = false};
        return rq__pace_gather_ns(b);
    }
    look(p, b->confirmed_ns, b->backlog);
    uint64_t took = b->confirmed_ns - b->begun_ns;
    if (p->hurries) return 0;
    return took < REST_MAX_NS ? took : REST_MAX_NS;
}
