/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client for all threads of the database.
 *
 * The client is used by one thread at a time, under the lock. While this thread waits for sockets the
 * lock is released, so that other threads can start operations. The library has no thread for this: one
 * of the threads that wait for their operations is the driver. It runs the client's loop until its own
 * operation has ended; then another waiting thread becomes the driver. If only one thread makes calls,
 * no thread is ever woken.
 *
 *    call ─► start operation, send ─► driven by another? ─yes─► sleep until done, or to be the driver
 *                                          └─no─► poll … until done ─► hand over
 *
 * The thread that runs the completions of asynchronous calls (api/async.c) waits in the same way
 * (remote_turn): until one asynchronous call has ended.
 */
#include "remote/remote_priv.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/random.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* After this many attempts with HBase's pauses, job.c asks the master whether the table exists. */
#define RETRIES 3
#define PAUSE_MS 100
#define POLL_NS 100000000

/* --- driving ---------------------------------------------------------------------------------- */

static void before_wait(void *ctx)
{
    rq__remote *r = ctx;
    r->is_asleep = true;
    pthread_mutex_unlock(&r->lock);
}

static void after_wait(void *ctx)
{
    rq__remote *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->is_asleep = false;
}

void rq__wait_done(rq__wait *w)
{
    w->done = true;
    pthread_cond_signal(&w->wake);
}

static void list(rq__remote *r, rq__wait *w)
{
    if (w->is_listed) return;
    w->next = r->waiting;
    r->waiting = w;
    w->is_listed = true;
}

static void unlist(rq__remote *r, rq__wait *w)
{
    rq__wait **at = &r->waiting;
    if (!w->is_listed) return;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    w->is_listed = false;
}

/* Another thread that waits drives from now on. */
static void hand_over(rq__remote *r)
{
    r->is_driven = false;
    for (rq__wait *next = r->waiting; next != NULL; next = next->next)
        if (!next->done) {
            pthread_cond_signal(&next->wake);
            break;
        }
}

void rq__remote_wait(rq__remote *r, rq__wait *w)
{
    rq_client_flush(r->client);
    while (!w->done && r->is_driven) {
        list(r, w);
        pthread_cond_wait(&w->wake, &r->lock);
    }
    unlist(r, w);
    if (w->done) return;
    r->is_driven = true;
    while (!w->done)
        rq_client_poll(r->client, POLL_NS);
    hand_over(r);
}

/* Until the time, or until this thread can drive. */
static void wait_for_driver(rq__remote *r, rq__wait *w, int64_t until_ns)
{
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    list(r, w);
    pthread_cond_timedwait(&w->wake, &r->lock, &until);
    unlist(r, w);
}

/* The thread that runs completions works on their calls. */
static void remote_turn(rq_db *db, int64_t timeout_ns)
{
    rq__remote *r = rq__remote_of(db);
    rq__wait *w = &r->turn;
    int64_t until = rq_client_now_ns() + timeout_ns;
    pthread_mutex_lock(&r->lock);
    for (int64_t left = timeout_ns; !w->done && left >= 0 && !atomic_load(&db->closed);
         left = until - rq_client_now_ns() - 1) {
        if (r->is_driven) {
            wait_for_driver(r, w, until);
        } else {
            r->is_driven = true;
            rq_client_poll(r->client, left);
            hand_over(r);
        }
    }
    w->done = false;
    if (!r->is_driven) hand_over(r); /* it may have been this thread's turn, without time for it */
    pthread_mutex_unlock(&r->lock);
}

static int remote_descriptor(rq_db *db)
{
    return rq_client_descriptor(rq__remote_of(db)->client);
}

static int64_t remote_due(rq_db *db)
{
    rq__remote *r = rq__remote_of(db);
    pthread_mutex_lock(&r->lock);
    int64_t due = rq_client_due(r->client);
    pthread_mutex_unlock(&r->lock);
    return due;
}

/* Every job ends in this poll, because every operation it starts fails at once. */
static void remote_stop(rq_db *db)
{
    rq__remote *r = rq__remote_of(db);
    pthread_mutex_lock(&r->lock);
    rq_client_stop(r->client);
    rq_client_poll(r->client, 0);
    rq_client_wake(r->client); /* that poll may have consumed the wake-up of a sleeping driver */
    pthread_mutex_unlock(&r->lock);
}

/* --- posts ------------------------------------------------------------------------------------ */

static rq_err post_new(rq__remote *r, rq__post **ret)
{
    rq__post *p = calloc(1, sizeof *p);
    if (p == NULL) return RQ_E_NO_MEMORY;
    if (rq_op_new(r->client, 0, NULL, &p->op) != RQ_OK) {
        free(p);
        return RQ_E_NO_MEMORY;
    }
    pthread_cond_init(&p->wait.wake, NULL);
    *ret = p;
    return RQ_OK;
}

static void post_free(rq__post *p)
{
    if (p == NULL) return;
    rq_op_free(p->op);
    pthread_cond_destroy(&p->wait.wake);
    rq_buf_clear(&p->more);
    free(p);
}

rq_err rq__post_of(rq__remote *r, rq_slot *slot, rq__post **ret, rq_why *why)
{
    if (RQ_LIKELY(slot->own != NULL)) {
        *ret = slot->own;
        return RQ_OK;
    }
    if (post_new(r, ret) != RQ_OK) return rq_no_memory(&why->error);
    slot->own = *ret;
    return RQ_OK;
}

rq_err rq__post_take(rq__remote *r, rq__post **ret)
{
    rq__post *p = r->spare;
    if (p == NULL) return post_new(r, ret);
    r->spare = p->next;
    *ret = p;
    return RQ_OK;
}

void rq__post_give_back(rq__remote *r, rq__post *p)
{
    p->next = r->spare;
    r->spare = p;
}

/* --- failures --------------------------------------------------------------------------------- */

void rq__remote_text(rq_slice java_class, rq_slice text, rq_why *why)
{
    rq_error *e = &why->error;
    if (java_class.len > 0 && text.len > java_class.len + 1 &&
        rq_slice_starts_with(text, java_class) && text.ptr[java_class.len] == ':')
        text = rq_slice_of(text.ptr + java_class.len + 2, text.len - java_class.len - 2);
    for (size_t i = 0; i + 4 < text.len; i++)
        if (memcmp(text.ptr + i, "\n\tat ", 5) == 0) text.len = i;
    size_t len = text.len < sizeof e->message ? text.len : sizeof e->message - 1;
    if (len > 0) memcpy(e->message, text.ptr, len);
    e->message[len] = '\0';
    len = java_class.len < sizeof why->java_class ? java_class.len : sizeof why->java_class - 1;
    if (len > 0) memcpy(why->java_class, java_class.ptr, len);
    why->java_class[len] = '\0';
}

rq_err rq__remote_failure(const rq_op_result *result, rq_why *why)
{
    if (result->err == RQ_OK) return RQ_OK;
    why->is_remote = true;
    why->retryable = result->retry;
    why->error.code = result->err;
    rq__remote_text(result->java_class, result->text.len > 0 ? result->text : result->kind, why);
    return result->err;
}

/* --- life ------------------------------------------------------------------------------------- */

static void free_all(rq__remote *r)
{
    rq_client_close(r->client);
    for (size_t i = 0; i < RQ_SLOTS; i++) {
        post_free(r->db.slots[i].own);
        r->db.slots[i].own = NULL;
    }
    while (r->spare != NULL) {
        rq__post *p = r->spare;
        r->spare = p->next;
        post_free(p);
    }
    pthread_cond_destroy(&r->turn.wake);
    pthread_mutex_destroy(&r->lock);
    free(r->address);
    free(r->znode_parent);
    free(r->user);
}

static rq_err remote_close(rq_db *db, rq_error *why)
{
    (void)why;
    free_all(rq__remote_of(db));
    return RQ_OK;
}

static const rq_backend backend = {
    .is_remote = true,
    .close = remote_close,
    .define = rq__remote_define,
    .describe = rq__remote_describe,
    .tables = rq__remote_tables,
    .namespaces = rq__remote_namespaces,
    .describe_namespace = rq__remote_describe_namespace,
    .snapshots = rq__remote_snapshots,
    .regions = rq__remote_regions,
    .compact = rq__remote_compact,
    .cluster = rq__remote_cluster,
    .get = rq__remote_get,
    .change = rq__remote_change,
    .batch = rq__remote_batch,
    .scan = rq__remote_scan,
    .next = rq__remote_next,
    .has_row = rq__remote_has_row,
    .ahead = rq__remote_ahead,
    .scan_close = rq__remote_scan_close,
    .start = rq__remote_start,
    .stop = remote_stop,
    .turn = remote_turn,
    .descriptor = remote_descriptor,
    .due = remote_due,
};

/* HBASE: User.getCurrent: the process's user. */
static char *user_name(const char *given)
{
    struct passwd entry, *found = NULL;
    char buf[1024], number[24];
    if (given != NULL) return strdup(given);
    if (getpwuid_r(geteuid(), &entry, buf, sizeof buf, &found) == 0 && found != NULL)
        return strdup(found->pw_name);
    snprintf(number, sizeof number, "%u", (unsigned)geteuid());
    return strdup(number);
}

static rq_err open_client(rq__remote *r, bool by_zookeeper, rq_error *why)
{
    rq_client_options o = {
        .zookeeper = by_zookeeper ? r->address : NULL,
        .bootstrap = by_zookeeper ? NULL : r->address,
        .zk_root = r->znode_parent,
        .user = r->user,
        .rpc_timeout_ms = r->db.timeout_ms,
        .wait_ms = r->db.timeout_ms,
        .pause_ms = PAUSE_MS,
        .retries = RETRIES,
        .master_retries = UINT_MAX,
        .before_wait = before_wait,
        .after_wait = after_wait,
        .ctx = r,
    };
    pthread_mutex_lock(&r->lock);
    rq_err rc = rq_client_open(&o, &r->client, why);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* Splits "HOST:PORT,…/znode". */
static rq_err take_place(rq__remote *r, const char *place, bool by_zookeeper, const char *znode,
                         rq_error *why)
{
    size_t len = strcspn(place, "/");
    const char *path = place[len] == '\0' || place[len + 1] == '\0' ? NULL : place + len;
    rq_slice wrong;
    if (path != NULL && !by_zookeeper)
        return rq_fail(why, RQ_E_INVALID, "a path is possible only with hbase://: %s", path);
    if (path != NULL && path[strlen(path) - 1] == '/')
        return rq_fail(why, RQ_E_INVALID, "the znode ends with a slash: %s", path);
    if (path != NULL && znode != NULL && strcmp(path, znode) != 0)
        return rq_fail(why, RQ_E_INVALID, "the URL names the znode %s, the options %s", path,
                       znode);
    if (path == NULL) path = znode;
    r->address = strndup(place, len);
    if (path != NULL) r->znode_parent = strdup(path);
    if (r->address == NULL || (path != NULL && r->znode_parent == NULL)) return rq_no_memory(why);
    if (rq_client_are_addresses(r->address, &wrong)) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "not HOST:PORT: '%.*s' in %s", (int)wrong.len,
                   (const char *)wrong.ptr, place);
}

rq_err rq_remote_open(const char *place, bool by_zookeeper, const rq_connect_options *o,
                      rq_db **ret, rq_error *why)
{
    rq__remote *r = aligned_alloc(RQ_CACHE_LINE, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    memset(r, 0, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    rq_clock_cond_init(&r->turn.wake);
    rq_random random;
    rq_random_seed(&random, (uint64_t)rq_client_now_ns() ^ (uint64_t)(uintptr_t)r);
    r->next_nonce = rq_random_next(&random) | 1; /* odd forever: 0 is none */
    rq_err rc = rq_db_init(&r->db, &backend, o->timeout_ms, why);
    r->user = user_name(o->user);
    if (rc == RQ_OK && r->user == NULL) rc = rq_no_memory(why);
    if (rc == RQ_OK) rc = take_place(r, place, by_zookeeper, o->znode_parent, why);
    if (rc == RQ_OK) rc = open_client(r, by_zookeeper, why);
    if (rc == RQ_OK) {
        *ret = &r->db;
        return RQ_OK;
    }
    free_all(r);
    rq_db_unref(&r->db);
    return rc;
}
