/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk load as HBase's tools drive it (HBASE: RSRpcServices, SecureBulkLoadManager):
 *
 *   PrepareBulkLoad ─► a folder of its own below ROOT/staging; its path is the token
 *   BulkLoadHFile   ─► per region one call with all its files (region/bulk_load.h)
 *   CleanupBulkLoad ─► the folder goes
 *
 * HBase moves the files through the staging folder, because there they belong to the server's user.
 * Ours are linked straight into the families' folders; the staging folder holds what a client puts
 * there itself. Paths are those of the server's machine, which is where the tools run: a file: URL
 * or a plain absolute path. Files are taken from the staging folder and from the folders that
 * rorqual.bulkload.folders lists (vfs/intake.h), from nowhere else: a client could name any file
 * that the server's user can read.
 *
 * With a token HBase answers every failure with loaded = false (the client then tries again a few
 * times); without one it answers the exception. So do we; the reason is in the log. A file outside
 * the listed folders is refused by an exception in either case: trying again does not help, and
 * the setting is named.
 *
 * Everything here touches files: the handlers only find the region, the rest runs on RQ_POOL_WORK.
 */
#include "region/bulk_load.h"
#include "service/client_priv.h"

#include <inttypes.h>
#include <string.h>

#define STAGING RQ_INTAKE_STAGING

typedef struct job {
    rq_client_service *service;
    rq_call *call;
    rq_region *region; /* a reference */
    rq_task task;
    rq_err rc;
    rq_error why;
    rq_err (*work)(struct job *j);
    void (*answer)(struct job *j);
    bool loaded;
    bool is_refused; /* a file lies where none is taken from */
    const char *token;
} job;

/* --- leaving the loop ------------------------------------------------------------------------- */

static void finish(rq_task *task)
{
    job *j = RQ_CONTAINER_OF(task, job, task);
    if (j->rc != RQ_OK)
        rq_call_fail_why(j->call, j->rc, &j->why);
    else
        j->answer(j);
}

static void run(rq_task *task)
{
    job *j = RQ_CONTAINER_OF(task, job, task);
    j->rc = j->work(j);
    j->task.run = finish;
    rq_call_post(j->call, &j->task);
}

static void unref_region(void *thing)
{
    rq_region_unref(thing);
}

/* `spec` may be NULL: clients before 2.0 name no region when they clean up. */
static rq_err begin(rq_client_service *s, rq_call *call, const Pb__RegionSpecifier *spec,
                    rq_err (*work)(job *j), void (*answer)(job *j), rq_error *why)
{
    job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) return RQ_E_NO_MEMORY;
    if (s->intake == NULL) return rq_fail(why, RQ_E_UNSUPPORTED, "bulk load is not served");
    *j = (job){.service = s, .call = call, .work = work, .answer = answer};
    if (spec != NULL) {
        RQ_TRY(rq__find_region(s, spec, &j->region, why));
        rq_region_ref(j->region);
        rq_err rc = rq_arena_link(&call->arena, unref_region, j->region);
        if (rc != RQ_OK) {
            rq_region_unref(j->region);
            return rc;
        }
    }
    j->task.run = run;
    s->env.executor->submit(s->env.executor, RQ_POOL_WORK, &j->task);
    return RQ_OK;
}

static void handle(rq_client_service *s, rq_call *call, const Pb__RegionSpecifier *spec,
                   rq_err (*work)(job *j), void (*answer)(job *j))
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = begin(s, call, spec, work, answer, &why);
    if (rc != RQ_OK) rq_call_fail_why(call, rc, &why);
}

/* --- the staging folder ----------------------------------------------------------------------- */

/* A part of a folder's name: what could be a path or hidden becomes '_'. */
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

/* <user>__<table>__<random>. HBASE: SecureBulkLoadManager.createStagingDir. */
static rq_err prepare(job *j)
{
    rq_arena *a = &j->call->arena;
    rq_executor *ex = j->service->env.executor;
    size_t user_len = strnlen(j->call->client->user, 64);
    const char *user = harmless(a, rq_slice_of(j->call->client->user, user_len));
    const char *table = harmless(a, rq_region_get_info(j->region)->table);
    if (user == NULL || table == NULL) return RQ_E_NO_MEMORY;
    char *name =
        rq_arena_printf(a, "%s/%s__%.100s__%016" PRIx64 "%016" PRIx64 "%016" PRIx64, STAGING, user,
                        table, ex->random(ex), ex->random(ex), ex->random(ex));
    if (name == NULL) return RQ_E_NO_MEMORY;
    j->token = rq_arena_printf(a, "file:%s/%s", j->service->data_path, name);
    if (j->token == NULL) return RQ_E_NO_MEMORY;
    return rq_vfs_mkdirs(j->service->env.vfs, name, &j->why);
}

static void answer_prepare(job *j)
{
    Pb__PrepareBulkLoadResponse response = PB__PREPARE_BULK_LOAD_RESPONSE__INIT;
    response.bulk_token = (char *)(uintptr_t)j->token;
    rq_call_reply(j->call, &response.base);
}

/* The path of a file: URL, or an absolute path as it is; NULL for anything else. */
static const char *local_path(const char *said)
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

/* What is behind the data folder's path, or NULL when `path` is not below it. */
static const char *below_root(const rq_client_service *s, const char *path)
{
    size_t len = strlen(s->data_path);
    return strncmp(path, s->data_path, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static rq_err cleanup(job *j)
{
    const Pb__CleanupBulkLoadRequest *request = (const Pb__CleanupBulkLoadRequest *)j->call->param;
    const char *path = local_path(request->bulk_token);
    const char *inside = path == NULL ? NULL : below_root(j->service, path);
    size_t len = strlen(STAGING "/");
    bool child = inside != NULL && strncmp(inside, STAGING "/", len) == 0 &&
                 strchr(inside + len, '/') == NULL;
    /* Also keeps "." and ".." out. */
    if (!child || inside[len] == '\0' || inside[len] == '.')
        return rq_fail(&j->why, RQ_E_DO_NOT_RETRY,
                       "Bulk load token path must be a direct child of the staging directory: "
                       "file:%s/%s",
                       j->service->data_path, STAGING);
    return rq_vfs_remove_tree(j->service->env.vfs, inside, &j->why);
}

static void answer_cleanup(job *j)
{
    Pb__CleanupBulkLoadResponse response = PB__CLEANUP_BULK_LOAD_RESPONSE__INIT;
    rq_call_reply(j->call, &response.base);
}

/* --- the load --------------------------------------------------------------------------------- */

static rq_err find_source(job *j, rq_intake_visit *visit, const char *said, rq_bulk_file *ret)
{
    const char *path = local_path(said);
    if (path == NULL)
        return rq_fail(&j->why, RQ_E_IOEXCEPTION,
                       "%s: only files of the server's own machine can be loaded", said);
    rq_err rc = rq_intake_find(visit, path, &ret->source, &ret->path, &j->why);
    j->is_refused = rc == RQ_E_DO_NOT_RETRY;
    return rc;
}

static rq_err find_and_load(job *j, rq_intake_visit *visit)
{
    const Pb__BulkLoadHFileRequest *request = (const Pb__BulkLoadHFileRequest *)j->call->param;
    rq_bulk_file *files =
        rq_arena_calloc(&j->call->arena, request->n_family_path + 1, sizeof *files);
    if (files == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < request->n_family_path; i++) {
        const Pb__BulkLoadHFileRequest__FamilyPath *f = request->family_path[i];
        files[i].family = rq__pb_slice(f->family);
        files[i].name = f->path;
        RQ_TRY(find_source(j, visit, f->path, &files[i]));
    }
    rq_bulk_load load = {
        .files = files,
        .file_count = request->n_family_path,
        .assign_seqid =
            request->bulk_token != NULL || (request->has_assign_seq_num && request->assign_seq_num),
        .copy = request->has_copy_file && request->copy_file,
    };
    return rq_region_bulk_load(j->region, &load, &j->loaded, &j->why);
}

static rq_err load_files(job *j)
{
    rq_intake_visit visit;
    RQ_TRY(rq_intake_begin(j->service->intake, &j->call->arena, &visit));
    rq_err rc = find_and_load(j, &visit);
    rq_intake_end(&visit);
    return rc;
}

/* HBASE: RSRpcServices.bulkLoadHFile: what came around by replication is here already. */
static bool was_here(const rq_client_service *s, const Pb__BulkLoadHFileRequest *request)
{
    const char *self = rq_root_cluster_id(rq_catalog_root(s->catalog));
    for (size_t i = 0; i < request->n_cluster_ids; i++)
        if (strcmp(request->cluster_ids[i], self) == 0) return true;
    return false;
}

static rq_err bulk_load(job *j)
{
    const Pb__BulkLoadHFileRequest *request = (const Pb__BulkLoadHFileRequest *)j->call->param;
    if (was_here(j->service, request)) {
        j->loaded = true;
        return RQ_OK;
    }
    rq_err rc = load_files(j);
    if (rc == RQ_OK || request->bulk_token == NULL || j->is_refused) return rc;
    rq_log_warn(j->service->env.log, "bulk", "nothing was loaded into %s: %s",
                rq_region_get_info(j->region)->encoded,
                j->why.message[0] == '\0' ? rq_err_text(rc) : j->why.message);
    j->loaded = false;
    return RQ_OK;
}

static void answer_load(job *j)
{
    Pb__BulkLoadHFileResponse response = PB__BULK_LOAD_HFILE_RESPONSE__INIT;
    response.loaded = j->loaded;
    rq_call_reply(j->call, &response.base);
}

/* --- handlers --------------------------------------------------------------------------------- */

void rq__handle_prepare_bulk_load(void *ctx, rq_call *call)
{
    const Pb__PrepareBulkLoadRequest *request = (const Pb__PrepareBulkLoadRequest *)call->param;
    if (request->region == NULL)
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "PrepareBulkLoad names no region");
    else
        handle(ctx, call, request->region, prepare, answer_prepare);
}

void rq__handle_bulk_load(void *ctx, rq_call *call)
{
    const Pb__BulkLoadHFileRequest *request = (const Pb__BulkLoadHFileRequest *)call->param;
    handle(ctx, call, request->region, bulk_load, answer_load);
}

void rq__handle_cleanup_bulk_load(void *ctx, rq_call *call)
{
    const Pb__CleanupBulkLoadRequest *request = (const Pb__CleanupBulkLoadRequest *)call->param;
    handle(ctx, call, request->region, cleanup, answer_cleanup);
}
