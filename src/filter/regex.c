/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with limits (regex.h). PCRE2's own limits restart at each start of a match, and do not
 * count bytes consumed by a repeat at all, so a million starts could take a million times the
 * limit. Therefore the translated pattern has callouts (java_regex.c tells where), and these count
 * the work:
 *
 * 1. A callout is one unit, and one more for each 32 bytes since the previous one. The code between
 *    two callouts may still take long (65,535 times a class, a long back reference), so CPU time
 *    counts too: 32 ns are at least one unit.
 * 2. A search that may pause ends when the time slice does, by an error from the callout, and later
 *    continues with the start it was trying: all starts before it are known to fail. If a whole
 *    slice was not enough for one start, that start alone may take RQ_PACE_WHOLE in one step.
 * 3. A text may take UNITS_PER_TEXT, and UNITS_PER_BYTE for each of its bytes. The limit applies to
 *    one text, never to a whole scan.
 *
 * Machine code is generated once a pattern was searched for often, or in a long text: generating it
 * takes as long as some hundred searches without it. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "filter/regex.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/library.h"
#include "filter/java_regex.h"
#include "filter/java_text.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define UNITS_PER_TEXT 2000000
#define UNITS_PER_BYTE 32
#define UNIT_NS 32
#define BYTES_PER_UNIT 32

#define LONG_TEXT 4096
/* Units between two clock checks. In a short text the code between two callouts never takes
 * long. */
#define LOOK_SHORT 1024
#define LOOK_LONG 128

/* Never reached: the limits above end a search first. */
#define MATCH_LIMIT 100000000
#define HEAP_LIMIT_KIB 4096

/* A longer pattern would exceed PCRE2's limit when compiled. */
#define TRANSLATED_MAX ((size_t)512 * 1024)
/* Memory charged for a pattern besides its code, and for each byte of code, to account for machine
 * code and the time of compilation. */
#define BYTES_PER_PATTERN ((size_t)32 * 1024)
#define BYTES_PER_CODE_BYTE 32

#define MACHINE_CODE_FROM 100 /* searches */
#define MACHINE_CODE_MAX ((size_t)8 * 1024)
#define UNITS_PER_CODE_BYTE 50 /* to make machine code of it */

/* PCRE2 is loaded when the first pattern is compiled, because few requests have patterns. */
#define PCRE2_FUNCTIONS(X)                                                                         \
    X(pcre2_code_free_8)                                                                           \
    X(pcre2_compile_8)                                                                             \
    X(pcre2_compile_context_create_8)                                                              \
    X(pcre2_compile_context_free_8)                                                                \
    X(pcre2_get_error_message_8)                                                                   \
    X(pcre2_jit_compile_8)                                                                         \
    X(pcre2_jit_match_8)                                                                           \
    X(pcre2_match_8)                                                                               \
    X(pcre2_match_context_create_8)                                                                \
    X(pcre2_match_context_free_8)                                                                  \
    X(pcre2_match_data_create_8)                                                                   \
    X(pcre2_match_data_free_8)                                                                     \
    X(pcre2_pattern_info_8)                                                                        \
    X(pcre2_set_callout_8)                                                                         \
    X(pcre2_set_heap_limit_8)                                                                      \
    X(pcre2_set_match_limit_8)                                                                     \
    X(pcre2_set_newline_8)

typedef struct library {
    PCRE2_FUNCTIONS(RQ_LIBRARY_MEMBER)
} library;

struct rq_regex {
    const library *pcre2;
    pcre2_code *code;
    pcre2_match_context *context;
    pcre2_match_data *match; /* of machine code, which keeps no memory in it */
    size_t code_len;
    unsigned searches;
    bool has_machine_code, wants_none;
    bool has_references;
    /* A search that paused. */
    bool paused;
    bool at_one_go; /* the start at `from` did not end within a slice */
    size_t from;
    size_t text_len;
    uint64_t spent;
};

/* --- compiling -------------------------------------------------------------------------------- */

#ifdef RQ_LIBRARIES_LINKED

static rq_err load(const library **ret, rq_error *why)
{
    static const library linked = {PCRE2_FUNCTIONS(RQ_LIBRARY_LINKED)};
    (void)why;
    *ret = &linked;
    return RQ_OK;
}

#else

static rq_err load_functions(library *ret, rq_error *why)
{
    static const char *const names[] = {PCRE2_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
    static const rq_library pcre2 = {"A regular expression", {"libpcre2-8.so.0"}, names};
    return rq_library_load(&pcre2, ret, why);
}

/* Looking up the functions takes longer than compiling a short pattern, so a process does it once. There is no lock,
 * because a child of fork could find it held: if several threads load at once, the first table is kept. */
static rq_err load(const library **ret, rq_error *why)
{
    static _Atomic(const library *) kept; /* never freed */
    *ret = atomic_load_explicit(&kept, memory_order_acquire);
    if (RQ_LIKELY(*ret != NULL)) return RQ_OK;
    library *own = malloc(sizeof *own);
    if (own == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = load_functions(own, why);
    if (rc == RQ_OK && atomic_compare_exchange_strong(&kept, ret, own))
        *ret = own;
    else
        free(own);
    return rc;
}

#endif

static void release_regex(void *thing)
{
    rq_regex *r = thing;
    r->pcre2->pcre2_match_context_free_8(r->context);
    r->pcre2->pcre2_match_data_free_8(r->match);
    r->pcre2->pcre2_code_free_8(r->code);
}

static uint32_t options_of(unsigned flags)
{
    uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL;
    if ((flags & RQ__REGEX_CASE_INSENSITIVE) != 0) options |= PCRE2_CASELESS;
    if ((flags & RQ__REGEX_UNICODE_CHARACTER_CLASS) != 0) options |= PCRE2_UCP;
    return options;
}

static rq_err syntax_error(rq_error *why, const char *what, size_t where, rq_slice pattern)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "java.util.regex.PatternSyntaxException: %s near index %zu\n%.*s", what, where,
                   (int)(pattern.len < 300 ? pattern.len : 300), (const char *)pattern.ptr);
}

/* Compiles one variant of the pattern: with callouts or without. */
static rq_err compile_as(const rq_regex *r, rq_slice pattern, unsigned flags, rq_regex_kind kind,
                         bool callouts, pcre2_code **ret, rq_error *why)
{
    const char *what = NULL;
    char text[200];
    size_t where = 0;
    rq_buf translated = {0};
    pcre2_compile_context *context = r->pcre2->pcre2_compile_context_create_8(NULL);
    rq_err rc = context == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    const bool all = kind == RQ_REGEX_MATCHES;
    if (rc == RQ_OK && all) rc = rq_buf_append(&translated, "\\A(?:", 5);
    if (rc == RQ_OK)
        rc = rq__java_regex_translate(pattern, flags, callouts, &translated, &what, &where);
    if (rc == RQ_OK && all) rc = rq_buf_append(&translated, ")\\z", 3);
    if (rc == RQ_OK && translated.len > TRANSLATED_MAX) {
        rc = RQ_E_INVALID;
        what = "regular expression is too large";
    }
    if (rc == RQ_OK) {
        r->pcre2->pcre2_set_newline_8(context, PCRE2_NEWLINE_LF);
        int error = 0;
        *ret =
            r->pcre2->pcre2_compile_8(translated.len == 0 ? (const uint8_t *)"" : translated.ptr,
                                      translated.len, options_of(flags), &error, &where, context);
        if (*ret == NULL) {
            rc = error == PCRE2_ERROR_HEAP_FAILED ? RQ_E_NO_MEMORY : RQ_E_INVALID;
            if (r->pcre2->pcre2_get_error_message_8(error, (PCRE2_UCHAR *)text, sizeof text) < 0)
                text[0] = 0;
            what = text;
        }
    }
    if (rc == RQ_E_INVALID) rc = syntax_error(why, what, where, pattern);
    r->pcre2->pcre2_compile_context_free_8(context);
    rq_buf_clear(&translated);
    return rc;
}

/* Errors are reported by their position in the variant without callouts. */
static rq_err compile(rq_regex *r, rq_slice pattern, unsigned flags, rq_regex_kind kind,
                      rq_error *why)
{
    rq_error own = {0};
    rq_err rc = compile_as(r, pattern, flags, kind, true, &r->code, &own);
    if (rc != RQ_E_DO_NOT_RETRY) return rc;
    pcre2_code *plain = NULL;
    RQ_TRY(compile_as(r, pattern, flags, kind, false, &plain, why));
    r->pcre2->pcre2_code_free_8(plain);
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s", own.message);
}

static rq_err take_bytes(size_t *bytes_left, size_t bytes, rq_error *why)
{
    if (bytes > *bytes_left)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "the filter's regular expressions need too much memory");
    *bytes_left -= bytes;
    return RQ_OK;
}

rq_err rq_regex_new(rq_slice pattern, unsigned flags, rq_regex_kind kind, rq_arena *arena,
                    size_t *bytes_left, rq_regex **ret, rq_error *why)
{
    RQ_TRY(take_bytes(bytes_left, BYTES_PER_PATTERN, why));
    rq_regex *r = rq_arena_calloc(arena, 1, sizeof *r);
    if (r == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(load(&r->pcre2, why));
    RQ_TRY(rq_arena_link(arena, release_regex, r));
    rq_buf decoded = {0};
    rq_err rc = rq__java_decode(RQ__UTF_8, pattern, &decoded, &pattern);
    if (rc == RQ_OK) rc = compile(r, pattern, flags, kind, why);
    rq_buf_clear(&decoded);
    RQ_TRY(rc);
    uint32_t references = 0;
    (void)r->pcre2->pcre2_pattern_info_8(r->code, PCRE2_INFO_SIZE, &r->code_len);
    (void)r->pcre2->pcre2_pattern_info_8(r->code, PCRE2_INFO_BACKREFMAX, &references);
    r->has_references = references > 0;
    r->context = r->pcre2->pcre2_match_context_create_8(NULL);
    if (r->context == NULL) return RQ_E_NO_MEMORY;
    r->pcre2->pcre2_set_match_limit_8(r->context, MATCH_LIMIT);
    r->pcre2->pcre2_set_heap_limit_8(r->context, HEAP_LIMIT_KIB);
    *ret = r;
    /* A short pattern may compile to a large program; machine code is about as large again. */
    RQ_TRY(rq_arena_account(arena, 2 * r->code_len));
    return take_bytes(bytes_left, r->code_len * BYTES_PER_CODE_BYTE, why);
}

/* Without machine code (a long pattern, or executable memory is forbidden) searches are slower but
 * correct. */
static rq_err make_machine_code(rq_regex *r, rq_pace *pace)
{
    r->wants_none = r->code_len > MACHINE_CODE_MAX;
    if (r->wants_none) return RQ_OK;
    pace->slice_left -= (int64_t)(r->code_len * UNITS_PER_CODE_BYTE);
    r->wants_none = r->pcre2->pcre2_jit_compile_8(r->code, PCRE2_JIT_COMPLETE) != 0;
    if (r->wants_none) return RQ_OK;
    r->match = r->pcre2->pcre2_match_data_create_8(1, NULL);
    if (r->match == NULL) return RQ_E_NO_MEMORY;
    r->has_machine_code = true;
    return RQ_OK;
}

/* --- searching -------------------------------------------------------------------------------- */
typedef struct search {
    int64_t units;
    int64_t look_at; /* units at which the limits are looked at */
    int64_t look_step;
    int64_t limit;          /* of the search */
    int64_t first_limit;    /* as long as the first start is tried */
    size_t from, start, at; /* the first start, the current one, the last callout's position */
    uint64_t begun_ns;      /* 0: the clock was not looked at */
} search;

static uint64_t cpu_ns(void)
{
    return rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int look_at_limits(search *s)
{
    uint64_t now = cpu_ns();
    if (s->begun_ns == 0) s->begun_ns = now;
    int64_t by_clock = (int64_t)((now - s->begun_ns) / UNIT_NS);
    if (by_clock > s->units) s->units = by_clock;
    int64_t limit = s->start == s->from ? s->first_limit : s->limit;
    if (s->units >= limit) return PCRE2_ERROR_CALLOUT;
    s->look_at = s->units + s->look_step;
    return 0;
}

static int count_callout(pcre2_callout_block *b, void *data)
{
    search *s = data;
    size_t at = b->current_position;
    size_t moved = at > s->at ? at - s->at : s->at - at;
    s->at = at;
    s->start = b->start_match;
    s->units += 1 + (int64_t)(moved / BYTES_PER_UNIT);
    return RQ_LIKELY(s->units < s->look_at) ? 0 : look_at_limits(s);
}

static int run(rq_regex *r, rq_slice text, search *s)
{
    const uint8_t *subject = text.len == 0 ? (const uint8_t *)"" : text.ptr;
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    r->pcre2->pcre2_set_callout_8(r->context, count_callout, s);
    if (r->has_machine_code) /* the other cases that pcre2_match would check first do not occur */
        rc = r->pcre2->pcre2_jit_match_8(r->code, subject, text.len, s->from, 0, r->match,
                                         r->context);
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
    /* Match data keep the memory used by a search, up to the heap limit. */
    pcre2_match_data *match = r->pcre2->pcre2_match_data_create_8(1, NULL);
    if (match == NULL) return PCRE2_ERROR_NOMEMORY;
    s->start = s->from;
    rc = r->pcre2->pcre2_match_8(r->code, subject, text.len, s->from,
                                 PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, r->context);
    r->pcre2->pcre2_match_data_free_8(match);
    return rc;
}

static rq_err took_too_long(size_t bytes, rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "regular expression on %zu bytes: match limit exceeded, because matching needs "
                   "too many steps",
                   bytes);
}

/* The search stopped at a limit, and may continue later. */
static rq_err pause_search(rq_regex *r, rq_slice text, const search *s, rq_error *why)
{
    bool moved_on = s->start > s->from;
    uint64_t most = UNITS_PER_TEXT + (uint64_t)UNITS_PER_BYTE * text.len;
    if (r->spent > most || (r->at_one_go && !moved_on)) return took_too_long(text.len, why);
    r->at_one_go = !moved_on;
    r->from = s->start;
    r->text_len = text.len;
    r->paused = true;
    return RQ_E_AGAIN;
}

static search begin_search(rq_regex *r, rq_slice text, const rq_pace *pace)
{
    search s = {.look_step = text.len < LONG_TEXT ? LOOK_SHORT : LOOK_LONG};
    if (text.len >= LONG_TEXT) {
        s.begun_ns = cpu_ns();
        if (r->has_references) s.look_step = 1;
    }
    s.limit = pace->may_pause ? pace->slice_left : pace->whole_left;
    s.first_limit = r->at_one_go ? RQ_PACE_WHOLE : s.limit;
    s.look_at = s.look_step;
    s.from = s.start = s.at = r->from;
    return s;
}

bool rq__regex_is_paused(const rq_regex *r)
{
    return r->paused;
}

rq_err rq_regex_search(rq_regex *r, rq_slice text, rq_pace *pace, bool *ret, rq_error *why)
{
    if (!r->paused || !pace->resuming || text.len != r->text_len) {
        r->from = 0;
        r->spent = 0;
        r->at_one_go = false;
    }
    r->paused = pace->resuming = false;
    bool often = ++r->searches >= MACHINE_CODE_FROM || text.len >= LONG_TEXT;
    if (often && !r->has_machine_code && !r->wants_none) RQ_TRY(make_machine_code(r, pace));
    if (!pace->may_pause && pace->whole_left < RQ_PACE_WHOLE)
        pace->whole_left += RQ_PACE_PER_SEARCH;
    if (pace->may_pause && pace->slice_left <= 0) { /* other searches have used it up */
        r->text_len = text.len;
        r->paused = true;
        return RQ_E_AGAIN;
    }
    search s = begin_search(r, text, pace);
    int rc = run(r, text, &s);
    pace->slice_left -= s.units;
    if (!pace->may_pause) pace->whole_left -= s.units;
    r->spent += (uint64_t)s.units;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) {
        *ret = rc >= 0;
        return RQ_OK;
    }
    if (rc == PCRE2_ERROR_NOMEMORY) return RQ_E_NO_MEMORY;
    if (rc == PCRE2_ERROR_CALLOUT)
        return pace->may_pause ? pause_search(r, text, &s, why) : took_too_long(text.len, why);
    char text_of_rc[128];
    r->pcre2->pcre2_get_error_message_8(rc, (PCRE2_UCHAR *)text_of_rc, sizeof text_of_rc);
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "regular expression on %zu bytes: %s", text.len,
                   text_of_rc);
}
