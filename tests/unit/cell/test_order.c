/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of cells against HBase's comparators: tests/data/cell/order.txt contains random pairs
 * of cells and of rows of hbase:meta with HBase's result. Arguments: files.
 */
#include "cell/cell.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned digit(int c)
{
    return (unsigned)(isdigit(c) ? c - '0' : c - 'a' + 10);
}

static rq_slice unhex(char *word)
{
    uint8_t *out = (uint8_t *)word;
    size_t n = 0;
    if (word[0] == '-') return rq_slice_of(word, 0);
    for (; word[2 * n] != '\0'; n++)
        out[n] = (uint8_t)(digit(word[2 * n]) << 4 | digit(word[2 * n + 1]));
    return rq_slice_of(out, n);
}

static char sign(int c)
{
    return c < 0 ? '<' : c > 0 ? '>' : '=';
}

static rq_cell cell_of(char *word, const char *seqid)
{
    rq_cell c;
    rq_error why = {0};
    if (rq__cell_parse(unhex(word), &c, &why) != RQ_OK) {
        printf("%s\n", why.message);
        exit(1);
    }
    c.seqid = (uint64_t)atoll(seqid);
    return c;
}

int main(int argc, char **argv)
{
    size_t cases = 0;
    size_t wrong = 0;
    char *line = NULL;
    size_t size = 0;
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "r");
        if (f == NULL) {
            perror(argv[i]);
            return 2;
        }
        while (getline(&line, &size, f) >= 0) {
            char *rest = line;
            char *word[6] = {NULL};
            for (size_t n = 0; n < 6; n++)
                word[n] = strtok_r(rest, " \n", &rest);
            char got, back, expected;
            if (word[0][0] == 'm') {
                rq_slice a = unhex(word[1]);
                rq_slice b = unhex(word[2]);
                expected = word[3][0];
                got = sign(rq_row_compare(RQ_ORDER_META, a, b));
                back = sign(-rq_row_compare(RQ_ORDER_META, b, a));
            } else if (word[0][0] == 'k') {
                rq_cell a = cell_of(word[1], word[2]);
                rq_cell b = cell_of(word[3], word[4]);
                expected = word[5][0];
                got = sign(rq_cell_compare(RQ_ORDER_DEFAULT, &a, &b));
                back = sign(-rq_cell_compare(RQ_ORDER_DEFAULT, &b, &a));
            } else {
                continue;
            }
            cases++;
            if (got == expected && back == expected) continue;
            printf("comparison %zu: HBase %c, here %c and %c\n", cases, expected, got, back);
            wrong++;
        }
        fclose(f);
    }
    free(line);
    printf("%zu comparisons, %zu come out differently\n", cases, wrong);
    return cases == 0 || wrong > 0;
}
