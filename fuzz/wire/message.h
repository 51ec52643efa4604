/* SPDX-License-Identifier: Apache-2.0 */
/* Requests generated from the messages' descriptors: each field by its type, or by the meaning of
 * its name (message.c, `rules`); messages whose fields must fit together by separate functions
 * (message_kinds.c). Bytes fields that contain messages (filters, comparators, endpoints' requests)
 * are made in the same way. */
#ifndef RQ_FUZZ_WIRE_MESSAGE_H
#define RQ_FUZZ_WIRE_MESSAGE_H

#include "cell/cellblock.h"
#include "world.h"

#include <protobuf-c/protobuf-c.h>

typedef struct maker {
    rq_random r;
    const world *world;
    unsigned table;             /* number of the request's table */
    const world_region *region; /* NULL: no region is known */
    uint64_t scanner;           /* the scanner that a request continues; 0: opens a scanner */
    rq_cellblock cells;         /* the request's cell block */
    bool has_codec;
    bool whole;          /* a scan of a whole region, with responses as large as possible */
    bool huge;           /* the next list, or mutation, has 10^5 to 10^6 elements */
    bool of_meta;        /* the request is about hbase:meta, and has its rows and columns */
    unsigned depth;      /* nesting of messages */
    unsigned long_lists; /* number of repeated fields that may still get thousands of elements */
    size_t bytes_max;    /* size at which the request's lists end */
    size_t bytes;        /* approximate size so far */
} maker;

/* Appends the encoded message. */
void make_message(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out);

/* ---- between message.c and message_kinds.c */

/* A function that makes one kind of message completely; NULL: made field by field. */
typedef void (*message_kind)(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out);
message_kind find_message_kind(const ProtobufCMessageDescriptor *d);
void make_fields(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out);
/* Sets a field regardless of its probability; does nothing if the message lacks the field. */
void make_field(maker *m, const ProtobufCMessageDescriptor *d, const char *name, rq_buf *out);
void make_row(maker *m, rq_buf *out); /* mostly a row of the request's region */
void put_tag(rq_buf *out, unsigned field, unsigned wire_type);
void put_delimited(rq_buf *out, unsigned field, const rq_buf *bytes);
void put_text_field(rq_buf *out, unsigned field, const char *text);
void put_number_field(rq_buf *out, unsigned field, uint64_t number);

#endif
