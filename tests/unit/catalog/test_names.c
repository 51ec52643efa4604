/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tables and namespaces. HBASE: TestTableName. */
#include "world.h"

static void legal(const char *name, const char *ns, const char *qualifier)
{
    rq_slice n, q;
    rq_error why = {0};
    if (rq_table_name_parse(rq_slice_cstr(name), &n, &q, &why) != RQ_OK)
        fail_msg("%s: %s", name, why.message);
    assert_true(rq_slice_eq(n, rq_slice_cstr(ns)));
    assert_true(rq_slice_eq(q, rq_slice_cstr(qualifier)));
}

static void illegal(const char *name, const char *text)
{
    rq_slice n, q;
    rq_error why = {0};
    assert_int_equal(rq_table_name_parse(rq_slice_cstr(name), &n, &q, &why), RQ_E_ILLEGAL_ARGUMENT);
    assert_string_equal(why.message, text);
}

#define QUALIFIER                                                                                  \
    " User-space table qualifiers may only contain 'alphanumeric characters' and digits: "
#define NAMESPACE                                                                                  \
    " Namespaces may only contain 'alphanumeric characters' from any language and digits: "

static void letters_digits_and_a_few_signs_are_legal(void **state)
{
    (void)state;
    legal("t", "default", "t");
    legal("a_b-c.d9", "default", "a_b-c.d9");
    legal("_x", "default", "_x");
    legal("9", "default", "9");
    legal("ns:t", "ns", "t");
    legal("default:t", "default", "t");
    legal("n_1:x.y-z", "n_1", "x.y-z");
    legal("Ünïcode", "default", "Ünïcode");
    legal("表:行", "表", "行");
    legal("٣", "default", "٣"); /* an Arabic digit */
}

static void the_rest_is_refused_with_hbases_words(void **state)
{
    (void)state;
    illegal("", "Name is null or empty");
    illegal(":", "Namespace name must not be empty");
    illegal("ns:", "Table qualifier must not be empty");
    illegal(":t", "Namespace name must not be empty");
    illegal(".dot", "Illegal first character <46> at 0. User-space table qualifiers can only start "
                    "with 'alphanumeric characters' from any language: .dot");
    illegal("-dash", "Illegal first character <45> at 0. User-space table qualifiers can only "
                     "start with 'alphanumeric characters' from any language: -dash");
    illegal("zookeeper", "Tables may not be named 'zookeeper'");
    illegal("zookeeper:t", "Tables may not be named 'zookeeper'");
    illegal("-ROOT-", "-ROOT- has been deprecated.");
    illegal(".META.", ".META. no longer exists. The table has been renamed to hbase:meta");
    illegal("a/b", "Illegal character code:47, </> at 1." QUALIFIER "a/b");
    illegal("a b", "Illegal character code:32, < > at 1." QUALIFIER "a b");
    illegal("n-s:t", "Illegal character <-> at 1." NAMESPACE "n-s");
    illegal("n.s:t", "Illegal character <.> at 1." NAMESPACE "n.s");
    illegal("a:b:c", "Illegal character <:> at 1." NAMESPACE "a:b");
    illegal("a→b", "Illegal character code:8594, <→> at 1." QUALIFIER "a→b");
    illegal("😀", "Illegal character code:55357, <?> at 0." QUALIFIER "😀");
}

/* A name truncated anywhere, or with any byte changed, is checked without reading beyond its
 * end. */
static void any_bytes_are_judged(void **state)
{
    (void)state;
    srand((unsigned)unit_seed());
    for (int i = 0; i < 20000; i++) {
        size_t len = (size_t)rand() % 12;
        uint8_t *bytes = malloc(len + 1);
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)(rand() % 3 == 0 ? rand() : "abz:._-9"[rand() % 8]);
        rq_slice n, q;
        rq_err rc = rq_table_name_parse(rq_slice_of(bytes, len), &n, &q, NULL);
        assert_true(rc == RQ_OK || rc == RQ_E_ILLEGAL_ARGUMENT);
        if (rc == RQ_OK) assert_null(memchr(bytes, '/', len)); /* a legal name becomes a path */
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_digits_and_a_few_signs_are_legal),
        cmocka_unit_test(the_rest_is_refused_with_hbases_words),
        cmocka_unit_test(any_bytes_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
