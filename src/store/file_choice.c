/* SPDX-License-Identifier: Apache-2.0 */
/* See file_choice.h. */
#include "store/file_choice.h"

#include "base/log.h"

static rq_err ask(const rq_store_file *f, const rq__bloom_question *q, rq_read_ctx *ctx, bool *ret,
                  rq_error *why)
{
    if (q->is_prefix) return rq_hfile_may_contain_prefix(f->reader, ctx, q->row, ret, why);
    if (q->has_column)
        return rq_hfile_may_contain_column(f->reader, ctx, q->row, q->column, ret, why);
    return rq_hfile_may_contain_row(f->reader, ctx, q->row, ret, why);
}

rq_err rq__file_passes_bloom(const rq_store_file *f, const rq__bloom_question *q, rq_read_ctx *ctx,
                             bool *ret, rq_error *why)
{
    rq_err rc = ask(f, q, ctx, ret, why);
    if (RQ_LIKELY(rc != RQ_E_CORRUPT)) return rc;
    if (q->store != NULL && why != NULL)
        rq_log_write_limited(rq_store_env(q->store)->log, rq__store_damage_lines(q->store),
                             RQ_LOG_ERROR, "store", "%s; reading the file without its Bloom filter",
                             why->message);
    if (why != NULL) *why = (rq_error){0};
    *ret = true;
    return RQ_OK;
}
