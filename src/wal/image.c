/* SPDX-License-Identifier: Apache-2.0 */
/* The log at one moment; contract in image.h. */
#include "wal/image.h"

#include "wal/wal_priv.h"

void rq_wal_hold(rq_wal *wal, rq_holder *holder)
{
    pthread_mutex_lock(&wal->mutex);
    rq_holder_keep_log(holder, wal->oldest->first_lsn);
    pthread_mutex_unlock(&wal->mutex);
}

/* A recycled WAL file beyond RQ_WAL_FREE_SLOTS_KEPT is deleted when the next WAL file's header, which
 * does not list it, is durable. So the log rolls at once: on a disk that such files have filled, the
 * log could not grow to its next roll. */
static bool has_files_to_remove(const rq_wal *wal)
{
    unsigned count = 0;
    for (const slot *s = wal->free_slots; s != NULL; s = s->next)
        count++;
    return count > RQ_WAL_FREE_SLOTS_KEPT;
}

void rq_wal_let_go(rq_wal *wal)
{
    pthread_mutex_lock(&wal->mutex);
    rq__wal_recycle(wal);
    if (has_files_to_remove(wal)) wal->roll_wanted = true;
    rq__wal_lane_wake(wal); /* regions may be asked to flush again */
    pthread_mutex_unlock(&wal->mutex);
}

/* REQUIRES: mutex. The WAL files that begin below `end`, each up to there.
 * *ret_last: the youngest. */
static rq_err list_pieces(const rq_wal *wal, rq_lsn end, rq_arena *arena, rq_wal_image *ret,
                          const wal_file **ret_last, unsigned *ret_free_id)
{
    size_t count = 0;
    for (const wal_file *s = wal->oldest; s != NULL && s->first_lsn < end; s = s->next)
        count++;
    ret->pieces = rq_arena_calloc(arena, count + 1, sizeof *ret->pieces);
    if (ret->pieces == NULL) return RQ_E_NO_MEMORY;
    *ret_last = NULL;
    *ret_free_id = 1;
    for (const wal_file *s = wal->oldest; ret->count < count; s = s->next) {
        char path[RQ_WAL_PATH_MAX];
        rq__wal_slot_path(wal, s->slot->id, path);
        rq_lsn upto = s->sealed && s->end_lsn < end ? s->end_lsn : end;
        ret->pieces[ret->count++] =
            (rq_wal_piece){rq_arena_cstr(arena, rq_slice_cstr(path)), rq__wal_offset(s, upto)};
        if (ret->pieces[ret->count - 1].path == NULL) return RQ_E_NO_MEMORY;
        if (s->slot->id >= *ret_free_id) *ret_free_id = s->slot->id + 1;
        *ret_last = s;
    }
    return RQ_OK;
}

/* REQUIRES: mutex. `last` NULL: the copy has no other WAL file. */
static rq_err make_last(rq_wal *wal, const wal_file *last, rq_lsn end, uint32_t crc, unsigned id,
                        rq_arena *arena, rq_wal_image *ret)
{
    rq_wal_file_info info = {
        .number = last == NULL ? wal->oldest->number : last->number + 1,
        .epoch = wal->epoch,
        .first_lsn = end,
        .prev_number = last == NULL ? 0 : last->number,
        .created_ms = wal->env.executor->now_ms(wal->env.executor),
        .prev_crc = crc,
    };
    info.oldest_number = last == NULL ? info.number : wal->oldest->number;
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(wal, id, path);
    uint8_t *bytes = rq_arena_calloc(arena, 1, RQ_WAL_FRAMES_AT);
    ret->last_path = rq_arena_cstr(arena, rq_slice_cstr(path));
    if (bytes == NULL || ret->last_path == NULL) return RQ_E_NO_MEMORY;
    rq__wal_header_encode(&info, bytes);
    memcpy(bytes + RQ_WAL_HEADER_COPY_AT, bytes, RQ_WAL_HEADER_LEN);
    ret->last = rq_slice_of(bytes, RQ_WAL_FRAMES_AT);
    ret->end = end;
    return RQ_OK;
}

rq_err rq_wal_image_take(rq_wal *wal, rq_arena *arena, rq_wal_image *ret, rq_error *why)
{
    if (wal->striped != NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED, "a log on shared storage has no image");
    *ret = (rq_wal_image){0};
    pthread_mutex_lock(&wal->mutex);
    rq_lsn end = wal->staged;
    uint32_t crc = wal->staged_crc;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = rq_wal_wait_blocking(wal, end, true);
    if (rc != RQ_OK) return rq_fail(why, rc, "the log: %s", rq_err_text(rc));
    const wal_file *last;
    unsigned id;
    pthread_mutex_lock(&wal->mutex);
    rc = list_pieces(wal, end, arena, ret, &last, &id);
    if (rc == RQ_OK) rc = make_last(wal, last, end, crc, id, arena, ret);
    pthread_mutex_unlock(&wal->mutex);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "the log: %s", rq_err_text(rc));
}
