/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns, needles and lists of filters chosen for their cost. A step of a filter (one call) must
 * not exceed a time slice of an event loop, and the whole search must end. Times are the thread's
 * CPU time. The limits are many times the usual values, because a successful attack would take
 * minutes. */
#include "../base/unit.h"

#include "filter/comparator.h"
#include "filter/filter.h"
#include "proto/comparator.pb-c.h"
#include "proto/filter.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define SLOWER (RQ_ASAN ? 20 : tests_slower())
#define STRETCH_MS (150 * SLOWER)

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static rq_slice packed(rq_arena *arena, const ProtobufCMessage *m)
{
    uint8_t *bytes = rq_arena_alloc(arena, protobuf_c_message_get_packed_size(m));
    assert_non_null(bytes);
    return rq_slice_of(bytes, protobuf_c_message_pack(m, bytes));
}

static ProtobufCBinaryData data_of(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static rq_slice regex_message(rq_arena *arena, rq_slice pattern)
{
    Pb__RegexStringComparator m = PB__REGEX_STRING_COMPARATOR__INIT;
    m.pattern = data_of(pattern);
    m.charset = (char *)(uintptr_t) "UTF-8";
    return packed(arena, &m.base);
}

static rq_err new_regex(rq_arena *arena, rq_slice pattern, rq_comparator **ret, rq_error *why)
{
    return rq_comparator_parse(RQ_SLICE_LIT(PACKAGE "RegexStringComparator"),
                               regex_message(arena, pattern), arena, ret, why);
}

static uint8_t *repeated(const char *text, size_t len)
{
    uint8_t *p = malloc(len);
    assert_non_null(p);
    size_t n = strlen(text);
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)text[i % n];
    return p;
}

/* Without limits each of them takes minutes to years. */
static const struct {
    const char *pattern, *text;
    size_t len;
} searches[] = {
    {"a+a*[bc]", "a", 1 << 20},
    {"[ab]{1,60000}[cd]", "a", 1 << 20},
    {"(a+)+[bc]", "a", 1 << 20},
    {"(?:a|aa)+[bc]", "a", 1 << 20},
    {"(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?"
     ":a|a)"
     "(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)(?:a|a)["
     "bc]",
     "a", 1000},
    {"(?:(?=[ab]*+[cd])a)*[bc]", "a", 1 << 20},
    {"(?:(?![ab]*+[cd])a)*+[bc]", "a", 1 << 20},
    {"[ab]*+[cd]", "a", 1 << 20},
    {"[ab]{60000}[cd]", "a", 60000 + 50000},
    {"([ab]*)x?\\1[cd]", "a", 1 << 20},
    {"(?i)([ab]*c)(?:\\1|\\1|\\1|\\1|\\1|\\1|\\1|\\1)[cd]",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 1 << 20},
    {"(?:.*.*.*.*.*)[\\u0100-\\u0200]", "ab ", 100000},
    {"(?<=[ab])[ab]*?[cd]", "a", 1 << 20},
    {".*.*[\\n]x", "a", 1 << 20},
    {"(?:(?:(?:a?){10}){10}){10}[bc]", "a", 10000},
};

/* A condition of checkAndMutate is compared without pauses. */
static void a_search_that_cannot_pause_ends_soon(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(searches); i++) {
        rq_arena arena = {0};
        rq_comparator *c = NULL;
        rq_error why = {0};
        assert_int_equal(new_regex(&arena, rq_slice_cstr(searches[i].pattern), &c, &why), RQ_OK);
        uint8_t *text = repeated(searches[i].text, searches[i].len);
        int result = 0;
        double begun = cpu_ms();
        rq_err rc = rq_comparator_compare(c, rq_slice_of(text, searches[i].len), &result, &why);
        double took = cpu_ms() - begun;
        print_message("%-30.30s %7.1f ms: %s\n", searches[i].pattern, took,
                      rc == RQ_OK ? "found or not" : why.message);
        assert_true(rc == RQ_OK || rc == RQ_E_DO_NOT_RETRY);
        if (took > STRETCH_MS) fail_msg("%s took %.0f ms", searches[i].pattern, took);
        free(text);
        rq_arena_clear(&arena);
    }
}

/* A substring whose first and last byte occur everywhere. */
static void a_substring_is_looked_for_in_linear_time(void **state)
{
    (void)state;
    enum { LEN = 4 << 20, NEEDLE = 1 << 20 };
    static const char *const middles[] = {"b", "\xc3\xa9"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(middles); i++) {
        rq_arena arena = {0};
        rq_comparator *c = NULL;
        uint8_t *needle = repeated("a", NEEDLE);
        uint8_t *text = repeated("a", LEN);
        memcpy(needle + NEEDLE / 2, middles[i], strlen(middles[i]));
        Pb__SubstringComparator m = PB__SUBSTRING_COMPARATOR__INIT;
        m.substr = data_of(rq_slice_of(needle, NEEDLE - 1));
        assert_int_equal(rq_comparator_parse(RQ_SLICE_LIT(PACKAGE "SubstringComparator"),
                                             packed(&arena, &m.base), &arena, &c, NULL),
                         RQ_OK);
        int result = 0;
        double begun = cpu_ms();
        assert_int_equal(rq_comparator_compare(c, rq_slice_of(text, LEN), &result, NULL), RQ_OK);
        double took = cpu_ms() - begun;
        print_message("substring %zu: %.1f ms\n", i, took);
        assert_int_equal(result, 1);
        if (took > STRETCH_MS) fail_msg("%.0f ms", took);
        free(text);
        free(needle);
        rq_arena_clear(&arena);
    }
}

/* The string that every match of a regular expression contains is searched for first. */
static void required_text_is_looked_for_in_linear_time(void **state)
{
    (void)state;
    enum { LEN = 4 << 20, PATTERN = 12000 };
    rq_arena arena = {0};
    rq_comparator *c = NULL;
    uint8_t *pattern = repeated("a", PATTERN);
    uint8_t *text = repeated("a", LEN);
    pattern[PATTERN / 2] = 'b';
    assert_int_equal(new_regex(&arena, rq_slice_of(pattern, PATTERN), &c, NULL), RQ_OK);
    int result = 0;
    double begun = cpu_ms();
    assert_int_equal(rq_comparator_compare(c, rq_slice_of(text, LEN), &result, NULL), RQ_OK);
    double took = cpu_ms() - begun;
    print_message("required text: %.1f ms\n", took);
    assert_int_equal(result, 1);
    if (took > STRETCH_MS) fail_msg("%.0f ms", took);
    free(text);
    free(pattern);
    rq_arena_clear(&arena);
}

/* Small patterns that compile to large programs. */
static void compiling_is_paid_for(void **state)
{
    (void)state;
    static const char *const bombs[] = {
        "(?:(?:a|b|[^c]){0,60}){0,60}",
        "((((a{1,1000}){1,1000}){1,1000}",
        "(?:(?:(?:(?:(?:(?:(?:(?:x{2}){2}){2}){2}){2}){2}){2}){2}){30}",
        "(?:(?i)[\\u0100-\\u0500&&[^\\p{L}]]?){1000}",
        "(?:\\p{L}?\\p{Lu}?){2000}",
    };
    enum { COPIES = 5000 };
    for (size_t i = 0; i < RQ_ARRAY_LEN(bombs); i++) {
        rq_arena arena = {0};
        Pb__Comparator c = PB__COMPARATOR__INIT;
        c.name = (char *)(uintptr_t)PACKAGE "RegexStringComparator";
        c.has_serialized_comparator = true;
        c.serialized_comparator = data_of(regex_message(&arena, rq_slice_cstr(bombs[i])));
        Pb__CompareFilter compare = PB__COMPARE_FILTER__INIT;
        compare.compare_op = PB__COMPARE_TYPE__EQUAL;
        compare.comparator = &c;
        Pb__ValueFilter value = PB__VALUE_FILTER__INIT;
        value.compare_filter = &compare;
        Pb__Filter child = PB__FILTER__INIT;
        child.name = (char *)(uintptr_t)PACKAGE "ValueFilter";
        child.has_serialized_filter = true;
        child.serialized_filter = data_of(packed(&arena, &value.base));
        Pb__Filter **children = rq_arena_alloc(&arena, COPIES * sizeof(Pb__Filter *));
        assert_non_null(children);
        for (size_t k = 0; k < COPIES; k++)
            children[k] = &child;
        Pb__FilterList list = PB__FILTER_LIST__INIT;
        list.operator_ = PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE;
        list.n_filters = COPIES;
        list.filters = children;
        rq_slice message = packed(&arena, &list.base);
        rq_filter *f = NULL;
        rq_error why = {0};
        double begun = cpu_ms();
        rq_err rc = rq_filter_parse(RQ_SLICE_LIT(PACKAGE "FilterList"), message, &arena, &f, &why);
        double took = cpu_ms() - begun;
        print_message("%-30.30s %7.1f ms: %.80s\n", bombs[i], took,
                      rc == RQ_OK ? "taken" : why.message);
        assert_true(rc == RQ_OK || rc == RQ_E_DO_NOT_RETRY);
        if (took > STRETCH_MS) fail_msg("%s took %.0f ms", bombs[i], took);
        rq_arena_clear(&arena);
    }
}

/* The number of cells that a filter handles in one slice; at most 100,000. */
static unsigned cells_in_a_slice(rq_filter *f)
{
    static const rq_cell cell = {.row = (const uint8_t *)"row",
                                 .row_len = 3,
                                 .family = (const uint8_t *)"f",
                                 .family_len = 1,
                                 .type = RQ_TYPE_PUT};
    rq_filter_code code;
    unsigned n = 0;
    bool out;
    assert_non_null(rq_filter_pace(f));
    assert_int_equal(rq_filter_row_key(f, rq_cell_row(&cell), &out, NULL), RQ_OK);
    rq_pace_begin(rq_filter_pace(f), true);
    rq_err rc = RQ_OK;
    for (; rc == RQ_OK && n < 100000; n++)
        rc = rq_filter_cell(f, &cell, &code, NULL);
    if (n == 100000) return n;
    assert_int_equal(rc, RQ_E_AGAIN);
    rq_pace_begin(rq_filter_pace(f), true); /* and continues in a new slice */
    assert_int_equal(rq_filter_resume_cell(f, &cell, &code, NULL), RQ_OK);
    return n;
}

static void many_keys_and_long_lists_keep_to_the_pace(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    rq_arena arena = {0};
    Pb__BytesBytesPair pair = PB__BYTES_BYTES_PAIR__INIT;
    pair.first = data_of(RQ_SLICE_LIT("key"));
    pair.second = data_of(RQ_SLICE_LIT("\xff\xff\xff"));
    Pb__BytesBytesPair **pairs = rq_arena_alloc(&arena, COUNT * sizeof(Pb__BytesBytesPair *));
    Pb__PrefixFilter prefix = PB__PREFIX_FILTER__INIT;
    prefix.has_prefix = true;
    prefix.prefix = data_of(RQ_SLICE_LIT("row"));
    Pb__Filter child = PB__FILTER__INIT;
    child.name = (char *)(uintptr_t)PACKAGE "PrefixFilter";
    child.has_serialized_filter = true;
    child.serialized_filter = data_of(packed(&arena, &prefix.base));
    Pb__Filter **children = rq_arena_alloc(&arena, COUNT * sizeof(Pb__Filter *));
    assert_non_null(pairs);
    assert_non_null(children);
    for (size_t i = 0; i < COUNT; i++) {
        pairs[i] = &pair;
        children[i] = &child;
    }
    Pb__FuzzyRowFilter fuzzy = PB__FUZZY_ROW_FILTER__INIT;
    fuzzy.n_fuzzy_keys_data = COUNT;
    fuzzy.fuzzy_keys_data = pairs;
    rq_filter *f;
    assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "FuzzyRowFilter"),
                                     packed(&arena, &fuzzy.base), &arena, &f, NULL),
                     RQ_OK);
    assert_in_range(cells_in_a_slice(f), 2, 10);
    Pb__FilterList list = PB__FILTER_LIST__INIT;
    list.n_filters = COUNT;
    list.filters = children;
    for (int op = PB__FILTER_LIST__OPERATOR__MUST_PASS_ALL;
         op <= PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE; op++) {
        list.operator_ = (Pb__FilterList__Operator)op;
        assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "FilterList"),
                                         packed(&arena, &list.base), &arena, &f, NULL),
                         RQ_OK);
        assert_in_range(cells_in_a_slice(f), 2, 10);
    }
    rq_arena_clear(&arena);
}

#define LONG_NAME 30000

static bool up_to_limit(void *ctx, size_t bytes)
{
    size_t *left = ctx;
    if (bytes > *left) return false;
    *left -= bytes;
    return true;
}

/* Cell bytes that filters keep are charged to their arena, which may refuse them. */
static void memory_of_filters_is_charged(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    uint8_t *name = repeated("z", LONG_NAME);
    const rq_cell cell = {.row = name,
                          .row_len = LONG_NAME,
                          .family = (const uint8_t *)"f",
                          .family_len = 1,
                          .qualifier = name,
                          .qualifier_len = LONG_NAME,
                          .type = RQ_TYPE_PUT};
    Pb__ColumnPrefixFilter prefix = PB__COLUMN_PREFIX_FILTER__INIT;
    prefix.prefix = data_of(RQ_SLICE_LIT("a")); /* the cell is after the prefix: next row */
    for (int refuses = 0; refuses <= 1; refuses++) {
        rq_arena messages = {0}, arena = {0};
        size_t left = refuses ? COUNT * (size_t)LONG_NAME : SIZE_MAX;
        rq_arena_meter(&arena, up_to_limit, &left);
        Pb__Filter child = PB__FILTER__INIT;
        child.name = (char *)(uintptr_t)PACKAGE "ColumnPrefixFilter";
        child.has_serialized_filter = true;
        child.serialized_filter = data_of(packed(&messages, &prefix.base));
        Pb__Filter *children[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            children[i] = &child;
        Pb__FilterList list = PB__FILTER_LIST__INIT;
        list.operator_ = PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE;
        list.n_filters = COUNT;
        list.filters = children;
        rq_filter *f;
        bool out;
        rq_filter_code code;
        assert_int_equal(rq_filter_parse(RQ_SLICE_LIT(PACKAGE "FilterList"),
                                         packed(&messages, &list.base), &arena, &f, NULL),
                         RQ_OK);
        assert_int_equal(rq_filter_row_key(f, rq_cell_row(&cell), &out, NULL), RQ_OK);
        size_t before = arena.total_bytes;
        rq_err rc = rq_filter_cell(f, &cell, &code, NULL);
        if (refuses) {
            assert_int_equal(rc, RQ_E_NO_MEMORY);
        } else {
            assert_int_equal(rc, RQ_OK);
            assert_true(arena.total_bytes - before >= COUNT * 2 * (size_t)LONG_NAME);
        }
        rq_arena_clear(&arena);
        rq_arena_clear(&messages);
    }
    free(name);
}

/* A number with a be32 scale and an unscaled value. One comparison of these takes half a
 * millisecond. */
static void numbers_with_many_digits_keep_to_the_pace(void **state)
{
    (void)state;
    static const uint8_t power[] = {0xff, 0xff, 0xd9, 0x79, 1}, one[] = {0, 0, 0, 0, 1};
    uint8_t digits[4 + 4096];
    rq_arena arena = {0};
    rq_comparator *c;
    rq_error why = {.code = RQ_OK};
    int compared = 0, ret;
    memset(digits, 0, 4);
    memset(digits + 4, 0x7f, sizeof digits - 4);
    Pb__BigDecimalComparator m = PB__BIG_DECIMAL_COMPARATOR__INIT;
    Pb__ByteArrayComparable value = PB__BYTE_ARRAY_COMPARABLE__INIT;
    value.has_value = 1;
    value.value = data_of(rq_slice_of(digits, sizeof digits));
    m.comparable = &value;
    assert_int_equal(rq_comparator_parse(RQ_SLICE_LIT(PACKAGE "BigDecimalComparator"),
                                         packed(&arena, &m.base), &arena, &c, &why),
                     RQ_OK);
    rq_pace *pace = rq_comparator_pace(c);
    assert_non_null(pace);
    for (int round = 0; round < 3; round++) { /* continues in the next slice */
        rq_pace_begin(pace, true);
        for (compared = 0; compared < 10; compared++)
            if (rq_comparator_compare(c, rq_slice_of(power, sizeof power), &ret, &why) != RQ_OK)
                break;
        assert_in_range(compared, 1, 2);
    }
    rq_pace_begin(pace, true);
    for (compared = 0; compared < 1000; compared++) /* numbers of equal scale need no
                                                     * multiplication */
        assert_int_equal(rq_comparator_compare(c, rq_slice_of(one, sizeof one), &ret, &why), RQ_OK);
    rq_pace_begin(pace, false);
    for (compared = 0; compared < 10; compared++)
        assert_int_equal(rq_comparator_compare(c, rq_slice_of(power, sizeof power), &ret, &why),
                         RQ_OK);
    rq_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_with_many_digits_keep_to_the_pace),
        cmocka_unit_test(memory_of_filters_is_charged),
        cmocka_unit_test(compiling_is_paid_for),
        cmocka_unit_test(many_keys_and_long_lists_keep_to_the_pace),
        cmocka_unit_test(a_substring_is_looked_for_in_linear_time),
        cmocka_unit_test(required_text_is_looked_for_in_linear_time),
        cmocka_unit_test(a_search_that_cannot_pause_ends_soon),
    };
    alarm(120); /* the alarm turns an endless search into a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
