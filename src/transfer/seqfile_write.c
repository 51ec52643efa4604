/* SPDX-License-Identifier: Apache-2.0 */
/* Writes SequenceFiles (seqfile.h). */
#include "transfer/seqfile.h"

#include "base/clock.h"
#include "base/hmac.h"

#include <unistd.h>

#define VERSION 6
#define SYNC_INTERVAL (100 * 1024) /* HADOOP: SequenceFile.SYNC_INTERVAL of 3.x */
#define ESCAPE UINT32_MAX

static rq_err put_text(rq_buf *b, const char *text)
{
    size_t len = strlen(text);
    RQ_TRY(rq_buf_append_vlong(b, (int64_t)len));
    return rq_buf_append(b, text, len);
}

static rq_err put_header(rq__seq_writer *w, const char *value_class)
{
    static const uint8_t magic[] = {'S', 'E', 'Q', VERSION};
    rq_buf *b = &w->out.buf;
    RQ_TRY(rq_buf_append(b, magic, sizeof magic));
    RQ_TRY(put_text(b, RQ__CLASS_BYTES));
    RQ_TRY(put_text(b, value_class));
    RQ_TRY(rq_buf_append_u8(b, 0)); /* not compressed */
    RQ_TRY(rq_buf_append_u8(b, 0)); /* no blocks */
    RQ_TRY(rq_buf_append_be32(b, 0));
    return rq_buf_append(b, w->sync, sizeof w->sync);
}

rq_err rq__seq_writer_open(rq_vfs *v, const char *path, const char *value_class,
                           rq__seq_writer *ret, rq_error *why)
{
    *ret = (rq__seq_writer){0};
    /* Bytes that the data is unlikely to have. */
    if (rq_unguessable(ret->sync, sizeof ret->sync) != RQ_OK)
        return rq_fail(why, RQ_E_IO,
                       "%s: cannot get random numbers from the system for the file's sync marker",
                       path);
    RQ_TRY(rq__out_open(v, path, &ret->out, why));
    if (put_header(ret, value_class) != RQ_OK) return rq_no_memory(why);
    ret->synced = rq__out_len(&ret->out);
    return RQ_OK;
}

static rq_err put_sync(rq__seq_writer *w)
{
    RQ_TRY(rq_buf_append_be32(&w->out.buf, ESCAPE));
    RQ_TRY(rq_buf_append(&w->out.buf, w->sync, sizeof w->sync));
    w->synced = rq__out_len(&w->out);
    return RQ_OK;
}

static rq_err put_record(rq__seq_writer *w, rq_slice key, rq_slice value)
{
    rq_buf *b = &w->out.buf;
    if (rq__out_len(&w->out) >= w->synced + SYNC_INTERVAL) RQ_TRY(put_sync(w));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)(4 + key.len + value.len)));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)(4 + key.len)));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)key.len));
    RQ_TRY(rq_buf_append(b, key.ptr, key.len));
    return value.len == 0 ? RQ_OK : rq_buf_append(b, value.ptr, value.len);
}

rq_err rq__seq_append(rq__seq_writer *w, rq_slice key, rq_slice value, rq_error *why)
{
    if (key.len > INT32_MAX || value.len > INT32_MAX || key.len + value.len > INT32_MAX - 4)
        return rq_fail(why, RQ_E_INVALID, "a record of %zu bytes is too long for a SequenceFile",
                       key.len + value.len);
    if (put_record(w, key, value) != RQ_OK) return rq_no_memory(why);
    return rq__out_ease(&w->out, why);
}

rq_err rq__seq_writer_finish(rq__seq_writer *w, rq_error *why)
{
    return rq__out_finish(&w->out, why);
}

void rq__seq_writer_close(rq__seq_writer *w)
{
    rq__out_close(&w->out);
}
