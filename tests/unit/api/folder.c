/* SPDX-License-Identifier: Apache-2.0 */
/* A program of tests/wire/library.py: folder URL write|read NAME writes or checks 1,000 rows; folder
 * URL locked PID expects that the database is in use by that process. */
#include "rorqual/rorqual.h"

#include <stdio.h>

enum { ROWS = 1000 };

static rq_failure why = {.size = sizeof(rq_failure)};

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(why.code), why.message);
    return 1;
}

static int rows(rq_table *t, bool writes, const char *name)
{
    for (int i = 0; i < ROWS; i++) {
        char row[64], value[64];
        size_t len;
        snprintf(row, sizeof row, "%s%04d", name, i);
        rq_err rc =
            writes ? rq_put_value(t, rq_text(row), rq_text("f"), rq_text("q"), rq_text(row), &why)
                   : rq_get_value(t, rq_text(row), rq_text("f"), rq_text("q"), value, sizeof value,
                                  &len, &why);
        if (rc != RQ_OK) return failed(row);
        if (!writes && (len != strlen(row) || memcmp(row, value, len) != 0)) {
            fprintf(stderr, "%s is not there\n", row);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    rq_db *db;
    rq_table *t;
    bool exists;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "rows", .families = &family, .family_count = 1};
    if (argc != 4) return 2;
    rq_err rc = rq_connect(argv[1], NULL, &db, &why);
    if (strcmp(argv[2], "locked") == 0)
        return rc == RQ_E_LOCKED && strstr(why.message, argv[3]) != NULL ? 0 : failed("locked");
    if (rc != RQ_OK) return failed("connect");
    if (rq_table_exists(db, "rows", &exists, &why) != RQ_OK) return failed("exists");
    if (!exists && rq_table_create(db, &spec, &why) != RQ_OK) return failed("create");
    if (rq_table_open(db, "rows", &t, &why) != RQ_OK) return failed("open");
    int code = rows(t, strcmp(argv[2], "write") == 0, argv[3]);
    rq_table_close(t);
    return rq_disconnect(db, &why) == RQ_OK ? code : failed("disconnect");
}
