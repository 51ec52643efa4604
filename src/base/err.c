/* SPDX-License-Identifier: Apache-2.0 */
/* The error table's texts and the two ways to stop: an error with a message, and an assertion. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { RETRY, FINAL };

static const struct {
    const char *name;
    const char *java_class;
    const char *text;
    bool do_not_retry;
} table[RQ_ERR_COUNT] = {
    [RQ_OK] = {"RQ_OK", "java.io.IOException", "success", false},
#define X(code, java, retry, words) [code] = {#code, java, words, (retry) == FINAL},
#include "base/errors.def"
#undef X
};

/* The numbers of rorqual/errors.h are those of the table's lines, without a gap. */
enum {
    BEFORE_FIRST, /* RQ_OK */
#define X(code, java, retry, words) LINE_OF_##code,
#include "base/errors.def"
#undef X
};
#define X(code, java, retry, words)                                                                \
    _Static_assert((int)(code) == (int)LINE_OF_##code, "number and line of " #code " differ");
#include "base/errors.def"
#undef X

static bool known(rq_err code)
{
    return (int)code >= 0 && (int)code < RQ_ERR_COUNT;
}

const char *rq_err_name(rq_err code)
{
    return known(code) ? table[code].name : "unknown error";
}

const char *rq_err_text(rq_err code)
{
    return known(code) ? table[code].text : "unknown error";
}

const char *rq_err_java_class(rq_err code)
{
    return known(code) ? table[code].java_class : "java.io.IOException";
}

bool rq_err_do_not_retry(rq_err code)
{
    return known(code) && table[code].do_not_retry;
}

rq_err rq_fail(rq_error *why, rq_err code, const char *fmt, ...)
{
    if (why == NULL || why->code != RQ_OK) return code;
    why->code = code;
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->message, sizeof why->message, fmt, args);
    va_end(args);
    return code;
}

rq_err rq_no_memory(rq_error *why)
{
    return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
}

void rq__assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "rorqual: broken invariant at %s:%d: %s\n", file, line, expr);
    abort();
}
