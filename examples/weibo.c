/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Weibo: users publish, follow each other, and read a timeline of those that they follow.
 *
 *     cc weibo.c $(pkg-config --cflags --libs rorqual) -o weibo
 *     ./weibo file:/tmp/weibo            in this process; or hbase://localhost:2181, memory:
 *
 *   weibo:content         row user_time        cf:content = text
 *   weibo:relations       row user             attends:OTHER, fans:OTHER
 *   weibo:mailbox         row fan              cf:PUBLISHER = row of content, up to 1,000 versions,
 *                                              each at the time of its post
 *
 * A post is written once, and a reference to it into the mailbox of each fan; a timeline is two
 * gets, and a batch of gets for the texts. Following somebody delivers the posts of before by a scan with
 * the prefix "user_".
 */
#include <rorqual/rorqual.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { POSTS_MAX = 100, FOLLOWED_MAX = 100, KEY = 40 };

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

typedef struct weibo {
    rq_table *content, *relations, *mailbox;
} weibo;

static rq_table *open_table(rq_db *db, const char *name, const char *const *families, size_t count,
                            const char *versions)
{
    rq_property property = {"VERSIONS", versions};
    rq_family f[2];
    for (size_t i = 0; i < count; i++)
        f[i] = (rq_family){families[i], &property, 1};
    rq_table_spec spec = {.size = sizeof spec, .name = name, .families = f, .family_count = count};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, name, &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, name, &table, &why));
    return table;
}

static void init(rq_db *db, weibo *w)
{
    static const char *const cf[] = {"cf"}, *const both[] = {"attends", "fans"};
    rq_err rc = rq_namespace_create(db, "weibo", NULL, 0, &why);
    if (rc != RQ_E_NAMESPACE_EXISTS) check(rc);
    w->content = open_table(db, "weibo:content", cf, 1, "1");
    w->relations = open_table(db, "weibo:relations", both, 2, "1");
    w->mailbox = open_table(db, "weibo:mailbox", cf, 1, "1000");
}

static void put(rq_table *table, const char *row, const char *family, const char *qualifier,
                const char *value, int64_t time)
{
    rq_edit edit = {.family = rq_text(family),
                    .qualifier = rq_text(qualifier),
                    .value = rq_text(value),
                    .timestamp = time};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    check(rq_table_change(table, &change, NULL, &why));
}

static void delete_column(rq_table *table, const char *row, const char *family,
                          const char *qualifier)
{
    rq_edit edit = {
        .family = rq_text(family), .qualifier = rq_text(qualifier), .scope = RQ_DELETE_COLUMN};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_DELETE,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    check(rq_table_change(table, &change, NULL, &why));
}

/* `time` is the time of the post. Two posts of one user at the same time would be the same row. */
static void publish(weibo *w, const char *user, int64_t time, const char *text)
{
    char row[KEY], fan[KEY];
    rq_column column = {rq_text("fans"), {NULL, 0}};
    rq_get_request get = {
        .size = sizeof get, .row = rq_text(user), .columns = &column, .column_count = 1};
    rq_row *fans;
    snprintf(row, sizeof row, "%s_%" PRId64, user, time);
    put(w->content, row, "cf", "content", text, time);
    check(rq_table_get(w->relations, &get, &fans, &why));
    for (size_t i = 0; i < fans->count; i++) {
        snprintf(fan, sizeof fan, "%.*s", (int)fans->cells[i].qualifier.len,
                 (const char *)fans->cells[i].qualifier.data);
        put(w->mailbox, fan, "cf", user, row, time);
    }
    rq_row_free(fans);
}

/* All posts of `other`: keys from "other_" up to "other`". The byte '`' comes directly after '_', so these
 * are all keys that begin with "other_". */
static void deliver_posts(weibo *w, const char *user, const char *other)
{
    char start[KEY], stop[KEY], row_key[KEY];
    snprintf(start, sizeof start, "%s_", other);
    snprintf(stop, sizeof stop, "%s`", other);
    rq_scan_request scan = {.size = sizeof scan, .start = rq_text(start), .stop = rq_text(stop)};
    rq_scanner *scanner;
    check(rq_table_scan(w->content, &scan, &scanner, &why));
    for (;;) {
        rq_row *row;
        check(rq_scanner_next(scanner, &row, &why));
        if (row == NULL) break;
        snprintf(row_key, sizeof row_key, "%.*s", (int)row->cells[0].row.len,
                 (const char *)row->cells[0].row.data);
        put(w->mailbox, user, "cf", other, row_key, row->cells[0].timestamp);
        rq_row_free(row);
    }
    rq_scanner_close(scanner);
}

static void follow(weibo *w, const char *user, const char *other)
{
    put(w->relations, user, "attends", other, other, 0);
    put(w->relations, other, "fans", user, user, 0);
    deliver_posts(w, user, other);
}

/* The mailbox stays as it is. A delete marker written now would also hide the posts after a later
 * follow, since they have earlier timestamps. The timeline skips publishers who are no longer
 * followed instead. */
static void unfollow(weibo *w, const char *user, const char *other)
{
    delete_column(w->relations, user, "attends", other);
    delete_column(w->relations, other, "fans", user);
}

static int newest_first(const void *a, const void *b)
{
    const rq_kv *x = a, *y = b;
    return (x->timestamp < y->timestamp) - (x->timestamp > y->timestamp);
}

/* The newest posts of each followed publisher, up to five of each; the caller frees *ret. */
static void read_mailbox(weibo *w, const char *user, rq_row **ret)
{
    static rq_column columns[FOLLOWED_MAX];
    rq_column attends = {rq_text("attends"), {NULL, 0}};
    rq_get_request list = {
        .size = sizeof list, .row = rq_text(user), .columns = &attends, .column_count = 1};
    rq_row *followed;
    check(rq_table_get(w->relations, &list, &followed, &why));
    size_t count = followed->count < FOLLOWED_MAX ? followed->count : FOLLOWED_MAX;
    for (size_t i = 0; i < count; i++)
        columns[i] = (rq_column){rq_text("cf"), followed->cells[i].qualifier};
    /* A get without columns reads all columns. Who follows nobody gets a row that does not exist. */
    rq_get_request get = {.size = sizeof get,
                          .row = rq_text(count > 0 ? user : "nobody"),
                          .columns = columns,
                          .column_count = count,
                          .max_versions = 5};
    check(rq_table_get(w->mailbox, &get, ret, &why));
    rq_row_free(followed);
}

static void print_timeline(weibo *w, const char *user)
{
    static rq_kv refs[POSTS_MAX];
    static rq_get_request gets[POSTS_MAX];
    static rq_action actions[POSTS_MAX];
    rq_row *mailbox;
    rq_results *posts = NULL;
    read_mailbox(w, user, &mailbox);
    size_t count = mailbox->count < POSTS_MAX ? mailbox->count : POSTS_MAX;
    if (count > 0) memcpy(refs, mailbox->cells, count * sizeof refs[0]);
    qsort(refs, count, sizeof refs[0], newest_first);
    for (size_t i = 0; i < count; i++) {
        gets[i] = (rq_get_request){.size = sizeof gets[i], .row = refs[i].value};
        actions[i] = (rq_action){.get = &gets[i]};
    }
    if (count > 0) check(rq_table_batch(w->content, actions, count, &posts, &why));
    printf("%s reads:\n", user);
    for (size_t i = 0; i < count; i++) {
        const rq_kv *text = rq_row_find(posts->items[i].row, rq_text("cf"), rq_text("content"));
        if (text == NULL) continue; /* deleted since */
        printf("  %.*s: %.*s\n", (int)refs[i].qualifier.len, (const char *)refs[i].qualifier.data,
               (int)text->value.len, (const char *)text->value.data);
    }
    rq_results_free(posts);
    rq_row_free(mailbox);
}

int main(int argc, char **argv)
{
    weibo w;
    rq_db *db;
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    init(db, &w);
    publish(&w, "0008", 1000, "Fine weather today!");
    publish(&w, "0009", 2000, "Rain.");
    publish(&w, "10008", 2500, "Not for those who follow 0008.");
    follow(&w, "0001", "0008");
    follow(&w, "0001", "0009");
    publish(&w, "0008", 3000, "Tomorrow will be better!");
    print_timeline(&w, "0001");
    unfollow(&w, "0001", "0009");
    print_timeline(&w, "0001");
    follow(&w, "0002", "0009");
    follow(&w, "0002", "0010");
    publish(&w, "0010", 4000, "More rain.");
    print_timeline(&w, "0002");
    rq_table_close(w.content);
    rq_table_close(w.relations);
    rq_table_close(w.mailbox);
    check(rq_disconnect(db, &why));
    return 0;
}
