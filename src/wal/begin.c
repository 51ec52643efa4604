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

rq_err rq__wal_header_put(slot *to, const rq_wal_file_info *info, rq_error *why)
{
    to->number = info->number;
    return rq__wal_header_write(to->file, info, to->older, why);
}
