/* SPDX-License-Identifier: Apache-2.0 */
/* See ascii_text.h. A search compares the needle's first and last byte with sixteen positions at
 * once, and compares further where both match, which in ordinary text is rare except at a match.
 *
 * Ignoring case needs no copy of the text in lower case: setting bit 0x20 turns the upper case of a
 * letter into the letter, leaves lower case unchanged, maps no other ASCII byte to a letter, and no
 * byte above 0x7f to ASCII. So if the compared byte of the needle is a letter, bit 0x20 is first
 * set in the text's bytes; otherwise they are compared unchanged.
 *
 * If both bytes match at most positions (a client may choose needle and values), the time would be
 * the product of both lengths. So the further comparisons are paid from an allowance that grows
 * with the text; when it is used up, the C library's memmem, which takes linear time, continues.
 *
 * Few values are as long as two vectors. A text shorter than a vector is loaded into a register by
 * overlapping loads inside it. For the last positions, fewer than sixteen, the text's last sixteen
 * bytes are searched and the result is shifted into place. */
#include "filter/ascii_text.h"

#include "base/macros.h"
#include "base/simd.h"

#include <stdlib.h>

#define CLOSE_LOOKS 8 /* bytes of needles compared per byte of text */
#define WINDOW_MIN ((size_t)4096)

/* Loads less than sixteen bytes, with zeros behind them. */
static inline rq_v16 load_short(const uint8_t *p, size_t len)
{
    uint64_t low = 0;
    uint64_t high = 0;
    if (len > 8) {
        low = rq_get_u64(p);
        high = rq_get_u64(p + len - 8) >> (8 * (16 - len));
    } else if (len >= 4) {
        low = rq_get_u32(p) | (uint64_t)rq_get_u32(p + len - 4) << (8 * (len - 4));
    } else if (len > 0) {
        low = p[0] | (uint64_t)p[len >> 1] << (8 * (len >> 1)) |
              (uint64_t)p[len - 1] << (8 * (len - 1));
    }
    return rq_v16_pair(low, high);
}

/* A byte to look for, in sixteen places. */
typedef struct probe {
    rq_v16 bit, byte;
} probe;

static inline uint8_t case_bit(uint8_t c, bool folded)
{
    return folded && c >= 'a' && c <= 'z' ? 0x20 : 0;
}

static inline probe probe_of(uint8_t c, bool folded)
{
    return (probe){rq_v16_splat(case_bit(c, folded)), rq_v16_splat(c)};
}

static inline unsigned where(probe p, rq_v16 text)
{
    return rq_v16_mask(rq_v16_equal(rq_v16_or(text, p.bit), p.byte));
}

static inline bool is_here(const uint8_t *text, rq_slice needle, bool folded)
{
    if (!folded) return memcmp(text, needle.ptr, needle.len) == 0;
    for (size_t i = 0; i < needle.len; i++)
        if ((text[i] | case_bit(needle.ptr[i], true)) != needle.ptr[i]) return false;
    return true;
}

static inline bool any_here(const uint8_t *text, unsigned mask, rq_slice needle, bool folded)
{
    for (; mask != 0; mask &= mask - 1)
        if (is_here(text + (unsigned)__builtin_ctz(mask), needle, folded)) return true;
    return false;
}

static bool find_naively(rq_slice text, rq_slice needle)
{
    bool found = false;
    for (size_t i = 0; !found && i + needle.len <= text.len; i++)
        found = is_here(text.ptr + i, needle, true);
    return found;
}

/* Searches in lower case, in windows that overlap by one byte less than the needle's length. */
RQ_COLD static bool find_folded_linear(rq_slice text, rq_slice needle)
{
    size_t window = 2 * needle.len > WINDOW_MIN ? 2 * needle.len : WINDOW_MIN;
    if (window > text.len) window = text.len;
    uint8_t *lower = malloc(window);
    if (lower == NULL) return find_naively(text, needle); /* late rather than wrong */
    bool found = false;
    for (size_t from = 0; !found; from += window - needle.len + 1) {
        if (from + window > text.len) from = text.len - window;
        for (size_t i = 0; i < window; i++) {
            uint8_t c = text.ptr[from + i];
            lower[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
        }
        found = memmem(lower, window, needle.ptr, needle.len) != NULL;
        if (from + window == text.len) break;
    }
    free(lower);
    return found;
}

RQ_COLD static bool find_linear(rq_slice text, rq_slice needle, bool folded)
{
    if (!folded) return memmem(text.ptr, text.len, needle.ptr, needle.len) != NULL;
    return find_folded_linear(text, needle);
}

static inline bool find(rq_slice text, rq_slice needle, bool folded)
{
    if (needle.len == 0) return true;
    if (needle.len > text.len) return false;
    const size_t places = text.len - needle.len + 1;
    const size_t last_at = needle.len - 1;
    const probe first = probe_of(needle.ptr[0], folded);
    const probe last = probe_of(needle.ptr[last_at], folded);
    unsigned mask;
    if (places < 16) {
        if (text.len < 16) {
            rq_v16 whole = load_short(text.ptr, text.len);
            mask = where(first, whole) & where(last, whole) >> last_at;
        } else {
            mask = where(first, rq_v16_load(text.ptr)) &
                   where(last, rq_v16_load(text.ptr + text.len - 16)) >> (16 - places);
        }
        return any_here(text.ptr, mask & ((1u << places) - 1), needle, folded);
    }
    size_t allowance = CLOSE_LOOKS * text.len;
    for (size_t i = 0;; i += 16) {
        if (i + 16 > places) i = places - 16;
        const uint8_t *at = text.ptr + i;
        mask = where(first, rq_v16_load(at)) & where(last, rq_v16_load(at + last_at));
        if (RQ_UNLIKELY(mask != 0)) {
            if (any_here(at, mask, needle, folded)) return true;
            size_t looked = (unsigned)__builtin_popcount(mask) * needle.len;
            if (looked > allowance) {
                rq_slice rest = rq_slice_of(at, text.len - i);
                return find_linear(rest, needle, folded);
            }
            allowance -= looked;
        }
        if (i + 16 == places) return false;
    }
}

bool rq__bytes_find(rq_slice text, rq_slice needle)
{
    return find(text, needle, false);
}

bool rq__ascii_find_folded(rq_slice text, rq_slice needle)
{
    return find(text, needle, true);
}

bool rq__ascii_only(rq_slice text)
{
    if (text.len < 16) return rq_v16_mask(load_short(text.ptr, text.len)) == 0;
    rq_v16 seen = rq_v16_load(text.ptr + text.len - 16);
    for (size_t i = 0; i + 16 < text.len; i += 16)
        seen = rq_v16_or(seen, rq_v16_load(text.ptr + i));
    return rq_v16_mask(seen) == 0;
}
