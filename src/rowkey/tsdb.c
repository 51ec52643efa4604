/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTSDB's tables, written and read as OpenTSDB 2 does: what one writes the other reads.
 *
 *   tsdb-uid   row name:  id:KIND = UID        (KIND: metrics, tagk, tagv)
 *              row UID:   name:KIND = name
 *              row 00:    id:KIND = counter
 *   tsdb       t: rows of an hour (tsdb_codec.c)
 *
 * A new name gets the next number of the counter as its UID. UID → name is written first, if it is absent, then name →
 * UID, if it is absent. If another writer has written name → UID in between, its UID is used, and the own number stays
 * unused.
 */
#include "api/backend.h"
#include "rowkey/tsdb_priv.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

enum { KINDS = 3, CACHE_SLOTS = 1 << 16, RACES_MAX = 100, NAME_MAX_BYTES = 1024, MAX_BATCH = 1000 };

static const char *const kinds[KINDS] = {"metrics", "tagk", "tagv"};

typedef struct entry {
    char *name;
    uint8_t uid[RQ__TSDB_UID];
} entry;

struct rq_tsdb {
    rq_table *data, *uids;
    uint32_t salt_buckets;
    pthread_mutex_t lock;
    entry *cache[KINDS] RQ_GUARDED_BY(lock); /* open addressing; no name leaves */
    size_t cached[KINDS] RQ_GUARDED_BY(lock);
};

/* --- the cache -------------------------------------------------------------------------------- */

static size_t slot_of(const rq_tsdb *t, int kind, const char *name)
{
    size_t at = rq__murmur3(rq_slice_cstr(name)) % CACHE_SLOTS;
    while (t->cache[kind][at].name != NULL && strcmp(t->cache[kind][at].name, name) != 0)
        at = (at + 1) % CACHE_SLOTS;
    return at;
}

static bool cache_find(rq_tsdb *t, int kind, const char *name, uint8_t uid[RQ__TSDB_UID])
{
    pthread_mutex_lock(&t->lock);
    const entry *e = &t->cache[kind][slot_of(t, kind, name)];
    bool found = e->name != NULL;
    if (found) memcpy(uid, e->uid, RQ__TSDB_UID);
    pthread_mutex_unlock(&t->lock);
    return found;
}

/* Full or without memory it forgets the name. */
static void cache_add(rq_tsdb *t, int kind, const char *name, const uint8_t uid[RQ__TSDB_UID])
{
    pthread_mutex_lock(&t->lock);
    entry *e = &t->cache[kind][slot_of(t, kind, name)];
    if (e->name == NULL && t->cached[kind] < CACHE_SLOTS / 2) {
        e->name = strdup(name);
        memcpy(e->uid, uid, RQ__TSDB_UID);
        t->cached[kind] += e->name != NULL;
    }
    pthread_mutex_unlock(&t->lock);
}

/* --- the dictionary --------------------------------------------------------------------------- */

static rq_err check_name(const char *name, rq_error *why)
{
    size_t len = name == NULL ? 0 : strlen(name);
    if (len == 0 || len > NAME_MAX_BYTES)
        return rq_fail(why, RQ_E_INVALID, "a name must have 1 to %d bytes", NAME_MAX_BYTES);
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-_./", *c) == NULL)
            return rq_fail(why, RQ_E_INVALID, "%s: only letters, digits and -_./ are allowed",
                           name);
    return RQ_OK;
}

static rq_err read_uid(rq_tsdb *t, int kind, const char *name, uint8_t uid[RQ__TSDB_UID],
                       bool *ret_found, rq_failure *why)
{
    size_t len;
    rq_err rc = rq_get_value(t->uids, rq_text(name), rq_text("id"), rq_text(kinds[kind]), uid,
                             RQ__TSDB_UID, &len, why);
    if (rc == RQ_OK) *ret_found = len == RQ__TSDB_UID;
    return rc;
}

/* Writes the value if the column has none. */
static rq_err put_absent(rq_table *table, rq_bytes row, const char *family, const char *kind,
                         rq_bytes value, bool *ret_done, rq_failure *why)
{
    rq_check check = {.size = sizeof check,
                      .family = rq_text(family),
                      .qualifier = rq_text(kind),
                      .compare = RQ_COMPARE_ABSENT};
    rq_edit edit = {.family = rq_text(family), .qualifier = rq_text(kind), .value = value};
    rq_change put = {
        .size = sizeof put, .kind = RQ_PUT, .row = row, .edits = &edit, .edit_count = 1};
    return rq_table_check_and_change(table, &check, &put, 1, ret_done, NULL, why);
}

/* One attempt; *ret_done false: another writer was faster. */
static rq_err assign_uid(rq_tsdb *t, int kind, const char *name, uint8_t uid[RQ__TSDB_UID],
                         bool *ret_done, rq_failure *failure)
{
    int64_t number = 0;
    uint8_t all[8];
    RQ_TRY(rq_add_value(t->uids, rq_bytes_of("\0", 1), rq_text("id"), rq_text(kinds[kind]), 1,
                        &number, failure));
    if (number <= 0 || number >= 1 << (8 * RQ__TSDB_UID)) {
        rq_why why;
        rq_why_clear(&why);
        return rq_fill_failure(
            failure, rq_fail(&why.error, RQ_E_STATE, "all UIDs of %s are used", kinds[kind]), &why);
    }
    rq_put_be64(all, (uint64_t)number);
    memcpy(uid, all + 8 - RQ__TSDB_UID, RQ__TSDB_UID);
    rq_bytes id = rq_bytes_of(uid, RQ__TSDB_UID);
    RQ_TRY(put_absent(t->uids, id, "name", kinds[kind], rq_text(name), ret_done, failure));
    if (!*ret_done) return RQ_OK;
    return put_absent(t->uids, rq_text(name), "id", kinds[kind], id, ret_done, failure);
}

/* *ret_found false: there is no such name, and the caller asked not to create it. */
static rq_err uid_of(rq_tsdb *t, int kind, const char *name, bool makes, uint8_t uid[RQ__TSDB_UID],
                     bool *ret_found, rq_failure *failure)
{
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = check_name(name, &why.error);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    RQ_TRY(rq_db_needs_home(t->uids->db, failure)); /* in a child the lock may be held for ever */
    *ret_found = cache_find(t, kind, name, uid);
    for (int i = 0; i < RACES_MAX && !*ret_found; i++) {
        RQ_TRY(read_uid(t, kind, name, uid, ret_found, failure));
        if (!*ret_found && !makes) return RQ_OK;
        if (!*ret_found) RQ_TRY(assign_uid(t, kind, name, uid, ret_found, failure));
    }
    if (!*ret_found)
        return rq_fill_failure(failure,
                               rq_fail(&why.error, RQ_E_CONFLICT,
                                       "%s: cannot assign a UID, because other writers keep "
                                       "assigning the same ones; try again",
                                       name),
                               &why);
    cache_add(t, kind, name, uid);
    return RQ_OK;
}

rq_err rq_tsdb_uid(rq_tsdb *tsdb, rq_tsdb_kind kind, const char *name, bool makes, uint32_t *ret,
                   rq_failure *failure)
{
    RQ_TRY(rq_needs(tsdb, "rq_tsdb", failure));
    RQ_TRY(rq_needs(name, "name", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    uint8_t uid[RQ__TSDB_UID];
    bool found;
    rq_why why;
    rq_why_clear(&why);
    if ((unsigned)kind >= KINDS)
        return rq_fill_failure(failure, rq_fail(&why.error, RQ_E_INVALID, "unknown kind of UID"),
                               &why);
    rq_err rc = uid_of(tsdb, (int)kind, name, makes, uid, &found, failure);
    if (rc == RQ_OK && !found)
        return rq_fill_failure(failure, rq_fail(&why.error, RQ_E_NOT_FOUND, "%s has no UID", name),
                               &why);
    if (rc == RQ_OK) *ret = (uint32_t)uid[0] << 16 | (uint32_t)uid[1] << 8 | uid[2];
    return rc;
}

rq_err rq__tsdb_uid(rq_tsdb *t, int kind, const char *name, uint8_t uid[RQ__TSDB_UID],
                    bool *ret_found, rq_failure *why)
{
    return uid_of(t, kind, name, false, uid, ret_found, why);
}

uint32_t rq__tsdb_salt_buckets(const rq_tsdb *t)
{
    return t->salt_buckets;
}

rq_table *rq__tsdb_data(const rq_tsdb *t)
{
    return t->data;
}

rq_table *rq__tsdb_uids(const rq_tsdb *t)
{
    return t->uids;
}

/* --- opening ---------------------------------------------------------------------------------- */

static rq_err make_table(rq_db *db, const char *name, const char *const *families, size_t count,
                         rq_failure *why)
{
    rq_family f[2];
    bool exists;
    rq_property bloom = {"BLOOMFILTER", "ROW"};
    for (size_t i = 0; i < count; i++)
        f[i] = (rq_family){families[i], &bloom, 1};
    rq_table_spec spec = {.size = sizeof spec, .name = name, .families = f, .family_count = count};
    RQ_TRY(rq_table_exists(db, name, &exists, why));
    if (exists) return RQ_OK;
    rq_err rc = rq_table_create(db, &spec, why);
    return rc == RQ_E_TABLE_EXISTS ? RQ_OK : rc; /* made by another process at this moment */
}

static rq_err open_tables(rq_tsdb *t, rq_db *db, const rq_tsdb_options *o, rq_failure *why)
{
    static const char *const data[] = {"t"}, *const uids[] = {"id", "name"};
    if (o->creates) {
        RQ_TRY(make_table(db, o->data_table, data, 1, why));
        RQ_TRY(make_table(db, o->uid_table, uids, 2, why));
    }
    RQ_TRY(rq_table_open(db, o->data_table, &t->data, why));
    return rq_table_open(db, o->uid_table, &t->uids, why);
}

static rq_tsdb *tsdb_new(void)
{
    rq_tsdb *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    pthread_mutex_init(&t->lock, NULL);
    for (int i = 0; i < KINDS; i++)
        t->cache[i] = calloc(CACHE_SLOTS, sizeof(entry));
    if (t->cache[0] != NULL && t->cache[1] != NULL && t->cache[2] != NULL) return t;
    rq_tsdb_close(t);
    return NULL;
}

rq_err rq_tsdb_open(rq_db *db, const rq_tsdb_options *options, rq_tsdb **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_tsdb_options o = {0};
    rq_why_clear(&why);
    rq_err rc = RQ_OK;
    if (options != NULL)
        rc = rq_sized(&o, sizeof o, options, offsetof(rq_tsdb_options, creates), "rq_tsdb_options",
                      &why.error);
    if (rc == RQ_OK && (db == NULL || o.salt_buckets > 256))
        rc = rq_fail(&why.error, RQ_E_INVALID,
                     "the database is NULL, or there are more than 256 buckets");
    rq_tsdb *t = rc == RQ_OK ? tsdb_new() : NULL;
    if (rc == RQ_OK && t == NULL) rc = rq_no_memory(&why.error);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    if (o.data_table == NULL) o.data_table = "tsdb";
    if (o.uid_table == NULL) o.uid_table = "tsdb-uid";
    t->salt_buckets = o.salt_buckets;
    rc = open_tables(t, db, &o, failure);
    if (rc == RQ_OK)
        *ret = t;
    else
        rq_tsdb_close(t);
    return rc;
}

void rq_tsdb_close(rq_tsdb *tsdb)
{
    if (tsdb == NULL) return;
    rq_table_close(tsdb->data);
    rq_table_close(tsdb->uids);
    for (int k = 0; k < KINDS; k++) {
        for (size_t i = 0; tsdb->cache[k] != NULL && i < CACHE_SLOTS; i++)
            free(tsdb->cache[k][i].name);
        free(tsdb->cache[k]);
    }
    pthread_mutex_destroy(&tsdb->lock);
    free(tsdb);
}

/* --- writing ---------------------------------------------------------------------------------- */

typedef struct put {
    uint8_t key[RQ__TSDB_KEY_MAX];
    rq__tsdb_cell cell;
    rq_edit edit;
    rq_change change;
} put;

static rq_err check_point(const rq_tsdb_point *p, rq_error *why)
{
    if (p->tag_count < 1 || p->tag_count > RQ__TSDB_TAGS_MAX || p->tags == NULL)
        return rq_fail(why, RQ_E_INVALID, "%zu tags; allowed are 1 to %d", p->tag_count,
                       RQ__TSDB_TAGS_MAX);
    if (p->time_ms < 0 || p->time_ms / 1000 > UINT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "time %lld ms is out of range", (long long)p->time_ms);
    return RQ_OK;
}

/* The UIDs of a metric with tags. */
static rq_err ids_of(rq_tsdb *t, const rq_tsdb_point *p, bool makes, rq__tsdb_ids *ret,
                     bool *ret_found, rq_failure *why)
{
    RQ_TRY(uid_of(t, 0, p->metric, makes, ret->metric, ret_found, why));
    ret->tag_count = p->tag_count;
    for (size_t i = 0; i < p->tag_count && *ret_found; i++) {
        RQ_TRY(uid_of(t, 1, p->tags[i].name, makes, ret->tags[i], ret_found, why));
        if (*ret_found)
            RQ_TRY(
                uid_of(t, 2, p->tags[i].value, makes, ret->tags[i] + RQ__TSDB_UID, ret_found, why));
    }
    return RQ_OK;
}

static rq_err check_tags(const rq__tsdb_ids *ids, rq_error *why)
{
    for (size_t i = 1; i < ids->tag_count; i++)
        if (memcmp(ids->tags[i - 1], ids->tags[i], RQ__TSDB_UID) == 0)
            return rq_fail(why, RQ_E_INVALID, "a tag is given twice");
    return RQ_OK;
}

static rq_err make_put(rq_tsdb *t, const rq_tsdb_point *p, put *ret, rq_failure *failure)
{
    rq_why why;
    rq__tsdb_ids ids;
    bool found;
    rq_why_clear(&why);
    rq_err rc = check_point(p, &why.error);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    RQ_TRY(ids_of(t, p, true, &ids, &found, failure));
    uint32_t base = (uint32_t)(p->time_ms / 1000 / RQ__TSDB_ROW_S * RQ__TSDB_ROW_S);
    size_t len = rq__tsdb_key(&ids, base, t->salt_buckets, ret->key);
    rc = check_tags(&ids, &why.error);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rq__tsdb_encode(p, &ret->cell);
    ret->edit = (rq_edit){.family = rq_text("t"),
                          .qualifier = {ret->cell.qualifier, ret->cell.qualifier_len},
                          .value = {ret->cell.value, ret->cell.value_len}};
    ret->change = (rq_change){.size = sizeof ret->change,
                              .kind = RQ_PUT,
                              .row = {ret->key, len},
                              .edits = &ret->edit,
                              .edit_count = 1};
    return RQ_OK;
}

static rq_err put_some(rq_tsdb *t, const rq_tsdb_point *points, size_t count, put *puts,
                       rq_action *actions, rq_failure *why)
{
    for (size_t i = 0; i < count; i++) {
        RQ_TRY(make_put(t, &points[i], &puts[i], why));
        actions[i] = (rq_action){.changes = &puts[i].change, .change_count = 1};
    }
    return rq_table_batch(t->data, actions, count, NULL, why);
}

rq_err rq_tsdb_put(rq_tsdb *tsdb, const rq_tsdb_point *points, size_t count, rq_failure *failure)
{
    RQ_TRY(rq_needs(tsdb, "rq_tsdb", failure));
    if (count > 0) RQ_TRY(rq_needs(points, "points", failure));
    rq_why why;
    rq_why_clear(&why);
    size_t most = count < MAX_BATCH ? count : MAX_BATCH;
    put *puts = calloc(most + 1, sizeof *puts);
    rq_action *actions = calloc(most + 1, sizeof *actions);
    rq_err rc = puts == NULL || actions == NULL ? rq_no_memory(&why.error) : RQ_OK;
    rq_fill_failure(failure, rc, &why);
    for (size_t i = 0; i < count && rc == RQ_OK; i += MAX_BATCH)
        rc = put_some(tsdb, points + i, count - i < MAX_BATCH ? count - i : MAX_BATCH, puts,
                      actions, failure);
    free(puts);
    free(actions);
    return rc;
}
