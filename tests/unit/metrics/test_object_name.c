/* SPDX-License-Identifier: Apache-2.0 */
/* JMX's names and patterns, as javax.management.ObjectName accepts them. */
#include "../base/unit.h"

#include "metrics/metrics_priv.h"

#define SERVER "Hadoop:service=HBase,name=RegionServer,sub=Server"

static void patterns_match_as_in_java(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        bool matches;
    } cases[] = {
        {"*:*", true},
        {"", true},
        {SERVER, true},
        {"Hadoop:*", true},
        {"Had*p:*", true},
        {"Hado?p:*", true},
        {"Hadoo?p:*", false},
        {"java.lang:*", false},
        {"Hadoop:service=HBase,*", true},
        {"Hadoop:service=HBase", false},
        {"Hadoop:sub=Server,name=RegionServer,service=HBase", true},
        {"Hadoop:service=HBase,name=RegionServer,sub=*", true},
        {"Hadoop:service=HBase,name=*Server,sub=S?rver", true},
        {"Hadoop:service=HBase,name=Master,sub=Server", false},
        {"Hadoop:*,sub=Server", true},
        {"Hadoop:more=*,*", false},
        {"Hadoop:service=HBase,name=RegionServer,sub=Server,more=x", false},
        {"*:sub=*e*e*,*", true},
        {"*:sub=*e*e*e*,*", false},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        assert_true(rq__object_name_is_valid(cases[i].pattern));
        if (rq__object_name_matches(cases[i].pattern, SERVER) != cases[i].matches)
            fail_msg("%s", cases[i].pattern);
    }
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "Hadoop",      "Hadoop:",   "Hadoop:x",  "Hadoop:x=",  "Hadoop:=x",
        "Hadoop:x=1,", "H:x=1,x=2", "H:*,*",     "H:x=1,,y=2", "H:x=\"a\"",
        "H:x*=1",      "H:x=a=b",   "H:x=1,*,*", "H:,x=1",     "H:x=a:b",
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++)
        if (rq__object_name_is_valid(cases[i])) fail_msg("%s", cases[i]);
}

/* Backtracking costs at most the product of the lengths. */
static void many_stars_end(void **state)
{
    (void)state;
    char pattern[4096] = "H:x=";
    for (size_t i = 4; i + 3 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 3);
    char name[4096] = "H:x=";
    memset(name + 4, 'a', sizeof name - 5);
    name[sizeof name - 2] = 'b';
    assert_true(rq__object_name_is_valid(pattern));
    assert_false(rq__object_name_matches(pattern, name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_in_java),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(many_stars_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
