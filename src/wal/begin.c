/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a WAL file: after a start (wal.c), when the log rolls and when it continues
 * in another file after an error (lane.c), and the empty WAL file that a clean stop leaves (wal.c).
 * Each has its own number, and a header with its place in the chain. */
#include "wal/wal_priv.h"

#include <stdlib.h>

wal_file *rq__wal_file_new(rq_lsn first_lsn)
{
    wal_file *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->first_lsn = first_lsn;
    s->indexed = true;
    memset(s->chunk_first, 0xff, sizeof s->chunk_first);
    return s;
}

rq_wal_file_info rq__wal_info_of(rq_wal *wal, const wal_file *s, uint32_t prev_crc)
{
    return (rq_wal_file_info){
        .number = s->number,
        .epoch = wal->epoch,
        .first_lsn = s->first_lsn,
        .oldest_number = wal->oldest == s ? s->number : wal->oldest->number,
        .prev_number = s->prev_number,
        .created_ms = wal->env.executor->now_ms(wal->env.executor),
        .prev_crc = prev_crc,
    };
}

/* Gives the space back by which a file of an earlier WAL file is too long. Writers may be staging records for it already:
 * they must not count on this space, so `prewritten` is reduced first. */
static void shorten(rq_wal *wal, slot *s)
{
    uint64_t most = RQ_WAL_FRAMES_AT + wal->options.file_bytes;
    pthread_mutex_lock(&wal->mutex);
    bool is_too_long = rq__wal_is_too_long(wal, s);
    if (is_too_long) s->prewritten = most;
    pthread_mutex_unlock(&wal->mutex);
    if (!is_too_long) return;
    rq_err unimportant = rq_file_truncate(s->file, most, NULL);
    (void)unimportant; /* only its space is lost */
}

rq_err rq__wal_header_put(rq_wal *wal, slot *to, const rq_wal_file_info *info, rq_error *why)
{
    to->number = info->number;
    RQ_TRY(rq__wal_header_write(to->file, info, to->older, why));
    shorten(wal, to);
    return RQ_OK;
}
