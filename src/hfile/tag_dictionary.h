/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tag compression inside a delta-encoded block: each tag is written once. A tag seen before is
 * written as the be16 number of its slot; a new tag as 0xff, its varint length and its bytes, and
 * it takes a slot. When all slots are taken the least recently used one is replaced. Reader and
 * writer maintain the same table. Used within the room. HBASE: TagCompressionContext,
 * LRUDictionary.
 */
#ifndef RQ_HFILE_TAG_DICTIONARY_H
#define RQ_HFILE_TAG_DICTIONARY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

/* On disk: DO NOT CHANGE. */
#define RQ__TAG_SLOTS 127

typedef struct rq__tag_slot {
    size_t at; /* offset in `bytes` */
    uint32_t len;
    uint8_t newer, older; /* neighbours in the order of use; RQ__TAG_SLOTS: none */
} rq__tag_slot;

/* Zero bytes are an empty dictionary. */
typedef struct rq__tag_dictionary {
    rq_buf bytes; /* the tags in slots, and replaced tags */
    uint32_t count;
    uint8_t newest, oldest;
    rq__tag_slot slots[RQ__TAG_SLOTS];
} rq__tag_dictionary;

/* Empties the dictionary for a new block. */
void rq__tag_dictionary_reset(rq__tag_dictionary *d);
void rq__tag_dictionary_clear(rq__tag_dictionary *d);

/* Appends the compressed form of a cell's tags. RQ_E_INVALID: malformed tags. */
RQ_NODISCARD
rq_err rq__tag_dictionary_pack(rq__tag_dictionary *d, rq_slice tags, rq_buf *out);
/* Reads the compressed form of `len` bytes of tags from the cursor and appends the tags to
 * `out`. */
RQ_NODISCARD
rq_err rq__tag_dictionary_unpack(rq__tag_dictionary *d, rq_cursor *in, size_t len, rq_buf *out);

#endif
