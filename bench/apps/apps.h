/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the application benchmarks, which use only the public header. */
#ifndef RQ_BENCH_APPS_H
#define RQ_BENCH_APPS_H

#include "rorqual/rowkey.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program with the failure's message unless the call succeeded. */
static inline void check(rq_err rc, const rq_failure *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why->message);
    exit(1);
}

/* Opens a database; a folder's log is handed to the operating system without waiting for the
 * disk. */
static inline rq_db *open_db(const char *url)
{
    rq_failure why = {.size = sizeof why};
    rq_property handover = {"rorqual.wal.sync", "handover"};
    rq_connect_options options = {.size = sizeof options, .settings = &handover};
    rq_db *db;
    options.setting_count = strncmp(url, "file:", 5) == 0;
    check(rq_connect(url, &options, &db, &why), &why);
    return db;
}

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

/* Makes a new, empty table with these families; the list ends with NULL. */
static inline rq_table *fresh_table(rq_db *db, const char *name, const char *const *names,
                                    const char *versions)
{
    rq_failure why = {.size = sizeof why};
    rq_property property = {"VERSIONS", versions};
    rq_family families[4];
    size_t count = 0;
    rq_table *table;
    bool exists;
    for (; names[count] != NULL && count < 4; count++)
        families[count] = (rq_family){names[count], &property, 1};
    rq_table_spec spec = {
        .size = sizeof spec, .name = name, .families = families, .family_count = count};
    check(rq_table_exists(db, name, &exists, &why), &why);
    if (exists) check(rq_table_disable(db, name, &why), &why);
    if (exists) check(rq_table_drop(db, name, &why), &why);
    check(rq_table_create(db, &spec, &why), &why);
    check(rq_table_open(db, name, &table, &why), &why);
    return table;
}

#endif
