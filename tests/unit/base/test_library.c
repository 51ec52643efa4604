/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are loaded on first use. */
#include "base/library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* From the C library, which every system has. */
#define FUNCTIONS(X) X(strlen) X(strcmp)

typedef struct functions {
    FUNCTIONS(RQ_LIBRARY_MEMBER)
} functions;

static const char *const names[] = {FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const unknown[] = {"strlen", "no_such_function", NULL};

static void functions_are_found(void **state)
{
    (void)state;
    functions f = {NULL, NULL};
    rq_library c = {"a test", {"libc.so.6"}, names};
    rq_error why = {0};
    assert_int_equal(rq_library_load(&c, &f, &why), RQ_OK);
    assert_int_equal(f.strlen("four"), 4);
    assert_int_equal(f.strcmp("a", "a"), 0);
}

static void another_name_is_tried(void **state)
{
    (void)state;
    functions f = {NULL, NULL};
    rq_library c = {"a test", {"libno_such_library.so.7", "libc.so.6"}, names};
    assert_int_equal(rq_library_load(&c, &f, NULL), RQ_OK);
    assert_int_equal(f.strlen("four"), 4);
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    functions f;
    rq_error why = {0};
    rq_library none = {"a test", {"libno_such_library.so.7"}, names};
    assert_int_equal(rq_library_load(&none, &f, &why), RQ_E_UNSUPPORTED);
    assert_non_null(strstr(why.message, "a test needs the library libno_such_library.so.7: "));
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    functions f;
    rq_error why = {0};
    rq_library c = {"a test", {"libc.so.6"}, unknown};
    assert_int_equal(rq_library_load(&c, &f, &why), RQ_E_UNSUPPORTED);
    assert_non_null(strstr(why.message, "libc.so.6"));
    assert_non_null(strstr(why.message, "no_such_function"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(another_name_is_tried),
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_missing_function_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
