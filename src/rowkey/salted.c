/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scan of a salted table: one scan per bucket, merged in the order of the keys without their salt.
 *
 *     bucket 0: scanner ─► next batch ─► batch ─┐
 *     bucket 1: scanner ─► next batch ─► batch ─┼► tree ─► row with the smallest key
 *     …                                         ┘
 *
 * The tree is a tree of losers (Knuth 5.4.1). Leaf i is bucket i. An inner node holds the loser of the match between the
 * winners of its two subtrees. In a match the smaller key of the buckets' first rows wins; of equal keys that of the lower
 * bucket, so that the parts of a row stay together. After a row is taken, the matches on the path from its leaf to the root
 * are played again: one for each level.
 *
 * The caller fills a bucket's batch when the batch is empty, or threads fill the next batches while the caller consumes.
 * Only an embedded database uses threads. On a cluster the next batches of up to AHEAD_MAX buckets are requested ahead.
 *
 * Lock: `lock` guards what threads change: `next`, `has_next`, `filling`, `ended`, the failure; and which
 * bucket the caller waits for.
 */
#include "api/backend.h"
#include "rowkey/rowkey_priv.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 16, AHEAD_MAX = 64 };
/* Rows of a batch, at most. In process the caller's thread decodes few rows at a time, so that they are in
 * the processor's cache when they are used; another thread hands over all rows of an answer at once,
 * because each hand-over costs a wake-up. */
enum { BATCH_ROWS = 8, BATCH_ROWS_ANSWER = 4096 };
/* Bytes of the answers of all buckets, and of one at least. An answer costs a round trip, or a thread's wake-up. Where
 * the caller decodes the answers in process it costs little, and all of them should stay in the processor's
 * second-level cache: with 2 MB instead, a row of 16 buckets has 1.6 times as many misses there. */
#define FETCH_BYTES_LEAST ((uint64_t)64 * 1024)
#define FETCH_BYTES_ALL ((uint64_t)2 * 1024 * 1024)
#define FETCH_BYTES_CACHED_LEAST ((uint64_t)32 * 1024)
#define FETCH_BYTES_CACHED ((uint64_t)512 * 1024)

typedef struct batch {
    size_t count, at, cap;
    rq_row **rows;
} batch;

typedef struct bucket {
    rq_scanner *scanner;
    batch batch; /* the caller's */
    batch next;
    bool has_next RQ_GUARDED_BY(lock);
    bool filling RQ_GUARDED_BY(lock); /* a thread is at it */
    bool ended RQ_GUARDED_BY(lock);   /* the scanner has no more rows */
    bool is_ahead;                    /* its next answer was asked for; the caller's */
} bucket;

#define ENDED UINT32_MAX /* the bucket of a place without rows: it loses */
/* A bucket's entry in the tree. The first bytes of the key of the bucket's first row decide most matches without reading
 * the row. */
typedef struct place {
    uint64_t prefix; /* prefix_of; UINT64_MAX when ended */
    /* Not 64 bits: the compiler would swap both members as one vector, which takes twice as long. */
    uint32_t bucket;
} place;

struct rq_salted_scanner {
    size_t salt_len;
    bool reversed;
    bool is_remote;
    bool no_threads;      /* of the database */
    uint32_t ahead_count; /* buckets with is_ahead */
    uint64_t left;        /* rows; UINT64_MAX: no limit */
    rq_err ended_by;      /* the error that every further call returns: buckets have lost rows */
    const rq_db *db;
    uint32_t bucket_count;
    bucket *buckets;
    rq_row_memory rows; /* memory of the rows that the caller's thread decodes, of all buckets */
    place winner;       /* valid once the tree is built */
    place *losers;      /* of nodes 1 to bucket_count - 1 */
    bool is_built;
    uint32_t thread_count;
    pthread_t threads[THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    bucket *waited RQ_GUARDED_BY(lock); /* by the caller */
    bool stops RQ_GUARDED_BY(lock);
    rq_err rc RQ_GUARDED_BY(lock); /* the first failure */
    rq_failure failure;
};

/* --- batches ---------------------------------------------------------------------------------- */

static rq_err batch_grow(batch *b, size_t cap, rq_failure *failure)
{
    rq_row **rows = realloc(b->rows, cap * sizeof *rows);
    if (rows == NULL) {
        rq_why why;
        rq_why_clear(&why);
        return rq_fill_failure(failure, rq_no_memory(&why.error), &why);
    }
    b->rows = rows;
    b->cap = cap;
    return RQ_OK;
}

static void free_rows(batch *b)
{
    while (b->at < b->count)
        rq_row_free(b->rows[b->at++]);
    b->at = b->count = 0;
}

static void batch_clear(batch *b)
{
    free_rows(b);
    free(b->rows);
}

/* Every row has a key behind its salt. A server may send anything. */
static bool are_salted(const batch *b, size_t salt_len)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->rows[i]->count == 0 || b->rows[i]->cells[0].row.len < salt_len) return false;
    return true;
}

/* Fills the batch with at most `most` rows of one response, allocated in `memory` (see rq_scanner_take). */
static rq_err fill(const rq_salted_scanner *s, rq_scanner *scanner, rq_row_memory *memory, batch *b,
                   size_t most, bool *ret_ended, rq_failure *failure)
{
    b->count = b->at = 0;
    if (b->cap < most) {
        rq_err rc = batch_grow(b, most, failure);
        if (rc != RQ_OK) return rc;
    }
    rq_err rc = rq_scanner_take(scanner, memory, most, b->rows, &b->count, failure);
    *ret_ended = rc == RQ_OK && b->count == 0;
    if (rc == RQ_OK && !are_salted(b, s->salt_len)) {
        rq_why why;
        free_rows(b);
        rq_why_clear(&why);
        rc = rq_fail(&why.error, RQ_E_MALFORMED,
                     "a row of the table is too short to have a key after its salt");
        return rq_fill_failure(failure, rc, &why);
    }
    return rc;
}

static bool can_fill(const bucket *b)
{
    return !b->has_next && !b->filling && !b->ended;
}

/* A bucket that a thread can fill, preferably the one that the caller waits for; or NULL. */
static bucket *find_work(rq_salted_scanner *s)
{
    if (s->rc == RQ_OK && s->waited != NULL && can_fill(s->waited)) return s->waited;
    for (uint32_t i = 0; i < s->bucket_count && s->rc == RQ_OK; i++) {
        if (can_fill(&s->buckets[i])) return &s->buckets[i];
    }
    return NULL;
}

static void fill_next(rq_salted_scanner *s, bucket *b)
{
    rq_failure why = {.size = sizeof why};
    bool ended = false;
    b->filling = true;
    pthread_mutex_unlock(&s->lock);
    rq_err rc = fill(s, b->scanner, NULL, &b->next, BATCH_ROWS_ANSWER, &ended, &why);
    pthread_mutex_lock(&s->lock);
    b->filling = false;
    b->has_next = b->next.count > 0;
    b->ended = ended;
    if (rc != RQ_OK && s->rc == RQ_OK) {
        s->rc = rc;
        s->failure = why;
    }
    if (s->waited == b || rc != RQ_OK) pthread_cond_signal(&s->ready);
}

static void *work(void *arg)
{
    rq_salted_scanner *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stops) {
        bucket *b = find_work(s);
        if (b != NULL)
            fill_next(s, b);
        else
            pthread_cond_wait(&s->work, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* The next batch of a bucket becomes the caller's. */
static rq_err take_from_threads(rq_salted_scanner *s, bucket *b)
{
    pthread_mutex_lock(&s->lock);
    s->waited = b;
    while (!b->has_next && !b->ended && s->rc == RQ_OK)
        pthread_cond_wait(&s->ready, &s->lock);
    s->waited = NULL;
    rq_err rc = b->has_next ? RQ_OK : s->rc;
    if (b->has_next) {
        batch empty = b->batch;
        b->batch = b->next;
        b->next = empty;
        b->next.count = b->next.at = 0;
        b->has_next = false;
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void ask_ahead(rq_salted_scanner *s, bucket *b)
{
    if (!s->is_remote || b->is_ahead || b->ended || s->ahead_count == AHEAD_MAX) return;
    rq_scanner_ahead(b->scanner);
    b->is_ahead = true;
    s->ahead_count++;
}

static rq_err fill_as_caller(rq_salted_scanner *s, bucket *b)
{
    size_t most = s->is_remote ? BATCH_ROWS_ANSWER : BATCH_ROWS;
    if (b->ended) return RQ_OK;
    s->rc = fill(s, b->scanner, &s->rows, &b->batch, most, &b->ended, &s->failure);
    if (b->is_ahead) s->ahead_count--;
    b->is_ahead = false;
    if (s->rc == RQ_OK) ask_ahead(s, b);
    return s->rc;
}

/* Makes the bucket's batch non-empty, unless there are no more rows. */
static rq_err refill(rq_salted_scanner *s, bucket *b)
{
    if (b->batch.at < b->batch.count) return RQ_OK;
    return s->thread_count > 0 ? take_from_threads(s, b) : fill_as_caller(s, b);
}

/* --- the tree --------------------------------------------------------------------------------- */

static rq_slice key_of(const rq_salted_scanner *s, uint32_t i)
{
    const bucket *b = &s->buckets[i];
    rq_bytes row = b->batch.rows[b->batch.at]->cells[0].row;
    return rq_slice_of((const uint8_t *)row.data + s->salt_len, row.len - s->salt_len);
}

/* Smaller for keys that come earlier; zeros stand behind a shorter key. */
static uint64_t prefix_of(const rq_salted_scanner *s, rq_slice key)
{
    uint8_t begin[8] = {0};
    if (RQ_UNLIKELY(key.len < sizeof begin)) memcpy(begin, key.ptr, key.len);
    uint64_t prefix = rq_get_be64(key.len < sizeof begin ? begin : key.ptr);
    return s->reversed ? ~prefix : prefix;
}

static place place_of(const rq_salted_scanner *s, uint32_t i)
{
    const batch *b = &s->buckets[i].batch;
    if (RQ_UNLIKELY(b->at == b->count)) return (place){UINT64_MAX, ENDED};
    return (place){prefix_of(s, key_of(s, i)), i};
}

static bool is_before_by_key(const rq_salted_scanner *s, const place *a, const place *b)
{
    if (a->bucket == ENDED || b->bucket == ENDED) return b->bucket == ENDED;
    rq_slice x = key_of(s, a->bucket), y = key_of(s, b->bucket);
    int c = rq_short_compare(x.ptr, x.len, y.ptr, y.len);
    if (c == 0) return a->bucket < b->bucket;
    return s->reversed ? c > 0 : c < 0;
}

static bool is_before(const rq_salted_scanner *s, const place *a, const place *b)
{
    if (RQ_UNLIKELY(a->prefix == b->prefix)) return is_before_by_key(s, a, b);
    return a->prefix < b->prefix;
}

/* Without a branch: which of two buckets has the earlier row cannot be predicted. */
static void swap_if(bool swaps, place *a, place *b)
{
    uint64_t mask = -(uint64_t)swaps, prefix = (a->prefix ^ b->prefix) & mask;
    uint32_t changed = (a->bucket ^ b->bucket) & (uint32_t)mask;
    a->prefix ^= prefix;
    b->prefix ^= prefix;
    a->bucket ^= changed;
    b->bucket ^= changed;
}

/* Plays the matches of a node and of all nodes below it. Returns the bucket that wins. */
static place play(rq_salted_scanner *s, uint32_t node)
{
    if (node >= s->bucket_count) return place_of(s, node - s->bucket_count);
    place winner = play(s, 2 * node), loser = play(s, 2 * node + 1);
    swap_if(is_before(s, &loser, &winner), &winner, &loser);
    s->losers[node] = loser;
    return winner;
}

/* After the winner's first row was taken: plays its matches again. */
static void replay(rq_salted_scanner *s)
{
    uint32_t from = s->winner.bucket;
    place winner = place_of(s, from);
    for (uint32_t node = (s->bucket_count + from) / 2; node > 0; node /= 2)
        swap_if(is_before(s, &s->losers[node], &winner), &winner, &s->losers[node]);
    s->winner = winner;
}

static rq_err build(rq_salted_scanner *s)
{
    for (uint32_t i = 0; i < s->bucket_count; i++)
        ask_ahead(s, &s->buckets[i]);
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        rq_err rc = refill(s, &s->buckets[i]);
        if (rc != RQ_OK) return rc;
    }
    s->winner = play(s, 1);
    s->is_built = true;
    return RQ_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Keys of one bucket's scan. */
typedef struct range {
    rq_buf start, stop;
} range;

static rq_err append_end_of_salt(const rq_buf *salt, rq_buf *out)
{
    uint8_t after[16];
    rq_bytes prefix = {salt->ptr, salt->len};
    return rq_buf_append(out, after, rq_key_after_prefix(prefix, after));
}

/* HBase's empty start and stop mean the bucket's ends here. */
static rq_err make_range(const rq_buf *salt, const rq_scan_request *scan, range *r,
                         rq_scan_request *ret)
{
    bool up = !scan->reversed;
    if (scan->start.len > 0 || up) RQ_TRY(rq_buf_append(&r->start, salt->ptr, salt->len));
    RQ_TRY(rq_buf_append(&r->start, scan->start.data, scan->start.len));
    if (scan->start.len == 0 && !up) {
        RQ_TRY(append_end_of_salt(salt, &r->start));
        ret->excludes_start = r->start.len > 0;
    }
    if (scan->stop.len > 0 || !up) RQ_TRY(rq_buf_append(&r->stop, salt->ptr, salt->len));
    RQ_TRY(rq_buf_append(&r->stop, scan->stop.data, scan->stop.len));
    if (scan->stop.len == 0 && up) RQ_TRY(append_end_of_salt(salt, &r->stop));
    if (scan->stop.len == 0) ret->includes_stop = !up;
    ret->start = (rq_bytes){r->start.ptr, r->start.len};
    ret->stop = (rq_bytes){r->stop.ptr, r->stop.len};
    return RQ_OK;
}

static uint64_t fetch_bytes(const rq_salted_scanner *s, bool has_threads)
{
    bool cached = !s->is_remote && !has_threads;
    uint64_t least = cached ? FETCH_BYTES_CACHED_LEAST : FETCH_BYTES_LEAST;
    uint64_t share = (cached ? FETCH_BYTES_CACHED : FETCH_BYTES_ALL) / s->bucket_count;
    return share > least ? share : least;
}

static rq_err open_bucket(rq_salted_scanner *s, rq_table *table, const rq_key_format *f,
                          const rq_scan_request *scan, uint32_t i, rq_failure *why)
{
    rq_scan_request request = *scan;
    rq_buf salt = {0};
    range r = {0};
    request.no_fetch_ahead = true; /* ask_ahead decides, for all buckets */
    rq_err rc = rq__salt_append(&f->parts[0], i, &salt);
    if (rc == RQ_OK) rc = make_range(&salt, scan, &r, &request);
    if (rc == RQ_OK) rc = rq_table_scan(table, &request, &s->buckets[i].scanner, why);
    rq_buf_clear(&salt);
    rq_buf_clear(&r.start);
    rq_buf_clear(&r.stop);
    return rc;
}

static void start_threads(rq_salted_scanner *s, uint32_t count)
{
    while (s->thread_count < count && rq__thread_start(&s->threads[s->thread_count], work, s))
        s->thread_count++;
}

static uint32_t threads_for(const rq_salted_scanner *s, uint32_t wanted)
{
    if (s->is_remote || s->no_threads) return 0;
    if (wanted > THREADS_MAX) wanted = THREADS_MAX;
    return wanted > s->bucket_count ? s->bucket_count : wanted;
}

static rq_salted_scanner *scanner_new(const rq_db *db, uint32_t buckets)
{
    rq_salted_scanner *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->buckets = calloc(buckets, sizeof *s->buckets);
    s->losers = calloc(buckets, sizeof *s->losers);
    s->db = db;
    s->failure.size = sizeof s->failure;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->ready, NULL);
    s->rows.counts = true;
    if (s->buckets != NULL && s->losers != NULL) return s;
    rq_salted_close(s);
    return NULL;
}

static rq_err check(const rq_table *table, const rq_key_format *f, const rq_scan_request *given,
                    rq_scan_request *ret, rq_error *why)
{
    if (table == NULL || f == NULL)
        return rq_fail(why, RQ_E_INVALID, "the table or the format is NULL");
    RQ_TRY(rq_sized(ret, sizeof *ret, given, offsetof(rq_scan_request, family_times),
                    "rq_scan_request", why));
    if (ret->wants_cursors) /* a bucket's place says nothing about the merged rows */
        return rq_fail(why, RQ_E_INVALID, "a salted scan does not support cursors");
    RQ_TRY(rq_check_bytes(ret->start, "a row", why));
    RQ_TRY(rq_check_bytes(ret->stop, "a row", why));
    ret->size = sizeof *ret;
    if (f->parts[0].buckets == 0)
        return rq_fail(why, RQ_E_INVALID, "the format does not begin with salt(N) or phoenix(N)");
    return RQ_OK;
}

static rq_err open_all(rq_salted_scanner *s, rq_table *table, const rq_key_format *f,
                       const rq_scan_request *scan, uint32_t threads, rq_failure *why)
{
    s->bucket_count = f->parts[0].buckets;
    s->salt_len = f->parts[0].width;
    s->reversed = scan->reversed;
    s->is_remote = table->db->backend->is_remote;
    s->no_threads = table->db->backend->no_threads;
    s->left = scan->limit == 0 ? UINT64_MAX : scan->limit;
    threads = threads_for(s, threads);
    rq_scan_request each = *scan;
    if (each.fetch_bytes == 0) each.fetch_bytes = fetch_bytes(s, threads > 0);
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        rq_err rc = open_bucket(s, table, f, &each, i, why);
        if (rc != RQ_OK) return rc;
    }
    start_threads(s, threads);
    return RQ_OK; /* the tree is built by the first rq_salted_next */
}

rq_err rq_salted_scan(rq_table *table, const rq_key_format *format, const rq_scan_request *scan,
                      uint32_t threads, rq_salted_scanner **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    rq_scan_request own;
    rq_err rc = check(table, format, scan, &own, &why.error);
    rq_salted_scanner *s = NULL;
    if (rc == RQ_OK) {
        s = scanner_new(table->db, format->parts[0].buckets);
        if (s == NULL) rc = rq_no_memory(&why.error);
    }
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = open_all(s, table, format, &own, threads, failure);
    if (rc == RQ_OK)
        *ret = s;
    else
        rq_salted_close(s);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Prefetches the key of the bucket's row behind the next one, which is compared some rows later. */
static void look_ahead(const batch *b)
{
    enum { ROW_BEGIN = 192 }; /* the row, its first cell, the begin of that cell's key */
    if (b->at + 1 < b->count) rq_prefetch_bytes(b->rows[b->at + 1], ROW_BEGIN);
}

/* A part of a row does not tell whether it is the last; the bucket's next row does. */
static bool ends_row(const batch *b, const rq_row *row)
{
    if (!row->is_partial || b->at == b->count) return true;
    rq_bytes key = row->cells[0].row, after = b->rows[b->at]->cells[0].row;
    return key.len != after.len || memcmp(key.data, after.data, key.len) != 0;
}

static rq_err next(rq_salted_scanner *s, rq_row **ret)
{
    *ret = NULL;
    if (s->left == 0) return RQ_OK;
    if (RQ_UNLIKELY(!s->is_built)) {
        rq_err rc = build(s);
        if (rc != RQ_OK) return rc;
    }
    if (s->winner.bucket == ENDED) return RQ_OK;
    bucket *b = &s->buckets[s->winner.bucket];
    rq_row *row = b->batch.rows[b->batch.at++];
    look_ahead(&b->batch);
    rq_err rc = refill(s, b);
    if (rc != RQ_OK) {
        rq_row_free(row);
        return rc;
    }
    replay(s);
    if (s->left != UINT64_MAX && ends_row(&b->batch, row)) s->left--;
    *ret = row;
    return RQ_OK;
}

rq_err rq_salted_next(rq_salted_scanner *scanner, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(scanner, "scanner", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    RQ_TRY(rq_db_needs_home(scanner->db, failure));
    rq_row *row = NULL;
    rq_err rc = scanner->ended_by != RQ_OK ? scanner->ended_by : next(scanner, &row);
    scanner->ended_by = rc;
    if (rc == RQ_OK) *ret = row;
    return rq__copy_failure(&scanner->failure, rc, failure);
}

static void stop_threads(rq_salted_scanner *s)
{
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->thread_count; i++)
        pthread_join(s->threads[i], NULL);
}

void rq_salted_close(rq_salted_scanner *scanner)
{
    rq_salted_scanner *s = scanner;
    if (s == NULL) return;
    if (s->thread_count > 0 && !rq_db_is_home(s->db)) return; /* the threads are the parent's */
    stop_threads(s);
    for (uint32_t i = 0; i < s->bucket_count; i++) {
        batch_clear(&s->buckets[i].batch);
        batch_clear(&s->buckets[i].next);
        rq_scanner_close(s->buckets[i].scanner);
    }
    rq_row_memory_clear(&s->rows);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->ready);
    pthread_mutex_destroy(&s->lock);
    free(s->buckets);
    free(s->losers);
    free(s);
}
