/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter language against HBase's ParseFilter: tests/data/filter/language.txt contains random
 * texts, valid and invalid, and the message that HBase makes of each text or its error. Arguments:
 * files.
 */
#include "filter/filter.h"
#include "filter/language.h"

#include "oracle_file.h"

static bool check_case(oracle_file *f)
{
    rq_arena arena = {0};
    rq_error why = {0};
    rq_slice text = oracle_bytes(f, &arena);
    const char *expected = oracle_word(f);
    rq_slice bytes = oracle_bytes(f, &arena);
    rq_slice java_class;
    rq_slice message;
    rq_err rc = rq_filter_language_compile(text, &arena, &java_class, &message, &why);
    bool ok;
    if (rc == RQ_OK) {
        rq_filter *filter;
        ok = rq_slice_eq(java_class, oracle_class(expected, &arena)) &&
             rq_slice_eq(message, bytes) &&
             rq_filter_parse(java_class, message, &arena, &filter, &why) == RQ_OK;
    } else {
        const char *said =
            rq_arena_printf(&arena, "java.lang.IllegalArgumentException: %s", why.message);
        ok = strcmp(expected, "X") == 0 &&
             (rq_slice_eq(rq_slice_cstr(said), bytes) ||
              rq_slice_eq(bytes, RQ_SLICE_LIT("java.util.EmptyStackException"))); /* HBase's bug */
    }
    if (!ok)
        printf("line %zu: %.*s\n  HBase: %s %.*s\n  here:  %s %s\n", f->number, (int)text.len,
               (const char *)text.ptr, expected, expected[0] == 'X' ? (int)bytes.len : 0,
               (const char *)bytes.ptr, rq_err_name(rc), why.message);
    rq_arena_clear(&arena);
    return ok;
}

int main(int argc, char **argv)
{
    return oracle_main(argc, argv, check_case, "texts", "compile differently");
}
