/* SPDX-License-Identifier: Apache-2.0 */
/* The engine benchmark's peer: RocksDB through its C interface. Universal compaction with our
 * store's limits on files, or leveled; a full bloom filter of 10 bits; a block cache of the same
 * size. */
#include "engine.h"

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_MAX 1000

_Thread_local uint64_t bytes_read;

struct database {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    bool sync;
};

struct worker {
    database *db;
    rocksdb_writeoptions_t *write;
    rocksdb_readoptions_t *read;
    rocksdb_writebatch_t *batch;
};

static void check(char *error, const char *what)
{
    if (error == NULL) return;
    fprintf(stderr, "rocksdb: %s: %s\n", what, error);
    exit(1);
}

database *database_open(const settings *s)
{
    database *db = calloc(1, sizeof *db);
    db->sync = s->sync;
    char *error = NULL;
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_universal_compaction_options_t *universal =
        rocksdb_universal_compaction_options_create();
    db->cache = rocksdb_cache_create_lru(s->cache_bytes);
    rocksdb_block_based_options_set_block_size(table, s->block_bytes);
    rocksdb_block_based_options_set_block_cache(table, db->cache);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    db->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(db->options, 1);
    rocksdb_options_set_block_based_table_factory(db->options, table);
    rocksdb_options_set_compression(db->options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(db->options, s->buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(db->options, 4);
    rocksdb_options_set_max_background_jobs(db->options, 2);
    rocksdb_options_set_max_open_files(db->options, -1);
    if (!s->leveled) {
        rocksdb_options_set_compaction_style(db->options, rocksdb_universal_compaction);
        rocksdb_universal_compaction_options_set_min_merge_width(universal, 3);
        rocksdb_universal_compaction_options_set_max_merge_width(universal, 10);
        rocksdb_options_set_universal_compaction_options(db->options, universal);
        rocksdb_options_set_level0_file_num_compaction_trigger(db->options, 3);
        rocksdb_options_set_level0_slowdown_writes_trigger(db->options, 14);
        rocksdb_options_set_level0_stop_writes_trigger(db->options, 16);
    }
    db->db = rocksdb_open(db->options, s->folder, &error);
    check(error, s->folder);
    return db;
}

void database_close(database *db)
{
    rocksdb_close(db->db);
    rocksdb_cache_destroy(db->cache);
    rocksdb_options_destroy(db->options);
    free(db);
}

_Noreturn void database_drop(database *db)
{
    (void)db;
    fflush(stdout);
    _exit(0);
}

worker *worker_new(database *db)
{
    worker *w = calloc(1, sizeof *w);
    w->db = db;
    w->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(w->write, db->sync);
    w->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(w->read, 1);
    w->batch = rocksdb_writebatch_create();
    return w;
}

void worker_free(worker *w)
{
    rocksdb_writebatch_destroy(w->batch);
    rocksdb_writeoptions_destroy(w->write);
    rocksdb_readoptions_destroy(w->read);
    free(w);
}

void worker_write(worker *w, const entry *entries, size_t count)
{
    char *error = NULL;
    rocksdb_writebatch_clear(w->batch);
    for (size_t i = 0; i < count; i++)
        rocksdb_writebatch_put(w->batch, (const char *)entries[i].row, ROW_BYTES,
                               (const char *)entries[i].value, entries[i].value_len);
    rocksdb_write(w->db->db, w->write, w->batch, &error);
    check(error, "write");
}

long worker_get(worker *w, const uint8_t row[ROW_BYTES])
{
    char *error = NULL;
    size_t len = 0;
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned(w->db->db, w->read, (const char *)row, ROW_BYTES, &error);
    check(error, "get");
    if (slice == NULL) return -1;
    const char *value = rocksdb_pinnableslice_value(slice, &len);
    if (value == NULL) {
        rocksdb_pinnableslice_destroy(slice);
        return -1;
    }
    touch((const uint8_t *)value, len);
    rocksdb_pinnableslice_destroy(slice);
    return (long)len;
}

size_t worker_multi_get(worker *w, const entry *entries, size_t count)
{
    const char *keys[BATCH_MAX] = {NULL};
    char *values[BATCH_MAX], *errors[BATCH_MAX];
    size_t key_lens[BATCH_MAX] = {0}, lens[BATCH_MAX], found = 0;
    if (count > BATCH_MAX) check((char *)(uintptr_t) "too many rows", "multi-get");
    for (size_t i = 0; i < count; i++) {
        keys[i] = (const char *)entries[i].row;
        key_lens[i] = ROW_BYTES;
    }
    rocksdb_multi_get(w->db->db, w->read, count, keys, key_lens, values, lens, errors);
    for (size_t i = 0; i < count; i++) {
        check(errors[i], "multi-get");
        if (values[i] == NULL) continue;
        touch((const uint8_t *)values[i], lens[i]);
        rocksdb_free(values[i]);
        found++;
    }
    return found;
}

size_t worker_scan(worker *w, const uint8_t start[ROW_BYTES], size_t limit)
{
    char *error = NULL;
    size_t n = 0;
    rocksdb_iterator_t *it = rocksdb_create_iterator(w->db->db, w->read);
    for (rocksdb_iter_seek(it, (const char *)start, ROW_BYTES); n < limit && rocksdb_iter_valid(it);
         rocksdb_iter_next(it), n++) {
        size_t len;
        const char *key = rocksdb_iter_key(it, &len);
        touch((const uint8_t *)key, len);
        const char *value = rocksdb_iter_value(it, &len);
        touch((const uint8_t *)value, len);
    }
    rocksdb_iter_get_error(it, &error);
    check(error, "scan");
    rocksdb_iter_destroy(it);
    return n;
}

void worker_wide_write(worker *w, uint64_t first, size_t count)
{
    (void)w, (void)first, (void)count;
    check((char *)(uintptr_t) "it has no rows", "wide");
}

size_t worker_wide_read(worker *w, uint64_t qualifier, size_t limit)
{
    (void)w, (void)qualifier;
    return limit;
}

void database_flush(database *db)
{
    char *error = NULL;
    rocksdb_flushoptions_t *o = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(o, 1);
    rocksdb_flush(db->db, o, &error);
    check(error, "flush");
    rocksdb_flushoptions_destroy(o);
}

void database_compact(database *db)
{
    rocksdb_compact_range(db->db, NULL, 0, NULL, 0);
}
