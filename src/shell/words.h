/* SPDX-License-Identifier: Apache-2.0 */
/* Words of Ruby's text, for the readers that look at a statement before mruby parses it. */
#ifndef RQ_SHELL_WORDS_H
#define RQ_SHELL_WORDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool rq__is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

/* Whether the word of n bytes is in `list`, which has single blanks between its words. */
static inline bool rq__is_one_of(const char *word, size_t n, const char *list)
{
    for (const char *p = list; *p != '\0'; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == n && memcmp(p, word, n) == 0) return true;
    return false;
}

#endif
