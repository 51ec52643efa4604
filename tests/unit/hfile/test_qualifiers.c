/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a file's qualifiers contains all qualifiers added, or reports that there are too
 * many. */
#include "hfile/qualifiers.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void it_holds_what_was_added_or_says_too_many(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 11);
    unsigned full = 0;
    for (int run = 0; run < 500; run++) {
        static char names[64][301];
        size_t different = 1 + rq_random_below(&random, 40);
        size_t longest = rq_random_below(&random, 4) == 0 ? 300 : 12;
        bool added[64] = {false};
        size_t count = 0, bytes = 0;
        bool fits = true;
        for (size_t i = 0; i < different; i++) {
            size_t len = rq_random_below(&random, longest + 1);
            memset(names[i], 'a' + (int)(i % 26), len);
            names[i][len] = '\0';
        }
        rq__qualifiers q = {0};
        size_t next = 0;
        for (int n = 0; n < 200; n++) {
            /* mostly the qualifier after the last one */
            next = rq_random_below(&random, 5) == 0 ? rq_random_below(&random, different)
                                                    : (next + 1) % different;
            rq_slice name = rq_slice_cstr(names[next]);
            rq__qualifiers_add(&q, name);
            bool known = false; /* the same letters may have another number */
            for (size_t i = 0; i < different; i++)
                known |= added[i] && rq_slice_eq(rq_slice_cstr(names[i]), name);
            added[next] = true;
            if (known) continue;
            count++;
            bytes += 1 + name.len;
            fits &= name.len <= 255 && count <= RQ_QUALIFIERS_MAX && bytes <= RQ__QUALIFIERS_BYTES;
            assert_int_equal(q.too_many, !fits);
        }
        full += q.too_many;
        if (q.too_many) continue;
        rq_slice value = rq_slice_of(q.bytes, q.len), one;
        assert_true(rq__qualifiers_ok(value));
        for (size_t i = 0; i < different; i++)
            if (added[i]) assert_true(rq__qualifiers_has(value, rq_slice_cstr(names[i])));
        size_t listed = 0;
        while (rq_qualifiers_next(&value, &one))
            listed++;
        assert_int_equal(listed, count);
    }
    assert_in_range(full, 50, 450);
}

static void invalid_lists_are_refused(void **state)
{
    (void)state;
    assert_true(rq__qualifiers_ok(RQ_SLICE_LIT("")));
    assert_true(rq__qualifiers_ok(RQ_SLICE_LIT("\0")));
    assert_true(rq__qualifiers_ok(RQ_SLICE_LIT("\1a\2bc")));
    assert_false(rq__qualifiers_ok(RQ_SLICE_LIT("\1")));
    assert_false(rq__qualifiers_ok(RQ_SLICE_LIT("\1a\2b")));
    uint8_t many[RQ_QUALIFIERS_MAX + 1] = {0};
    assert_true(rq__qualifiers_ok(rq_slice_of(many, RQ_QUALIFIERS_MAX)));
    assert_false(rq__qualifiers_ok(rq_slice_of(many, sizeof many)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_added_or_says_too_many),
        cmocka_unit_test(invalid_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
