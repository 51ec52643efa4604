/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and order of parts, and advice on formats. */
#include "rowkey/rowkey_priv.h"

#include <stdlib.h>

enum { LENGTH_MIN = 10, LENGTH_MAX = 100, BUCKETS_MANY = 256 };

/* --- lengths ---------------------------------------------------------------------------------- */

static void variable_lengths(const rq__part *p, size_t *ret_min, size_t *ret_max)
{
    bool closed = p->kind != RQ__PART_OB_NUM && p->kind != RQ__PART_OB_BLOB &&
                  !(p->kind == RQ__PART_VAR && (p->literal.len > 0 || (p->is_last && !p->desc)));
    *ret_min = closed ? (p->kind == RQ__PART_VAR && !p->is_text ? 2 : 1) : 0;
    *ret_max = SIZE_MAX;
    if (p->kind >= RQ__PART_OB_NUM) *ret_min = p->is_last ? 0 : 1; /* null */
}

void rq__part_lengths(const rq__part *p, size_t *ret_min, size_t *ret_max)
{
    size_t header = p->kind == RQ__PART_OB_INT || p->kind == RQ__PART_OB_FLOAT ? 1 : 0;
    *ret_min = *ret_max = p->width + header;
    if (p->kind == RQ__PART_LITERAL) *ret_min = *ret_max = p->literal.len;
    if (p->kind == RQ__PART_VAR || rq__part_is_nullable_ob(p))
        variable_lengths(p, ret_min, ret_max);
    if (!p->opt) return;
    *ret_min = 1;
    *ret_max += *ret_max < SIZE_MAX;
}

bool rq__part_is_ordered(const rq__part *p)
{
    if (p->rev || p->kind == RQ__PART_RAW_INT || p->kind == RQ__PART_RAW_FLOAT) return false;
    if (p->kind == RQ__PART_OB_BLOBVAR) return false;
    if (p->desc && p->may_be_missing) return false; /* as null, and then it comes first */
    return p->literal.len == 0 || p->kind == RQ__PART_LITERAL || p->literal.ptr[0] == 0;
}

/* --- advice ----------------------------------------------------------------------------------- */

static rq_err append_advice(rq_buf *out, size_t *count, const char *text)
{
    (*count)++;
    return rq_buf_append(out, text, strlen(text) + 1);
}

static rq_err lint_length(const rq_key_format *f, rq_buf *out, size_t *count, rq_arena *a)
{
    size_t least = 0, most = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t low, high;
        rq__part_lengths(&f->parts[i], &low, &high);
        least += low;
        most = most == SIZE_MAX || high == SIZE_MAX ? SIZE_MAX : most + high;
    }
    const char *text = NULL;
    if (least > LENGTH_MAX)
        text = rq_arena_printf(a,
                               "keys have at least %zu bytes; each cell stores its key: 10 to 100 "
                               "bytes are usual",
                               least);
    else if (most < LENGTH_MIN)
        text = rq_arena_printf(
            a, "keys have at most %zu bytes: there may be too few different keys", most);
    else
        return RQ_OK;
    return text == NULL ? RQ_E_NO_MEMORY : append_advice(out, count, text);
}

static const rq__part *first_with_bytes(const rq_key_format *f)
{
    size_t i = 0;
    while (i + 1 < f->count && f->parts[i].kind == RQ__PART_LITERAL)
        i++;
    return &f->parts[i];
}

static rq_err lint_first(const rq_key_format *f, rq_buf *out, size_t *count, rq_arena *a)
{
    const rq__part *p = first_with_bytes(f);
    bool is_time =
        p->kind == RQ__PART_TIME || p->kind == RQ__PART_SECONDS || p->kind == RQ__PART_TIME_DIGITS;
    bool is_number = p->kind == RQ__PART_UINT || p->kind == RQ__PART_DIGITS;
    const char *text = NULL;
    if (is_time)
        text = rq_arena_printf(a,
                               "%s is a time in front: at any moment all writes go to one region. "
                               "Put an id or salt(N) in front of it",
                               p->name);
    else if (is_number && !p->rev)
        text = rq_arena_printf(a,
                               "%s: if these numbers are given out in ascending order, all new "
                               "rows go to one region. rev-%s, md5(2,%s) or salt(N,%s) spreads "
                               "them",
                               p->name, p->type, p->name, p->name);
    else if (p->kind == RQ__PART_HASH && (p->covers & (p->covers - 1)) != 0 && f->value_count > 1)
        text = rq_arena_printf(a,
                               "%s hashes all parts: rows can be found by their whole key only. "
                               "Hash the first part alone to keep its rows together",
                               p->type);
    else if (rq__part_is_computed(p) && p->buckets > BUCKETS_MANY)
        text = rq_arena_printf(a, "%s: a scan of a range is %u scans", p->type, p->buckets);
    else if (rq__part_is_computed(p) && p->buckets == 1)
        text = rq_arena_printf(a, "%s spreads nothing", p->type);
    else
        return RQ_OK;
    return text == NULL ? RQ_E_NO_MEMORY : append_advice(out, count, text);
}

static rq_err lint_part(const rq__part *p, rq_buf *out, size_t *count, rq_arena *a)
{
    size_t low, high;
    const char *text = NULL;
    rq__part_lengths(p, &low, &high);
    if (p->name == NULL) return RQ_OK;
    if (p->rev)
        text = rq_arena_printf(a, "%s (%s): a range of values is not a range of keys", p->name,
                               p->type);
    else if (p->kind == RQ__PART_RAW_INT || p->kind == RQ__PART_RAW_FLOAT)
        text = rq_arena_printf(a, "%s (%s): negative numbers sort behind positive ones", p->name,
                               p->type);
    else if (p->kind == RQ__PART_OB_BLOBVAR)
        text = rq_arena_printf(a,
                               "%s (%s): HBase's OrderedBlobVar sorts some values of different "
                               "lengths the other way round (01 before 00 ff)",
                               p->name, p->type);
    else if (!rq__part_is_ordered(p) && rq__part_is_nullable_ob(p))
        text = rq_arena_printf(a,
                               "%s (%s): null is omitted at the end of a key, as HBase's Struct "
                               "does, and sorts first",
                               p->name, p->type);
    else if (!rq__part_is_ordered(p))
        text = rq_arena_printf(a,
                               "%s (%s): a value sorts behind longer ones that continue it with "
                               "bytes below %02x; without the literal it would not",
                               p->name, p->type, p->literal.ptr[0]);
    else if (high == SIZE_MAX && !p->is_last)
        text = rq_arena_printf(a,
                               "%s (%s) has no fixed length: what is behind it cannot be found by "
                               "an offset (FuzzyRowFilter)",
                               p->name, p->type);
    else if ((p->kind == RQ__PART_DIGITS && p->width > 4) || p->kind == RQ__PART_TIME_DIGITS)
        text = rq_arena_printf(a, "%s (%s): %u bytes for what a binary number has in %u", p->name,
                               p->type, p->width, p->width > 9 ? 8 : 4);
    else
        return RQ_OK;
    return text == NULL ? RQ_E_NO_MEMORY : append_advice(out, count, text);
}

static rq_err lint_into(const rq_key_format *f, rq_buf *out, size_t *count, rq_arena *a)
{
    RQ_TRY(lint_length(f, out, count, a));
    RQ_TRY(lint_first(f, out, count, a));
    for (size_t i = 0; i < f->count; i++)
        RQ_TRY(lint_part(&f->parts[i], out, count, a));
    return RQ_OK;
}

/* One allocation, for rq_names_free. */
static rq_names *names_of(rq_slice texts, size_t count)
{
    rq_names *names = malloc(sizeof *names + count * sizeof(char *) + texts.len);
    if (names == NULL) return NULL;
    const char **items = (const char **)(names + 1);
    char *bytes = (char *)(items + count);
    if (texts.len > 0) memcpy(bytes, texts.ptr, texts.len);
    for (size_t i = 0; i < count; i++) {
        items[i] = bytes;
        bytes += strlen(bytes) + 1;
    }
    *names = (rq_names){.count = count, .items = items};
    return names;
}

rq_err rq__key_lint(const rq_key_format *f, rq_names **ret, rq_error *why)
{
    rq_buf texts = {0};
    rq_arena arena = {0};
    size_t count = 0;
    rq_err rc = lint_into(f, &texts, &count, &arena);
    if (rc == RQ_OK) {
        rq_names *names = names_of(rq_buf_slice(&texts), count);
        rc = names == NULL ? RQ_E_NO_MEMORY : RQ_OK;
        if (rc == RQ_OK) *ret = names;
    }
    rq_buf_clear(&texts);
    rq_arena_clear(&arena);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}
