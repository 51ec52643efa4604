/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns, needles and lists of filters chosen for their cost. A step of a filter (one call) must
 * not exceed a time slice of an event loop, and the whole search must end. Times are the thread's CPU time: the steps that
 * filters count (pace.h) include it, too. */
#include "../base/unit.h"

#include "base/random.h"
#include "filter/comparator.h"
#include "filter/filter.h"
#include "filter/list.h"
#include "filter/wrap.h"
#include "proto/comparator.pb-c.h"
#include "proto/filter.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define SLOWER (RQ_ASAN ? 20 : tests_slower())
/* Limit of CPU time. 30 to 60 ms were measured; without the limits that are tested, minutes to years. */
#define STRETCH_MS (20000 * SLOWER)

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

#ifndef RQ_LIBRARIES_LINKED

static bool is_installed = true; /* the library that is loaded */
static unsigned loads;

void *__wrap_dlopen(const char *file, int how);
void *__real_dlopen(const char *file, int how);

void *__wrap_dlopen(const char *file, int how)
{
    loads++;
    return is_installed ? __real_dlopen(file, how) : NULL;
}

/* The first test: until PCRE2 is there, patterns fail; then it is loaded once, because that takes longer than to compile
 * a short pattern. */
static void pcre2_is_loaded_once(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_comparator *c;
    rq_error why = {0};
    is_installed = false;
    rq_err rc = new_regex(&arena, RQ_SLICE_LIT("^a+"), &c, &why);
    is_installed = true;
    assert_int_equal(rc, RQ_E_IOEXCEPTION);
    assert_non_null(
        strstr(why.message, "A regular expression needs the library libpcre2-8.so.0: "));
    loads = 0;
    for (int i = 0; i < 100; i++) {
        int result;
        assert_int_equal(new_regex(&arena, RQ_SLICE_LIT("^a+"), &c, &why), RQ_OK);
        assert_int_equal(rq_comparator_compare(c, RQ_SLICE_LIT("aab"), &result, &why), RQ_OK);
        assert_int_equal(result, 0);
    }
    assert_int_equal(loads, 1);
    rq_arena_clear(&arena);
}

#else

static void pcre2_is_loaded_once(void **state)
{
    (void)state; /* it is linked */
}

#endif

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
    /* Numbers of equal scale are compared without a multiplication, so no slice ends. */
    for (compared = 0; compared < 1000; compared++)
        assert_int_equal(rq_comparator_compare(c, rq_slice_of(one, sizeof one), &ret, &why), RQ_OK);
    rq_pace_begin(pace, false);
    for (compared = 0; compared < 10; compared++)
        assert_int_equal(rq_comparator_compare(c, rq_slice_of(power, sizeof power), &ret, &why),
                         RQ_OK);
    rq_arena_clear(&arena);
}

/* --- Calls of a nest -------------------------------------------------------------------------- */
/* A class whose hooks count their calls and call the class that it stands for. */
typedef struct counted_class {
    rq_filter_class cls;
    const rq_filter_class *own;
} counted_class;

static size_t calls, nodes;

static const rq_filter_class *counted(const rq_filter *f)
{
    calls++;
    return ((const counted_class *)f->cls)->own;
}

static void count_reset(rq_filter *f)
{
    counted(f)->reset(f);
}

static bool count_all_remaining(rq_filter *f)
{
    return counted(f)->all_remaining(f);
}

static rq_err count_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    return counted(f)->row_key(f, row, ret, why);
}

static rq_err count_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    return counted(f)->cell(f, cell, ret, why);
}

static void count_transform(rq_filter *f, const rq_cell *in, rq_cell *ret)
{
    counted(f)->transform(f, in, ret);
}

static rq_err count_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return counted(f)->hint(f, cell, ret, has);
}

static bool count_row_hint(const rq_filter *f, rq_slice row, rq_slice *ret)
{
    return counted(f)->row_hint(f, row, ret);
}

static bool count_row(rq_filter *f)
{
    return counted(f)->row(f);
}

static void count_calls_of(rq_arena *arena, rq_filter *f)
{
    counted_class *c = rq_arena_alloc(arena, sizeof *c);
    assert_non_null(c);
    *c = (counted_class){.cls = *f->cls, .own = f->cls};
    if (c->own->reset != NULL) c->cls.reset = count_reset;
    if (c->own->all_remaining != NULL) c->cls.all_remaining = count_all_remaining;
    if (c->own->row_key != NULL) c->cls.row_key = count_row_key;
    if (c->own->cell != NULL) c->cls.cell = count_cell;
    if (c->own->transform != NULL) c->cls.transform = count_transform;
    if (c->own->hint != NULL) c->cls.hint = count_hint;
    if (c->own->row_hint != NULL) c->cls.row_hint = count_row_hint;
    if (c->own->row != NULL) c->cls.row = count_row;
    f->cls = &c->cls;
    nodes++;
}

/* One level of a nest: the name of a list, or of a filter around one other. */
typedef enum level_kind { LEVEL_ALL, LEVEL_ONE, LEVEL_WHILE, LEVEL_WRAPPER } level_kind;

static Pb__Filter *filter_message(rq_arena *arena, const char *name, const ProtobufCMessage *m)
{
    Pb__Filter *f = rq_arena_alloc(arena, sizeof *f);
    assert_non_null(f);
    pb__filter__init(f);
    f->name = (char *)(uintptr_t)name;
    f->has_serialized_filter = true;
    f->serialized_filter = data_of(packed(arena, m));
    return f;
}

static Pb__Filter *leaf_message(rq_arena *arena, int kind, unsigned level)
{
    static const char *const columns[] = {"a", "c", "e", "g", "i"};
    Pb__ColumnPrefixFilter column = PB__COLUMN_PREFIX_FILTER__INIT;
    Pb__PageFilter page = PB__PAGE_FILTER__INIT;
    Pb__PrefixFilter prefix = PB__PREFIX_FILTER__INIT;
    switch (kind) {
    case 0:
        page.page_size = 1000000;
        return filter_message(arena, PACKAGE "PageFilter", &page.base);
    case 1:
        column.prefix = data_of(rq_slice_cstr(columns[level % RQ_ARRAY_LEN(columns)]));
        return filter_message(arena, PACKAGE "ColumnPrefixFilter", &column.base);
    default:
        prefix.has_prefix = true;
        prefix.prefix = data_of(RQ_SLICE_LIT("row"));
        return filter_message(arena, PACKAGE "PrefixFilter", &prefix.base);
    }
}

static Pb__Filter *level_message(rq_arena *arena, level_kind kind, Pb__Filter *leaf,
                                 Pb__Filter *inner)
{
    Pb__Filter *children[] = {leaf, inner};
    Pb__FilterList list = PB__FILTER_LIST__INIT;
    Pb__WhileMatchFilter match = PB__WHILE_MATCH_FILTER__INIT;
    Pb__FilterWrapper wrapper = PB__FILTER_WRAPPER__INIT;
    switch (kind) {
    case LEVEL_WHILE:
        match.filter = inner;
        return filter_message(arena, PACKAGE "WhileMatchFilter", &match.base);
    case LEVEL_WRAPPER:
        wrapper.filter = inner;
        return filter_message(arena, PACKAGE "FilterWrapper", &wrapper.base);
    default:
        list.operator_ = kind == LEVEL_ALL ? PB__FILTER_LIST__OPERATOR__MUST_PASS_ALL
                                           : PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE;
        list.n_filters = 2;
        list.filters = children;
        return filter_message(arena, PACKAGE "FilterList", &list.base);
    }
}

static void count_calls_of_nest(rq_arena *arena, rq_filter *f, const level_kind *levels,
                                size_t period, unsigned level, unsigned depth)
{
    if (level < depth) {
        level_kind kind = levels[level % period];
        if (kind == LEVEL_WHILE || kind == LEVEL_WRAPPER) {
            count_calls_of_nest(arena, ((rq__wrapping *)f)->inner, levels, period, level + 1,
                                depth);
        } else {
            count_calls_of(arena, ((rq__list *)f)->children[0]);
            count_calls_of_nest(arena, ((rq__list *)f)->children[1], levels, period, level + 1,
                                depth);
        }
    }
    count_calls_of(arena, f);
}

/* The calls of a scanner for a row of ten cells. */
static void scan_row(rq_filter *f, const char *row)
{
    static const char qualifiers[] = "abcdefghij";
    bool out, has;
    rq_slice row_hint;
    rq_filter_reset(f);
    (void)rq_filter_all_remaining(f);
    assert_int_equal(rq_filter_row_key(f, rq_slice_cstr(row), &out, NULL), RQ_OK);
    (void)rq_filter_row_hint(f, rq_slice_cstr(row), &row_hint);
    for (size_t i = 0; qualifiers[i] != 0; i++) {
        const rq_cell cell = {.row = (const uint8_t *)row,
                              .row_len = (uint16_t)strlen(row),
                              .family = (const uint8_t *)"f",
                              .family_len = 1,
                              .qualifier = (const uint8_t *)&qualifiers[i],
                              .qualifier_len = 1,
                              .type = RQ_TYPE_PUT};
        rq_cell changed, hint;
        rq_filter_code code;
        (void)rq_filter_all_remaining(f);
        assert_int_equal(rq_filter_cell(f, &cell, &code, NULL), RQ_OK);
        if (code == RQ_FILTER_SEEK_NEXT_USING_HINT)
            assert_int_equal(rq_filter_next_cell_hint(f, &cell, &hint, &has), RQ_OK);
        rq_filter_transform_cell(f, &cell, &changed);
    }
    (void)rq_filter_row(f);
}

/* Calls per node and cell in a nest of `depth` levels. */
static double calls_per_node(const level_kind *levels, size_t period, int leaf, unsigned depth)
{
    enum { ROWS = 3, CELLS = 10 };
    static const char *const rows[ROWS] = {"row1", "row2", "row3"};
    rq_arena arena = {0};
    rq_filter *f;
    rq_error why = {0};
    Pb__Filter *m = leaf_message(&arena, leaf, depth);
    for (unsigned i = depth; i-- > 0;)
        m = level_message(&arena, levels[i % period], leaf_message(&arena, leaf, i), m);
    rq_slice bytes = rq_slice_of(m->serialized_filter.data, m->serialized_filter.len);
    assert_int_equal(rq_filter_parse(rq_slice_cstr(m->name), bytes, &arena, &f, &why), RQ_OK);
    calls = nodes = 0;
    count_calls_of_nest(&arena, f, levels, period, 0, depth);
    for (size_t i = 0; i < ROWS; i++)
        scan_row(f, rows[i]);
    double per_node = (double)calls / (double)nodes / (ROWS * CELLS);
    rq_arena_clear(&arena);
    return per_node;
}

/* Each hook asks the levels below it, and some ask twice. */
static void a_nest_makes_a_few_calls_per_node(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        level_kind levels[4];
        size_t period;
    } nests[] = {
        {"AND", {LEVEL_ALL}, 1},
        {"OR", {LEVEL_ONE}, 1},
        {"AND, OR", {LEVEL_ALL, LEVEL_ONE}, 2},
        {"While", {LEVEL_WHILE}, 1},
        {"Wrapper", {LEVEL_WRAPPER}, 1},
        {"AND, While, OR, Wrapper", {LEVEL_ALL, LEVEL_WHILE, LEVEL_ONE, LEVEL_WRAPPER}, 4},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(nests); i++)
        for (int leaf = 0; leaf < 3; leaf++)
            for (unsigned depth = 25; depth <= 100; depth *= 2) {
                double per_node = calls_per_node(nests[i].levels, nests[i].period, leaf, depth);
                print_message("%s, leaf %d, %u levels: %.2f calls per node and cell\n",
                              nests[i].name, leaf, depth, per_node);
                assert_true(per_node < 6);
            }
}

/* --- The end of a row ------------------------------------------------------------------------- */
#define TREE_DEPTH 5
#define TREE_WIDTH 6

static Pb__Comparator *binary_message(rq_arena *arena, const char *value)
{
    Pb__ByteArrayComparable bytes = PB__BYTE_ARRAY_COMPARABLE__INIT;
    bytes.has_value = true;
    bytes.value = data_of(rq_slice_cstr(value));
    Pb__BinaryComparator binary = PB__BINARY_COMPARATOR__INIT;
    binary.comparable = &bytes;
    Pb__Comparator *c = rq_arena_alloc(arena, sizeof *c);
    assert_non_null(c);
    pb__comparator__init(c);
    c->name = (char *)(uintptr_t)PACKAGE "BinaryComparator";
    c->has_serialized_comparator = true;
    c->serialized_comparator = data_of(packed(arena, &binary.base));
    return c;
}

/* SingleColumnValueExcludeFilter; no value excludes the row if `op` is GREATER. */
static Pb__Filter *exclude_message(rq_arena *arena, const char *qualifier, Pb__CompareType op)
{
    Pb__SingleColumnValueFilter single = PB__SINGLE_COLUMN_VALUE_FILTER__INIT;
    single.has_column_family = single.has_column_qualifier = true;
    single.column_family = data_of(RQ_SLICE_LIT("f"));
    single.column_qualifier = data_of(rq_slice_cstr(qualifier));
    single.compare_op = op;
    single.comparator = binary_message(arena, "");
    Pb__SingleColumnValueExcludeFilter m = PB__SINGLE_COLUMN_VALUE_EXCLUDE_FILTER__INIT;
    m.single_column_value_filter = &single;
    return filter_message(arena, PACKAGE "SingleColumnValueExcludeFilter", &m.base);
}

static Pb__Filter *dependent_message(rq_arena *arena, const char *qualifier)
{
    Pb__CompareFilter compare = PB__COMPARE_FILTER__INIT;
    compare.compare_op = PB__COMPARE_TYPE__NO_OP;
    Pb__DependentColumnFilter m = PB__DEPENDENT_COLUMN_FILTER__INIT;
    m.compare_filter = &compare;
    m.has_column_family = m.has_column_qualifier = true;
    m.column_family = data_of(RQ_SLICE_LIT("f"));
    m.column_qualifier = data_of(rq_slice_cstr(qualifier));
    return filter_message(arena, PACKAGE "DependentColumnFilter", &m.base);
}

static Pb__Filter *list_message(rq_arena *arena, bool all, Pb__Filter **children, size_t count)
{
    Pb__FilterList list = PB__FILTER_LIST__INIT;
    list.operator_ =
        all ? PB__FILTER_LIST__OPERATOR__MUST_PASS_ALL : PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE;
    list.n_filters = count;
    list.filters = children;
    return filter_message(arena, PACKAGE "FilterList", &list.base);
}

/* `pages`: PageFilter, too, which counts the rows that it has passed, also those that are given up. */
static Pb__Filter *random_leaf(rq_arena *arena, rq_random *r, bool pages)
{
    static const char *const columns[] = {"a", "b", "c", "d", "z"};
    const char *column = columns[rq_random_below(r, RQ_ARRAY_LEN(columns))];
    Pb__PageFilter page = PB__PAGE_FILTER__INIT;
    switch (pages ? rq_random_below(r, 6) : 1 + rq_random_below(r, 5)) {
    case 0:
        page.page_size = (int64_t)rq_random_below(r, 8);
        return filter_message(arena, PACKAGE "PageFilter", &page.base);
    case 1:
    case 2:
        return dependent_message(arena, column);
    default:
        return exclude_message(arena, column,
                               rq_random_below(r, 8) == 0 ? PB__COMPARE_TYPE__GREATER
                                                          : PB__COMPARE_TYPE__EQUAL);
    }
}

static Pb__Filter *random_tree(rq_arena *arena, rq_random *r, unsigned depth, bool pages)
{
    uint64_t kind = depth == 0 ? 6 : rq_random_below(r, 8);
    Pb__Filter *children[TREE_WIDTH];
    size_t count = kind < 3 ? rq_random_below(r, TREE_WIDTH) + 1 : kind < 6 ? 1 : 0;
    for (size_t i = 0; i < count; i++)
        children[i] = random_tree(arena, r, depth - 1, pages);
    Pb__SkipFilter skip = PB__SKIP_FILTER__INIT;
    if (count == 0) return random_leaf(arena, r, pages);
    switch (kind) {
    case 0:
    case 1:
    case 2:
        return list_message(arena, kind != 0, children, count);
    case 3:
        skip.filter = children[0];
        return filter_message(arena, PACKAGE "SkipFilter", &skip.base);
    case 4:
        return level_message(arena, LEVEL_WHILE, NULL, children[0]);
    default:
        return level_message(arena, LEVEL_WRAPPER, NULL, children[0]);
    }
}

static rq_filter *parsed(rq_arena *arena, const Pb__Filter *m)
{
    rq_filter *f;
    rq_slice bytes = rq_slice_of(m->serialized_filter.data, m->serialized_filter.len);
    assert_int_equal(rq_filter_parse(rq_slice_cstr(m->name), bytes, arena, &f, NULL), RQ_OK);
    return f;
}

/* A row whose cells are seen through a window. */
typedef struct windowed_row {
    rq_filter_cells shown;
    const rq_cell *cells;
    size_t window;
    size_t moved_over; /* cells in all windows so far */
} windowed_row;

static rq_err move_over(rq_filter_cells *c, size_t at)
{
    windowed_row *w = RQ_CONTAINER_OF(c, windowed_row, shown);
    assert_true(at < c->count && (at < c->begin || at >= c->end));
    c->begin = at;
    c->end = c->count - at < w->window ? c->count : at + w->window;
    c->cells = w->cells + at;
    w->moved_over += c->end - c->begin;
    return RQ_OK;
}

static windowed_row windowed(const rq_cell *cells, size_t count, bool *keep, size_t window)
{
    memset(keep, true, count);
    return (windowed_row){.shown = {.count = count, .keep = keep, .move = move_over},
                          .cells = cells,
                          .window = window};
}

/* Cells of columns a, b, … with a few versions each. */
static void make_row(rq_cell *cells, size_t count, unsigned versions)
{
    static const char names[] = "abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < count; i++)
        cells[i] = (rq_cell){.row = (const uint8_t *)"row",
                             .row_len = 3,
                             .family = (const uint8_t *)"f",
                             .family_len = 1,
                             .qualifier = (const uint8_t *)names + i / versions % 26,
                             .qualifier_len = 1,
                             .value = (const uint8_t *)"v",
                             .value_len = i % 3 == 0,
                             .timestamp = 1000 - (int64_t)(i % versions * (1 + i / versions % 3)),
                             .type = RQ_TYPE_PUT};
}

static void show_cells(rq_filter *f, const rq_cell *cells, size_t count)
{
    rq_filter_code code;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rq_filter_cell(f, &cells[i], &code, NULL), RQ_OK);
}

/* Two copies of a filter: one is asked at the end of each row in one step, the other in slices and
 * through windows of random sizes. Sometimes the other gives a row up and begins it again. */
static void compare_row_ends(rq_arena *arena, rq_random *r, const Pb__Filter *m)
{
    enum { CELLS = 24, ROWS = 6, VERSIONS = 4 };
    rq_cell cells[CELLS];
    bool keep[CELLS], sliced[CELLS];
    rq_filter *f = parsed(arena, m), *g = parsed(arena, m);
    make_row(cells, CELLS, VERSIONS);
    for (unsigned row = 0; row < ROWS; row++) {
        size_t count = rq_random_below(r, CELLS + 1);
        bool out_f, out_g;
        rq_filter_row_verdict verdict;
        rq_err rc;
        rq_filter_reset(f);
        rq_filter_reset(g);
        assert_int_equal(rq_filter_row_key(f, RQ_SLICE_LIT("row"), &out_f, NULL), RQ_OK);
        assert_int_equal(rq_filter_row_key(g, RQ_SLICE_LIT("row"), &out_g, NULL), RQ_OK);
        assert_int_equal(out_f, out_g);
        show_cells(f, cells, count);
        show_cells(g, cells, count);
        memset(keep, true, count);
        rq_filter_row_verdict expected = rq_filter_row_done(f, cells, count, keep);
        windowed_row w = windowed(cells, count, sliced, 1 + rq_random_below(r, 9));
        while ((rc = rq_filter_row_end(g, &w.shown, &verdict)) == RQ_E_AGAIN) {
            assert_non_null(rq_filter_pace(g));
            rq_filter_pace(g)->slice_left = (int64_t)(4 + rq_random_below(r, 20));
            w.shown.end = w.shown.begin;
        }
        assert_int_equal(rc, RQ_OK);
        assert_int_equal(verdict, expected);
        if (count > 0) assert_memory_equal(sliced, keep, count);
        assert_int_equal(rq_filter_all_remaining(f), rq_filter_all_remaining(g));
        if (rq_filter_pace(g) != NULL) rq_filter_pace(g)->slice_left = 0;
    }
}

static void the_end_of_a_row_is_the_same_in_slices(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (int i = 0; i < 3000; i++) {
        rq_arena arena = {0};
        compare_row_ends(&arena, &r, random_tree(&arena, &r, TREE_DEPTH, true));
        rq_arena_clear(&arena);
    }
}

/* What is left of a row's end that was given up does not show in the next row. */
static void a_row_that_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    enum { CELLS = 24 };
    rq_cell cells[CELLS];
    bool keep[CELLS], again[CELLS];
    rq_random r;
    rq_random_seed(&r, unit_seed());
    make_row(cells, CELLS, 4);
    for (int i = 0; i < 1000; i++) {
        rq_arena arena = {0};
        Pb__Filter *children[2] = {random_tree(&arena, &r, 3, false),
                                   random_tree(&arena, &r, 3, false)};
        Pb__Filter *list = list_message(&arena, i % 2 == 0, children, 2);
        rq_filter *f = parsed(&arena, level_message(&arena, LEVEL_WRAPPER, NULL, list));
        rq_filter_row_verdict verdict;
        windowed_row w = windowed(cells, CELLS, keep, 5);
        rq_filter_pace(f)->slice_left = (int64_t)rq_random_below(&r, 60);
        rq_err rc = rq_filter_row_end(f, &w.shown, &verdict);
        rq_filter_reset(f);
        if (rc == RQ_E_AGAIN) { /* filterRow was not called, so nothing has counted the row */
            rq_filter *fresh = parsed(&arena, level_message(&arena, LEVEL_WRAPPER, NULL, list));
            memset(keep, true, CELLS);
            memset(again, true, CELLS);
            (void)rq_filter_row_done(fresh, cells, CELLS, keep);
            (void)rq_filter_row_done(f, cells, CELLS, again);
            assert_memory_equal(keep, again, CELLS);
        }
        rq_arena_clear(&arena);
    }
}

/* The cells that a filter looks at in the longest of the slices it needs for the end of the row. */
static size_t longest_slice(rq_arena *arena, const Pb__Filter *m, const rq_cell *cells,
                            size_t count, size_t *ret_slices)
{
    rq_filter *f = parsed(arena, m);
    bool *keep = rq_arena_alloc(arena, count);
    assert_non_null(keep);
    windowed_row w = windowed(cells, count, keep, 64);
    rq_filter_row_verdict verdict;
    size_t longest = 0;
    *ret_slices = 0;
    for (rq_err rc = RQ_E_AGAIN; rc == RQ_E_AGAIN; ++*ret_slices) {
        size_t before = w.moved_over;
        rq_pace_begin(rq_filter_pace(f), true);
        rc = rq_filter_row_end(f, &w.shown, &verdict);
        if (w.moved_over - before > longest) longest = w.moved_over - before;
    }
    return longest;
}

static void the_end_of_a_wide_row_keeps_to_the_pace(void **state)
{
    (void)state;
    enum { CELLS = 20000, FILTERS = 200, DEPTH = 90 };
    rq_arena arena = {0};
    rq_cell *cells = rq_arena_alloc(&arena, CELLS * sizeof *cells);
    assert_non_null(cells);
    make_row(cells, CELLS, 7);
    Pb__Filter *children[FILTERS];
    for (size_t i = 0; i < FILTERS; i++)
        children[i] = i % 2 == 0 ? exclude_message(&arena, "zz", PB__COMPARE_TYPE__EQUAL)
                                 : dependent_message(&arena, "a");
    Pb__Filter *deep = children[0];
    for (unsigned i = 0; i < DEPTH; i++) {
        Pb__Filter *two[2] = {children[1], deep};
        deep = i % 3 == 0 ? level_message(&arena, LEVEL_WRAPPER, NULL, deep)
                          : list_message(&arena, i % 3 == 1, two, 2);
    }
    const Pb__Filter *const nests[] = {children[0], children[1],
                                       list_message(&arena, true, children, FILTERS),
                                       list_message(&arena, false, children, FILTERS), deep};
    for (size_t i = 0; i < RQ_ARRAY_LEN(nests); i++) {
        size_t slices;
        size_t longest = longest_slice(&arena, nests[i], cells, CELLS, &slices);
        print_message("nest %zu: %zu slices, at most %zu cells in one\n", i, slices, longest);
        assert_true(slices > 1);
        assert_true(longest <= RQ_PACE_SLICE + 64);
    }
    rq_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pcre2_is_loaded_once),
        cmocka_unit_test(the_end_of_a_row_is_the_same_in_slices),
        cmocka_unit_test(a_row_that_is_given_up_leaves_nothing),
        cmocka_unit_test(the_end_of_a_wide_row_keeps_to_the_pace),
        cmocka_unit_test(numbers_with_many_digits_keep_to_the_pace),
        cmocka_unit_test(memory_of_filters_is_charged),
        cmocka_unit_test(a_nest_makes_a_few_calls_per_node),
        cmocka_unit_test(compiling_is_paid_for),
        cmocka_unit_test(many_keys_and_long_lists_keep_to_the_pace),
        cmocka_unit_test(a_substring_is_looked_for_in_linear_time),
        cmocka_unit_test(required_text_is_looked_for_in_linear_time),
        cmocka_unit_test(a_search_that_cannot_pause_ends_soon),
    };
    alarm(120); /* the alarm turns an endless search into a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
