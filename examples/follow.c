/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follow and fan lists in one table: a many-to-many relation without a join table.
 *
 *     cc follow.c $(pkg-config --cflags --libs rorqual) -o follow
 *     ./follow file:/tmp/follow          in this process; or hbase://localhost:2181, memory:
 *
 * A row per blogger. Family cf1 has a column for each blogger that this one follows, cf2 one for each
 * fan; the value is the other's nick name. To follow is a put on both sides, so that both lists are
 * read from one row.
 */
#include <rorqual/rorqual.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct blogger {
    const char *id, *nick;
} blogger;

static const blogger bloggers[] = {{"CSDN_1", "jakson"},
                                   {"CSDN_2", "elite"},
                                   {"CSDN_3", "bob"},
                                   {"CSDN_4", "Eric"},
                                   {"CSDN_5", "tom"}};

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static rq_table *open_table(rq_db *db)
{
    rq_family families[] = {{"cf1", NULL, 0}, {"cf2", NULL, 0}};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "relation", .families = families, .family_count = 2};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, "relation", &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, "relation", &table, &why));
    return table;
}

/* Changes both sides in one batch: two rows, which are not written atomically; repeating the call
 * repairs a partial change. */
static void change_both(rq_table *table, rq_change_kind kind, const blogger *fan,
                        const blogger *idol)
{
    rq_edit sides[] = {
        {.family = rq_text("cf1"), .qualifier = rq_text(idol->id), .value = rq_text(idol->nick)},
        {.family = rq_text("cf2"), .qualifier = rq_text(fan->id), .value = rq_text(fan->nick)}};
    rq_change changes[] = {{.size = sizeof changes[0],
                            .kind = kind,
                            .row = rq_text(fan->id),
                            .edits = &sides[0],
                            .edit_count = 1},
                           {.size = sizeof changes[0],
                            .kind = kind,
                            .row = rq_text(idol->id),
                            .edits = &sides[1],
                            .edit_count = 1}};
    rq_action actions[] = {{.changes = &changes[0], .change_count = 1},
                           {.changes = &changes[1], .change_count = 1}};
    check(rq_table_batch(table, actions, 2, NULL, &why));
}

/* Reads one column of one row. */
static bool follows(rq_table *table, const blogger *fan, const blogger *idol)
{
    rq_column column = {rq_text("cf1"), rq_text(idol->id)};
    rq_get_request get = {.size = sizeof get,
                          .row = rq_text(fan->id),
                          .columns = &column,
                          .column_count = 1,
                          .existence_only = true};
    rq_row *row;
    check(rq_table_get(table, &get, &row, &why));
    bool exists = row->exists;
    rq_row_free(row);
    return exists;
}

static void print_list(rq_table *table, const blogger *b, const char *family, const char *what)
{
    rq_column column = {rq_text(family), {NULL, 0}};
    rq_get_request get = {
        .size = sizeof get, .row = rq_text(b->id), .columns = &column, .column_count = 1};
    rq_row *row;
    check(rq_table_get(table, &get, &row, &why));
    printf("%s %s", b->nick, what);
    for (size_t i = 0; i < row->count; i++)
        printf(" %.*s", (int)row->cells[i].value.len, (const char *)row->cells[i].value.data);
    puts(row->count == 0 ? " nobody" : "");
    rq_row_free(row);
}

int main(int argc, char **argv)
{
    static const int pairs[][2] = {{0, 2}, {1, 2}, {2, 0}, {3, 4}, {0, 1}, {2, 1}, {3, 2}};
    rq_db *db;
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    rq_table *table = open_table(db);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        change_both(table, RQ_PUT, &bloggers[pairs[i][0]], &bloggers[pairs[i][1]]);
    for (size_t i = 0; i < sizeof bloggers / sizeof bloggers[0]; i++) {
        print_list(table, &bloggers[i], "cf1", "follows");
        print_list(table, &bloggers[i], "cf2", "is followed by");
    }
    change_both(table, RQ_DELETE, &bloggers[3], &bloggers[2]);
    printf("Eric follows bob: %s\n", follows(table, &bloggers[3], &bloggers[2]) ? "yes" : "no");
    printf("Eric follows tom: %s\n", follows(table, &bloggers[3], &bloggers[4]) ? "yes" : "no");
    rq_table_close(table);
    check(rq_disconnect(db, &why));
    return 0;
}
