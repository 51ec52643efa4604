/* SPDX-License-Identifier: Apache-2.0 */
/* Writes fields of a protobuf message without checking bounds: the caller has reserved enough
 * memory. For answers encoded by hand (multi_answer.c, scan_answer.c); protobuf-c encodes their
 * rare fields. Field numbers are at most 15: a tag is one byte. */
#ifndef RQ_SERVICE_PUT_FIELD_H
#define RQ_SERVICE_PUT_FIELD_H

#include "base/pb.h"

#include <protobuf-c/protobuf-c.h>

#define RQ__PB_UINT32_MAX 5                   /* bytes of a uint32 */
#define RQ__PB_HEADER_MAX (1 + RQ_VARINT_MAX) /* of an embedded message: tag and length */

static inline uint8_t *rq__put_number(uint8_t *p, uint8_t field, uint64_t v)
{
    *p++ = (uint8_t)RQ_PB_TAG(field, RQ_PB_VARINT);
    if (v < 128) {
        *p++ = (uint8_t)v;
        return p;
    }
    return p + rq_put_varint(p, v);
}

static inline uint8_t *rq__put_message(uint8_t *p, uint8_t field, const ProtobufCMessage *m)
{
    *p++ = (uint8_t)RQ_PB_TAG(field, RQ_PB_BYTES);
    p += rq_put_varint(p, protobuf_c_message_get_packed_size(m));
    return p + protobuf_c_message_pack(m, p);
}

static inline size_t rq__put_message_room(const ProtobufCMessage *m)
{
    return RQ__PB_HEADER_MAX + protobuf_c_message_get_packed_size(m);
}

#endif
