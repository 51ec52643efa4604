/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the memstore's skip list (segment_list.h): its bytes, its cell, and the comparison
 * made by searches. */
#ifndef RQ_STORE_SEGMENT_NODE_H
#define RQ_STORE_SEGMENT_NODE_H

#include "store/segment.h"

#include <stddef.h>

/* Contains nothing that can be derived otherwise: for cells of 100 bytes each byte here costs half
 * a percent of the memstore's memory. */
struct rq_segment_node {
    union {
        uint64_t seqid;
        uint64_t height; /* before it is linked; afterwards only the number of links to it tells
                          * its height */
    };
    uint8_t bytes[];
};

#define NODE_HEADER offsetof(rq_segment_node, bytes)

/* The node's bytes are trusted: prepare wrote them. */
static inline void node_cell(const rq_segment_node *n, rq_cell *ret)
{
    const uint8_t *p = n->bytes;
    uint32_t total = rq_get_be32(p);
    const uint8_t *kv = p + 4;
    uint32_t key_len = rq_get_be32(kv);
    uint32_t value_len = rq_get_be32(kv + 4);
    uint16_t row_len = rq_get_be16(kv + 8);
    const uint8_t *row = kv + 10;
    uint8_t family_len = row[row_len];
    const uint8_t *family = row + row_len + 1;
    const uint8_t *key_end = kv + 8 + key_len;
    uint32_t with_value = 8 + key_len + value_len;
    *ret = (rq_cell){
        .row = row,
        .row_len = row_len,
        .family = family,
        .family_len = family_len,
        .qualifier = family + family_len,
        .qualifier_len = key_len - RQ_KEY_FIXED_LEN - row_len - family_len,
        .timestamp = (int64_t)rq_get_be64(key_end - 9),
        .type = key_end[-1],
        .value = key_end,
        .value_len = value_len,
        .seqid = n->seqid,
    };
    if (total > with_value) {
        ret->tags_len = rq_get_be16(kv + with_value);
        ret->tags = kv + with_value + 2;
    }
}

static inline rq_slice row_of(const rq_segment_node *n)
{
    const uint8_t *row = n->bytes + 4 + 8 + 2;
    return rq_slice_of(row, rq_get_be16(row - 2));
}

/* Called for every cell of a batch; most rows there are short, so two overlapping 16-byte
 * compares replace the memcmp. */
static inline bool same_row(const rq_segment_node *a, const rq_segment_node *b)
{
    rq_slice x = row_of(a);
    rq_slice y = row_of(b);
    if (x.len != y.len) return false;
    if (x.len < 16 || x.len > 32) return memcmp(x.ptr, y.ptr, x.len) == 0;
    size_t tail = x.len - 16;
    return rq_compare_16(x.ptr, y.ptr) == 0 && rq_compare_16(x.ptr + tail, y.ptr + tail) == 0;
}

/* A key to search for. */
typedef struct probe {
    const rq_cell *cell;
    uint64_t rank;
    bool ranked; /* false: ranks are being recomputed; compare bytes only */
    /* Row, family length, family and qualifier in a node's layout; NULL: use `cell` only. */
    const uint8_t *name;
    size_t name_len;
    const rq_segment_node *equal; /* set by a search: the node with an equal key */
} probe;

/* A probe for the node's own key, to link it. */
static inline probe probe_of(const rq_segment_node *n, rq_cell *ret_cell)
{
    node_cell(n, ret_cell);
    size_t name_len =
        (size_t)ret_cell->row_len + 1 + ret_cell->family_len + ret_cell->qualifier_len;
    return (probe){.cell = ret_cell,
                   .ranked = true,
                   .name = ret_cell->type == RQ_TYPE_MINIMUM ? NULL : ret_cell->row,
                   .name_len = name_len};
}

/* Whether row, family and qualifier are the key's. Cheaper than a comparison that orders them. The
 * row's length, two bytes before the name, is compared with it: with equal lengths of the rows equal
 * bytes are equal names. */
static inline bool has_name(const rq_segment_node *n, const probe *key)
{
    const uint8_t *row = n->bytes + 4 + 8 + 2;
    size_t name_len = rq_get_be32(n->bytes + 4) - (RQ_KEY_FIXED_LEN - 1);
    return key->name != NULL && name_len == key->name_len &&
           rq_short_eq_len(row - 2, key->name - 2, name_len + 2);
}

/* Compares timestamp, type and sequence id, the first two from the node's bytes. */
static inline int node_compare_tail(const rq_segment_node *n, const uint8_t *tail, const rq_cell *k)
{
    int64_t timestamp = (int64_t)rq_get_be64(tail);
    if (timestamp != k->timestamp) return timestamp > k->timestamp ? -1 : 1;
    if (tail[8] != k->type) return (int)k->type - (int)tail[8];
    return (n->seqid < k->seqid) - (n->seqid > k->seqid);
}

/* REQUIRES: has_name. Whether the key is a newer version than the node, and so before it. */
static inline bool is_newer(const probe *key, const rq_segment_node *n)
{
    const uint8_t *tail = n->bytes + 4 + rq_get_be32(n->bytes + 4) - 1;
    return tail[8] != RQ_TYPE_MINIMUM && node_compare_tail(n, tail, key->cell) > 0;
}

/* Compares the rest of the key of two cells of one row, from the node's bytes. All cells of a
 * wide row have the same rank, so a write into such a row makes this comparison a dozen times. The
 * rules are rq_cell_compare's, which is called if one of the types is RQ_TYPE_MINIMUM. */
static inline int node_compare_behind_row(rq_cell_order order, const rq_segment_node *n,
                                          const probe *key)
{
    const rq_cell *k = key->cell;
    const uint8_t *kv = n->bytes + 4;
    uint32_t key_len = rq_get_be32(kv);
    uint16_t row_len = rq_get_be16(kv + 8);
    const uint8_t *family = kv + 10 + row_len + 1;
    uint8_t family_len = family[-1];
    const uint8_t *tail = kv + 8 + key_len - 9; /* timestamp and type */
    if (tail[8] == RQ_TYPE_MINIMUM || k->type == RQ_TYPE_MINIMUM) {
        rq_cell c;
        node_cell(n, &c);
        return rq_cell_compare(order, &c, k);
    }
    int c = rq_short_compare(family, family_len, k->family, k->family_len);
    if (c != 0) return c;
    const uint8_t *qualifier = family + family_len;
    c = rq_short_compare(qualifier, (size_t)(tail - qualifier), k->qualifier, k->qualifier_len);
    return c != 0 ? c : node_compare_tail(n, tail, k);
}

static inline int node_compare(rq_cell_order order, const rq_segment_node *n, const probe *key)
{
    if (order == RQ_ORDER_DEFAULT) { /* usually the row decides, and only its bytes are read */
        const uint8_t *row = n->bytes + 4 + 8 + 2;
        uint16_t row_len = rq_get_be16(row - 2);
        if (key->name != NULL && row_len == key->cell->row_len &&
            row[row_len] == key->cell->family_len) {
            /* If these lengths are equal, row, family and qualifier compare as one string. */
            size_t name_len = rq_get_be32(n->bytes + 4) - (RQ_KEY_FIXED_LEN - 1);
            const uint8_t *tail = row + name_len;
            if (tail[8] != RQ_TYPE_MINIMUM) {
                int by_name = rq_short_compare(row, name_len, key->name, key->name_len);
                return by_name != 0 ? by_name : node_compare_tail(n, tail, key->cell);
            }
        }
        int by_row = rq_short_compare(row, row_len, key->cell->row, key->cell->row_len);
        return by_row != 0 ? by_row : node_compare_behind_row(order, n, key);
    }
    rq_cell c;
    node_cell(n, &c);
    return rq_cell_compare(order, &c, key->cell);
}

#endif
