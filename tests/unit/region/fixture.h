/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the region's tests: a table, an engine on a folder (real or simulated), short functions
 * to write and read. */
#ifndef RQ_TESTS_REGION_FIXTURE_H
#define RQ_TESTS_REGION_FIXTURE_H

#include "base/config.h"
#include "region/engine.h"
#include "region/region_scanner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* An engine with one region of one table "t". */
typedef struct fixture {
    rq_env *env;
    rq_config *config;
    rq_engine *engine;
    rq_region *region;
    rq_table_schema *schema;
    rq_arena arena; /* for `info`, and results of reads */
    rq_region_info info;
} fixture;

/* --- environments ----------------------------------------------------------------------------- */
/* A real environment with a new folder below $TMPDIR; threads, files, clock. */
typedef struct real_env {
    rq_env env;
    rq_log log;
    char root[64];
} real_env;
void real_env_open(real_env *e);
void real_env_close(real_env *e); /* removes the folder */
/* Setup and teardown for cmocka; the state contains the real_env. */
int real_env_setup(void **state);
int real_env_teardown(void **state);
rq_env *env_of(void **state);

/* --- schema ----------------------------------------------------------------------------------- */
typedef struct family_def {
    const char *name;
    const char *attributes[12]; /* key, value, …, NULL */
} family_def;

rq_table_schema *make_schema(const char *ns, const char *qualifier, const family_def *families,
                             size_t count);

/* `old` with one more attribute of the table; takes over the caller's reference to `old`. */
rq_table_schema *schema_with(rq_table_schema *old, const char *key, const char *value);

/* --- the fixture ------------------------------------------------------------------------------ */
/* Opens a new region, with families a and b unless `families` is given. */
void fixture_open(fixture *f, rq_env *env, const family_def *families, size_t count);
/* The same with these "name=value" settings, NULL-terminated. */
void fixture_open_with(fixture *f, rq_env *env, const family_def *families, size_t count,
                       const char *const *settings);
/* Opens engine and region again on the existing files; an error fails the test. */
void fixture_start(fixture *f);
/* `clean`: as a server stops. Otherwise the memstores are discarded as in a crash. */
void fixture_stop(fixture *f, bool clean);
void fixture_close(fixture *f);

/* --- writing ---------------------------------------------------------------------------------- */
rq_cell cell_of(const char *family, const char *qualifier, int64_t ts, rq_cell_type type,
                const char *value);
rq_err put(fixture *f, const char *row, const char *family, const char *qualifier, int64_t ts,
           const char *value);
rq_err delete_cell(fixture *f, const char *row, const char *family, const char *qualifier,
                   int64_t ts, rq_cell_type type);
/* *ret (may be NULL): the new value. */
rq_err increment(fixture *f, const char *row, const char *family, const char *qualifier, int64_t by,
                 uint64_t nonce, int64_t *ret);

/* --- reading ---------------------------------------------------------------------------------- */
/* The cells as "row/family:qualifier/ts/type=value\n…", newest first, in the fixture's arena. Empty
 * row: all rows. versions 0: all. */
const char *read_text(fixture *f, const char *row, int versions, bool raw);
/* Value of the newest version, or NULL. */
const char *get(fixture *f, const char *row, const char *family, const char *qualifier);
/* The value as a long; INT64_MIN if the cell is absent. */
int64_t get_long(fixture *f, const char *row, const char *family, const char *qualifier);

#define assert_ok(rc) assert_string_equal(rq_err_name(rc), "RQ_OK")
#define assert_err(rc, code) assert_string_equal(rq_err_name(rc), rq_err_name(code))

#endif
