/* SPDX-License-Identifier: Apache-2.0 */
/* Names, references and lists of MOB files; the formats are described in mob.h. */
#include "store/mob.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DATE_AT RQ_MD5_HEX_LEN
#define DATE_LEN 8
#define NAME_MAX_LEN 255

/* --- names ------------------------------------------------------------------------------------ */

/* Whether `s` is a single path component and not hidden: a path is built from it. */
static bool is_component(rq_slice s)
{
    if (s.len == 0 || s.len > NAME_MAX_LEN || s.ptr[0] == '.') return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '/' || s.ptr[i] == '\0' || s.ptr[i] == ',') return false;
    return true;
}

bool rq_mob_table_parts(rq_slice table, rq_slice *ret_ns, rq_slice *ret_qualifier)
{
    size_t colon = 0;
    while (colon < table.len && table.ptr[colon] != ':')
        colon++;
    *ret_ns = RQ_SLICE_LIT("default");
    *ret_qualifier = table;
    if (colon < table.len) {
        *ret_ns = rq_slice_of(table.ptr, colon);
        *ret_qualifier = rq_slice_of(table.ptr + colon + 1, table.len - colon - 1);
    }
    return is_component(*ret_ns) && is_component(*ret_qualifier);
}

rq_err rq_mob_region_name(rq_slice table, rq_buf *ret, char ret_encoded[RQ_MD5_HEX_LEN + 1])
{
    static const char rest[] = ",.mob,0";
    rq_buf_reset(ret);
    RQ_TRY(rq_buf_append(ret, table.ptr, table.len));
    RQ_TRY(rq_buf_append(ret, rest, sizeof rest - 1));
    rq_md5_hex(rq_buf_slice(ret), ret_encoded);
    return rq_buf_printf(ret, ".%s.", ret_encoded);
}

const char *rq_mob_region_dir(rq_arena *arena, rq_slice table)
{
    rq_slice ns, qualifier;
    char encoded[RQ_MD5_HEX_LEN + 1];
    rq_buf name = {0};
    bool ok = rq_mob_table_parts(table, &ns, &qualifier) &&
              rq_mob_region_name(table, &name, encoded) == RQ_OK;
    rq_buf_clear(&name);
    if (!ok) return NULL;
    return rq_arena_printf(arena, RQ_MOB_DIR "/data/%.*s/%.*s/%s", (int)ns.len,
                           (const char *)ns.ptr, (int)qualifier.len, (const char *)qualifier.ptr,
                           encoded);
}

const char *rq_mob_family_dir(rq_arena *arena, rq_slice table, rq_slice family)
{
    const char *dir = rq_mob_region_dir(arena, table);
    return dir == NULL
               ? NULL
               : rq_arena_printf(arena, "%s/%.*s", dir, (int)family.len, (const char *)family.ptr);
}

/* yyyyMMdd in the machine's time zone, as in HBase's file names; the last day of 9999 for later
 * dates. */
static void put_date(int64_t ms, char ret[DATE_LEN + 1])
{
    time_t s = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm;
    /* Times that the calendar cannot represent are far from now. */
    if (ms < 0 || localtime_r(&s, &tm) == NULL || tm.tm_year > 9999 - 1900)
        memcpy(ret, ms < 0 ? "19700101" : "99991231", DATE_LEN + 1);
    else
        snprintf(ret, DATE_LEN + 1, "%04u%02u%02u", (unsigned)(tm.tm_year + 1900) % 10000,
                 (unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100);
}

void rq__mob_file_name(rq_slice start_key, int64_t newest_ms, const uint64_t random[2],
                       const char *region_encoded, char ret[RQ_MOB_FILE_NAME_LEN + 1])
{
    char key[RQ_MD5_HEX_LEN + 1];
    char date[DATE_LEN + 1];
    rq_md5_hex(start_key, key);
    put_date(newest_ms, date);
    snprintf(ret, RQ_MOB_FILE_NAME_LEN + 1, "%s%s%016llx%016llx_%s", key, date,
             (unsigned long long)random[0], (unsigned long long)random[1], region_encoded);
}

bool rq_mob_file_is_expired(rq_slice name, int64_t oldest_ms)
{
    char oldest[DATE_LEN + 1];
    if (name.len < DATE_AT + DATE_LEN || oldest_ms <= 0) return false;
    for (size_t i = 0; i < DATE_LEN; i++)
        if (name.ptr[DATE_AT + i] < '0' || name.ptr[DATE_AT + i] > '9') return false;
    put_date(oldest_ms, oldest);
    return memcmp(name.ptr + DATE_AT, oldest, DATE_LEN) < 0;
}

rq_slice rq_mob_file_region(rq_slice name)
{
    for (size_t i = name.len; i-- > 0;)
        if (name.ptr[i] == '_') return rq_slice_of(name.ptr + i + 1, name.len - i - 1);
    return (rq_slice){0};
}

/* --- references ------------------------------------------------------------------------------- */

rq_err rq__mob_reference_parse(const rq_cell *c, rq_mob_reference *ret, bool *ret_names_file,
                               rq_error *why)
{
    *ret_names_file = false;
    if (c->value_len <= 4 || !rq_cell_tag(c, RQ_TAG_MOB_TABLE, &ret->table)) return RQ_OK;
    ret->file = rq_slice_of(c->value + 4, c->value_len - 4);
    rq_slice ns, qualifier;
    if (!is_component(ret->file) || !rq_mob_table_parts(ret->table, &ns, &qualifier))
        return rq_fail(why, RQ_E_MALFORMED, "MOB reference without the name of a MOB file");
    *ret_names_file = true;
    return RQ_OK;
}

rq_err rq__mob_reference_make(const rq_cell *cell, rq_slice table, rq_slice file, rq_buf *bytes,
                              rq_cell *ret)
{
    size_t own = 3 + 3 + table.len;
    if (own + cell->tags_len > RQ_TAGS_LEN_MAX) return RQ_E_INVALID;
    rq_buf_reset(bytes);
    RQ_TRY(rq_buf_reserve(bytes, 4 + file.len + own + cell->tags_len));
    RQ_TRY(rq_buf_append_be32(bytes, cell->value_len));
    RQ_TRY(rq_buf_append(bytes, file.ptr, file.len));
    size_t tags_at = bytes->len;
    RQ_TRY(rq_buf_append_be16(bytes, 1));
    RQ_TRY(rq_buf_append_u8(bytes, RQ_TAG_MOB_REFERENCE));
    RQ_TRY(rq_buf_append_be16(bytes, (uint16_t)(1 + table.len)));
    RQ_TRY(rq_buf_append_u8(bytes, RQ_TAG_MOB_TABLE));
    RQ_TRY(rq_buf_append(bytes, table.ptr, table.len));
    if (cell->tags_len > 0) RQ_TRY(rq_buf_append(bytes, cell->tags, cell->tags_len));
    *ret = *cell;
    ret->value = bytes->ptr;
    ret->value_len = (uint32_t)tags_at;
    ret->tags = bytes->ptr + tags_at;
    ret->tags_len = (uint16_t)(bytes->len - tags_at);
    return RQ_OK;
}

/* --- MOB_FILE_REFS ---------------------------------------------------------------------------- */

struct rq_mob_ref {
    rq_slice table, file; /* file.ptr NULL: free */
};

static uint64_t hash_of(rq_slice table, rq_slice file)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < table.len; i++)
        h = (h ^ table.ptr[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < file.len; i++)
        h = (h ^ file.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* The slot of the entry, or the free one where it would be inserted. REQUIRES: there is room. */
static struct rq_mob_ref *slot_of(const rq_mob_refs *r, rq_slice table, rq_slice file)
{
    for (size_t i = hash_of(table, file) & (r->room - 1);; i = (i + 1) & (r->room - 1)) {
        struct rq_mob_ref *s = &r->slots[i];
        if (s->file.ptr == NULL || (rq_slice_eq(s->file, file) && rq_slice_eq(s->table, table)))
            return s;
    }
}

static rq_err grow(rq_mob_refs *r)
{
    rq_mob_refs more = *r;
    more.room = r->room == 0 ? 16 : 2 * r->room;
    more.slots = rq_arena_calloc(&r->arena, more.room, sizeof *more.slots);
    if (more.slots == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->room; i++)
        if (r->slots[i].file.ptr != NULL)
            *slot_of(&more, r->slots[i].table, r->slots[i].file) = r->slots[i];
    r->slots = more.slots;
    r->room = more.room;
    return RQ_OK;
}

rq_err rq__mob_refs_add(rq_mob_refs *r, rq_slice table, rq_slice file)
{
    if (2 * r->count >= r->room) RQ_TRY(grow(r));
    struct rq_mob_ref *s = slot_of(r, table, file);
    if (s->file.ptr != NULL) return RQ_OK;
    struct rq_mob_ref ref = {rq_arena_copy(&r->arena, table), rq_arena_copy(&r->arena, file)};
    if (ref.table.ptr == NULL || ref.file.ptr == NULL) return RQ_E_NO_MEMORY;
    *s = ref;
    r->count++;
    return RQ_OK;
}

bool rq_mob_refs_has(const rq_mob_refs *r, rq_slice table, rq_slice file)
{
    return r->room > 0 && slot_of(r, table, file)->file.ptr != NULL;
}

static int ref_order(const void *a, const void *b)
{
    const struct rq_mob_ref *x = a, *y = b;
    int c = rq_slice_compare(x->table, y->table);
    return c != 0 ? c : rq_slice_compare(x->file, y->file);
}

static rq_err append_sorted(const struct rq_mob_ref *list, size_t count, rq_buf *out)
{
    if (count == 0) return rq_buf_append_u8(out, 0);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && rq_slice_eq(list[i].table, list[i - 1].table)) {
            RQ_TRY(rq_buf_append_u8(out, ','));
        } else {
            if (i > 0) RQ_TRY(rq_buf_append(out, "//", 2));
            RQ_TRY(rq_buf_append(out, list[i].table.ptr, list[i].table.len));
            RQ_TRY(rq_buf_append_u8(out, '/'));
        }
        RQ_TRY(rq_buf_append(out, list[i].file.ptr, list[i].file.len));
    }
    return RQ_OK;
}

rq_err rq__mob_refs_encode(const rq_mob_refs *r, rq_buf *out)
{
    struct rq_mob_ref *list = malloc((r->count + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < r->room; i++)
        if (r->slots[i].file.ptr != NULL) list[n++] = r->slots[i];
    qsort(list, n, sizeof *list, ref_order);
    rq_err rc = append_sorted(list, n, out);
    free(list);
    return rc;
}

rq_err rq_mob_refs_each(const rq_mob_refs *r,
                        rq_err (*callback)(void *ctx, rq_slice table, rq_slice file, rq_error *why),
                        void *ctx, rq_error *why)
{
    for (size_t i = 0; i < r->room; i++)
        if (r->slots[i].file.ptr != NULL)
            RQ_TRY(callback(ctx, r->slots[i].table, r->slots[i].file, why));
    return RQ_OK;
}

/* Cuts the bytes of `s` before the first `c` (or pair of `c`) off; *s continues behind it. */
static rq_slice cut(rq_slice *s, char c, bool pair)
{
    size_t n = pair ? 2 : 1;
    for (size_t i = 0; i + n <= s->len; i++) {
        if (s->ptr[i] != (uint8_t)c || (pair && s->ptr[i + 1] != (uint8_t)c)) continue;
        rq_slice head = rq_slice_of(s->ptr, i);
        *s = rq_slice_of(s->ptr + i + n, s->len - i - n);
        return head;
    }
    rq_slice all = *s;
    *s = (rq_slice){0};
    return all;
}

rq_err rq_mob_refs_add_encoded(rq_mob_refs *r, rq_slice value, rq_error *why)
{
    if (value.len <= 1) return RQ_OK;
    while (value.len > 0) {
        rq_slice files = cut(&value, '/', true);
        rq_slice table = cut(&files, '/', false);
        rq_slice ns, qualifier;
        if (!rq_mob_table_parts(table, &ns, &qualifier) || files.len == 0)
            return rq_fail(why, RQ_E_CORRUPT, "malformed " RQ_MOB_INFO_REFS);
        while (files.len > 0) {
            rq_slice file = cut(&files, ',', false);
            if (!is_component(file))
                return rq_fail(why, RQ_E_CORRUPT, "malformed " RQ_MOB_INFO_REFS);
            RQ_TRY(rq__mob_refs_add(r, table, file));
        }
    }
    return RQ_OK;
}

void rq_mob_refs_clear(rq_mob_refs *r)
{
    rq_arena_clear(&r->arena);
    *r = (rq_mob_refs){0};
}
