/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk load; see bulk.h. */
#include "ops/bulk.h"

#include "ops/ops_priv.h"
#include "region/bulk_load.h"

#include <inttypes.h>
#include <string.h>

#define STAGING RQ_INTAKE_STAGING

static const rq_ops *ops_of(const rq_op_bulk *b)
{
    return b->op.seat->ops;
}

/* --- leaving the lane ------------------------------------------------------------------------- */

static void end(rq_op_bulk *b)
{
    b->op.cost.rows = b->loaded ? b->file_count : 0;
    rq_op_end(&b->op, b->work_rc);
}

static void finish(rq_task *task)
{
    end(RQ_CONTAINER_OF(task, rq_op_bulk, task));
}

static void run_work(rq_task *task)
{
    rq_op_bulk *b = RQ_CONTAINER_OF(task, rq_op_bulk, task);
    b->work_rc = b->work(b);
    b->task.run = finish;
    rq_pool_share_end(&b->op.seat->ops->bulk);
    rq_lane_post(b->op.seat->lane, &b->task);
}

static void unref_region(void *thing)
{
    rq_region_unref(thing);
}

static rq_err pin_region(rq_op *op)
{
    if (op->region == NULL) return RQ_OK;
    rq_err rc = rq_arena_link(op->arena, unref_region, op->region);
    if (rc == RQ_OK) rq_region_ref(op->region);
    return rc;
}

static void work_on_thread(rq_op_bulk *b)
{
    rq_ops_seat *seat = b->op.seat;
    rq_epoch_exit(seat->ops->env.epoch, seat->section);
    b->work_rc = b->work(b);
    rq_epoch_enter(seat->ops->env.epoch, seat->section);
    end(b);
}

static void run(rq_op *op)
{
    rq_op_bulk *b = RQ_CONTAINER_OF(op, rq_op_bulk, op);
    op->has_waited = true;
    b->work_rc = ops_of(b)->intake == NULL
                     ? rq_fail(&op->why, RQ_E_UNSUPPORTED, "bulk load is disabled")
                     : pin_region(op);
    if (b->work_rc != RQ_OK) {
        end(b);
        return;
    }
    if (op->seat->lane == NULL) {
        work_on_thread(b);
        return;
    }
    b->task.run = run_work;
    rq_pool_share_submit(&op->seat->ops->bulk, &b->task);
}

void rq__bulk_start(rq_op_bulk *b, rq_op_kind kind, rq_err (*work)(rq_op_bulk *b))
{
    b->op.kind = kind;
    b->work = work;
    rq_op_begin(&b->op, run);
}

/* --- the staging folder ----------------------------------------------------------------------- */

/* Makes a text safe as a part of a folder's name: characters that could form a path or hide the
 * folder become '_'. */
static char *harmless(rq_arena *a, rq_slice text)
{
    char *out = rq_arena_cstr(a, text);
    for (char *p = out; p != NULL && *p != '\0'; p++) {
        bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '-';
        if (!fine) *p = '_';
    }
    return out;
}

#define FOLDERS_MAX 1024 /* in the staging folder */

static rq_err count_folders(rq_op_bulk *b, size_t *ret, bool remove_empty)
{
    rq_vfs *vfs = ops_of(b)->env.vfs;
    rq_dir_entry *entries;
    size_t count;
    *ret = 0;
    RQ_TRY(rq_vfs_list_if_any(vfs, STAGING, b->op.arena, &entries, &count, &b->op.why));
    for (size_t i = 0; i < count; i++) {
        const char *path = rq_arena_printf(b->op.arena, "%s/%s", STAGING, entries[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        bool removed = remove_empty && entries[i].is_dir && rq_vfs_remove(vfs, path, NULL) == RQ_OK;
        *ret += !removed;
    }
    return RQ_OK;
}

/* The staging folder of a client that died is never cleaned up. When there are too many folders,
 * empty ones are removed; folders with files stay, and if all have files no further one is
 * created. */
static rq_err check_room(rq_op_bulk *b)
{
    size_t count;
    RQ_TRY(count_folders(b, &count, false));
    if (count >= FOLDERS_MAX) RQ_TRY(count_folders(b, &count, true));
    if (count < FOLDERS_MAX) return RQ_OK;
    return rq_fail(&b->op.why, RQ_E_IOEXCEPTION,
                   "file:%s/%s has %zu folders of bulk loads that were never finished or cleaned "
                   "up: no further bulk load can begin",
                   ops_of(b)->data_path, STAGING, count);
}

/* <user>__<table>__<random>. HBASE: SecureBulkLoadManager.createStagingDir. */
static rq_err prepare(rq_op_bulk *b)
{
    rq_arena *a = b->op.arena;
    rq_executor *ex = ops_of(b)->env.executor;
    RQ_TRY(check_room(b));
    rq_slice name_of_user = b->op.principal;
    if (name_of_user.len > 64) name_of_user.len = 64;
    const char *user = harmless(a, name_of_user);
    const char *table = harmless(a, rq_region_get_info(b->op.region)->table);
    if (user == NULL || table == NULL) return RQ_E_NO_MEMORY;
    char *name =
        rq_arena_printf(a, "%s/%s__%.100s__%016" PRIx64 "%016" PRIx64 "%016" PRIx64, STAGING, user,
                        table, ex->random(ex), ex->random(ex), ex->random(ex));
    if (name == NULL) return RQ_E_NO_MEMORY;
    b->token = rq_arena_printf(a, "file:%s/%s", ops_of(b)->data_path, name);
    if (b->token == NULL) return RQ_E_NO_MEMORY;
    return rq_vfs_mkdirs(ops_of(b)->env.vfs, name, &b->op.why);
}

/* The path of a file: URL, or an absolute path as it is; NULL for anything else. */
const char *rq__bulk_local_path(const char *said)
{
    if (strncmp(said, "file:", 5) == 0) {
        said += 5;
        if (strncmp(said, "//", 2) == 0) { /* an authority: none, or this machine */
            said += 2;
            if (strncmp(said, "localhost/", 10) == 0) said += 9;
        }
    }
    return said[0] == '/' ? said : NULL;
}

/* The part of `path` below the data folder; NULL if it is elsewhere. */
static const char *below_root(const rq_ops *ops, const char *path)
{
    size_t len = strlen(ops->data_path);
    return strncmp(path, ops->data_path, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static rq_err cleanup(rq_op_bulk *b)
{
    const char *path = rq__bulk_local_path(b->token);
    const char *inside = path == NULL ? NULL : below_root(ops_of(b), path);
    size_t len = strlen(STAGING "/");
    bool child = inside != NULL && strncmp(inside, STAGING "/", len) == 0 &&
                 strchr(inside + len, '/') == NULL;
    /* Also keeps "." and ".." out. */
    if (!child || inside[len] == '\0' || inside[len] == '.')
        return rq_fail(&b->op.why, RQ_E_DO_NOT_RETRY,
                       "Bulk load token path must be a direct child of the staging directory: "
                       "file:%s/%s",
                       ops_of(b)->data_path, STAGING);
    return rq_vfs_remove_tree(ops_of(b)->env.vfs, inside, &b->op.why);
}

/* --- the load --------------------------------------------------------------------------------- */

static rq_err find_source(rq_op_bulk *b, rq_intake_visit *visit, const char *said,
                          rq_bulk_file *ret)
{
    const char *path = rq__bulk_local_path(said);
    if (path == NULL)
        return rq_fail(&b->op.why, RQ_E_IOEXCEPTION,
                       "%s: only files on the server's machine can be loaded", said);
    rq_err rc = rq_intake_find(visit, path, &ret->source, &ret->path, &b->op.why);
    b->is_refused = rc == RQ_E_DO_NOT_RETRY;
    return rc;
}

static rq_err find_and_load(rq_op_bulk *b, rq_intake_visit *visit)
{
    rq_bulk_file *files = rq_arena_calloc(b->op.arena, b->file_count + 1, sizeof *files);
    if (files == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < b->file_count; i++) {
        files[i].family = b->files[i].family;
        files[i].name = b->files[i].path;
        RQ_TRY(find_source(b, visit, b->files[i].path, &files[i]));
    }
    rq_bulk_load l = {.files = files,
                      .file_count = b->file_count,
                      .assign_seqid = b->assign_seqid,
                      .copy = b->copy};
    RQ_TRY(rq__bulk_ships(b, &l));
    return rq_region_bulk_load(b->op.region, &l, &b->loaded, &b->op.why);
}

static rq_err load_files(rq_op_bulk *b)
{
    rq_intake_visit visit;
    RQ_TRY(rq_intake_begin(ops_of(b)->intake, b->op.arena, &visit));
    rq_err rc = find_and_load(b, &visit);
    rq_intake_end(&visit);
    return rc;
}

/* Whether the files were already loaded on this cluster: replication between clusters may send them
 * in a circle. HBASE: RSRpcServices.bulkLoadHFile. */
bool rq__bulk_was_here(const rq_op_bulk *b)
{
    for (size_t i = 0; i < b->cluster_id_count; i++)
        if (strcmp(b->cluster_ids[i], ops_of(b)->cluster_id) == 0) return true;
    return false;
}

rq_err rq__bulk_ships(rq_op_bulk *b, rq_bulk_load *load)
{
    if (!ops_of(b)->ships_loads || b->stays_here) return RQ_OK;
    size_t n = b->cluster_id_count;
    const char **ids = rq_arena_alloc(b->op.arena, (n + 1) * sizeof *ids);
    if (ids == NULL) return RQ_E_NO_MEMORY;
    if (n > 0) memcpy(ids, b->cluster_ids, n * sizeof *ids);
    ids[n] = ops_of(b)->cluster_id;
    load->ships = true;
    load->cluster_ids = ids;
    load->cluster_id_count = n + 1;
    return RQ_OK;
}

static rq_err load(rq_op_bulk *b)
{
    if (!rq__bulk_was_here(b)) return load_files(b);
    b->loaded = true;
    return RQ_OK;
}

/* --- the ops ---------------------------------------------------------------------------------- */

void rq_op_bulk_prepare_start(rq_op_bulk *b)
{
    rq__bulk_start(b, RQ_OP_BULK_PREPARE, prepare);
}

void rq_op_bulk_load_start(rq_op_bulk *b)
{
    rq__bulk_start(b, RQ_OP_BULK_LOAD, load);
}

void rq_op_bulk_cleanup_start(rq_op_bulk *b)
{
    rq__bulk_start(b, RQ_OP_BULK_CLEANUP, cleanup);
}
