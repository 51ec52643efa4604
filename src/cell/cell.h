/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell: one version of one column of one row. It is a view on bytes owned elsewhere (a memstore
 * segment, a cached block, a request); the function that returns a cell says how long it is valid.
 *
 * Order (HBase CellComparatorImpl): row, family, qualifier ascending as unsigned bytes; timestamp
 * descending; type descending (deletes before puts of the same timestamp); sequence id descending.
 * hbase:meta orders rows by their parts: table, start key, region id (MetaCellComparator).
 */
#ifndef RQ_CELL_CELL_H
#define RQ_CELL_CELL_H

#include "base/bytes.h"
#include "base/err.h"

/* On the wire and on disk: DO NOT CHANGE. HBASE: KeyValue.Type. */
typedef enum rq_cell_type {
    RQ_TYPE_MINIMUM = 0,
    RQ_TYPE_PUT = 4,
    RQ_TYPE_DELETE = 8,                 /* exactly this version */
    RQ_TYPE_DELETE_FAMILY_VERSION = 10, /* every column of the family at exactly this timestamp */
    RQ_TYPE_DELETE_COLUMN = 12,         /* this column, this timestamp and older */
    RQ_TYPE_DELETE_FAMILY = 14,         /* every column of the family, this timestamp and older */
    RQ_TYPE_MAXIMUM = 255,
} rq_cell_type;

/* HBASE: KeyValue.Type's names; "Unknown" for other numbers. */
const char *rq_cell_type_name(uint8_t type);

#define RQ_TIMESTAMP_LATEST INT64_MAX
#define RQ_TIMESTAMP_OLDEST INT64_MIN
#define RQ_ROW_LEN_MAX 32767
#define RQ_FAMILY_LEN_MAX 127
#define RQ_TAGS_LEN_MAX 65535

typedef struct rq_cell {
    const uint8_t *row;
    const uint8_t *family;
    const uint8_t *qualifier;
    const uint8_t *value;
    const uint8_t *tags; /* sequence of (be16 length, type, bytes); NULL when tags_len is 0 */
    int64_t timestamp;
    uint64_t seqid; /* MVCC write number = WAL sequence id; 0 once no reader needs it */
    uint32_t qualifier_len;
    uint32_t value_len;
    uint16_t row_len;
    uint16_t tags_len;
    uint8_t family_len;
    uint8_t type; /* rq_cell_type */
} rq_cell;

typedef enum rq_cell_order {
    RQ_ORDER_DEFAULT,
    RQ_ORDER_META, /* hbase:meta's rows */
} rq_cell_order;

static inline rq_slice rq_cell_row(const rq_cell *c)
{
    return rq_slice_of(c->row, c->row_len);
}
static inline rq_slice rq_cell_family(const rq_cell *c)
{
    return rq_slice_of(c->family, c->family_len);
}
static inline rq_slice rq_cell_qualifier(const rq_cell *c)
{
    return rq_slice_of(c->qualifier, c->qualifier_len);
}
static inline rq_slice rq_cell_value(const rq_cell *c)
{
    return rq_slice_of(c->value, c->value_len);
}
static inline bool rq_cell_is_delete(const rq_cell *c)
{
    return c->type >= RQ_TYPE_DELETE && c->type <= RQ_TYPE_DELETE_FAMILY;
}

int rq_row_compare(rq_cell_order order, rq_slice a, rq_slice b);
/* The full order, including the sequence id. */
int rq_cell_compare(rq_cell_order order, const rq_cell *a, const rq_cell *b);
/* The order without the sequence id. */
int rq_cell_compare_key(rq_cell_order order, const rq_cell *a, const rq_cell *b);
/* Family and qualifier only. */
int rq_cell_compare_column(const rq_cell *a, const rq_cell *b);
bool rq_cell_same_row(const rq_cell *a, const rq_cell *b);
bool rq_cell_same_column(const rq_cell *a, const rq_cell *b); /* row not compared */

/* Search keys, which sort before or after every real cell of a range. They borrow the given
 * slices. */
/* Before all cells of the row. */
rq_cell rq_cell_first_on_row(rq_slice row);
/* Behind all cells of the row. */
rq_cell rq_cell_last_on_row(rq_slice row);
/* Before all cells of the column (timestamp LATEST, type MAXIMUM). */
rq_cell rq_cell_first_on_column(rq_slice row, rq_slice family, rq_slice qualifier);
/* Before the cells of the column at this timestamp and older. */
rq_cell rq_cell_first_on_column_ts(rq_slice row, rq_slice family, rq_slice qualifier, int64_t ts);
/* Behind all cells of the column (timestamp OLDEST, type MINIMUM). */
rq_cell rq_cell_last_on_column(rq_slice row, rq_slice family, rq_slice qualifier);

/* --- KeyValue: the cell as bytes (HBASE: KeyValue) ------------------------------------------ */
/*
 *  be32 key length | be32 value length | key | value | [be16 tags length | tags]
 *  key = be16 row length | row | u8 family length | family | qualifier | be64 timestamp | u8 type
 * The tags part exists only when there are tags.
 */
#define RQ_KEY_FIXED_LEN (2 + 1 + 8 + 1)

static inline size_t rq_cell_key_len(const rq_cell *c)
{
    return (size_t)RQ_KEY_FIXED_LEN + c->row_len + c->family_len + c->qualifier_len;
}

/* Length of the KeyValue in bytes. HBase's size limit (hbase.server.keyvalue.maxsize) applies to
 * it. */
static inline size_t rq_cell_serialized_len(const rq_cell *c, bool with_tags)
{
    size_t len = 8 + rq_cell_key_len(c) + c->value_len;
    if (with_tags && c->tags_len > 0) len += 2 + (size_t)c->tags_len;
    return len;
}
/* Writes exactly rq_cell_serialized_len bytes. */
void rq_cell_serialize(const rq_cell *c, bool with_tags, uint8_t *out);
/* The key part alone: exactly rq_cell_key_len bytes. */
void rq_cell_serialize_key(const rq_cell *c, uint8_t *out);
/* Parses exactly one KeyValue into a view on `bytes`. Every length is checked. seqid is set to
 * 0. RQ_E_MALFORMED: *ret is undefined. */
RQ_NODISCARD rq_err rq__cell_parse(rq_slice bytes, rq_cell *ret, rq_error *why);
/* Parses a serialized key into a view on it; value and tags are empty. */
RQ_NODISCARD rq_err rq__cell_parse_key(rq_slice key, rq_cell *ret, rq_error *why);
/* Like rq__cell_parse_key, for a key read from storage: RQ_E_CORRUPT. */
RQ_NODISCARD
static inline rq_err rq_cell_parse_stored_key(rq_slice key, rq_cell *ret, rq_error *why)
{
    return rq_err_of_storage(rq__cell_parse_key(key, ret, why), why);
}

/* Whether the bytes are a well-formed sequence of tags. Tags from outside must be checked: later
 * code walks them without checks, and a file or log record with malformed tags could not be read
 * back. */
bool rq_tags_are_whole(const uint8_t *tags, size_t len);
/* Finds the first tag of a type; false: none. HBASE: TagType.TTL is 8, its value a be64 of
 * milliseconds. */
#define RQ_TAG_TTL 8
bool rq_cell_tag(const rq_cell *c, uint8_t tag_type, rq_slice *ret);

#endif
