/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database interface of the engine benchmark, implemented by Rorqual's region (ours.c), RocksDB
 * (rocksdb.c), librorqual on a folder (library.c) and SQLite (sqlite.c). Row keys have ROW_BYTES; each row has one column. A worker is the state of
 * one thread.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ROW_BYTES 32

typedef struct settings {
    const char *folder;
    uint64_t cache_bytes;  /* size of the block cache */
    uint64_t buffer_bytes; /* a memstore or write buffer is flushed above it */
    uint32_t block_bytes;
    bool encoded;     /* ours: FAST_DIFF; RocksDB always omits common key prefixes */
    unsigned regions; /* ours: number of regions for the rows, opened concurrently */
    uint64_t rows;    /* number of rows, to divide them among regions */
    bool leveled;     /* RocksDB: leveled instead of universal compaction */
    bool sync;        /* a write is on disk when it returns (not in ours) */
    bool no_threads;  /* librorqual: the callers' threads do the engine's work, too */
} settings;

typedef struct entry {
    uint8_t row[ROW_BYTES];
    const uint8_t *value;
    uint32_t value_len;
} entry;

typedef struct database database;
typedef struct worker worker;

/* Makes the key of row n. */
static inline void row_of(uint64_t n, uint8_t row[ROW_BYTES])
{
    char text[ROW_BYTES + 1];
    snprintf(text, sizeof text, "user%028llu", (unsigned long long)n);
    memcpy(row, text, ROW_BYTES);
}

/* Every function prints a line to stderr and exits if it fails, because failed operations must not
 * be measured.
 */
database *database_open(const settings *s);
void database_close(database *db);
/* Leaves the folder as kill -9 would: unflushed writes are only in the log. Ends the program. */
_Noreturn void database_drop(database *db);
worker *worker_new(database *db);
void worker_free(worker *w);
/* Writes one batch, atomic per row, to the log without sync. Returns when the batch is readable. */
void worker_write(worker *w, const entry *entries, size_t count);
/* Reads every byte of the value; returns its length, or -1. */
long worker_get(worker *w, const uint8_t row[ROW_BYTES]);
/* Reads many rows in one call (RocksDB only); returns the number of rows found. */
size_t worker_multi_get(worker *w, const entry *entries, size_t count);
/* Reads at most `limit` rows from `start` on, and every value; returns their number. */
size_t worker_scan(worker *w, const uint8_t start[ROW_BYTES], size_t limit);
/* Columns of one wide row (ours only: RocksDB has no rows): writes `count` qualifiers from `first`
 * on; reads one, the first n, or all columns, and returns the number of cells. */
void worker_wide_write(worker *w, uint64_t first, size_t count);
size_t worker_wide_read(worker *w, uint64_t qualifier, size_t limit);
void database_flush(database *db);
void database_compact(database *db); /* compacts to one file or sorted run, and waits */
/* A sum over the bytes read, so that the compiler cannot omit the reads. */
extern _Thread_local uint64_t bytes_read;

static inline void touch(const uint8_t *p, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i += 64)
        sum += p[i];
    bytes_read += len + (sum & 1);
}

#endif
