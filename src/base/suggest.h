/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean …": the known word nearest to a mistyped one.
 *
 * Distance: optimal string alignment (Damerau-Levenshtein without repeated edits of a substring):
 * an insertion, a deletion, a substitution and a swap of two neighbours cost one each.
 */
#ifndef RQ_BASE_SUGGEST_H
#define RQ_BASE_SUGGEST_H

#include <stddef.h>

#define RQ_SUGGEST_WORD_MAX 128 /* longer words have no suggestion */

typedef struct rq_suggestion {
    const char *word; /* the mistyped word given to rq_suggest */
    const char *best; /* NULL: no known word is near enough */
    size_t distance;
} rq_suggestion;

static inline rq_suggestion rq_suggest(const char *word)
{
    return (rq_suggestion){.word = word};
}

/* Considers one known word, which must outlive the suggestion. A word is near enough if its
 * distance is at most max(1, a third of the mistyped word's length), and less than the known
 * word's own length; or if it is the beginning of the known word, more than half of it. */
void rq_suggest_consider(rq_suggestion *s, const char *known);

#endif
