/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Weibo under load: weibo URL [USERS [SECONDS [READERS]]]
 *
 * USERS (100,000) follow each other by a power law: each user follows FOLLOWS others, drawn by
 * Zipf's law, so that a few users have most of the fans; each user has published POSTS times. Then,
 * for SECONDS (30), one thread publishes, one follows and unfollows, and READERS (4) threads read
 * timelines of random users, at the same time. The tables are those of examples/weibo.c.
 *
 * Prints a line for each kind of call: name, calls per second, median, p99 and the longest in
 * milliseconds; and the number of mailboxes that a post reached.
 */
#include "apps.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    FOLLOWS = 20,
    POSTS = 2,
    TIMELINE = 50,
    AT_ONCE = 500,
    NAME = 16,
    KEY = 40,
    FANS_MAX = 5000
};

static uint64_t users = 100000;
static unsigned readers = 4;
static double seconds = 30;
static rq_table *content, *relations, *mailbox;
static atomic_bool ended;

/* --- latencies -------------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    const char *name;
    uint64_t (*call)(struct worker *w); /* returns a count that is summed */
    uint64_t state, calls, sum;
    uint64_t user, other; /* user and followed user of the last follow */
    float *ms;
    size_t cap;
    rq_failure why;
} worker;

static void note(worker *w, double ms)
{
    if (w->calls == w->cap) {
        w->cap = w->cap == 0 ? 4096 : 2 * w->cap;
        w->ms = realloc(w->ms, w->cap * sizeof *w->ms);
        if (w->ms == NULL) exit(1);
    }
    w->ms[w->calls++] = (float)ms;
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void *work(void *arg)
{
    worker *w = arg;
    w->why.size = sizeof w->why;
    do { /* at least one call, however short the run is */
        double begun = now_s();
        w->sum += w->call(w);
        note(w, (now_s() - begun) * 1000);
    } while (!atomic_load(&ended));
    return NULL;
}

/* --- the graph -------------------------------------------------------------------------------- */

/* Rank r with a chance of about 1 / (r + 1): Zipf's law with the exponent 1. */
static uint64_t popular(uint64_t *state)
{
    double u = (double)below(state, 1 << 30) / (double)(1 << 30);
    uint64_t rank = (uint64_t)(pow((double)users, u) - 1);
    return rank < users ? rank : users - 1;
}

static void name_of(uint64_t user, char name[NAME])
{
    /* Users of similar popularity must not be neighbours in the table. */
    snprintf(name, NAME, "%010llu",
             (unsigned long long)(user * UINT64_C(2654435761) % UINT64_C(10000000000)));
}

/* Changes are collected and sent in batches of AT_ONCE. */
typedef struct batch {
    rq_table *table;
    size_t count;
    char rows[AT_ONCE][KEY], qualifiers[AT_ONCE][KEY], values[AT_ONCE][KEY];
    rq_edit edits[AT_ONCE];
    rq_change changes[AT_ONCE];
    rq_action actions[AT_ONCE];
} batch;

static void send(batch *b, rq_failure *why)
{
    if (b->count > 0) check(rq_table_batch(b->table, b->actions, b->count, NULL, why), why);
    b->count = 0;
}

static void add(batch *b, const char *row, const char *family, const char *qualifier,
                const char *value, int64_t time, rq_failure *why)
{
    size_t i = b->count++;
    snprintf(b->rows[i], KEY, "%s", row);
    snprintf(b->qualifiers[i], KEY, "%s", qualifier);
    snprintf(b->values[i], KEY, "%s", value);
    b->edits[i] = (rq_edit){.family = rq_text(family),
                            .qualifier = rq_text(b->qualifiers[i]),
                            .value = rq_text(b->values[i]),
                            .timestamp = time};
    b->changes[i] = (rq_change){.size = sizeof b->changes[i],
                                .kind = RQ_PUT,
                                .row = rq_text(b->rows[i]),
                                .edits = &b->edits[i],
                                .edit_count = 1};
    b->actions[i] = (rq_action){.changes = &b->changes[i], .change_count = 1};
    if (b->count == AT_ONCE) send(b, why);
}

/* Writes all users' posts, then whom each user follows, with the followed users' posts in the
 * mailbox. */
static void load(rq_failure *why)
{
    static batch posts, relation, mail;
    uint64_t state = 1;
    posts.table = content;
    relation.table = relations;
    mail.table = mailbox;
    for (uint64_t user = 0; user < users; user++) {
        char name[NAME], other[NAME], row[KEY];
        name_of(user, name);
        for (int64_t p = 1; p <= POSTS; p++) {
            snprintf(row, sizeof row, "%s_%lld", name, (long long)p);
            add(&posts, row, "cf", "content", "What there is to say today", p, why);
        }
        for (int i = 0; i < FOLLOWS; i++) {
            name_of(popular(&state), other);
            add(&relation, name, "attends", other, other, 0, why);
            add(&relation, other, "fans", name, name, 0, why);
            for (int64_t p = 1; p <= POSTS; p++) {
                snprintf(row, sizeof row, "%s_%lld", other, (long long)p);
                add(&mail, name, "cf", other, row, p, why);
            }
        }
    }
    send(&posts, why);
    send(&relation, why);
    send(&mail, why);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void read_relation(const char *user, const char *family, int32_t most, rq_row **ret,
                          rq_failure *why)
{
    rq_column column = {rq_text(family), {NULL, 0}};
    rq_get_request get = {.size = sizeof get,
                          .row = rq_text(user),
                          .columns = &column,
                          .column_count = 1,
                          .family_limit = most};
    check(rq_table_get(relations, &get, ret, why), why);
}

static void copy(rq_bytes from, char to[NAME])
{
    snprintf(to, NAME, "%.*s", (int)from.len, (const char *)from.data);
}

/* Publishes a post to the mailboxes of at most FANS_MAX fans; returns their number. */
static uint64_t publish(worker *w)
{
    static batch mail, post;
    char name[NAME], fan[NAME], row[KEY];
    int64_t time = (int64_t)(w->calls + POSTS + 1);
    rq_row *fans;
    name_of(popular(&w->state), name);
    snprintf(row, sizeof row, "%s_%lld", name, (long long)time);
    post.table = content;
    mail.table = mailbox;
    add(&post, row, "cf", "content", "News", time, &w->why);
    send(&post, &w->why);
    read_relation(name, "fans", FANS_MAX, &fans, &w->why);
    for (size_t i = 0; i < fans->count; i++) {
        copy(fans->cells[i].qualifier, fan);
        add(&mail, fan, "cf", name, row, time, &w->why);
    }
    send(&mail, &w->why);
    uint64_t reached = fans->count;
    rq_row_free(fans);
    return reached;
}

/* Follows a random user, and unfollows that user in the next call; changes both users' rows. */
static uint64_t follow(worker *w)
{
    char user[NAME], other[NAME];
    if (w->calls % 2 == 0) {
        w->user = below(&w->state, users);
        w->other = popular(&w->state);
    }
    name_of(w->user, user);
    name_of(w->other, other);
    rq_change_kind kind = w->calls % 2 == 0 ? RQ_PUT : RQ_DELETE;
    rq_edit edits[] = {
        {.family = rq_text("attends"), .qualifier = rq_text(other), .value = rq_text(other)},
        {.family = rq_text("fans"), .qualifier = rq_text(user), .value = rq_text(user)}};
    rq_change changes[2];
    rq_action actions[2];
    for (int i = 0; i < 2; i++) {
        changes[i] = (rq_change){.size = sizeof changes[i],
                                 .kind = kind,
                                 .row = rq_text(i == 0 ? user : other),
                                 .edits = &edits[i],
                                 .edit_count = 1};
        actions[i] = (rq_action){.changes = &changes[i], .change_count = 1};
    }
    check(rq_table_batch(relations, actions, 2, NULL, &w->why), &w->why);
    return 1;
}

static int newest_first(const void *a, const void *b)
{
    const rq_kv *x = *(const rq_kv *const *)a, *y = *(const rq_kv *const *)b;
    return (x->timestamp < y->timestamp) - (x->timestamp > y->timestamp);
}

/* Reads the texts of the newest posts in a mailbox. */
static uint64_t read_texts(const rq_row *mail, rq_failure *why)
{
    const rq_kv *refs[5 * 4 * FOLLOWS];
    rq_get_request gets[TIMELINE];
    rq_action actions[TIMELINE];
    size_t count = mail->count < 5 * 4 * FOLLOWS ? mail->count : 5 * 4 * FOLLOWS;
    for (size_t i = 0; i < count; i++)
        refs[i] = &mail->cells[i];
    qsort(refs, count, sizeof refs[0], newest_first);
    if (count > TIMELINE) count = TIMELINE;
    if (count == 0) return 0;
    for (size_t i = 0; i < count; i++) {
        gets[i] = (rq_get_request){.size = sizeof gets[i], .row = refs[i]->value};
        actions[i] = (rq_action){.get = &gets[i]};
    }
    rq_results *posts;
    uint64_t found = 0;
    check(rq_table_batch(content, actions, count, &posts, why), why);
    for (size_t i = 0; i < posts->count; i++)
        found += posts->items[i].row->count;
    rq_results_free(posts);
    return found;
}

/* Reads a timeline; returns the number of posts in it. */
static uint64_t timeline(worker *w)
{
    char user[NAME];
    rq_column columns[4 * FOLLOWS];
    rq_row *followed, *mail;
    name_of(below(&w->state, users), user);
    read_relation(user, "attends", 4 * FOLLOWS, &followed, &w->why);
    for (size_t i = 0; i < followed->count; i++)
        columns[i] = (rq_column){rq_text("cf"), followed->cells[i].qualifier};
    rq_get_request get = {.size = sizeof get,
                          .row = rq_text(user),
                          .columns = columns,
                          .column_count = followed->count,
                          .max_versions = 5};
    check(rq_table_get(mailbox, &get, &mail, &w->why), &w->why);
    uint64_t found = read_texts(mail, &w->why);
    rq_row_free(mail);
    rq_row_free(followed);
    return found;
}

/* --- the run ---------------------------------------------------------------------------------- */

static void report(worker *all, size_t count, double spent)
{
    uint64_t calls = 0, sum = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        calls += all[i].calls;
    float *ms = calloc(calls + 1, sizeof *ms);
    if (ms == NULL || calls == 0) {
        fprintf(stderr, "%s: no call has ended\n", all[0].name);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(ms + at, all[i].ms, all[i].calls * sizeof *ms);
        at += all[i].calls;
        sum += all[i].sum;
        free(all[i].ms);
    }
    qsort(ms, calls, sizeof *ms, by_size);
    printf("%s\t%.0f/s\tmedian %.3f ms\tp99 %.3f ms\tlongest %.3f ms\teach %.1f\n", all[0].name,
           (double)calls / spent, (double)ms[calls / 2], (double)ms[calls * 99 / 100],
           (double)ms[calls - 1], (double)sum / (double)calls);
    free(ms);
}

static void run(void)
{
    worker *all = calloc(readers + 2, sizeof *all);
    if (all == NULL) exit(1);
    all[0] = (worker){.name = "publish", .call = publish, .state = 7};
    all[1] = (worker){.name = "follow", .call = follow, .state = 8};
    for (unsigned i = 0; i < readers; i++)
        all[i + 2] = (worker){.name = "timeline", .call = timeline, .state = 100 + i};
    double begun = now_s();
    for (unsigned i = 0; i < readers + 2; i++)
        if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0) exit(1);
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
    atomic_store(&ended, true);
    for (unsigned i = 0; i < readers + 2; i++)
        pthread_join(all[i].thread, NULL);
    double spent = now_s() - begun;
    report(all, 1, spent);
    report(all + 1, 1, spent);
    report(all + 2, readers, spent);
    free(all);
}

int main(int argc, char **argv)
{
    static const char *const cf[] = {"cf", NULL}, *const both[] = {"attends", "fans", NULL};
    rq_failure why = {.size = sizeof why};
    if (argc > 2) users = strtoull(argv[2], NULL, 10);
    if (argc > 3) seconds = strtod(argv[3], NULL);
    if (argc > 4) readers = (unsigned)strtoul(argv[4], NULL, 10);
    if (argc < 2 || argc > 5 || users < 2 || readers < 1 || readers > 1000 || !(seconds > 0)) {
        fprintf(stderr, "usage: weibo URL [USERS [SECONDS [READERS]]]\n");
        return 2;
    }
    rq_db *db = open_db(argv[1]);
    content = fresh_table(db, "bench_weibo_content", cf, "1");
    relations = fresh_table(db, "bench_weibo_relations", both, "1");
    mailbox = fresh_table(db, "bench_weibo_mailbox", cf, "1000");
    double begun = now_s();
    load(&why);
    printf("load\t%llu users, %d followed each\t%.1f s\n", (unsigned long long)users, FOLLOWS,
           now_s() - begun);
    fflush(stdout);
    run();
    rq_table_close(content);
    rq_table_close(relations);
    rq_table_close(mailbox);
    check(rq_disconnect(db, &why), &why);
    return 0;
}
