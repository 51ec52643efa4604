/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a table of many regions with three files each, in this process, on a temporary
 * folder below TMPDIR: the time from submission to the end of each procedure, without RPC.
 *
 *   bench_snapshots        REGIONS=1000, DIRTY=100 regions with 1 MB in memory before FLUSH
 */
#include "world.h"

#include "../tests/unit/region/fixture.h"

#include "catalog/catalog_priv.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define TIMED(what, expr)                                                                          \
    do {                                                                                           \
        double begun = seconds();                                                                  \
        OK(expr);                                                                                  \
        printf("%-36s %7.3f s\n", what, seconds() - begun);                                        \
    } while (0)

static void put_regions(world *w, size_t regions, size_t bytes)
{
    static uint8_t value[1 << 20];
    char row[32], qualifier[32];
    for (size_t i = 0; i < regions; i++) {
        snprintf(row, sizeof row, "%06zu", i);
        for (size_t done = 0; done < bytes; done += 65536) {
            snprintf(qualifier, sizeof qualifier, "%zu", done);
            OK(world_put_cell(w, "t", row, "f", qualifier,
                              rq_slice_of(value, bytes < 65536 ? bytes : 65536)));
        }
    }
}

static void run(world *w, size_t regions, size_t dirty)
{
    rq_arena a = {0};
    rq_slice *keys = rq_arena_calloc(&a, regions, sizeof *keys);
    for (size_t i = 1; i < regions; i++)
        keys[i - 1] = rq_slice_cstr(rq_arena_printf(&a, "%06zu", i));
    TIMED("create", world_create_at(w, "t", "f", keys, regions - 1));
    rq_engine_compactions_enable(w->engine, false);
    for (int i = 0; i < 3; i++) {
        put_regions(w, regions, 100);
        OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    }
    TIMED("snapshot, SKIPFLUSH", world_snapshot(w, "skip", "t", false));
    put_regions(w, dirty, 1 << 20);
    TIMED("snapshot, FLUSH", world_snapshot(w, "flush", "t", true));
    TIMED("clone, ready", world_clone(w, "flush", "c"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    double both = seconds();
    TIMED("restore", world_restore(w, "flush", "t"));
    TIMED("enable", world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    printf("%-36s %7.3f s\n", "restore, ready", seconds() - both);
    TIMED("delete", world_delete_snapshot(w, "flush"));
    rq_arena_clear(&a);
}

int main(void)
{
    real_env e;
    world the, *w = &the;
    real_env_open(&e);
    world_init_real(w, &e.env);
    OK(world_open(w));
    run(w, seeds_number("REGIONS", 1000), seeds_number("DIRTY", 100));
    OK(world_close(w, false));
    world_clear(w);
    real_env_close(&e);
    return 0;
}
