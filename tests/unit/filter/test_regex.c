/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RegexStringComparator against Java's regular expressions: tests/data/filter/regex.txt contains
 * random patterns (P: flags, pattern, message) and their results (s: text, 0 found or 1 not).
 * Arguments: files.
 */
#include "filter/comparator.h"

#include "../../seeds.h"
#include "oracle_file.h"

int main(int argc, char **argv)
{
    size_t cases = 0;
    size_t wrong = 0;
    /* searches that reached the limit of CPU time, as happens under emulation */
    size_t undecided = 0;
    size_t refused = 0;
    size_t patterns = 0;
    rq_arena arena = {0};
    rq_comparator *c = NULL;
    char shown[300] = "";
    for (int i = 1; i < argc; i++) {
        oracle_file f = oracle_open(argv[i]);
        while (wrong < 30 && oracle_line(&f)) {
            rq_error why = {0};
            if (oracle_word(&f)[0] == 'P') {
                rq_arena_reset(&arena);
                const char *flags = oracle_word(&f);
                rq_slice pattern = oracle_bytes(&f, &arena);
                rq_slice message = oracle_bytes(&f, &arena);
                int n = snprintf(shown, sizeof shown, "%s ", flags);
                rq_bytes_to_string(pattern, shown + n, sizeof shown - (size_t)n);
                patterns++;
                if (rq_comparator_parse(oracle_class("RegexStringComparator", &arena), message,
                                        &arena, &c, &why) != RQ_OK) {
                    printf("refused: %s: %s\n", shown, why.message);
                    refused++;
                    c = NULL;
                }
            } else if (c != NULL) {
                rq_slice text = oracle_bytes(&f, &arena);
                int expected = atoi(oracle_word(&f));
                int result;
                cases++;
                rq_err rc = rq_comparator_compare(c, text, &result, &why);
                if (rc == RQ_OK && result == expected) continue;
                if (rc == RQ_E_DO_NOT_RETRY && tests_slower() > 1) {
                    undecided++;
                    continue;
                }
                char subject[200];
                rq_bytes_to_string(text, subject, sizeof subject);
                printf("line %zu: %s on '%s': Java %d, here %d %s\n", f.number, shown, subject,
                       expected, rc == RQ_OK ? result : -1, why.message);
                wrong++;
            }
        }
        oracle_close(&f);
    }
    rq_arena_clear(&arena);
    printf("%zu patterns (%zu refused), %zu searches, %zu differ\n", patterns, refused, cases,
           wrong);
    return cases == 0 || wrong > 0 || undecided * 100 > cases || refused * 100 > patterns;
}
