/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests are translated on a pool; see apart.h. */
#include "service/apart.h"

static void run_done(rq_call_work *w)
{
    rq__apart *a = RQ_CONTAINER_OF(w, rq__apart, own);
    a->done(a);
}

static bool run_work(rq_call_work *w)
{
    rq__apart *a = RQ_CONTAINER_OF(w, rq__apart, own);
    const rq_call *before = rq_call_take_in_hand(a->call);
    rq_call_decoding(a->call, true);
    a->work(a);
    rq_call_decoding(a->call, false);
    (void)rq_call_take_in_hand(before);
    return true;
}

void rq__apart_start(rq__apart *a, rq_executor *executor, rq_call *call, void (*work)(rq__apart *a),
                     void (*done)(rq__apart *a))
{
    *a = (rq__apart){.call = call, .work = work, .done = done};
    rq_call_work_start(&a->own, executor, call, run_work, run_done);
}
