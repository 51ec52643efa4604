/* SPDX-License-Identifier: Apache-2.0 */
/* See required_text.h. Searching for such a string takes a fraction of the time of the regular
 * expression, and excludes most values of a scan.
 *
 * The pattern is scanned once, outside its groups and classes: consecutive literals form a run,
 * anything else ends it. An optional literal (* ? {) is removed from the run. No string is returned
 * for patterns with top-level alternatives, with case folding, with COMMENTS, or with flag changes
 * inside, nor for rare syntax (\Q, \x41, classes within classes). Characters beyond ASCII end runs,
 * so that the string's bytes are the same before and after decoding, whatever the charset. */
#include "filter/required_text.h"

#include "base/macros.h"
#include "filter/java_regex.h"

typedef struct walk {
    const uint8_t *ptr, *end;
    rq_buf run;
    rq_buf *out; /* the longest run so far, from `out_from` on */
    size_t out_from;
    bool hard;
} walk;

static bool is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static rq_err end_run(walk *w)
{
    if (w->run.len > w->out->len - w->out_from) {
        w->out->len = w->out_from;
        RQ_TRY(rq_buf_append(w->out, w->run.ptr, w->run.len));
    }
    rq_buf_reset(&w->run);
    return RQ_OK;
}

static bool at_end(walk *w)
{
    if (w->ptr == w->end) w->hard = true; /* it was not sound after all */
    return w->hard;
}

/* Behind a backslash: the character it stands for; 0: anything else, of one character. */
static uint8_t take_escape(walk *w)
{
    if (at_end(w)) return 0;
    uint8_t c = *w->ptr++;
    if (!is_alphanumeric(c)) return c < 0x80 ? c : 0;
    if (strchr("dDwWsShHvVRbBAGzZtnrfae", c) == NULL) w->hard = true;
    return 0;
}

/* Behind the bracket. */
static void pass_class(walk *w)
{
    if (w->ptr < w->end && *w->ptr == '^') w->ptr++;
    if (w->ptr < w->end && *w->ptr == ']') w->hard = true;
    while (!at_end(w)) {
        uint8_t c = *w->ptr++;
        if (c == ']') return;
        if (c == '\\')
            (void)take_escape(w);
        else if (c == '[' || c == '&')
            w->hard = true;
    }
}

/* Behind the parenthesis. */
static void pass_group(walk *w)
{
    size_t depth = 1;
    while (depth > 0 && !at_end(w)) {
        if (*w->ptr == '?' && w->ptr[-1] == '(') w->hard = true;
        switch (*w->ptr++) {
        case '(':
            depth++;
            break;
        case ')':
            depth--;
            break;
        case '[':
            pass_class(w);
            break;
        case '\\':
            (void)take_escape(w);
            break;
        default:
            break;
        }
    }
}

/* Behind a quantifier's first character. */
static void pass_quantifier(walk *w, uint8_t first)
{
    while (first == '{' && !at_end(w) && *w->ptr++ != '}')
        continue;
    if (w->ptr < w->end && (*w->ptr == '?' || *w->ptr == '+')) w->ptr++;
}

static rq_err take(walk *w)
{
    uint8_t c = *w->ptr++;
    switch (c) {
    case '|':
    case ')':
        w->hard = true;
        return RQ_OK;
    case '(':
        pass_group(w);
        return end_run(w);
    case '[':
        pass_class(w);
        return end_run(w);
    case '*':
    case '?':
    case '{':
        if (w->run.len > 0) w->run.len--;
        RQ_FALLTHROUGH;
    case '+':
        pass_quantifier(w, c);
        return end_run(w);
    case '.':
    case '^':
    case '$':
        return end_run(w);
    case '\\':
        c = take_escape(w);
        if (c == 0) return end_run(w);
        break;
    default:
        if (c >= 0x80) return end_run(w);
        break;
    }
    return rq_buf_append(&w->run, &c, 1);
}

/* Where nothing is anything else. */
static rq_err take_literal(walk *w)
{
    uint8_t c = *w->ptr++;
    return c < 0x80 ? rq_buf_append(&w->run, &c, 1) : end_run(w);
}

rq_err rq__regex_required_text(rq_slice pattern, unsigned flags, rq_buf *out)
{
    if ((flags & (RQ__REGEX_CASE_INSENSITIVE | RQ__REGEX_COMMENTS | RQ__REGEX_CANON_EQ)) != 0)
        return RQ_OK;
    walk w = {.ptr = pattern.ptr, .end = pattern.ptr + pattern.len, .out = out};
    w.out_from = out->len;
    rq_err rc = RQ_OK;
    const bool literal = (flags & RQ__REGEX_LITERAL) != 0;
    while (rc == RQ_OK && !w.hard && w.ptr < w.end)
        rc = literal ? take_literal(&w) : take(&w);
    if (rc == RQ_OK) rc = end_run(&w);
    if (w.hard) out->len = w.out_from;
    rq_buf_clear(&w.run);
    return rc;
}
