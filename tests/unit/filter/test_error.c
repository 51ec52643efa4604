/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's errors for filters it cannot parse (tests/data/filter/error.txt: class, message,
 * exception), and errors that only this server has. The text of InvalidProtocolBufferException is
 * protobuf's and is compared only where it names missing fields. */
#include "filter/filter.h"

#include "base/buf.h"
#include "oracle_file.h"

static bool same_text(const char *expected, const char *got)
{
    const char *end = strstr(expected, "InvalidProtocolBufferException: ");
    if (end != NULL && strstr(end, "missing required fields") != NULL) end = NULL;
    if (end == NULL) end = strstr(expected, ": Cannot invoke"); /* newer JDKs explain more */
    if (end == NULL) return strcmp(expected, got) == 0;
    return strncmp(expected, got, (size_t)(end - expected)) == 0;
}

static bool check_case(oracle_file *f)
{
    rq_arena arena = {0};
    rq_error why = {0};
    const char *word = oracle_word(f);
    char *name = rq_arena_printf(&arena, "%s", strcmp(word, "-") == 0 ? "" : word);
    rq_slice message = oracle_bytes(f, &arena);
    char *expected = rq_arena_cstr(&arena, oracle_bytes(f, &arena));
    rq_filter *filter;
    rq_err rc = rq_filter_parse(rq_slice_cstr(name), message, &arena, &filter, &why);
    char got[1200];
    if (rc == RQ_OK)
        snprintf(got, sizeof got, "-");
    else
        snprintf(got, sizeof got, "%s: %s", rq_err_java_class(rc), why.message);
    bool ok = same_text(expected, got);
    if (!ok) printf("line %zu: %s\n  HBase: %s\n  here:  %s\n", f->number, name, expected, got);
    rq_arena_clear(&arena);
    return ok;
}

/* Parses nested FilterLists; *ret_clock: the number of cells between two clock checks, at most
 * 128. */
static rq_err parse_nested(size_t depth, uint32_t *ret_clock, rq_error *why)
{
    static const char list[] = PACKAGE "FilterList";
    rq_buf inner = {0};
    rq_buf outer = {0};
    rq_err rc = rq_buf_append(&inner, "\x08\x01", 2);
    for (size_t i = 0; rc == RQ_OK && i < depth; i++) {
        rq_buf_reset(&outer);
        uint8_t varint[RQ_VARINT_MAX];
        size_t inner_head = 1 + rq_put_varint(varint, inner.len);
        size_t len = 2 + sizeof list - 1 + inner_head + inner.len;
        rc = rq_buf_append(&outer, "\x08\x01\x12", 3);
        if (rc == RQ_OK) rc = rq_buf_append_varint(&outer, len);
        if (rc == RQ_OK) rc = rq_buf_append_u8(&outer, 0x0a);
        if (rc == RQ_OK) rc = rq_buf_append_u8(&outer, sizeof list - 1);
        if (rc == RQ_OK) rc = rq_buf_append(&outer, list, sizeof list - 1);
        if (rc == RQ_OK) rc = rq_buf_append_u8(&outer, 0x12);
        if (rc == RQ_OK) rc = rq_buf_append_varint(&outer, inner.len);
        if (rc == RQ_OK) rc = rq_buf_append(&outer, inner.ptr, inner.len);
        rq_buf swap = inner;
        inner = outer;
        outer = swap;
    }
    rq_arena arena = {0};
    rq_filter *filter;
    if (rc == RQ_OK)
        rc = rq_filter_parse(rq_slice_cstr(list), rq_buf_slice(&inner), &arena, &filter, why);
    if (rc == RQ_OK) *ret_clock = rq_filter_clock(filter, 128);
    rq_arena_clear(&arena);
    rq_buf_clear(&inner);
    rq_buf_clear(&outer);
    return rc;
}

int main(int argc, char **argv)
{
    size_t cases = 0;
    size_t wrong = 0;
    for (int i = 1; i < argc; i++) {
        oracle_file f = oracle_open(argv[i]);
        for (; oracle_line(&f); cases++)
            wrong += !check_case(&f);
        oracle_close(&f);
    }
    rq_error why = {0};
    uint32_t few = 0, many = 0;
    if (parse_nested(100, &many, &why) != RQ_OK) {
        printf("a hundred levels are refused: %s\n", why.message);
        wrong++;
    }
    if (parse_nested(101, &many, &why) != RQ_E_DO_NOT_RETRY ||
        strstr(why.message, "nested more than 100 deep") == NULL) {
        printf("a hundred and one levels: %s\n", why.message);
        wrong++;
    }
    /* A hundred lists make a few hundred calls for a cell (test_hostile.c). */
    if (parse_nested(3, &few, &why) != RQ_OK || few != 128 || many != 21) {
        printf("with 3 and 100 levels the clock is read every %u and %u cells\n", few, many);
        wrong++;
    }
    printf("%zu bad filters, %zu answered differently\n", cases, wrong);
    return cases == 0 || wrong > 0;
}
