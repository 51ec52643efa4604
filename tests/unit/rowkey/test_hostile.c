/* SPDX-License-Identifier: Apache-2.0 */
/* Salted scans, indexes and similar functions on a server that responds with rows that cannot
 * exist: shorter than the salt, or without cells. */
#include "../client/fake.h"

#include "rorqual/rorqual.h"
#include "rorqual/rowkey.h"

#include "base/pb.h"

/* Written before the server runs: the row of each response, and whether it has a cell. */
typedef struct server {
    fake fake;
    rq_slice row;
    bool has_cell;
} server;

/* ScanResponse { scanner_id 2, more_results 3, results 5 { cell 1 { row 1, … } } } */
static void put_rows(const server *s, rq_buf *message)
{
    size_t result, cell;
    assert_int_equal(rq_pb_put_number(message, 2, 7), RQ_OK);
    assert_int_equal(rq_pb_put_number(message, 3, 0), RQ_OK);
    assert_int_equal(rq_pb_begin(message, 5, &result), RQ_OK);
    if (s->has_cell) {
        assert_int_equal(rq_pb_begin(message, 1, &cell), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 1, s->row), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 2, RQ_SLICE_LIT("info")), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 3, RQ_SLICE_LIT("q")), RQ_OK);
        assert_int_equal(rq_pb_put_number(message, 4, 1), RQ_OK);
        assert_int_equal(rq_pb_put_number(message, 5, 4), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 6, RQ_SLICE_LIT("v")), RQ_OK);
        assert_int_equal(rq_pb_end(message, cell), RQ_OK);
    }
    assert_int_equal(rq_pb_end(message, result), RQ_OK);
}

static void serve_rows(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    rq_buf message = {0};
    put_rows(RQ_CONTAINER_OF(f, server, fake), &message);
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf answer = {0};
        put_response(&answer, id, &message);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&answer);
    }
    rq_buf_clear(&message);
}

typedef struct world {
    server one;
    fake zookeeper;
    rq_db *db;
    rq_table *table;
    rq_failure why;
} world;

/* Opens hbase:meta, because the registry alone gives its location. */
static void set_up(world *w, rq_slice row, bool has_cell)
{
    char url[64];
    *w = (world){.one = {.fake.limit = SIZE_MAX, .row = row, .has_cell = has_cell},
                 .zookeeper.limit = SIZE_MAX,
                 .why.size = sizeof w->why};
    fake_start(&w->one.fake, serve_rows);
    fake_start(&w->zookeeper, serve_zookeeper);
    put_zookeeper(&w->zookeeper.answers[0], w->one.fake.port, w->one.fake.port);
    fake_run(&w->one.fake);
    fake_run(&w->zookeeper);
    snprintf(url, sizeof url, "hbase://%s", w->zookeeper.at);
    assert_int_equal(rq_connect(url, NULL, &w->db, &w->why), RQ_OK);
    assert_int_equal(rq_table_open(w->db, "hbase:meta", &w->table, &w->why), RQ_OK);
}

static void tear_down(world *w)
{
    rq_table_close(w->table);
    assert_int_equal(rq_disconnect(w->db, &w->why), RQ_OK);
    fake_stop(&w->zookeeper);
    fake_stop(&w->one.fake);
}

static void read_salted(rq_slice row, bool has_cell, rq_err expected)
{
    world w;
    rq_key_format *format;
    rq_salted_scanner *s;
    rq_row *r = NULL;
    rq_scan_request scan = {.size = sizeof scan};
    set_up(&w, row, has_cell);
    assert_int_equal(rq_key_format_parse("salt(300) key:bytes", &format, &w.why), RQ_OK);
    assert_int_equal(rq_salted_scan(w.table, format, &scan, 0, &s, &w.why), RQ_OK);
    assert_int_equal(rq_salted_next(s, &r, &w.why), expected);
    rq_row_free(r);
    if (expected != RQ_OK) { /* a failed scan fails again */
        assert_non_null(strstr(w.why.message, "salt"));
        assert_int_equal(rq_salted_next(s, &r, &w.why), expected);
    }
    rq_salted_close(s);
    rq_key_format_free(format);
    tear_down(&w);
}

static void a_row_that_is_shorter_than_its_salt_is_refused(void **state)
{
    (void)state;
    read_salted(RQ_SLICE_LIT("s"), true, RQ_E_MALFORMED);
    read_salted(RQ_SLICE_LIT(""), false, RQ_E_MALFORMED);
    read_salted(RQ_SLICE_LIT("sa"), true, RQ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_is_shorter_than_its_salt_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
