/* SPDX-License-Identifier: Apache-2.0 */
/* Responses, read in place. Unknown fields are skipped, as protobuf requires. */
#include "client/response.h"

#include "base/pb.h"
#include "cell/cellblock.h"

static bool is_bytes(const rq_pb_field *f, uint32_t number)
{
    return f->number == number && f->wire == RQ_PB_BYTES;
}

static bool is_number(const rq_pb_field *f, uint32_t number)
{
    return f->number == number && f->wire == RQ_PB_VARINT;
}

/* RQ_E_END is the regular end of every message. */
static rq_err ended(rq_err rc)
{
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err parse_exception(rq_slice bytes, rq_exception_view *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    ret->java_class = RQ_SLICE_LIT("java.io.IOException");
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_bytes(&f, 1)) ret->java_class = f.bytes;
        if (is_bytes(&f, 2)) ret->text = f.bytes;
        if (is_number(&f, 5)) ret->do_not_retry = f.value != 0;
    }
    return ended(rc);
}

/* Exceptions inside a Multi are a class and a stack trace; the class tells whether to retry. */
static rq_err parse_named_exception(rq_slice bytes, rq_exception_view *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    ret->java_class = RQ_SLICE_LIT("java.io.IOException");
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_bytes(&f, 1)) ret->java_class = f.bytes;
        if (is_bytes(&f, 2)) ret->text = f.bytes;
    }
    ret->do_not_retry = rq_err_do_not_retry(rq__err_of_class(ret->java_class));
    return ended(rc);
}

rq_err rq__response_parse(rq_slice frame, rq_response_view *ret)
{
    rq_cursor c = rq_cursor_of(frame);
    rq_slice head;
    rq_pb_field f;
    rq_err rc;
    uint64_t block = 0;
    *ret = (rq_response_view){0};
    if (!rq_pb_delimited(&c, &head)) return RQ_E_MALFORMED;
    rq_cursor h = rq_cursor_of(head);
    while ((rc = rq_pb_next(&h, &f)) == RQ_OK) {
        if (is_number(&f, 1)) {
            ret->call_id = (uint32_t)f.value;
            ret->has_call_id = true;
        }
        if (is_bytes(&f, 2)) RQ_TRY(parse_exception(f.bytes, &ret->exception));
        if (is_bytes(&f, 3)) {
            rq_cursor meta = rq_cursor_of(f.bytes);
            while ((rc = rq_pb_next(&meta, &f)) == RQ_OK)
                if (is_number(&f, 1)) block = f.value;
            RQ_TRY(ended(rc));
        }
    }
    RQ_TRY(ended(rc));
    if (rq_cursor_left(&c) == 0) return block == 0 ? RQ_OK : RQ_E_MALFORMED;
    if (!rq_pb_delimited(&c, &ret->message) || block != rq_cursor_left(&c)) return RQ_E_MALFORMED;
    ret->cells = rq_slice_of(c.ptr, rq_cursor_left(&c));
    return RQ_OK;
}

static rq_err parse_result(rq_slice bytes, rq_result_view *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_result_view){.present = true, .inline_cells = bytes};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_number(&f, 2)) ret->count = (uint32_t)f.value;
        if (is_number(&f, 3)) ret->exists = f.value != 0;
        if (is_number(&f, 4)) ret->stale = f.value != 0;
        if (is_number(&f, 5)) ret->partial = f.value != 0;
    }
    return ended(rc);
}

rq_err rq_get_response_parse(rq_slice message, rq_result_view *ret)
{
    bool processed;
    return rq__mutate_response_parse(message, ret, &processed);
}

rq_err rq__mutate_response_parse(rq_slice message, rq_result_view *ret, bool *ret_processed)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_result_view){0};
    *ret_processed = false;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_bytes(&f, 1)) RQ_TRY(parse_result(f.bytes, ret));
        if (is_number(&f, 2)) *ret_processed = f.value != 0;
    }
    return ended(rc);
}

rq_err rq__multi_response_next(rq_cursor *message, rq_region_result *ret)
{
    rq_pb_field f;
    do
        RQ_TRY(rq_pb_next(message, &f));
    while (!is_bytes(&f, 1));
    *ret = (rq_region_result){.actions = f.bytes};
    rq_cursor c = rq_cursor_of(f.bytes);
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_bytes(&f, 2)) RQ_TRY(parse_named_exception(f.bytes, &ret->exception));
        if (is_number(&f, 3)) ret->processed = f.value != 0;
    }
    return ended(rc);
}

rq_err rq__action_result_next(rq_cursor *actions, rq_action_result *ret)
{
    rq_pb_field f;
    do
        RQ_TRY(rq_pb_next(actions, &f));
    while (!is_bytes(&f, 1));
    *ret = (rq_action_result){0};
    rq_cursor c = rq_cursor_of(f.bytes);
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_number(&f, 1)) ret->index = (uint32_t)f.value;
        if (is_bytes(&f, 2)) RQ_TRY(parse_result(f.bytes, &ret->result));
        if (is_bytes(&f, 3)) RQ_TRY(parse_named_exception(f.bytes, &ret->exception));
    }
    return ended(rc);
}

/* Cursor { row 1 } */
static rq_err parse_cursor(rq_slice bytes, rq_slice *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (is_bytes(&f, 1)) *ret = f.bytes;
    return ended(rc);
}

rq_err rq__scan_response_parse(rq_slice message, rq_scan_view *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_scan_view){.more_results_in_region = true, .is_empty = true, .message = message};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == 1 || f.number == 5) ret->is_empty = false;
        if (is_number(&f, 2)) {
            ret->has_scanner = true;
            ret->scanner = f.value;
        }
        if (is_number(&f, 3)) ret->more_results = f.value != 0;
        if (is_number(&f, 6)) ret->stale = f.value != 0;
        if (is_number(&f, 8)) ret->more_results_in_region = f.value != 0;
        if (is_number(&f, 9)) ret->heartbeat = f.value != 0;
        if (is_bytes(&f, 10)) ret->metrics = f.bytes;
        if (is_bytes(&f, 12)) RQ_TRY(parse_cursor(f.bytes, &ret->cursor));
    }
    return ended(rc);
}

void rq__scan_rows_begin(const rq_scan_view *v, rq_scan_rows *ret)
{
    *ret = (rq_scan_rows){
        .message = rq_cursor_of(v->message), .flags = rq_cursor_of(v->message), .stale = v->stale};
}

/* Whether the next result is partial; false if there are no flags. */
static rq_err next_flag(rq_scan_rows *r, bool *ret)
{
    rq_pb_field f;
    uint64_t flag;
    for (;;) {
        if (rq_cursor_left(&r->packed_flags) > 0) {
            if (!rq_cursor_varint(&r->packed_flags, &flag)) return RQ_E_MALFORMED;
            *ret = flag != 0;
            return RQ_OK;
        }
        rq_err rc = rq_pb_next(&r->flags, &f);
        if (rc == RQ_E_END) {
            *ret = false;
            return RQ_OK;
        }
        RQ_TRY(rc);
        if (is_number(&f, 7)) {
            *ret = f.value != 0;
            return RQ_OK;
        }
        if (is_bytes(&f, 7)) r->packed_flags = rq_cursor_of(f.bytes);
    }
}

static rq_err next_row(rq_scan_rows *r, rq_result_view *ret);

rq_err rq__scan_rows_next(rq_scan_rows *r, rq_result_view *ret)
{
    bool partial;
    RQ_TRY(next_row(r, ret));
    RQ_TRY(next_flag(r, &partial));
    ret->partial = ret->partial || partial;
    ret->stale = ret->stale || r->stale;
    return RQ_OK;
}

static rq_err next_row(rq_scan_rows *r, rq_result_view *ret)
{
    rq_pb_field f;
    uint64_t count;
    for (;;) {
        if (rq_cursor_left(&r->packed) > 0) {
            if (!rq_cursor_varint(&r->packed, &count) || count > UINT32_MAX) return RQ_E_MALFORMED;
            *ret = (rq_result_view){.present = true, .count = (uint32_t)count};
            return RQ_OK;
        }
        RQ_TRY(rq_pb_next(&r->message, &f));
        if (is_number(&f, 1)) {
            *ret = (rq_result_view){.present = true, .count = (uint32_t)f.value};
            return RQ_OK;
        }
        if (is_bytes(&f, 1)) r->packed = rq_cursor_of(f.bytes);
        if (is_bytes(&f, 5)) return parse_result(f.bytes, ret);
    }
}

static rq_err parse_inline_cell(rq_slice bytes, rq_cell *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_cell){.type = RQ_TYPE_PUT};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (is_bytes(&f, 1)) {
            if (f.bytes.len > RQ_ROW_LEN_MAX) return RQ_E_MALFORMED;
            ret->row = f.bytes.ptr;
            ret->row_len = (uint16_t)f.bytes.len;
        }
        if (is_bytes(&f, 2)) {
            if (f.bytes.len > RQ_FAMILY_LEN_MAX) return RQ_E_MALFORMED;
            ret->family = f.bytes.ptr;
            ret->family_len = (uint8_t)f.bytes.len;
        }
        if (is_bytes(&f, 3)) {
            ret->qualifier = f.bytes.ptr;
            ret->qualifier_len = (uint32_t)f.bytes.len;
        }
        if (is_number(&f, 4)) ret->timestamp = (int64_t)f.value;
        if (is_number(&f, 5)) ret->type = (uint8_t)f.value;
        if (is_bytes(&f, 6)) {
            ret->value = f.bytes.ptr;
            ret->value_len = (uint32_t)f.bytes.len;
        }
        if (is_bytes(&f, 7)) {
            if (f.bytes.len > RQ_TAGS_LEN_MAX || !rq_tags_are_whole(f.bytes.ptr, f.bytes.len))
                return RQ_E_MALFORMED;
            ret->tags = f.bytes.ptr;
            ret->tags_len = (uint16_t)f.bytes.len;
        }
    }
    return ended(rc);
}

rq_err rq_result_next(rq_result_view *r, rq_cursor *block, rq_cell *ret)
{
    if (r->count > 0) {
        rq_err rc = rq_cellblock_next(block, ret, NULL);
        if (rc == RQ_OK) r->count--;
        return rc == RQ_E_END ? RQ_E_MALFORMED : rc; /* fewer than were announced */
    }
    if (r->inline_cells.len == 0) return RQ_E_END;
    rq_cursor c = rq_cursor_of(r->inline_cells);
    rq_pb_field f;
    do
        RQ_TRY(rq_pb_next(&c, &f));
    while (!is_bytes(&f, 1));
    r->inline_cells = rq_slice_of(c.ptr, rq_cursor_left(&c));
    return parse_inline_cell(f.bytes, ret);
}

rq_err rq__err_of_class(rq_slice java_class)
{
    for (int i = RQ_E_DO_NOT_RETRY; i < RQ_ERR_COUNT; i++)
        if (rq_slice_eq(java_class, rq_slice_cstr(rq_err_java_class((rq_err)i)))) return (rq_err)i;
    return RQ_E_IOEXCEPTION;
}
