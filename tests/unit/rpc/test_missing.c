/* SPDX-License-Identifier: Apache-2.0 */
/* The names of missing fields, as HBase's protobuf prints them. */
#include "base/buf.h"
#include "base/pb.h"
#include "base/pb_missing.h"

#include "../base/unit.h"
#include "proto/client.pb-c.h"
#include "proto/master.pb-c.h"

#include <stdlib.h>

#define MISSING "Message missing required fields: "

static char text[512];

static bool missing(const ProtobufCMessageDescriptor *type, const char *bytes, size_t len)
{
    return rq_pb_missing(type, rq_slice_of(bytes, len), text, sizeof text);
}

#define FINDS(type, bytes, names)                                                                  \
    do {                                                                                           \
        assert_true(missing(&type, bytes, sizeof bytes - 1));                                      \
        assert_string_equal(text, MISSING names);                                                  \
    } while (0)

static void fields_of_the_message_come_before_those_of_messages_in_it(void **state)
{
    (void)state;
    FINDS(pb__get_request__descriptor, "", "region, get");
    FINDS(pb__get_request__descriptor, "\x12\x00", "region, get.row");
    FINDS(pb__get_request__descriptor, "\x0a\x02\x08\x01\x12\x03\x0a\x01r", "region.value");
    /* MultiRequest.regionAction[0] is complete; [1] has no region and a get without a row. */
    FINDS(pb__multi_request__descriptor,
          "\x0a\x07\x0a\x05\x08\x01\x12\x01r\x0a\x04\x1a\x02\x1a\x00",
          "regionAction[1].region, regionAction[1].action[0].get.row");
    /* A field of the wrong wire type is an unknown field. */
    FINDS(pb__get_request__descriptor, "\x08\x01\x12\x03\x0a\x01r", "region");
    /* And unknown fields are skipped. */
    FINDS(pb__get_request__descriptor, "\xf8\x01\x01", "region, get");
}

static void complete_and_malformed_messages_lack_nothing(void **state)
{
    static const char complete[] = "\x0a\x05\x08\x01\x12\x01r\x12\x03\x0a\x01r";
    (void)state;
    for (size_t len = 0; len < sizeof complete; len++) {
        ProtobufCMessage *m = protobuf_c_message_unpack(&pb__get_request__descriptor, NULL, len,
                                                        (const uint8_t *)complete);
        bool found = missing(&pb__get_request__descriptor, complete, len);
        /* Cut within a field it is malformed, after region it lacks get. */
        assert_int_equal(found, len == 0 || len == 7);
        assert_int_equal(m != NULL, len == sizeof complete - 1);
        if (m != NULL) protobuf_c_message_free_unpacked(m, NULL);
    }
    assert_false(missing(&pb__get_request__descriptor, "\x0b", 1)); /* a group */
    assert_false(missing(&pb__get_request__descriptor, "\x12\x01\xff", 3));
}

/* A million messages without their fields: the text ends, the search does not take longer than one reading. */
static void a_long_text_is_cut(void **state)
{
    rq_buf b = {0};
    (void)state;
    for (size_t i = 0; i < 1000000; i++)
        assert_int_equal(rq_buf_append(&b, "\x0a\x00", 2), RQ_OK);
    assert_true(rq_pb_missing(&pb__multi_request__descriptor, rq_buf_slice(&b), text, sizeof text));
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_memory_equal(text, MISSING "regionAction[0].region, regionAction[1].region, ",
                        sizeof(MISSING "regionAction[0].region, regionAction[1].region, ") - 1);
    char small[8];
    assert_true(
        rq_pb_missing(&pb__multi_request__descriptor, rq_buf_slice(&b), small, sizeof small));
    assert_string_equal(small, "Message");
    rq_buf_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_the_message_come_before_those_of_messages_in_it),
        cmocka_unit_test(complete_and_malformed_messages_lack_nothing),
        cmocka_unit_test(a_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
