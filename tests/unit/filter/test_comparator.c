/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every comparator against HBase's own, over random values: tests/data/filter/comparator.txt
 * contains class, message, bytes and HBase's result (<, =, > or the exception). Arguments: files.
 */
#include "filter/comparator.h"

#include "oracle_file.h"

static bool check_case(oracle_file *f)
{
    rq_arena arena = {0};
    rq_error why = {0};
    char *name = rq_arena_printf(&arena, "%s", oracle_word(f));
    rq_slice message = oracle_bytes(f, &arena);
    rq_slice bytes = oracle_bytes(f, &arena);
    const char *expected = oracle_word(f);
    char got[1100];
    rq_comparator *c;
    int result = 0;
    rq_err rc = rq_comparator_parse(oracle_class(name, &arena), message, &arena, &c, &why);
    if (rc == RQ_OK) rc = rq_comparator_compare(c, bytes, &result, &why);
    if (rc == RQ_OK) {
        snprintf(got, sizeof got, "%s", result < 0 ? "<" : result > 0 ? ">" : "=");
    } else {
        snprintf(got, sizeof got, "X:%s", why.message);
        char *colon = strchr(got + 2, ':');
        if (colon != NULL) *colon = '\0';
    }
    bool ok = strcmp(got, expected) == 0;
    if (!ok)
        printf("line %zu: %s: HBase %s, here %s (%s)\n", f->number, name, expected, got,
               why.message);
    rq_arena_clear(&arena);
    return ok;
}

int main(int argc, char **argv)
{
    return oracle_main(argc, argv, check_case, "comparisons", "come out differently");
}
