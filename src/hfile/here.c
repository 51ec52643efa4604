/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of a scanner inside its block, for the reader of many cells: no I/O, no search, and the
 * answer says what comparing neighbours has shown of their rows. Only plain cells of whole files:
 * everything else is left to rq_hfile_scanner_next, which also tells what is wrong with a cell that
 * is not sound.
 */
#include "hfile/plain.h"
#include "hfile/reader.h"
#include "hfile/reader_priv.h"

/* Cells of a row that are passed over one by one; a seek would cost as much. */
#define PASS_MAX 64

bool rq_hfile_reader_is_plain(const rq_hfile_reader *r)
{
    return r->half == NULL && !rq__encoding_is_delta(r->info.encoding);
}

static inline rq__plain_shape shape_of(const rq_hfile_reader *r)
{
    return (rq__plain_shape){r->info.has_tags, r->info.has_mvcc};
}

/* Takes the sound cell at `pos` as the scanner's. */
static bool stand_at(rq_hfile_scanner *s, size_t pos)
{
    const rq_hfile_block *b = s->block;
    size_t len =
        rq__plain_parse(b->payload + pos, b->payload_len - pos, shape_of(s->reader), &s->cell);
    if (len == 0) return false;
    s->pos = (uint32_t)pos;
    s->next_pos = (uint32_t)(pos + len);
    return true;
}

/* The same where the lengths of row and family are those of the cell before, as mostly they are:
 * that these are sound is known. False: nothing has changed, it may be any cell. */
static inline bool stand_at_alike(rq_hfile_scanner *s, size_t pos)
{
    const rq_hfile_reader *r = s->reader;
    const uint8_t *p = s->block->payload + pos;
    size_t left = s->block->payload_len - pos;
    rq_cell *c = &s->cell;
    size_t row_len = c->row_len;
    size_t family_len = c->family_len;
    size_t fixed = RQ_KEY_FIXED_LEN + row_len + family_len;
    if (left <= 8 + fixed || r->info.has_tags) return false;
    size_t key_len = rq_get_be32(p);
    size_t value_len = rq_get_be32(p + 4);
    size_t len = 8 + key_len + value_len;
    const uint8_t *family = p + 11 + row_len;
    if (key_len < fixed || len >= left || rq_get_be16(p + 8) != row_len || family[-1] != family_len)
        return false;
    const uint8_t *tail = p + key_len - 1;
    uint8_t type = tail[8];
    uint8_t seqid = 0;
    if (r->info.has_mvcc) seqid = p[len++];
    if (seqid >= 128 || !rq__is_cell_type(type)) return false;
    c->row = p + 10;
    c->family = family;
    c->qualifier = family + family_len;
    c->qualifier_len = (uint32_t)(key_len - fixed);
    c->timestamp = (int64_t)rq_get_be64(tail);
    c->type = type;
    c->value = tail + 9;
    c->value_len = (uint32_t)value_len;
    c->seqid = seqid;
    s->pos = (uint32_t)pos;
    s->next_pos = (uint32_t)(pos + len);
    return true;
}

rq_hfile_move rq_hfile_scanner_next_here(rq_hfile_scanner *s)
{
    size_t pos = s->next_pos;
    const uint8_t *row = s->cell.row;
    size_t row_len = s->cell.row_len;
    if (RQ_UNLIKELY(pos >= s->block->payload_len)) return RQ_HFILE_NOT_MOVED;
    if (RQ_UNLIKELY(!stand_at_alike(s, pos))) {
        if (!stand_at(s, pos)) return RQ_HFILE_NOT_MOVED;
        if (row_len != s->cell.row_len) return RQ_HFILE_NEW_ROW;
    }
    return rq_short_eq_len(row, s->cell.row, row_len) ? RQ_HFILE_SAME_ROW : RQ_HFILE_NEW_ROW;
}

/* The length of the plain cell at `p` if it is one of this row; 0: it is not, or is not sound. */
static inline size_t len_if_in_row(const uint8_t *p, size_t left, rq__plain_shape shape,
                                   const uint8_t *row, size_t row_len)
{
    if (left < 8 + RQ_KEY_FIXED_LEN + row_len) return 0;
    size_t key_len = rq_get_be32(p);
    size_t len = 8 + key_len + rq_get_be32(p + 4);
    if (len > left || rq_get_be16(p + 8) != row_len || row_len + RQ_KEY_FIXED_LEN > key_len ||
        !rq_short_eq_len(p + 10, row, row_len))
        return 0;
    if (shape.has_tags) {
        if (left - len < 2) return 0;
        len += 2 + (size_t)rq_get_be16(p + len);
    }
    if (shape.has_mvcc) {
        if (left <= len) return 0;
        len += RQ_LIKELY(p[len] < 128) ? 1 : rq__vlong_len(p[len]);
    }
    return left < len ? 0 : len;
}

bool rq_hfile_scanner_skip_row_here(rq_hfile_scanner *s)
{
    const uint8_t *payload = s->block->payload;
    const size_t end = s->block->payload_len;
    const rq__plain_shape shape = shape_of(s->reader);
    const uint8_t *row = s->cell.row;
    const size_t row_len = s->cell.row_len;
    size_t pos = s->next_pos;
    for (unsigned i = 0; i < PASS_MAX && pos < end; i++) {
        size_t len = len_if_in_row(payload + pos, end - pos, shape, row, row_len);
        /* What can be parsed there is of another row. */
        if (len == 0) return stand_at_alike(s, pos) || stand_at(s, pos);
        pos += len;
    }
    return false;
}
