/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room: parsed formats, and the codecs of parts. */
#ifndef RQ_ROWKEY_ROWKEY_PRIV_H
#define RQ_ROWKEY_ROWKEY_PRIV_H

#include "rorqual/rowkey.h"

#include "base/arena.h"
#include "base/buf.h"

#include <pthread.h>

#define RQ__KEY_MAX 32767
#define RQ__PARTS_MAX 64

typedef enum rq__part_kind {
    RQ__PART_LITERAL,
    RQ__PART_SALT,    /* buckets */
    RQ__PART_PHOENIX, /* buckets */
    RQ__PART_HASH,    /* hash, width */
    RQ__PART_UINT,    /* width */
    RQ__PART_INT,     /* width */
    RQ__PART_FLOAT,   /* width */
    RQ__PART_BOOL,
    RQ__PART_UUID,
    RQ__PART_SECONDS, /* 4 bytes */
    RQ__PART_TIME,    /* 8 bytes; unit_ns */
    RQ__PART_TIME_DIGITS,
    RQ__PART_DIGITS,  /* width */
    RQ__PART_FIXED,   /* width; is_text */
    RQ__PART_VAR,     /* is_text */
    RQ__PART_GEOHASH, /* width */
    RQ__PART_OB_INT,  /* width without the header */
    RQ__PART_OB_FLOAT,
    RQ__PART_OB_NUM,
    RQ__PART_OB_TEXT,
    RQ__PART_OB_BLOB,
    RQ__PART_OB_BLOBVAR,
    RQ__PART_RAW_INT,
    RQ__PART_RAW_FLOAT,
} rq__part_kind;

typedef enum rq__hash { RQ__HASH_MD5, RQ__HASH_MURMUR3, RQ__HASH_XXH3 } rq__hash;

typedef struct rq__part {
    rq__part_kind kind;
    const char *name; /* NULL: it has no value */
    const char *type; /* the word behind the name */
    bool desc, opt, rev, is_text, hex;
    bool is_last;          /* no byte of the key follows */
    bool may_be_missing;   /* null is left out where only nulls follow (HBase's Struct) */
    uint32_t width;        /* bytes, digits or letters */
    uint32_t buckets;      /* of a salt */
    rq__hash hash;         /* of a hash prefix */
    int64_t unit_ns;       /* of a time */
    rq_slice literal;      /* of a literal; of a variable part: the literal that ends it */
    uint64_t covers;       /* of a computed part: the parts that are hashed, a bit each */
    const char *arguments; /* while parsing: names of these parts */
} rq__part;

struct rq_key_format {
    rq_arena arena;
    size_t count;       /* parts */
    size_t value_count; /* parts with values */
    rq__part parts[RQ__PARTS_MAX];
};

static inline bool rq__part_is_computed(const rq__part *p)
{
    return p->kind == RQ__PART_SALT || p->kind == RQ__PART_PHOENIX || p->kind == RQ__PART_HASH;
}

/* Whether null has an encoding of its own, or may be left out at the end (HBase's Struct). */
static inline bool rq__part_is_nullable_ob(const rq__part *p)
{
    return p->kind >= RQ__PART_OB_NUM && p->kind <= RQ__PART_OB_BLOBVAR;
}

/* --- format.c --------------------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__format_parse(const char *text, rq_key_format **ret, rq_error *why);

/* --- key.c ------------------------------------------------------------------------------------ */

RQ_NODISCARD
rq_err rq__key_encode(const rq_key_format *f, const rq_key_value *values, size_t count, rq_buf *out,
                      rq_error *why);
/* Without the first part. */
RQ_NODISCARD
rq_err rq__key_encode_unsalted(const rq_key_format *f, const rq_key_value *values, size_t count,
                               rq_buf *out, rq_error *why);
/* Values of the key; bytes are the key's or the arena's. */
RQ_NODISCARD
rq_err rq__key_decode(const rq_key_format *f, rq_slice key, rq_arena *arena, rq_key_value *values,
                      rq_error *why);

/* --- part.c: one value, appended to `out`, or taken from a cursor ------------------------------ */

RQ_NODISCARD
rq_err rq__part_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why);
RQ_NODISCARD
rq_err rq__part_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_key_value *ret,
                       rq_error *why);
/* "part NAME (TYPE): …" */
RQ_NODISCARD
rq_err rq__part_fail(const rq__part *p, rq_err code, rq_error *why, const char *fmt, ...)
    RQ_PRINTF(4, 5);

/* --- var.c: texts and bytes of any length ------------------------------------------------------ */

RQ_NODISCARD
rq_err rq__var_encode(const rq__part *p, rq_slice v, rq_buf *out, rq_error *why);
RQ_NODISCARD
rq_err rq__var_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_slice *ret,
                      rq_error *why);

/* --- ordered.c, numeric.c: HBase's OrderedBytes ------------------------------------------------ */

RQ_NODISCARD
rq_err rq__ordered_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why);
RQ_NODISCARD
rq_err rq__ordered_decode(const rq__part *p, rq_cursor *c, rq_arena *arena, rq_key_value *ret,
                          rq_error *why);
/* Ascending; a value that is not null. */
RQ_NODISCARD
rq_err rq__numeric_encode(const rq__part *p, const rq_key_value *v, rq_buf *out, rq_error *why);
/* `flip` is 0xFF in descending order. The text is the arena's. */
RQ_NODISCARD
rq_err rq__numeric_decode(const rq__part *p, rq_cursor *c, uint8_t flip, rq_arena *arena,
                          rq_key_value *ret, rq_error *why);

/* --- hash.c ----------------------------------------------------------------------------------- */

/* HBASE: MurmurHash3 with a seed of 0. */
uint32_t rq__murmur3(rq_slice s);
/* HBASE: phoenix SaltingUtil. */
uint32_t rq__phoenix_bucket(rq_slice s, uint32_t buckets);
/* Appends a salt or a hash prefix over `s`. */
RQ_NODISCARD
rq_err rq__computed_append(const rq__part *p, rq_slice s, rq_buf *out);
/* Appends the salt of a bucket. */
RQ_NODISCARD
rq_err rq__salt_append(const rq__part *p, uint32_t bucket, rq_buf *out);

/* --- text.c ----------------------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__value_of_text(const rq__part *p, const char *text, rq_arena *arena, rq_key_value *ret,
                         rq_error *why);
/* NULL: no memory. */
const char *rq__value_to_text(const rq__part *p, const rq_key_value *v, rq_arena *arena);

/* --- lengths.c -------------------------------------------------------------------------------- */

void rq__part_lengths(const rq__part *p, size_t *ret_min, size_t *ret_max);
bool rq__part_is_ordered(const rq__part *p);

/* --- lint.c, split.c, geohash.c: the public functions without their failures -------------------- */

#define RQ__REGIONS_MAX 1000000

RQ_NODISCARD
rq_err rq__key_lint(const rq_key_format *f, rq_names **ret, rq_error *why);
RQ_NODISCARD
rq_err rq__split_keys(rq_split_kind kind, size_t regions, rq_key_list **ret, rq_error *why);
RQ_NODISCARD
rq_err rq__split_sample(const rq_bytes *keys, const uint64_t *weights, size_t count, size_t regions,
                        rq_key_list **ret, rq_error *why);
RQ_NODISCARD
rq_err rq__split_format(const rq_key_format *f, size_t regions, rq_key_list **ret, rq_error *why);

#define RQ__GEOHASH_LETTERS "0123456789bcdefghjkmnpqrstuvwxyz"
#define RQ__GEOHASH_MAX 12

RQ_NODISCARD
rq_err rq__geohash_encode(rq_point point, unsigned letters, char *buf, rq_error *why);
RQ_NODISCARD
rq_err rq__geohash_decode(rq_slice hash, rq_box *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__geohash_neighbours(const char *hash, char ret[8][RQ_GEOHASH_SIZE], rq_error *why);

RQ_NODISCARD
rq_err rq__geo_cover(const rq_area *area, unsigned letters, size_t most, rq_geo_ranges **ret,
                     rq_error *why);
RQ_NODISCARD
rq_err rq__geo_contains(const rq_area *area, rq_point point, bool *ret, rq_error *why);

/* Copies the failure that a scanner has kept into the caller's structure, which may be smaller: then only
 * the fields that fit. Returns `rc`; RQ_OK and NULL are fine. */
rq_err rq__copy_failure(const rq_failure *from, rq_err rc, rq_failure *to);
/* Starts a thread that blocks all signals except faults, as all threads of the library do. False: it cannot be started. */
bool rq__thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
