/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Row keys for librorqual: composite keys whose bytes sort as their values do, salts and hash
 * prefixes, split keys, scans over salted tables, GeoHash, secondary indexes, OpenTSDB's layout.
 * The conventions are those of rorqual.h. Functions that take no database, table or index can be used without one.
 *
 * A key's format is a text with one word per part:
 *
 *     rq_key_format *format;
 *     rq_key_format_parse("salt(16) user:u64 time:desc-ms", &format, &why);
 *     rq_key_value values[] = {rq_key_uint(7), rq_key_int(now_ms)};
 *     rq_key_encode(format, values, 2, buf, sizeof buf, &len, &why);
 *
 * A word is NAME:TYPE for a part with a value, a literal in quotes ('_', '\x00'), or a computed part.
 *
 *   u8 u16 … u64        unsigned, big-endian, in steps of 8 bits (u24: 3 bytes)
 *   i8 i16 … i64        signed: the sign bit is inverted, so that -1 sorts before 0
 *   f32 f64 bool uuid   4, 8, 1, 16 bytes; floats: -0 before 0, NaN last
 *   s                   seconds since 1970, 4 bytes; not negative
 *   ms us ns            time since 1970, 8 bytes; not negative. desc-ms: INT64_MAX - time
 *   msdigits            the same as 19 decimal digits; desc-msdigits: INT64_MAX - time
 *   digits(N)           a number with N digits, zeros in front. desc-: 10^N - 1 - number
 *   text(N) bytes(N)    N bytes; a text is filled up with zeros
 *   text bytes          of any length. At the end of the key they stand as they are; elsewhere they
 *                       end with 00 (a text) or 00 00 (bytes, where 00 becomes 00 FF); before a
 *                       literal they end with the literal and may not contain its first byte
 *   geohash(N)          N letters (rq_geohash_encode)
 *   ob-i8 … ob-i64, ob-f32 ob-f64, ob-num, ob-text, ob-blob, ob-blobvar
 *                       HBase's OrderedBytes; a format of these alone is HBase's Struct
 *   raw-i8 … raw-i64, raw-f32 raw-f64
 *                       HBase's Bytes.toBytes: negative numbers sort behind positive ones
 *
 *   desc- before a type: the largest value first.       opt-: may be null, which is the smallest
 *   value (a byte 00 or 01 in front; ob-num, ob-text, ob-blob and ob-blobvar need no opt-).
 *   rev-: the bytes in reverse order (of u, i, digits): spreads ascending ids, loses their order.
 *
 *   salt(N)             the bucket, 0 … N-1: murmur3 of the parts behind it, modulo N; 1 byte (2 if
 *                       N > 256). salt(N,hex): as hex digits
 *   phoenix(N)          Apache Phoenix's salt byte
 *   md5(N) murmur3(N) xxh3(N)     the first N bytes of the hash of the parts behind it; md5(N,hex): N
 *                       hex digits
 *   Names of parts as further arguments restrict what is hashed: salt(16,user).
 */
#ifndef RORQUAL_ROWKEY_H
#define RORQUAL_ROWKEY_H

#include "rorqual/rorqual.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- values ----------------------------------------------------------------------------------- */

typedef enum rq_value_kind {
    RQ_VALUE_NULL,
    RQ_VALUE_INT,     /* integer */
    RQ_VALUE_UINT,    /* natural */
    RQ_VALUE_REAL,    /* real */
    RQ_VALUE_BOOL,    /* natural: 0 or 1 */
    RQ_VALUE_BYTES,   /* bytes: bytes, text, UUIDs, GeoHashes */
    RQ_VALUE_DECIMAL, /* bytes: a decimal number as text, "-12.50" or "1e400", for ob-num */
} rq_value_kind;

/* A part's value. Fixed layout. */
typedef struct rq_key_value {
    rq_value_kind kind;
    uint32_t reserved; /* 0 */
    int64_t integer;
    uint64_t natural;
    double real;
    rq_bytes bytes;
} rq_key_value;

static inline rq_key_value rq_key_null(void)
{
    rq_key_value v = {RQ_VALUE_NULL, 0, 0, 0, 0, {NULL, 0}};
    return v;
}

static inline rq_key_value rq_key_int(int64_t integer)
{
    rq_key_value v = {RQ_VALUE_INT, 0, integer, 0, 0, {NULL, 0}};
    return v;
}

static inline rq_key_value rq_key_uint(uint64_t natural)
{
    rq_key_value v = {RQ_VALUE_UINT, 0, 0, natural, 0, {NULL, 0}};
    return v;
}

static inline rq_key_value rq_key_real(double real)
{
    rq_key_value v = {RQ_VALUE_REAL, 0, 0, 0, real, {NULL, 0}};
    return v;
}

static inline rq_key_value rq_key_bool(bool natural)
{
    rq_key_value v = {RQ_VALUE_BOOL, 0, 0, natural ? UINT64_C(1) : 0, 0, {NULL, 0}};
    return v;
}

static inline rq_key_value rq_key_bytes(rq_bytes bytes)
{
    rq_key_value v = {RQ_VALUE_BYTES, 0, 0, 0, 0, {NULL, 0}};
    v.bytes = bytes;
    return v;
}

static inline rq_key_value rq_key_text(const char *text)
{
    return rq_key_bytes(rq_text(text));
}

/* --- formats ---------------------------------------------------------------------------------- */

/* Any thread may use a format, also at the same time. */
typedef struct rq_key_format rq_key_format;

/* The caller frees the format. RQ_E_INVALID: the message names the word that is wrong, and why. */
RQ_API rq_err rq_key_format_parse(const char *text, rq_key_format **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_key_format_free(rq_key_format *format);

/* A part of a format that has a value. The caller sets `size`. `name` and `type` live as long as the format. */
typedef struct rq_key_part {
    size_t size;
    const char *name;
    const char *type;  /* as in the format: "desc-ms" */
    size_t min_length; /* bytes in a key */
    size_t max_length; /* SIZE_MAX: no limit but the key's */
    bool is_ordered;   /* bytes sort as values, or the other way round */
    bool is_descending;
} rq_key_part;
/* The number of parts with values. */
RQ_API size_t rq_key_part_count(const rq_key_format *format);
/* Fills as many bytes of *ret as its size says. RQ_E_INVALID: there is no such part, or the size is invalid. */
RQ_API rq_err rq_key_part_at(const rq_key_format *format, size_t index, rq_key_part *ret,
                             rq_failure *why);

/* Advice on a format, one sentence each: length, hot spots, parts whose order is lost. The caller
 * frees it (rq_names_free). */
RQ_API rq_err rq_key_lint(const rq_key_format *format, rq_names **ret, rq_failure *why);

/* --- keys ------------------------------------------------------------------------------------- */

/* Makes a key of values, one for each part that has one. With fewer values it makes the prefix that
 * all keys with these values share; computed parts must not depend on the missing ones. *ret_len is
 * the length. RQ_E_RESULT_TOO_LARGE: longer than cap; *ret_len is set, and `buf` is unchanged.
 * RQ_E_INVALID: a value does not fit its part, or the key is longer than 32,767 bytes. */
RQ_API rq_err rq_key_encode(const rq_key_format *format, const rq_key_value *values, size_t count,
                            void *buf, size_t cap, size_t *ret_len, rq_failure *why);
/* As rq_key_encode, for values as text: "7", "-1.5", "true", "null" (of a part that may be null), a
 * UUID; times as numbers or as "2022-12-31T23:59:59.999Z"; bytes with \xNN; a GeoHash, or
 * "latitude,longitude". */
RQ_API rq_err rq_key_encode_text(const rq_key_format *format, const char *const *values,
                                 size_t count, void *buf, size_t cap, size_t *ret_len,
                                 rq_failure *why);

/* A key without its first part, which is salt(N) or phoenix(N): for the ranges of rq_salted_scan. */
RQ_API rq_err rq_key_encode_unsalted(const rq_key_format *format, const rq_key_value *values,
                                     size_t count, void *buf, size_t cap, size_t *ret_len,
                                     rq_failure *why);

/* A key's values; the library's, freed by rq_key_values_free. Parts of the types u, s, ms, us, ns, digits and msdigits
 * are RQ_VALUE_UINT, other integers RQ_VALUE_INT; ob-num is RQ_VALUE_DECIMAL. */
typedef struct rq_key_values {
    size_t count;
    const rq_key_value *items;
    const char *const *texts; /* the same as text, as rq_key_encode_text takes them */
} rq_key_values;
/* Takes a key apart; the caller frees *ret. RQ_E_MALFORMED: rq_key_encode would not make this key of
 * any values; the message names the part. */
RQ_API rq_err rq_key_decode(const rq_key_format *format, rq_bytes key, rq_key_values **ret,
                            rq_failure *why);
/* NULL is fine. */
RQ_API void rq_key_values_free(rq_key_values *values);

/* Writes the first key behind all keys with this prefix to `buf`, which has room for prefix.len bytes; use it as a
 * scan's `stop`. Returns its length; 0: there is no such key, so the scan has no stop. */
RQ_API size_t rq_key_after_prefix(rq_bytes prefix, void *buf);

/* The number of buckets of the format's first part, if that is salt(N) or phoenix(N); else 0. */
RQ_API uint32_t rq_key_buckets(const rq_key_format *format);
/* Writes a bucket's salt to `buf` (16 bytes) and its length to *ret_len. RQ_E_INVALID: there is no
 * such bucket. */
RQ_API rq_err rq_key_salt(const rq_key_format *format, uint32_t bucket, void *buf, size_t *ret_len,
                          rq_failure *why);

/* --- scans over salted tables ----------------------------------------------------------------- */

/* Used by one thread at a time. */
typedef struct rq_salted_scanner rq_salted_scanner;

/* Scans all buckets of a table whose key format begins with salt(N) or phoenix(N), and returns the rows
 * in the order of their keys without the salt (rows of several buckets with equal keys: by bucket).
 * `scan` has start and stop without salt; its limit counts the rows of all buckets together. On an embedded database
 * (file:, memory:) up to 16 `threads`, which block all signals, read ahead; 0, or with rq_connect_options.no_threads:
 * none. On a cluster the library requests rows ahead without threads. The caller closes the scanner before the table;
 * `format` is not used after this call. RQ_E_INVALID: the format has no salt. Errors of the table come from
 * rq_salted_next. */
RQ_API rq_err rq_salted_scan(rq_table *table, const rq_key_format *format,
                             const rq_scan_request *scan, uint32_t threads, rq_salted_scanner **ret,
                             rq_failure *why);
/* As rq_scanner_next. Keys are the table's, with their salt. After an error it returns that error again. */
RQ_API rq_err rq_salted_next(rq_salted_scanner *scanner, rq_row **ret, rq_failure *why);
/* Blocks until the scanner's threads have ended and the answers it has requested have arrived. NULL is
 * fine. */
RQ_API void rq_salted_close(rq_salted_scanner *scanner);

/* --- split keys ------------------------------------------------------------------------------- */

/* Keys in order; the library's, freed by rq_key_list_free. */
typedef struct rq_key_list {
    size_t count;
    const rq_bytes *items;
} rq_key_list;
/* NULL is fine. */
RQ_API void rq_key_list_free(rq_key_list *keys);

typedef enum rq_split_kind {
    RQ_SPLIT_HEX,     /* HBase's HexStringSplit: "00000000" … "ffffffff" */
    RQ_SPLIT_DECIMAL, /* DecimalStringSplit: "00000000" … "99999999" */
    RQ_SPLIT_UNIFORM, /* UniformSplit: 8 bytes, 00 … FF */
} rq_split_kind;
/* The regions - 1 split keys that HBase's RegionSplitter makes. The caller frees *ret.
 * RQ_E_INVALID: fewer than 2 regions, or more than the kind can tell apart. */
RQ_API rq_err rq_split_keys(rq_split_kind kind, size_t regions, rq_key_list **ret, rq_failure *why);
/* Split keys that divide a sample of keys, in any order, into equal parts: of equal numbers of keys, or with `weights`
 * (may be NULL) of equal sums of weights. Each split key is the key before which the sum of weights is nearest
 * to 1, 2 … regions' shares of the total. There are fewer than regions - 1 split keys if the sample has too few different
 * keys, or if one key weighs more than a region's share. */
RQ_API rq_err rq_split_sample(const rq_bytes *keys, const uint64_t *weights, size_t count,
                              size_t regions, rq_key_list **ret, rq_failure *why);
/* Split keys of a format whose first parts spread evenly: salts, hashes, UUIDs, reversed numbers,
 * GeoHashes. RQ_E_UNSUPPORTED: the format does not determine them; use a sample. */
RQ_API rq_err rq_split_format(const rq_key_format *format, size_t regions, rq_key_list **ret,
                              rq_failure *why);

/* --- GeoHash ---------------------------------------------------------------------------------- */

/* Degrees: latitude -90 to 90, longitude -180 to 180. */
typedef struct rq_point {
    double latitude, longitude;
} rq_point;

/* With west > east it crosses the 180th meridian. */
typedef struct rq_box {
    double south, west, north, east;
} rq_box;

#define RQ_GEOHASH_SIZE 13 /* 12 letters and a NUL */

/* The GeoHash of a point, 1 to 12 letters and a NUL, into `buf`. A point on the edge of two cells
 * belongs to the northern and eastern one. RQ_E_INVALID: no such point or number of letters. */
RQ_API rq_err rq_geohash_encode(rq_point point, unsigned letters, char *buf, rq_failure *why);
/* The cell of a GeoHash. RQ_E_MALFORMED: a letter that GeoHash does not have; none, or more than 12. */
RQ_API rq_err rq_geohash_decode(const char *hash, rq_box *ret, rq_failure *why);
/* The cells around a cell: north, north-east, east … north-west. Cells beyond a pole are "". */
RQ_API rq_err rq_geohash_neighbours(const char *hash, char ret[8][RQ_GEOHASH_SIZE],
                                    rq_failure *why);

/* Metres between two points, on a sphere of the earth's mean radius, 6,371,008.8 m. The points are not checked. */
RQ_API double rq_geo_distance(rq_point a, rq_point b);

typedef enum rq_area_kind {
    RQ_AREA_BOX,
    RQ_AREA_CIRCLE,
    RQ_AREA_POLYGON, /* edges are straight in degrees, each the shorter way round the earth */
} rq_area_kind;

typedef struct rq_area {
    size_t size;
    rq_area_kind kind;
    rq_box box;
    rq_point center; /* of a circle */
    double radius_m;
    const rq_point *corners; /* of a polygon, 3 to 1,000, in either direction; one that goes once
                                around the earth has the pole to its left */
    size_t corner_count;
} rq_area;

/* Whether a point lies in an area; for a point on the edge of a polygon either answer is possible.
 * RQ_E_INVALID: not a valid area. */
RQ_API rq_err rq_geo_contains(const rq_area *area, rq_point point, bool *ret, rq_failure *why);

/* A range of GeoHashes: start <= hash < stop, as bytes; stop "": no end. */
typedef struct rq_geo_range {
    char start[RQ_GEOHASH_SIZE];
    char stop[RQ_GEOHASH_SIZE];
} rq_geo_range;

/* Allocated by the library, freed by rq_geo_ranges_free. Ascending and disjoint. */
typedef struct rq_geo_ranges {
    size_t count;
    const rq_geo_range *items;
} rq_geo_ranges;

/* Ranges that contain the GeoHashes, of `letters` letters, of all points of an area: at most `most`
 * ranges (0: 10,000), chosen to cover as little else as possible. The caller frees *ret.
 * RQ_E_INVALID: no such area; letters above 12. */
RQ_API rq_err rq_geo_cover(const rq_area *area, unsigned letters, size_t most, rq_geo_ranges **ret,
                           rq_failure *why);
/* NULL is fine. */
RQ_API void rq_geo_ranges_free(rq_geo_ranges *ranges);

/* A table whose keys consist of a prefix, a GeoHash of `letters` letters, and any further bytes. */
typedef struct rq_geo_search {
    size_t size;
    rq_bytes prefix;
    unsigned letters; /* 1 to 12 */
    rq_point center;
    size_t count;    /* rows wanted */
    double radius_m; /* none farther than this; 0: no limit */
    /* Columns of a row's position: 8 bytes each, big-endian doubles (Bytes.toBytes). With an empty
     * family the position is the middle of the GeoHash's cell. */
    rq_column latitude, longitude;
} rq_geo_search;

typedef struct rq_geo_hit {
    double distance_m;
    rq_point point;
    const rq_row *row;
} rq_geo_hit;

/* The library's, freed by rq_geo_found_free; the nearest first. */
typedef struct rq_geo_found {
    size_t count;
    const rq_geo_hit *items;
} rq_geo_found;

/* The rows nearest to a point, at most search->count. Scans circles of growing radius, each key
 * range once. The caller frees *ret. Errors of the table, and RQ_E_MALFORMED: a row without a
 * GeoHash, or with an invalid position. */
RQ_API rq_err rq_geo_nearest(rq_table *table, const rq_geo_search *search, rq_geo_found **ret,
                             rq_failure *why);
/* NULL is fine. */
RQ_API void rq_geo_found_free(rq_geo_found *found);

/* --- OpenTSDB's layout ------------------------------------------------------------------------ */

/* The tables of OpenTSDB 2, with UIDs of 3 bytes: the library reads what OpenTSDB writes, and the reverse. Any number
 * of threads may use an rq_tsdb at the same time. */
typedef struct rq_tsdb rq_tsdb;

typedef struct rq_tsdb_options {
    size_t size;
    const char *data_table; /* NULL: "tsdb" */
    const char *uid_table;  /* NULL: "tsdb-uid" */
    uint32_t salt_buckets;  /* OpenTSDB's tsd.storage.salt.buckets with a width of 1; 0: no salt */
    bool creates;           /* the tables, if they are missing */
} rq_tsdb_options;

/* `options` may be NULL. The caller closes it before the database. Errors as rq_table_create's. */
RQ_API rq_err rq_tsdb_open(rq_db *db, const rq_tsdb_options *options, rq_tsdb **ret,
                           rq_failure *why);
/* NULL is fine. */
RQ_API void rq_tsdb_close(rq_tsdb *tsdb);

typedef enum rq_tsdb_kind {
    RQ_TSDB_METRIC,
    RQ_TSDB_TAG_NAME,
    RQ_TSDB_TAG_VALUE,
} rq_tsdb_kind;
/* Returns a name's UID in *ret. A name without a UID gets one if `makes`; otherwise RQ_E_NOT_FOUND. RQ_E_INVALID: the
 * name has other characters than letters, digits and -_./ */
RQ_API rq_err rq_tsdb_uid(rq_tsdb *tsdb, rq_tsdb_kind kind, const char *name, bool makes,
                          uint32_t *ret, rq_failure *why);

/* A data point. Fixed layout. */
typedef struct rq_tsdb_point {
    const char *metric;
    const rq_property *tags; /* 1 to 8, in any order */
    size_t tag_count;
    int64_t time_ms; /* since 1970; a whole second has OpenTSDB's shorter form of seconds */
    bool is_real;
    int64_t integer;
    double real; /* written in 4 bytes if that loses nothing */
} rq_tsdb_point;

/* Writes points, in batches; new names get UIDs. Not atomic. Errors as rq_table_batch's, and
 * RQ_E_INVALID: a name, a time, a tag that is given twice. */
RQ_API rq_err rq_tsdb_put(rq_tsdb *tsdb, const rq_tsdb_point *points, size_t count,
                          rq_failure *why);

typedef struct rq_tsdb_value {
    int64_t time_ms;
    bool is_real;
    int64_t integer;
    double real; /* set for integers, too */
} rq_tsdb_value;

typedef enum rq_tsdb_function {
    RQ_TSDB_AVG,
    RQ_TSDB_SUM,
    RQ_TSDB_MIN,
    RQ_TSDB_MAX,
    RQ_TSDB_COUNT,
} rq_tsdb_function;

typedef struct rq_tsdb_query {
    size_t size;
    const char *metric;
    const rq_property *tags; /* series must have these; a value NULL: any value */
    size_t tag_count;
    int64_t from_ms, to_ms; /* [from, to) */
    /* Downsampling: one value for each interval, which begins at a multiple of it; 0: all points. */
    int64_t interval_ms;
    rq_tsdb_function function;
} rq_tsdb_query;

typedef struct rq_tsdb_series {
    const rq_property *tags; /* ascending by UID of the name */
    size_t tag_count;
    /* Ascending by time; of two at the same time the one written last. */
    const rq_tsdb_value *values;
    size_t count;
} rq_tsdb_series;

/* The library's, freed by rq_tsdb_result_free; in the order of their keys. */
typedef struct rq_tsdb_result {
    size_t count;
    const rq_tsdb_series *items;
} rq_tsdb_result;

/* Reads series from single and compacted columns. The result is empty if the metric or a tag has no
 * UID. The caller frees *ret. RQ_E_MALFORMED: a row or column that is not OpenTSDB's. */
RQ_API rq_err rq_tsdb_read(rq_tsdb *tsdb, const rq_tsdb_query *query, rq_tsdb_result **ret,
                           rq_failure *why);
/* NULL is fine. */
RQ_API void rq_tsdb_result_free(rq_tsdb_result *result);

/* Joins the points of each row into one compacted column, for the metric's rows whose hour lies in [from, to): the
 * compacted column is written first, then the single columns are deleted, at their timestamps. *ret_rows (may be NULL):
 * the number of rows that changed. */
RQ_API rq_err rq_tsdb_compact(rq_tsdb *tsdb, const char *metric, int64_t from_ms, int64_t to_ms,
                              uint64_t *ret_rows, rq_failure *why);

/* --- secondary indexes ------------------------------------------------------------------------ */

/*
 * An index of one column of a table, kept in a second table. What it promises, as long as all writes to
 * the column go through it:
 *
 *  - When a write has returned RQ_OK, queries find the row by its new value, even after a crash of any process or
 *    server at any moment.
 *  - A query never returns a row that did not have the value at the moment when the row was read.
 *  - A crash may leave entries without a row; they cost queries time until a repair deletes them: rq_index_repair, or the
 *    index's own thread (rq_index_spec.repair_every_ms).
 *  - Clocks of all writers and servers must agree to some minutes.
 *  - A unique index admits one row of each value; a row whose put failed with an error other than
 *    RQ_E_EXISTS may have been written.
 *
 * Covered columns: entries have copies of these columns and of the indexed one, so that a query of them
 * (rq_index_range.covered_only) reads the index table alone. The promises hold for the copies, too, as long as all
 * writes to these columns go through indexes that cover the same columns. A query still reads the row itself if a
 * writer of the row has died or is not done yet. A write costs two more calls with covered columns. Neither the write
 * nor the families of these columns may have a time to live. rq_index_repair renews copies that are missing or differ.
 *
 * A write reads the row and costs up to four more calls. A row has a column "_rq_index" in the family of the indexed
 * column, which stays for 15 minutes after the row was deleted. Queries do not find rows that were written without the
 * index until rq_index_repair has run; it may run while others write, and rebuilds an index whose table is empty. Any
 * number of threads may use an index at the same time.
 */
typedef struct rq_index rq_index;

typedef struct rq_index_spec {
    size_t size;
    const char *table;
    const char *index_table; /* of this index alone, with a family "i" */
    rq_column column;        /* what is indexed */
    bool unique;
    bool creates; /* the index table, if it is missing */
    const rq_column *covered;
    size_t covered_count; /* at most 15 */
    /* A thread of the index, which blocks all signals except faults, does what rq_index_repair does, and pauses for this
     * number of milliseconds after each repair, and for at least as long as the repair took; rq_index_repaired returns its
     * results. One process should repair an index; several do no harm. 0: no thread. RQ_E_UNSUPPORTED: with
     * rq_connect_options.no_threads. */
    uint32_t repair_every_ms;
    uint32_t reserved; /* 0 */
} rq_index_spec;

/* The caller closes the index, before or after the database; in between its calls return RQ_E_CLOSED. RQ_E_INVALID: the
 * specification is incomplete; with `creates` also the errors of rq_table_create. */
RQ_API rq_err rq_index_open(rq_db *db, const rq_index_spec *spec, rq_index **ret, rq_failure *why);
/* Waits for the end of the index's thread. A running repair ends after the next row that has the indexed column, or after the
 * next group of entries; if none follows, when a scan reaches its limit of time (rq_scan_request.wants_cursors). A call to a
 * server that does not answer is waited for; rq_disconnect before this ends such calls. NULL is fine. In a forked child an
 * index with a thread stays allocated. */
RQ_API void rq_index_close(rq_index *index);

/* Puts a row, with or without the indexed column, without timestamps: the time is the caller's
 * clock, or 1 ms after the row's newest cell if that is later. RQ_E_EXISTS: the index is unique and
 * another row has the value. RQ_E_CONFLICT: 200 attempts collided with other writers. */
RQ_API rq_err rq_index_put(rq_index *index, const rq_change *put, rq_failure *why);
/* Deletes a row and its entry; RQ_OK if there is no such row. RQ_E_CONFLICT as above; others as
 * rq_table_change's. */
RQ_API rq_err rq_index_delete(rq_index *index, rq_bytes row, rq_failure *why);

/* Values from `from` up to `to`, as bytes. */
typedef struct rq_index_range {
    size_t size;
    rq_bytes from; /* empty: the smallest */
    rq_bytes to;
    bool includes_to;  /* from = to and includes_to: one value */
    bool no_end;       /* `to` does not count */
    bool covered_only; /* returns only the newest versions of the indexed and the covered columns */
} rq_index_range;

/* Used by one thread at a time. */
typedef struct rq_index_scanner rq_index_scanner;
/* Scans by value; rows with equal values are ordered by key. The caller closes the scanner before
 * the index. */
RQ_API rq_err rq_index_scan(rq_index *index, const rq_index_range *range, rq_index_scanner **ret,
                            rq_failure *why);
/* Returns the next row, or only its covered columns (covered_only); the caller frees it. *ret is NULL at the end. After
 * an error every further call returns that error again. */
RQ_API rq_err rq_index_next(rq_index_scanner *scanner, rq_row **ret, rq_failure *why);
/* NULL is fine. */
RQ_API void rq_index_scanner_close(rq_index_scanner *scanner);

typedef struct rq_index_repairs {
    size_t size;
    uint64_t rows, entries;  /* how many were compared */
    uint64_t added, removed; /* entries of the index */
    uint64_t duplicates;     /* rows whose value a unique index has for another row */
} rq_index_repairs;
/* Compares table and index, adds the entries that are missing and deletes those that are wrong. `ret`
 * may be NULL; the caller sets its size, and as many bytes of it are filled. RQ_E_INVALID: that size is invalid. */
RQ_API rq_err rq_index_repair(rq_index *index, rq_index_repairs *ret, rq_failure *why);
/* The work of the index's thread (rq_index_spec.repair_every_ms): how many repairs have ended, and the sums of what they
 * did; both may be NULL, and the caller sets the size of *ret_sums. An error is that of the last repair, which is made
 * again after the interval; then, too, both results are set. RQ_E_STATE: the index has no thread; nothing is set. */
RQ_API rq_err rq_index_repaired(rq_index *index, uint64_t *ret_count, rq_index_repairs *ret_sums,
                                rq_failure *why);

#ifdef __cplusplus
}
#endif

#endif
