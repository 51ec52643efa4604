/* SPDX-License-Identifier: Apache-2.0 */
/* Which required fields a serialized message lacks. protobuf-c returns NULL for such a message, as for malformed
 * bytes; HBase's decoder has an exception for each, and names the fields (HBASE: UninitializedMessageException). */
#ifndef RQ_BASE_PB_MISSING_H
#define RQ_BASE_PB_MISSING_H

#include "base/bytes.h"
#include "base/macros.h"

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

/* True: the bytes are well-formed, and lack required fields; `text` gets the text of HBase's exception, cut to `size`
 * bytes with its NUL. False: the bytes lack none, or are malformed. For bytes that protobuf-c has refused; linear in their
 * length. If a field that is a message comes twice, each of the two must be complete, as for protobuf-c. */
RQ_NODISCARD
bool rq_pb_missing(const ProtobufCMessageDescriptor *type, rq_slice bytes, char *text, size_t size);

#endif
