/* SPDX-License-Identifier: Apache-2.0 */
/* Text of pages: no byte of a name, key or user becomes markup or breaks the page's encoding. */
#include "http/http_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

typedef void put_fn(rq__text *t, rq_slice s);

static void expect(put_fn *put, rq_slice s, const char *wanted)
{
    rq__text t = {0};
    put(&t, s);
    assert_int_equal(t.rc, RQ_OK);
    assert_int_equal(t.buf.len, strlen(wanted));
    assert_memory_equal(t.buf.ptr, wanted, t.buf.len);
    rq_buf_clear(&t.buf);
}

static void html(const char *bytes, const char *wanted)
{
    expect(rq__put_html, rq_slice_cstr(bytes), wanted);
}

static void json(const char *bytes, const char *wanted)
{
    expect(rq__put_json, rq_slice_cstr(bytes), wanted);
}

static void markup_is_escaped(void **state)
{
    (void)state;
    html("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
    html("a&b\"c", "a&amp;b&quot;c");
    json("</script>\"\\&", "\"\\u003c/script\\u003e\\\"\\\\\\u0026\"");
}

static void utf8_stays_and_other_bytes_are_spelled(void **state)
{
    (void)state;
    html("größe 表 \xf0\x9f\x90\xb3", "größe 表 \xf0\x9f\x90\xb3");
    html("\xff\xfe", "\\xFF\\xFE");
    html("a\x80z", "a\\x80z");
    html("cut \xe8\xa1", "cut \\xE8\\xA1");
    html("overlong \xc0\xbc \xe0\x80\xbc", "overlong \\xC0\\xBC \\xE0\\x80\\xBC");
    html("surrogate \xed\xa0\x80", "surrogate \\xED\\xA0\\x80");
    html("beyond \xf4\x90\x80\x80", "beyond \\xF4\\x90\\x80\\x80");
    json("\xff", "\"\\\\xFF\"");
}

static void controls_are_spelled(void **state)
{
    (void)state;
    html("a\nb\tc\x1b[31m\x7f", "a\\x0Ab\\x09c\\x1B[31m\\x7F");
    html("\xc2\x9b", "\\xC2\\x9B");          /* a C1 control */
    html("\xe2\x80\xae", "\\xE2\\x80\\xAE"); /* reverses the text direction */
    expect(rq__put_html, rq_slice_of("a\0b", 3), "a\\x00b");
    expect(rq__put_json, rq_slice_of("\0", 1), "\"\\\\x00\"");
}

static void every_byte_is_valid_utf8_afterwards(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            uint8_t bytes[] = {(uint8_t)first, (uint8_t)second};
            rq__text t = {0};
            rq__put_html(&t, rq_slice_of(bytes, 2));
            for (size_t i = 0; i < t.buf.len; i++) {
                assert_true(t.buf.ptr[i] >= ' ' && t.buf.ptr[i] != 0x7f);
                assert_true(t.buf.ptr[i] != '<' && t.buf.ptr[i] != '>' && t.buf.ptr[i] != '"');
                if (t.buf.ptr[i] < 0x80) continue;
                assert_true(t.buf.len == 2 && first >= 0xc2 && first < 0xe0 &&
                            (second & 0xc0) == 0x80);
            }
            rq_buf_clear(&t.buf);
        }
    }
}

typedef void number_fn(rq__text *t, uint64_t n);

static void number(number_fn *put, uint64_t n, const char *wanted)
{
    rq__text t = {0};
    put(&t, n);
    assert_int_equal(t.buf.len, strlen(wanted));
    assert_memory_equal(t.buf.ptr, wanted, t.buf.len);
    rq_buf_clear(&t.buf);
}

static void numbers_are_for_people(void **state)
{
    (void)state;
    number(rq__put_count, 0, "0");
    number(rq__put_count, 999, "999");
    number(rq__put_count, 1000, "1,000");
    number(rq__put_count, UINT64_MAX, "18,446,744,073,709,551,615");
    number(rq__put_bytes, 1023, "1023 B");
    number(rq__put_bytes, 1536, "1.5 KB");
    number(rq__put_bytes, UINT64_MAX, "16.0 EB");
    number(rq__put_duration, 950000, "950 µs");
    number(rq__put_duration, 12345678, "12.3 ms");
    number(rq__put_duration, 12345678901, "12.3 s");
}

static void long_text_is_whole(void **state)
{
    (void)state;
    rq__text t = {0};
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    rq__put(&t, "%s!", text);
    assert_int_equal(t.buf.len, 100001);
    assert_int_equal(t.buf.ptr[100000], '!');
    rq_buf_clear(&t.buf);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_is_escaped),
        cmocka_unit_test(utf8_stays_and_other_bytes_are_spelled),
        cmocka_unit_test(controls_are_spelled),
        cmocka_unit_test(every_byte_is_valid_utf8_afterwards),
        cmocka_unit_test(numbers_are_for_people),
        cmocka_unit_test(long_text_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
