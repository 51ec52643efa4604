/* SPDX-License-Identifier: Apache-2.0 */
/* Decides who may use a data folder. The order matters: everything that may refuse the folder is
 * read before anything is written, and the lock is taken before anything that was read is relied
 * on.
 *
 *   .rorqual/version exists, ours or older   go on (the lock decides who runs)
 *   .rorqual/version newer                   refused, untouched
 *   hbase.version exists, no .rorqual        an HBase folder: taken over if nothing in it waits
 *                                            for HBase (adopt.c), else refused, untouched
 *   neither, and the folder is empty         a new folder: laid out by the catalog, then _seal
 *   neither, but something else              refused, untouched
 *   traces in WALs/ or MasterData/WALs/      HBase worked on it since: like an HBase folder; but
 *                                            refused if this server was not stopped cleanly before
 *   .rorqual exists without its version      an interrupted first start: its files are removed, if
 *                                            and only if it can hold no user table
 *
 * The files of a cluster (.rorqual/cluster) have no lock, and an interrupted first start is completed. */
#include "catalog/root_priv.h"

#include "catalog/adopt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/files.pb-c.h"

#define DIR_NAME ".rorqual"
#define LOCK_NAME DIR_NAME "/lock"
#define VERSION_NAME DIR_NAME "/version"
#define OPEN_NAME DIR_NAME "/open"
#define CLUSTER_NAME DIR_NAME "/cluster"
#define SMALL_FILE_MAX 4096

struct rq_root {
    rq_vfs *vfs;
    rq_executor *executor;
    rq_file *lock;  /* NULL: of a cluster */
    bool is_joined; /* of a cluster */
    bool is_new;
    bool adopts;         /* an HBase ran on it last */
    uint32_t traces;     /* rq__adopt_look */
    long unsure_version; /* of the file that may be in the page cache only; 0: it is durable */
    char cluster_id[RQ_CLUSTER_ID_SIZE];
};

/* RQ_OK with *ret = 0 if there is no file. */
static rq_err read_format_version(rq_vfs *v, rq_arena *a, long *ret, rq_error *why)
{
    rq_slice bytes;
    rq_err rc = rq_vfs_read_file(v, VERSION_NAME, SMALL_FILE_MAX, a, &bytes, why);
    if (rc == RQ_E_NOT_FOUND) {
        if (why != NULL) why->code = RQ_OK;
        *ret = 0;
        return RQ_OK;
    }
    RQ_TRY(rc);
    /* The power failed while a first start sealed the folder: the name exists, the bytes do not. */
    size_t zeros = 0;
    while (zeros < bytes.len && bytes.ptr[zeros] == 0)
        zeros++;
    if (zeros == bytes.len) {
        *ret = 0;
        return RQ_OK;
    }
    char *text = rq_arena_cstr(a, bytes);
    if (text == NULL) return RQ_E_NO_MEMORY;
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || n <= 0 || n > 1000000 || (*end != '\n' && *end != '\0'))
        return rq_fail(why, RQ_E_CORRUPT, "%s: not a version number", VERSION_NAME);
    *ret = n;
    return RQ_OK;
}

/* Strips "PBUF"; HBase writes it before every protobuf message that is a file of its own. */
static bool strip_magic(rq_slice *s)
{
    if (s->len < 4 || memcmp(s->ptr, "PBUF", 4) != 0) return false;
    s->ptr += 4;
    s->len -= 4;
    return true;
}

static rq_err check_hbase_version(rq_vfs *v, rq_arena *a, rq_error *why)
{
    rq_slice bytes;
    RQ_TRY(rq_vfs_read_file(v, "hbase.version", SMALL_FILE_MAX, a, &bytes, why));
    if (!strip_magic(&bytes))
        return rq_fail(why, RQ_E_CORRUPT, "hbase.version: not written by HBase 0.96 or later");
    Pb__HBaseVersionFileContent *m =
        pb__hbase_version_file_content__unpack(NULL, bytes.len, bytes.ptr);
    if (m == NULL) return rq_fail(why, RQ_E_CORRUPT, "hbase.version: malformed");
    bool same = strcmp(m->version, RQ_ROOT_HBASE_VERSION) == 0;
    rq_err rc =
        same ? RQ_OK
             : rq_fail(
                   why, RQ_E_VERSION,
                   "hbase.version: the folder's layout has version %.20s, this server supports %s",
                   m->version, RQ_ROOT_HBASE_VERSION);
    pb__hbase_version_file_content__free_unpacked(m, NULL);
    return rc;
}

static rq_err read_cluster_id(rq_root *root, rq_arena *a, rq_error *why)
{
    rq_slice bytes;
    RQ_TRY(rq_vfs_read_file(root->vfs, "hbase.id", SMALL_FILE_MAX, a, &bytes, why));
    if (!strip_magic(&bytes)) return rq_fail(why, RQ_E_CORRUPT, "hbase.id: no PBUF magic");
    Pb__ClusterId *m = pb__cluster_id__unpack(NULL, bytes.len, bytes.ptr);
    if (m == NULL) return rq_fail(why, RQ_E_CORRUPT, "hbase.id: malformed");
    size_t len = strlen(m->cluster_id);
    bool fits = len > 0 && len < sizeof root->cluster_id;
    if (fits) memcpy(root->cluster_id, m->cluster_id, len + 1);
    pb__cluster_id__free_unpacked(m, NULL);
    return fits ? RQ_OK : rq_fail(why, RQ_E_CORRUPT, "hbase.id: not a cluster id");
}

void rq_root_make_cluster_id(rq_executor *ex, char ret[RQ_CLUSTER_ID_SIZE])
{
    uint64_t hi = ex->random(ex);
    uint64_t lo = ex->random(ex);
    hi = (hi & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    lo = (lo & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    snprintf(ret, RQ_CLUSTER_ID_SIZE, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(hi >> 32),
             (unsigned)(hi >> 16) & 0xffff, (unsigned)hi & 0xffff, (unsigned)(lo >> 48),
             (unsigned long long)(lo & UINT64_C(0xffffffffffff)));
}

/* Entries that do not make a folder non-empty: a file system's own, and those of a server that
 * starts at the same time. */
static bool may_be_in_new_folder(const char *name)
{
    return strcmp(name, "lost+found") == 0 || strcmp(name, DIR_NAME) == 0;
}

static rq_err check_whole(rq_vfs *v, rq_error *why)
{
    rq_arena a = {0};
    rq_slice bytes = {0};
    rq_error own = {0};
    rq_err rc = rq_vfs_read_file(v, RQ_ROOT_UNFINISHED, SMALL_FILE_MAX, &a, &bytes, &own);
    int len = (int)(bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n' ? bytes.len - 1 : bytes.len);
    if (rc == RQ_OK && len == 0)
        rc = rq_fail(why, RQ_E_STATE,
                     "the folder is unfinished: rorqual backup, restore or recover was interrupted "
                     "on it before it changed anything (" RQ_ROOT_UNFINISHED
                     " is empty). Run that command again");
    else if (rc == RQ_OK)
        rc = rq_fail(
            why, RQ_E_STATE,
            "the folder is unfinished: rorqual %.*s was interrupted on it (" RQ_ROOT_UNFINISHED
            "). Run that command again, or remove the folder",
            len, (const char *)bytes.ptr);
    else if (rc == RQ_E_NOT_FOUND)
        rc = RQ_OK;
    else
        rc = rq_fail(why, rc, "%s", own.message);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_root_check_finished(rq_vfs *v, rq_error *why)
{
    bool of_cluster;
    RQ_TRY(rq_vfs_exists(v, CLUSTER_NAME, &of_cluster, why));
    if (of_cluster)
        return rq_fail(why, RQ_E_STATE,
                       "the folder has the files of a cluster (" CLUSTER_NAME
                       "): rorqual server --cluster uses it; a standalone server and tools for "
                       "its folder do not");
    return check_whole(v, why);
}

/* A new folder is empty: home folders, or an HBase's without its hbase.version, are not taken
 * over. */
static rq_err check_foreign(rq_vfs *v, rq_arena *a, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count, others = 0;
    char names[256] = "";
    RQ_TRY(rq_vfs_list(v, "", a, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(names);
        if (may_be_in_new_folder(entries[i].name)) continue;
        if (others++ < 3)
            snprintf(names + len, sizeof names - len, "%s%.70s", len == 0 ? "" : ", ",
                     entries[i].name);
    }
    if (others == 0) return RQ_OK;
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "the data folder is not empty (%s%s) and has neither %s nor hbase.version: it "
                   "is not a data folder of this server or of HBase. Nothing was written; use an "
                   "empty folder or one that does not exist",
                   names, others > 3 ? ", ..." : "", VERSION_NAME);
}

/* RQ_OK if data/ has only folders that a first start creates, so that no user's table is lost if they are
 * removed. */
static rq_err check_only_system(rq_vfs *v, rq_arena *a, rq_error *why)
{
    static const char *const dirs[] = {"data", "data/hbase"};
    static const char *const allowed[] = {"hbase", "default", "meta", "namespace"};
    for (size_t d = 0; d < RQ_ARRAY_LEN(dirs); d++) {
        rq_dir_entry *entries;
        size_t count;
        rq_err rc = rq_vfs_list(v, dirs[d], a, &entries, &count, NULL);
        if (rc == RQ_E_NOT_FOUND) return RQ_OK;
        if (rc != RQ_OK) return rq_fail(why, rc, "%s: cannot be listed", dirs[d]);
        for (size_t i = 0; i < count; i++) {
            bool known = false;
            for (size_t k = 0; k < RQ_ARRAY_LEN(allowed); k++)
                known |= strcmp(entries[i].name, allowed[k]) == 0;
            if (!known)
                return rq_fail(
                    why, RQ_E_CORRUPT,
                    "%s is missing, but %s/%s exists: the folder is damaged, nothing was changed",
                    VERSION_NAME, dirs[d], entries[i].name);
        }
    }
    rq_dir_entry *entries;
    size_t count;
    rq_err rc = rq_vfs_list(v, "data/default", a, &entries, &count, NULL);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "data/default: cannot be listed");
    if (count > 0)
        return rq_fail(
            why, RQ_E_CORRUPT,
            "%s is missing, but data/default/%s exists: the folder is damaged, nothing was changed",
            VERSION_NAME, entries[0].name);
    return RQ_OK;
}

static rq_err remove_interrupted(rq_vfs *v, rq_arena *a, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list(v, DIR_NAME, a, &entries, &count, why));
    bool begun = count > 1;
    static const char *const parts[] = {"data", "MasterData", "hbase.version", "hbase.id"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(parts) && !begun; i++)
        RQ_TRY(rq_vfs_exists(v, parts[i], &begun, why));
    if (!begun) return RQ_OK;
    RQ_TRY(check_only_system(v, a, why));
    RQ_TRY(rq_vfs_remove_tree(v, "data", why));
    RQ_TRY(rq_vfs_remove_tree(v, "MasterData", why));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, "lock") == 0) continue;
        char *path = rq_arena_printf(a, "%s/%s", DIR_NAME, entries[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        if (entries[i].is_dir)
            RQ_TRY(rq_vfs_remove_tree(v, path, why));
        else
            RQ_TRY(rq_vfs_remove(v, path, why));
    }
    static const char *const files[] = {"hbase.version", "hbase.id"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        rq_err rc = rq_vfs_remove(v, files[i], NULL);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
            return rq_fail(why, rc, "%s: cannot be removed", files[i]);
    }
    RQ_TRY(rq_vfs_sync_dir(v, DIR_NAME, why));
    return rq_vfs_sync_dir(v, "", why);
}

/* .rorqual/open exists while a server works, and after a crash (not after a start that was refused
 * before it wrote anything). Its content identifies the traces of HBase (adopt.h) when the file was written.
 * If the traces have changed since, HBase ran while our log still had edits. */
static rq_err check_open_mark(rq_vfs *v, rq_arena *a, uint32_t stamp, rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    rq_err rc = rq_vfs_read_file(v, OPEN_NAME, SMALL_FILE_MAX, a, &bytes, &own);
    if (rc == RQ_E_NOT_FOUND || stamp == 0) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    char *text = rq_arena_cstr(a, bytes);
    if (text == NULL) return RQ_E_NO_MEMORY;
    if (strtoul(text, NULL, 16) == stamp) return RQ_OK;
    return rq_fail(why, RQ_E_STATE,
                   "an Apache HBase used this folder after this server had crashed: this server's "
                   "log (%s/wal) and HBase's changes may conflict; nothing was changed",
                   DIR_NAME);
}

/* Checks what HBase left, if it ran last; writes nothing. */
static rq_err look_at_traces(rq_root *root, rq_arena *a, bool is_hbases, rq_error *why)
{
    RQ_TRY(check_hbase_version(root->vfs, a, why));
    RQ_TRY(rq__adopt_look(root->vfs, &root->traces, why));
    root->adopts = is_hbases || root->traces != 0;
    if (!root->adopts) return RQ_OK;
    RQ_TRY(check_open_mark(root->vfs, a, root->traces, why));
    return rq__adopt_check(root->vfs, why);
}

static rq_err check_newer(long version, rq_error *why)
{
    if (version <= RQ_ROOT_FORMAT_VERSION) return RQ_OK;
    return rq_fail(why, RQ_E_VERSION,
                   "the data folder has format version %ld, this server supports up to %d: a newer "
                   "version wrote it",
                   version, RQ_ROOT_FORMAT_VERSION);
}

/* Creates the file and syncs its content; the caller makes the name durable with sync_dir. An existing
 * file is overwritten in place, because a full disk may have no space for a new one. */
static rq_err write_file(rq_vfs *v, const char *path, rq_slice bytes, rq_error *why)
{
    rq_file *f;
    uint64_t size = 0;
    RQ_TRY(rq_vfs_open(v, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, why));
    rq_err rc = rq_file_opened_size(f, &size, why);
    if (rc == RQ_OK) rc = rq_file_write(f, bytes.ptr, bytes.len, 0, why);
    if (rc == RQ_OK && size > bytes.len) rc = rq_file_truncate(f, bytes.len, why);
    if (rc == RQ_OK) rc = rq_file_sync(f, why);
    rq_err closed = rq_file_close(f);
    return rc != RQ_OK ? rc : closed;
}

static rq_err write_version(rq_vfs *v, long version, rq_error *why)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%ld\n", version);
    RQ_TRY(write_file(v, VERSION_NAME, rq_slice_of(text, (size_t)len), why));
    return rq_vfs_sync_dir(v, DIR_NAME, why);
}

/* A first start that was killed, or whose sync failed, may have left the file in the page cache only. It is durable if the
 * last process has stopped cleanly (OPEN_NAME is absent). */
static rq_err look_at_version(rq_root *root, long version, rq_error *why)
{
    bool open;
    RQ_TRY(rq_vfs_exists(root->vfs, OPEN_NAME, &open, why));
    root->unsure_version = open ? version : 0;
    return RQ_OK;
}

/* Another master of the cluster may have raised the version after this master read it. */
static rq_err check_not_raised(rq_vfs *v, rq_error *why)
{
    rq_arena a = {0};
    long version = 0;
    rq_err rc = read_format_version(v, &a, &version, why);
    rq_arena_clear(&a);
    return rc == RQ_OK ? check_newer(version, why) : rc;
}

rq_err rq__root_mark_open(rq_root *root, rq_error *why)
{
    char text[16];
    if (root->unsure_version != 0) {
        RQ_TRY(check_not_raised(root->vfs, why));
        RQ_TRY(write_version(root->vfs, root->unsure_version, why));
    }
    root->unsure_version = 0;
    int len = snprintf(text, sizeof text, "%08x\n", root->traces);
    RQ_TRY(write_file(root->vfs, OPEN_NAME, rq_slice_of(text, (size_t)len), why));
    return rq_vfs_sync_dir(root->vfs, DIR_NAME, why);
}

static rq_err look_at_ours(rq_vfs *v, long version, rq_root_state *ret, rq_error *why)
{
    bool open;
    RQ_TRY(rq_vfs_exists(v, OPEN_NAME, &open, why));
    *ret = version == 0 ? RQ_ROOT_BEGUN : open ? RQ_ROOT_OPEN : RQ_ROOT_CLEAN;
    return RQ_OK;
}

static rq_err look(rq_root *root, rq_arena *a, rq_root_state *ret, rq_error *why)
{
    rq_vfs *v = root->vfs;
    long version;
    bool ours, hbases;
    RQ_TRY(rq_root_check_finished(v, why));
    RQ_TRY(read_format_version(v, a, &version, why));
    RQ_TRY(check_newer(version, why));
    RQ_TRY(rq_vfs_exists(v, DIR_NAME, &ours, why));
    RQ_TRY(rq_vfs_exists(v, "hbase.version", &hbases, why));
    if (ours) return look_at_ours(v, version, ret, why);
    *ret = hbases ? RQ_ROOT_HBASES : RQ_ROOT_NEW;
    if (!hbases) return check_foreign(v, a, why);
    RQ_TRY(look_at_traces(root, a, true, why));
    return read_cluster_id(root, a, why);
}

rq_err rq_root_look(rq_vfs *v, rq_root_state *ret, rq_error *why)
{
    rq_root root = {.vfs = v};
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = look(&root, &a, ret, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_root_open(const rq_env *env, rq_root **ret, rq_error *why)
{
    rq_vfs *v = env->vfs;
    rq_arena a;
    rq_arena_init(&a);
    rq_root *root = calloc(1, sizeof *root);
    if (root == NULL) return RQ_E_NO_MEMORY;
    root->vfs = v;
    root->executor = env->executor;

    long version = 0;
    rq_err rc = rq_root_check_finished(v, why);
    if (rc == RQ_OK) rc = read_format_version(v, &a, &version, why);
    if (rc == RQ_OK) rc = check_newer(version, why);
    if (rc != RQ_OK) goto out;
    bool ours = version != 0; /* the version is in the folder DIR_NAME */
    bool hbases = false;
    if (!ours) rc = rq_vfs_exists(v, DIR_NAME, &ours, why);
    if (rc == RQ_OK && version == 0) rc = rq_vfs_exists(v, "hbase.version", &hbases, why);
    if (rc != RQ_OK) goto out;
    if (!ours) {
        rc = hbases ? look_at_traces(root, &a, true, why) : check_foreign(v, &a, why);
        if (rc == RQ_OK && hbases) rc = read_cluster_id(root, &a, why);
        if (rc == RQ_OK) rc = rq_vfs_mkdir(v, DIR_NAME, why);
        if (rc == RQ_E_EXISTS) { /* another server is starting: the lock decides */
            if (why != NULL) why->code = RQ_OK;
            rc = RQ_OK;
        }
        /* Before anything else, so that the listing shows what existed before. */
        if (rc == RQ_OK) rc = rq_vfs_sync_dir(v, "", why);
        if (rc != RQ_OK) goto out;
    }
    rc = rq_vfs_lock(v, LOCK_NAME, &root->lock, why);
    if (rc != RQ_OK) goto out;
    /* Checked again under the lock: a server that just stopped may have sealed the folder. */
    rc = rq_root_check_finished(v, why);
    if (rc == RQ_OK) rc = read_format_version(v, &a, &version, why);
    if (rc == RQ_OK) rc = check_newer(version, why);
    if (rc == RQ_OK && version == 0 && ours) rc = rq_vfs_exists(v, "hbase.version", &hbases, why);
    if (rc == RQ_OK && version == 0 && ours && hbases) {
        /* Ours, begun; or HBase's, whose adoption was begun: a first start leaves no traces. */
        rc = rq__adopt_look(v, &root->traces, why);
        hbases = root->traces != 0;
    }
    if (rc != RQ_OK) goto out;
    root->is_new = version == 0 && !hbases;
    if (root->is_new) {
        rq_root_make_cluster_id(root->executor, root->cluster_id);
        rc = remove_interrupted(v, &a, why);
        /* Until it is sealed, the folder is discarded after a crash anyway. */
        if (rc == RQ_OK) rc = rq_vfs_defer(v, true, why);
    } else {
        rc = look_at_traces(root, &a, version == 0, why);
        if (rc == RQ_OK) rc = look_at_version(root, version, why);
        if (rc == RQ_OK) rc = read_cluster_id(root, &a, why);
        if (rc == RQ_OK && root->adopts) rc = rq__root_mark_open(root, why);
        if (rc == RQ_OK && root->adopts) rc = rq__adopt_recovered(v, why);
        if (rc == RQ_OK && version == 0) rc = rq__root_seal(root, why);
    }
out:
    rq_arena_clear(&a);
    if (rc != RQ_OK) {
        rq_root_close(root);
        return rc;
    }
    (void)!rq_vfs_remove(v, RQ_ROOT_BACKUP_LIST, NULL); /* a restore would find it changed anyway */
    rq__root_restrict(v, env->log, root->is_new);
    *ret = root;
    return RQ_OK;
}

/* --- of a cluster */

/* A first start that was interrupted is completed; nothing that it has made is removed. The interrupted process may
 * only be paused: if first starts removed files, it could resume in the middle of a removal and delete the files of a
 * complete store. Each part of the layout can be made again. */
static rq_err look_at_joined(rq_root *root, rq_arena *a, rq_error *why)
{
    long version = 0;
    RQ_TRY(check_whole(root->vfs, why));
    RQ_TRY(read_format_version(root->vfs, a, &version, why));
    RQ_TRY(check_newer(version, why));
    RQ_TRY(rq__adopt_look(root->vfs, &root->traces, why));
    if (root->traces != 0)
        return rq_fail(why, RQ_E_STATE,
                       "an Apache HBase has used the files of this cluster (logs are in WALs/)");
    root->is_new = version == 0;
    if (root->is_new) return check_only_system(root->vfs, a, why);
    RQ_TRY(check_hbase_version(root->vfs, a, why));
    RQ_TRY(look_at_version(root, version, why));
    return read_cluster_id(root, a, why);
}

rq_err rq_root_open_joined(const rq_env *env, const char *cluster_id, rq_root **ret, rq_error *why)
{
    rq_arena a = {0};
    rq_root *root = calloc(1, sizeof *root);
    if (root == NULL) return rq_no_memory(why);
    root->vfs = env->vfs;
    root->executor = env->executor;
    root->is_joined = true;
    snprintf(root->cluster_id, sizeof root->cluster_id, "%s", cluster_id);
    rq_err rc = look_at_joined(root, &a, why);
    rq_arena_clear(&a);
    if (rc != RQ_OK) {
        rq_root_close(root);
        return rc;
    }
    rq__root_restrict(env->vfs, env->log, root->is_new);
    *ret = root;
    return RQ_OK;
}

bool rq__root_is_joined(const rq_root *root)
{
    return root->is_joined;
}

/* --- the files of a cluster ------------------------------------------------------------------- */

/* Fails if the folder has files that a standalone server or HBase leaves in its folder. */
static rq_err check_unused(rq_vfs *v, rq_arena *a, rq_error *why)
{
    static const char *const marks[] = {VERSION_NAME, LOCK_NAME, "hbase.version"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(marks); i++) {
        bool used;
        RQ_TRY(rq_vfs_exists(v, marks[i], &used, why));
        if (used)
            return rq_fail(
                why, RQ_E_STATE,
                "the folder is the data folder of a standalone server or of HBase (it has "
                "%s), not a cluster's. Nothing was changed",
                marks[i]);
    }
    return check_foreign(v, a, why);
}

static rq_err write_mark(rq_vfs *v, rq_slice line, rq_error *why)
{
    RQ_TRY(write_file(v, CLUSTER_NAME, line, why));
    RQ_TRY(rq_vfs_sync_dir(v, DIR_NAME, why));
    return rq_vfs_sync_dir(v, "", why);
}

static rq_err write_joined(rq_vfs *v, rq_arena *a, rq_slice line, rq_error *why)
{
    RQ_TRY(check_unused(v, a, why));
    RQ_TRY(rq_vfs_mkdirs(v, DIR_NAME, why));
    return write_mark(v, line, why);
}

/* Writes a complete mark again: a killed server may have left it in the page cache only, and the files that are created
 * next are of no use without it. On a full disk this is left out, because then no other file can be created either. */
static rq_err write_mark_again(rq_vfs *v, rq_slice line, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = write_mark(v, line, &own);
    return rc == RQ_OK || rc == RQ_E_NO_SPACE ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

/* A server that was killed while it wrote the mark leaves only the beginning of the line, which is then completed. */
static rq_err join(rq_vfs *v, rq_arena *a, const char *cluster_id, rq_error *why)
{
    rq_slice mark = {0};
    rq_error own = {0};
    const char *text = rq_arena_printf(a, "%s\n", cluster_id);
    if (text == NULL) return rq_no_memory(why);
    rq_slice line = rq_slice_cstr(text);
    rq_err rc = rq_vfs_read_file(v, CLUSTER_NAME, SMALL_FILE_MAX, a, &mark, &own);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    if (!rq_slice_starts_with(line, mark))
        return rq_fail(why, RQ_E_STATE, CLUSTER_NAME ": the files are of another cluster than %s",
                       cluster_id);
    return mark.len == line.len ? write_mark_again(v, line, why) : write_joined(v, a, line, why);
}

rq_err rq_root_join(rq_vfs *v, const char *cluster_id, rq_error *why)
{
    rq_arena a = {0};
    rq_err rc = join(v, &a, cluster_id, why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err claim(rq_vfs *v, rq_arena *a, const char *cluster_id, rq_error *why)
{
    bool of_cluster;
    const char *path = rq_arena_printf(a, CLUSTER_NAME "-%s", cluster_id);
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_exists(v, CLUSTER_NAME, &of_cluster, why));
    if (of_cluster)
        return rq_fail(why, RQ_E_STATE,
                       "the folder has the files of a cluster (" CLUSTER_NAME
                       "), and the storage has none yet. Nothing was changed");
    RQ_TRY(check_unused(v, a, why));
    RQ_TRY(rq_vfs_mkdirs(v, path, why));
    RQ_TRY(rq_vfs_sync_dir(v, DIR_NAME, why));
    return rq_vfs_sync_dir(v, "", why);
}

rq_err rq_root_claim(rq_vfs *v, const char *cluster_id, rq_error *why)
{
    rq_arena a = {0};
    rq_err rc = claim(v, &a, cluster_id, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_root_check_claim(rq_vfs *v, const char *cluster_id, rq_error *why)
{
    char path[sizeof CLUSTER_NAME + RQ_CLUSTER_ID_SIZE];
    bool claimed;
    snprintf(path, sizeof path, CLUSTER_NAME "-%s", cluster_id);
    RQ_TRY(rq_vfs_exists(v, path, &claimed, why));
    if (claimed) return RQ_OK;
    return rq_fail(why, RQ_E_STATE,
                   "the folder does not belong to cluster %s (it has no %s). Is its file system "
                   "mounted, and is it the same folder on all servers? Nothing was changed",
                   cluster_id, path);
}

rq_err rq__root_look(rq_vfs *v, bool ours, rq_error *why)
{
    rq_arena a = {0};
    rq_root id = {.vfs = v};
    long version = 0;
    rq_err rc = ours ? read_format_version(v, &a, &version, why) : RQ_OK;
    if (rc == RQ_OK) rc = check_newer(version, why);
    if (rc == RQ_OK && ours && version == 0)
        rc = rq_fail(why, RQ_E_CORRUPT, "%s is missing: the first start was interrupted",
                     VERSION_NAME);
    if (rc == RQ_OK) rc = check_hbase_version(v, &a, why);
    if (rc == RQ_OK) rc = read_cluster_id(&id, &a, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__root_check_mark(rq_vfs *v, const char *path, rq_error *why)
{
    rq_arena a = {0};
    rq_root id = {.vfs = v};
    long version = 0;
    rq_err rc;
    if (strcmp(path, VERSION_NAME) == 0) {
        rc = read_format_version(v, &a, &version, why);
        if (rc == RQ_OK) rc = check_newer(version, why);
        if (rc == RQ_OK && version == 0) rc = rq_fail(why, RQ_E_NOT_FOUND, "%s is missing", path);
    } else if (strcmp(path, "hbase.id") == 0) {
        rc = read_cluster_id(&id, &a, why);
    } else {
        rc = check_hbase_version(v, &a, why);
    }
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__root_write_mark(rq_vfs *v, rq_executor *ex, const char *path, rq_error *why)
{
    rq_root root = {.vfs = v, .executor = ex};
    if (strcmp(path, VERSION_NAME) == 0) return write_version(v, RQ_ROOT_FORMAT_VERSION, why);
    rq_arena a = {0};
    rq_err known = read_cluster_id(&root, &a, NULL); /* the two are written together */
    rq_arena_clear(&a);
    if (known != RQ_OK) rq_root_make_cluster_id(root.executor, root.cluster_id);
    return rq__root_write_identity(&root, why);
}

void rq_root_close(rq_root *root)
{
    if (root == NULL) return;
    /* Given up before it was sealed: deferred syncs are not needed. */
    if (root->is_new && !root->is_joined) (void)!rq_vfs_defer(root->vfs, false, NULL);
    (void)rq_file_close(root->lock); /* the file is only a lock: no written data can be lost */
    free(root);
}

bool rq_root_is_new(const rq_root *root)
{
    return root->is_new;
}

const char *rq_root_cluster_id(const rq_root *root)
{
    return root->cluster_id;
}

bool rq__root_adopts(const rq_root *root)
{
    return root->adopts;
}

rq_err rq__root_adopted(rq_root *root, rq_error *why)
{
    RQ_TRY(rq__adopt_logs(root->vfs, why));
    root->adopts = false;
    return RQ_OK;
}

void rq_root_stopped_cleanly(rq_root *root)
{
    if (root->unsure_version != 0) return;
    /* If it stays, the next start is merely stricter with HBase's traces. */
    rq_err rc = rq_vfs_remove(root->vfs, OPEN_NAME, NULL);
    (void)rc;
}

rq_err rq__root_write_identity(rq_root *root, rq_error *why)
{
    uint8_t bytes[4 + 64] = "PBUF";
    char version[] = RQ_ROOT_HBASE_VERSION;
    Pb__HBaseVersionFileContent v = PB__HBASE_VERSION_FILE_CONTENT__INIT;
    v.version = version;
    size_t len = 4 + pb__hbase_version_file_content__pack(&v, bytes + 4);
    RQ_TRY(write_file(root->vfs, "hbase.version", rq_slice_of(bytes, len), why));
    Pb__ClusterId id = PB__CLUSTER_ID__INIT;
    id.cluster_id = root->cluster_id;
    RQ_ASSERT(pb__cluster_id__get_packed_size(&id) <= sizeof bytes - 4);
    len = 4 + pb__cluster_id__pack(&id, bytes + 4);
    RQ_TRY(write_file(root->vfs, "hbase.id", rq_slice_of(bytes, len), why));
    return rq_vfs_sync_dir(root->vfs, "", why);
}

rq_err rq__root_seal(rq_root *root, rq_error *why)
{
    if (!root->is_joined) RQ_TRY(rq_vfs_defer(root->vfs, false, why));
    RQ_TRY(rq__root_mark_open(root, why)); /* before the version: look_at_version */
    RQ_TRY(check_not_raised(root->vfs, why));
    RQ_TRY(write_version(root->vfs, RQ_ROOT_FORMAT_VERSION, why));
    root->is_new = false;
    return RQ_OK;
}
