/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of proto/. The build writes messages.c. */
#ifndef RQ_SHELL_MESSAGES_H
#define RQ_SHELL_MESSAGES_H

#include <protobuf-c/protobuf-c.h>

extern const ProtobufCMessageDescriptor *const rq__messages[];
extern const size_t rq__message_count;

#endif
