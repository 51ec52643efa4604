/* SPDX-License-Identifier: Apache-2.0 */
/* See ranges.h. */
#include "transfer/ranges.h"

#include "transfer/link.h"

/* --- regions ---------------------------------------------------------------------------------- */

/* Empty is behind all others. */
static bool is_before_end(rq_slice row, rq_slice end)
{
    return end.len == 0 || rq_slice_compare(row, end) < 0;
}

/* Moves on to the i-th region's rows, and those behind it that no region of the map has: such a region is without a server at the
 * moment, and a scan waits for it. False: another region of the map begins at the same row, as a parent that was read before its split;
 * the rows are passed to that one. */
static bool move_on(const rq_client_table *t, size_t i, rq__range *r)
{
    rq_slice next = {0};
    if (i + 1 < rq_client_table_regions(t)) {
        next = rq_client_table_region(t, i + 1).start;
        if (rq_slice_eq(next, rq_client_table_region(t, i).start)) return false;
    }
    *r = (rq__range){.start = r->stop, .stop = next};
    return true;
}

static bool cut(const rq__range *r, rq_slice start, rq_slice stop, rq__range *ret)
{
    bool has_rows = is_before_end(start, r->stop) && is_before_end(r->start, stop);
    ret->start = rq_slice_compare(start, r->start) > 0 ? start : r->start;
    ret->stop =
        stop.len == 0 || (r->stop.len > 0 && rq_slice_compare(r->stop, stop) < 0) ? r->stop : stop;
    return has_rows;
}

rq_err rq__ranges_of(const rq_client_table *t, rq_slice start, rq_slice stop, rq_arena *arena,
                     rq__range **ret, size_t *ret_count)
{
    size_t regions = rq_client_table_regions(t), n = 0;
    rq__range all = {0};
    rq__range *list = rq_arena_calloc(arena, regions + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < regions; i++) {
        if (!move_on(t, i, &all) || !cut(&all, start, stop, &list[n])) continue;
        list[n].start = rq_arena_copy(arena, list[n].start);
        list[n].stop = rq_arena_copy(arena, list[n].stop);
        if (list[n].start.ptr == NULL || list[n].stop.ptr == NULL) return RQ_E_NO_MEMORY;
        n++;
    }
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

rq_err rq__ranges_ask(const rq_client_options *o, const char *table, rq_slice start, rq_slice stop,
                      rq_arena *arena, rq__range **ret, size_t *ret_count, rq_error *why)
{
    rq__link link;
    rq_err rc = rq__link_open(o, table, &link, why);
    if (rc == RQ_OK && rq__ranges_of(link.table, start, stop, arena, ret, ret_count) != RQ_OK)
        rc = rq_no_memory(why);
    rq__link_close(&link);
    return rc;
}

/* --- texts ------------------------------------------------------------------------------------ */

static char *put_hex(char *at, rq_slice s)
{
    static const char digits[] = "0123456789abcdef";
    if (s.len == 0) *at++ = '-';
    for (size_t i = 0; i < s.len; i++) {
        *at++ = digits[s.ptr[i] >> 4];
        *at++ = digits[s.ptr[i] & 15];
    }
    return at;
}

const char *rq__range_text(const rq__range *r, rq_arena *arena)
{
    char *text = rq_arena_alloc(arena, 2 * (r->start.len + r->stop.len) + 4);
    if (text == NULL) return NULL;
    char *at = put_hex(text, r->start);
    *at++ = ' ';
    at = put_hex(at, r->stop);
    *at = '\0';
    return text;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(const char **text, rq_arena *arena, rq_slice *ret)
{
    const char *at = *text;
    size_t len = strcspn(at, " ");
    uint8_t *bytes = rq_arena_alloc(arena, len + 1);
    *text = at + len;
    *ret = (rq_slice){bytes, 0};
    if (bytes == NULL) return false;
    if (len == 1 && *at == '-') return true;
    for (; ret->len < len / 2; at += 2) {
        if (hex_digit(at[0]) < 0 || hex_digit(at[1]) < 0) return false;
        bytes[ret->len++] = (uint8_t)(hex_digit(at[0]) << 4 | hex_digit(at[1]));
    }
    return len > 0 && len % 2 == 0;
}

bool rq__range_parse(const char *text, rq_arena *arena, rq__range *ret)
{
    return take_hex(&text, arena, &ret->start) && *text++ == ' ' &&
           take_hex(&text, arena, &ret->stop) && *text == '\0';
}

/* --- progress --------------------------------------------------------------------------------- */

/* Eight bytes behind the first `skip`, as a number. */
static double number_at(rq_slice s, size_t skip)
{
    double n = 0;
    for (size_t i = 0; i < 8; i++)
        n = n * 256 + (skip + i < s.len ? s.ptr[skip + i] : 0);
    return n;
}

double rq__range_share(const rq__range *r, rq_slice row)
{
    static const uint8_t last[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    rq_slice stop = r->stop.len == 0 ? rq_slice_of(last, sizeof last) : r->stop;
    size_t same = 0;
    while (same < r->start.len && same < stop.len && r->start.ptr[same] == stop.ptr[same])
        same++;
    double from = number_at(r->start, same), to = number_at(stop, same);
    double share = to > from ? (number_at(row, same) - from) / (to - from) : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
