/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's cleaner: files of dropped tables and inputs of compactions stay in archive/ for a
 * while (an operator may need one) and are then removed, with the folders that become empty. HBASE:
 * HFileCleaner, TimeToLiveHFileCleaner, HFileLinkCleaner, SnapshotHFileCleaner.
 *
 * The file behind a cloned table's link is kept: the folder .links-<file> beside it has an entry
 * <region>.<table> for each link, which counts while the link exists. Files named by HBase's
 * snapshots are kept too (snapshots.h).
 *
 * A file's times tell when it was written, not when it was archived. So each round notes the files
 * it sees, and removes a file that was first noted longer ago than the time to live. The notes are
 * in memory: after a restart the time begins again.
 *
 * In a cluster, a later master may hold files for a snapshot that this one does not know of. A server is fenced before another
 * one takes its first step as the master, so each removal first checks that this server has not been fenced. A pause between
 * check and removal is harmless while it is shorter than the time to live.
 *
 * With replication of bulk loads, a loaded file (…_SeqId_n_) also stays until every peer has passed the
 * position that was the end of the log when the file was noted. The record of the load is before this
 * position, and the file is copied to a peer when the source comes to the record. HBASE:
 * ReplicationHFileCleaner. */
#include "catalog/catalog_priv.h"
#include "catalog/snapshots.h"
#include "store/mob.h"
#include "vfs/retention.h"

#include "base/fnv.h"

#include <stdlib.h>

#define ARCHIVE "archive"
#define LINKS ".links-"
#define DEPTH_MAX 16
#define ROUNDS_APART_MIN_MS 10000

typedef struct round_state {
    rq_catalog *catalog;
    rq__seen_file *seen; /* of this round, ascending by hash */
    size_t count, cap;
    int64_t now_ms, ttl_ms;
    uint64_t log_end;
    size_t removed;
    rq__snapshot_files snapshots;
    uint64_t snapshots_made; /* rq_catalog.snapshots_made when the snapshots were read */
} round_state;

static uint64_t path_hash(const char *path)
{
    return rq_fnv1a(RQ_FNV1A, rq_slice_cstr(path));
}

static int seen_order(const void *a, const void *b)
{
    const rq__seen_file *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* The note that an earlier round made of the file, or a new one. */
static rq__seen_file first_seen(const round_state *r, uint64_t hash)
{
    const rq__cleaner *c = &r->catalog->cleaner;
    rq__seen_file key = {.hash = hash, .first_ms = r->now_ms, .first_lsn = r->log_end};
    const rq__seen_file *f =
        c->count == 0 ? NULL : bsearch(&key, c->seen, c->count, sizeof key, seen_order);
    return f == NULL ? key : *f;
}

/* Whether a peer may still copy the file. */
static bool peer_needs(const round_state *r, const char *name, const rq__seen_file *f)
{
    const rq_catalog *c = r->catalog;
    return c->cleaner.keeps_loads && strstr(name, "_SeqId_") != NULL &&
           rq_retention_log_from(rq_engine_retention(c->engine)) < f->first_lsn;
}

static rq_err note(round_state *r, rq__seen_file f)
{
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        rq__seen_file *more = realloc(r->seen, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        r->seen = more;
        r->cap = cap;
    }
    r->seen[r->count++] = f;
    return RQ_OK;
}

static bool is_there(rq_vfs *v, const char *path)
{
    rq_stat st;
    /* If the check fails, the file counts as existing. */
    return rq_vfs_stat(v, path, &st, NULL) != RQ_E_NOT_FOUND;
}

/* The parts of archive/data/<ns>/<table>/<region>/<family>/.links-<file>. */
enum { PART_NS = 2, PART_TABLE, PART_REGION, PART_FAMILY, PART_LINKS, PARTS };

static bool split_path(char *path, char *parts[PARTS])
{
    size_t n = 0;
    for (char *p = path; p != NULL && n <= PARTS; n++) {
        if (n < PARTS) parts[n] = p;
        p = strchr(p, '/');
        if (p != NULL) *p++ = '\0';
    }
    return n == PARTS && strncmp(parts[PART_LINKS], LINKS, sizeof LINKS - 1) == 0;
}

/* Whether the link's folder has a reference to the link, "<link>.<region>", which is so in a clone of a
 * snapshot with daughters of a split. True also if the folder cannot be read. */
static bool has_reference(rq_vfs *v, const char *link)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0, len;
    bool found = false;
    const char *slash = strrchr(link, '/');
    const char *dir = rq_arena_printf(&a, "%.*s", (int)(slash - link), link);
    rq_err rc =
        dir == NULL ? RQ_E_NO_MEMORY : rq_vfs_list_if_any(v, dir, &a, &entries, &count, NULL);
    len = strlen(slash + 1);
    for (size_t i = 0; i < count && rc == RQ_OK && !found; i++)
        found = strncmp(entries[i].name, slash + 1, len) == 0 && entries[i].name[len] == '.';
    rq_arena_clear(&a);
    return found || rc != RQ_OK;
}

/* Whether the link for an entry of .links-<file>/ exists. HBASE: HFileLink.
 * getHFileFromBackReference: <region>.<table> or <region>.<ns>=<table>. */
static rq_err has_link(rq_vfs *v, const char *links_dir, const char *entry, bool *ret)
{
    rq_arena a = {0};
    char *parts[PARTS];
    char *dir = rq_arena_printf(&a, "%s", links_dir);
    char *region = rq_arena_printf(&a, "%s", entry);
    rq_err rc = dir == NULL || region == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    *ret = false;
    char *table = rc == RQ_OK ? strchr(region, '.') : NULL;
    if (table != NULL && split_path(dir, parts)) {
        *table++ = '\0';
        char *ns = table;
        char *equals = strchr(table, '=');
        if (equals != NULL) *equals = '\0';
        bool in_default = strcmp(parts[PART_NS], "default") == 0;
        const char *path = rq_arena_printf(
            &a, RQ_MOB_DIR "/data/%s/%s/%s/%s/%s%s%s=%s-%s", equals == NULL ? "default" : ns,
            equals == NULL ? table : equals + 1, region, parts[PART_FAMILY],
            in_default ? "" : parts[PART_NS], in_default ? "" : "=", parts[PART_TABLE],
            parts[PART_REGION], parts[PART_LINKS] + sizeof LINKS - 1);
        if (path == NULL)
            rc = RQ_E_NO_MEMORY;
        else /* of a store file, or of a MOB file */
            *ret = is_there(v, path + sizeof RQ_MOB_DIR) || is_there(v, path) ||
                   has_reference(v, path + sizeof RQ_MOB_DIR);
    }
    rq_arena_clear(&a);
    return rc;
}

/* Reads the snapshots again if snapshots_made has changed. A procedure that makes a snapshot first
 * completes the snapshot, then increments snapshots_made, then releases its hold on archive/. So if no
 * holder keeps a file, and this function is called after that was checked, the file can only be in the
 * snapshots that were read. */
static void read_snapshots_again(round_state *r)
{
    uint64_t made = atomic_load(&r->catalog->snapshots_made);
    if (made == r->snapshots_made) return;
    rq__snapshot_files_clear(&r->snapshots);
    r->snapshots_made = made;
}

/* Whether something refers to the file, or the file is such a back reference. */
static rq_err is_held(round_state *r, const char *dir, const char *name, const char *path,
                      bool *ret, rq_error *why)
{
    rq_vfs *v = r->catalog->env->vfs;
    const char *last = strrchr(dir, '/');
    if (rq_retention_keeps(rq_engine_retention(r->catalog->engine), path)) {
        *ret = true;
        return RQ_OK;
    }
    if (last != NULL && strncmp(last + 1, LINKS, sizeof LINKS - 1) == 0)
        return has_link(v, dir, name, ret);
    read_snapshots_again(r);
    RQ_TRY(rq__snapshot_holds(&r->snapshots, v, name, ret, why));
    if (*ret) return RQ_OK;
    rq_arena a = {0};
    const char *links = rq_arena_printf(&a, "%s/" LINKS "%s", dir, name);
    if (links != NULL) *ret = is_there(v, links);
    rq_arena_clear(&a);
    return links == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* *ret_empty: the folder is empty now. */
static rq_err clean_dir(round_state *r, const char *dir, unsigned depth, bool *ret_empty,
                        rq_error *why)
{
    rq_vfs *v = r->catalog->env->vfs;
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count, left = 0;
    rq_err rc = rq_vfs_list(v, dir, &a, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        char *path = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        bool gone = false;
        if (path == NULL) {
            rc = RQ_E_NO_MEMORY;
        } else if (entries[i].is_dir) {
            if (depth < DEPTH_MAX && !entries[i].is_link)
                rc = clean_dir(r, path, depth + 1, &gone, why);
            /* If another thread is adding a file to the folder, the removal fails and the folder
             * stays. */
            if (rc == RQ_OK && gone) gone = rq_vfs_remove(v, path, NULL) == RQ_OK;
        } else {
            rq__seen_file first = first_seen(r, path_hash(path));
            bool held = false;
            if (r->now_ms - first.first_ms >= r->ttl_ms &&
                !peer_needs(r, entries[i].name, &first)) {
                rc = is_held(r, dir, entries[i].name, path, &held, why);
                if (rc == RQ_OK && !held) rc = rq_engine_check_not_fenced(r->catalog->engine, why);
                gone = rc == RQ_OK && !held && rq_vfs_remove(v, path, NULL) == RQ_OK;
            }
            if (gone)
                r->removed++;
            else if (rc == RQ_OK)
                rc = note(r, first);
        }
        left += !gone;
    }
    rq_arena_clear(&a);
    *ret_empty = rc == RQ_OK && left == 0;
    return rc;
}

/* One round at a time: the caller has set `busy`. */
static rq_err run_round(rq_catalog *c, rq_error *why)
{
    rq__cleaner *cl = &c->cleaner;
    round_state r = {.catalog = c, .ttl_ms = cl->ttl_ms};
    r.now_ms = rq__catalog_wall_ms(c);
    rq_wal_stats log;
    rq_wal_get_stats(rq_engine_wal(c->engine), &log);
    r.log_end = log.staged;
    rq_stat st;
    bool empty;
    rq_err rc = RQ_OK;
    if (rq_vfs_stat(c->env->vfs, ARCHIVE, &st, NULL) == RQ_OK)
        rc = clean_dir(&r, ARCHIVE, 0, &empty, why);
    rq__snapshot_files_clear(&r.snapshots);
    if (r.removed > 0)
        rq_log_info(c->env->log, "catalog", "removed %zu files from archive/, %zu remain",
                    r.removed, r.count);
    if (rc != RQ_OK) {
        free(r.seen);
        return rc;
    }
    if (r.count > 1) qsort(r.seen, r.count, sizeof *r.seen, seen_order);
    free(cl->seen);
    cl->seen = r.seen;
    cl->count = r.count;
    return RQ_OK;
}

rq_err rq_catalog_clean_archive(rq_catalog *c, bool *ret_ran, rq_error *why)
{
    *ret_ran = false;
    if (!rq_catalog_switch_get(c, RQ_SWITCH_CLEANER)) return RQ_OK;
    if (atomic_exchange(&c->cleaner.busy, true)) return RQ_OK;
    rq_err rc = run_round(c, why);
    atomic_store(&c->cleaner.busy, false);
    if (rc == RQ_OK) *ret_ran = true;
    return rc;
}

/* --- on its own ------------------------------------------------------------------------------- */

static void work(rq_catalog *c)
{
    bool ran;
    rq_error why = {0};
    if (rq_catalog_clean_archive(c, &ran, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "cannot remove old files from archive/: %s",
                    why.message);
}

/* A file's time in the archive counts from the first round that sees it. If the time to live is shorter than the
 * configured interval, it is used as the interval: otherwise files would stay longer than in HBase, and the archive,
 * which grows as fast as compactions write, would become larger. */
void rq__cleaner_start(rq_catalog *c)
{
    rq__chore *chore = &c->cleaner.chore;
    if (c->cleaner.ttl_ms >= ROUNDS_APART_MIN_MS && c->cleaner.ttl_ms < chore->interval_ms)
        chore->interval_ms = c->cleaner.ttl_ms;
    rq__chore_start(chore, c, work);
}

void rq__cleaner_clear(rq_catalog *c)
{
    free(c->cleaner.seen);
    c->cleaner.seen = NULL;
    c->cleaner.count = 0;
}
