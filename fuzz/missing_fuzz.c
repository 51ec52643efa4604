/* SPDX-License-Identifier: Apache-2.0 */
/* Which required fields a message lacks (base/pb_missing.h), for untrusted bytes. What protobuf-c decodes lacks nothing.
 * Input: byte 0 selects the message's type; the rest are its bytes. */
#include "base/pb_missing.h"

#include "proto/client.pb-c.h"
#include "proto/hbase.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/rsgroup.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
    &pb__get_request__descriptor,          &pb__mutate_request__descriptor,
    &pb__multi_request__descriptor,        &pb__scan_request__descriptor,
    &pb__create_table_request__descriptor, &pb__move_servers_and_tables_request__descriptor,
    &pb__snapshot_request__descriptor,     &pb__restore_snapshot_request__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const ProtobufCMessageDescriptor *type = types[data[0] % RQ_ARRAY_LEN(types)];
    char text[64];
    bool is_missing = rq_pb_missing(type, rq_slice_of(data + 1, size - 1), text, sizeof text);
    ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, size - 1, data + 1);
    RQ_ASSERT(m == NULL || !is_missing);
    RQ_ASSERT(!is_missing || text[0] == 'M');
    if (m != NULL) protobuf_c_message_free_unpacked(m, NULL);
    return 0;
}
