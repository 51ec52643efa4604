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
    const char *word; /* as given to rq_suggest; what was mistyped */
    const char *best; /* NULL: no known word is near enough */
    size_t distance;
} rq_suggestion;

static inline rq_suggestion rq_suggest(const char *word)
{
    return (rq_suggestion){.word = word};
}

/* Looks at one known word. It must outlive the suggestion. Near enough is a distance of at most a
 * third of the mistyped word's length, and of one at least. */
void rq_suggest_consider(rq_suggestion *s, const char *known);

#endif
