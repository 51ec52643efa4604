/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the memstore's skip list (segment.c, which alone includes this): its bytes, the cell in
 * them, and the comparison that a search makes. */
#ifndef RQ_STORE_SEGMENT_NODE_H
#define RQ_STORE_SEGMENT_NODE_H

#include "store/segment.h"

#include <stddef.h>

/* Nothing that can be found out otherwise: at cells of 100 bytes every byte here is half a percent.
 */
struct rq_segment_node {
    union {
        uint64_t seqid;
        uint64_t height; /* until it is linked; then only the links that lead to it tell */
    };
    uint8_t bytes[];
};

#define NODE_HEADER offsetof(rq_segment_node, bytes)

/* The node's own bytes are trusted: prepare wrote them. */
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

/* A key to look for. */
typedef struct probe {
    const rq_cell *cell;
    uint64_t rank;
    bool ranked; /* false: ranks are in the making, only bytes count */
} probe;

/* Of one row: column, timestamp, type and sequence id, from the node's bytes. A wide row's cells
 * have one rank, so a write among them comes here a dozen times. The key's own are the rules of
 * rq_cell_compare, which is asked where a type makes them special. */
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
    if (c != 0) return c;
    int64_t timestamp = (int64_t)rq_get_be64(tail);
    if (timestamp != k->timestamp) return timestamp > k->timestamp ? -1 : 1;
    if (tail[8] != k->type) return (int)k->type - (int)tail[8];
    return (n->seqid < k->seqid) - (n->seqid > k->seqid);
}

static inline int node_compare(rq_cell_order order, const rq_segment_node *n, const probe *key)
{
    if (order == RQ_ORDER_DEFAULT) { /* mostly the row decides, and its bytes are enough */
        const uint8_t *row = n->bytes + 4 + 8 + 2;
        int by_row =
            rq_short_compare(row, rq_get_be16(row - 2), key->cell->row, key->cell->row_len);
        return by_row != 0 ? by_row : node_compare_behind_row(order, n, key);
    }
    rq_cell c;
    node_cell(n, &c);
    return rq_cell_compare(order, &c, key->cell);
}

#endif
