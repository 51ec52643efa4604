/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags within a delta-encoded block, written once each: a tag the block has had before is the be16
 * number of its slot, any other is 0xff, its varint length and its bytes, and takes a slot. When
 * all slots are taken, the one used longest ago is given to the new tag. Both sides keep the same
 * book. Within the room. HBASE: TagCompressionContext, LRUDictionary.
 */
#ifndef RQ_HFILE_TAG_DICTIONARY_H
#define RQ_HFILE_TAG_DICTIONARY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/* On disk: DO NOT CHANGE. */
#define RQ__TAG_SLOTS 127

typedef struct rq__tag_slot {
    size_t at; /* in bytes */
    uint32_t len;
    uint8_t newer, older; /* slots; RQ__TAG_SLOTS: none */
} rq__tag_slot;

/* All zero bytes is an empty one. */
typedef struct rq__tag_dictionary {
    rq_buf bytes; /* of the tags in slots, and of those that were */
    uint32_t count;
    uint8_t newest, oldest;
    rq__tag_slot slots[RQ__TAG_SLOTS];
} rq__tag_dictionary;

/* For a new block. */
void rq__tag_dictionary_reset(rq__tag_dictionary *d);
void rq__tag_dictionary_clear(rq__tag_dictionary *d);

/* Appends the short form of a cell's tags. RQ_E_INVALID when they are no tags. */
RQ_NODISCARD
rq_err rq__tag_dictionary_pack(rq__tag_dictionary *d, rq_slice tags, rq_buf *out);
/* Takes the short form of `len` bytes of tags from the cursor and appends the tags. */
RQ_NODISCARD
rq_err rq__tag_dictionary_unpack(rq__tag_dictionary *d, rq_cursor *in, size_t len, rq_buf *out);

#endif
