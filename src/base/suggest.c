/* SPDX-License-Identifier: Apache-2.0 */
/* See suggest.h. */
#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Both words are at most RQ_SUGGEST_WORD_MAX long. Only three rows of the distance table are kept:
 * a swap of neighbours looks two rows back. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][RQ_SUGGEST_WORD_MAX + 1];
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t substitution = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = smaller(substitution, smaller(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void rq_suggest_consider(rq_suggestion *s, const char *known)
{
    size_t word_len = strlen(s->word), known_len = strlen(known);
    if (word_len > RQ_SUGGEST_WORD_MAX || known_len > RQ_SUGGEST_WORD_MAX) return;
    bool is_begun = 2 * word_len > known_len && strncmp(s->word, known, word_len) == 0;
    size_t d = distance(s->word, word_len, known, known_len);
    if (d > word_len / 3 && d > 1 && !is_begun) return;
    if (d >= known_len) return; /* nothing in common */
    if (s->best != NULL && d >= s->distance) return;
    s->best = known;
    s->distance = d;
}
