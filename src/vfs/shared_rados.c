/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-in's connection to RADOS, the check of its pool, and sets.
 *
 * Every operation has librados' time-out (rq_rados_options.timeout_s): otherwise librados waits
 * forever. After a time-out the outcome of an operation is unknown, and it may still be executed
 * later.
 */
#include "vfs/shared_rados_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TIMEOUT_S 2
#define CONNECT_TIMEOUT_S 20
#define MIN_SIZE_LEAST 2

rq_err rq__rados_code(int rc)
{
    switch (rc < 0 ? -rc : 0) {
    case 0:
        return RQ_OK;
    case ENOENT:
        return RQ_E_NOT_FOUND;
    case EEXIST:
        return RQ_E_EXISTS;
    case ECANCELED:
        return RQ_E_CONFLICT;
    case ETIMEDOUT:
        return RQ_E_TIMEOUT;
    case ENOSPC:
    case EDQUOT:
        return RQ_E_NO_SPACE;
    case EACCES:
    case EPERM:
        return RQ_E_PERMISSION;
    case ENOMEM:
        return RQ_E_NO_MEMORY;
    default:
        return RQ_E_IO;
    }
}

rq_err rq__rados_result(int rc, const char *verb, const char *name, rq_error *why)
{
    if (rc >= 0) return RQ_OK;
    return rq_fail(why, rq__rados_code(rc), "Ceph: cannot %s %s: %s", verb, name, strerror(-rc));
}

/* --- operations ---------------------------------------------------------------------------- */

void rq__rados_owner_make(rq__rados *r, char state, char ret[static RQ__RADOS_OWNER_MAX])
{
    snprintf(ret, RQ__RADOS_OWNER_MAX, "%c%016llx", state,
             (unsigned long long)r->executor->random(r->executor));
}

int rq__rados_write(rq__rados *r, const char *name, rados_write_op_t op)
{
    int rc = rados_write_op_operate2(op, r->io, name, NULL, LIBRADOS_OPERATION_NOFLAG);
    rados_release_write_op(op);
    return rc;
}

int rq__rados_text(rq__rados *r, const char *name, const char *attribute, char *ret, size_t size)
{
    int len = rados_getxattr(r->io, name, attribute, ret, size - 1);
    ret[len > 0 ? len : 0] = '\0';
    return len == -ENODATA ? 0 : len;
}

/* Reads size and bytes in one operation, so that they are consistent. -ERANGE: it is longer than
 * `len`. */
static int read_at_most(rq__rados *r, const char *name, void *buf, size_t len, uint64_t *ret_size)
{
    int stat_rc = 0, read_rc = 0;
    size_t found = 0;
    time_t changed;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_stat(op, ret_size, &changed, &stat_rc);
    rados_read_op_read(op, 0, len, buf, &found, &read_rc);
    int rc = rados_read_op_operate(op, r->io, name, LIBRADOS_OPERATION_NOFLAG);
    rados_release_read_op(op);
    if (rc < 0) return rc;
    if (*ret_size > len) return -ERANGE;
    return found == *ret_size ? 0 : -EIO;
}

#define READ_FIRST 16384

rq_err rq__rados_read_all(rq__rados *r, const char *name, rq_arena *arena, rq_slice *ret,
                          rq_error *why)
{
    uint64_t size = READ_FIRST;
    for (;;) {
        size_t len = (size_t)size;
        uint8_t *bytes = rq_arena_alloc(arena, len);
        if (bytes == NULL) return rq_no_memory(why);
        int rc = read_at_most(r, name, bytes, len, &size);
        if (rc == -ERANGE) continue; /* with the size that it has now */
        RQ_TRY(rq__rados_result(rc, "read", name, why));
        *ret = rq_slice_of(bytes, (size_t)size);
        return RQ_OK;
    }
}

/* --- keys ---------------------------------------------------------------------------------- */

#define KEYS_EACH 1000

typedef struct key_list {
    rq_arena *arena;
    const char **keys;
    size_t count, cap;
} key_list;

static rq_err take_keys(key_list *l, rados_omap_iter_t found)
{
    for (;;) {
        char *key, *value;
        size_t key_len, value_len;
        int rc = rados_omap_get_next2(found, &key, &value, &key_len, &value_len);
        if (rc < 0) return rq__rados_code(rc);
        if (key == NULL) return RQ_OK;
        if (l->count == l->cap) {
            size_t cap = l->cap == 0 ? 64 : l->cap * 2;
            const char **more = rq_arena_calloc(l->arena, cap, sizeof *more);
            if (more == NULL) return RQ_E_NO_MEMORY;
            if (l->count > 0) memcpy(more, l->keys, l->count * sizeof *more);
            l->keys = more;
            l->cap = cap;
        }
        l->keys[l->count] = rq_arena_cstr(l->arena, rq_slice_of(key, key_len));
        if (l->keys[l->count++] == NULL) return RQ_E_NO_MEMORY;
    }
}

/* Some keys after the last one, in their order. */
static int more_keys(rq__rados *r, const char *name, key_list *l, bool *ret_more, rq_err *ret_taken)
{
    rados_omap_iter_t found = NULL;
    unsigned char more = 0;
    int keys_rc = 0;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_omap_get_keys2(op, l->count == 0 ? "" : l->keys[l->count - 1], KEYS_EACH, &found,
                                 &more, &keys_rc);
    int rc = rados_read_op_operate(op, r->io, name, LIBRADOS_OPERATION_NOFLAG);
    rados_release_read_op(op);
    if (rc >= 0) rc = keys_rc;
    *ret_taken = rc >= 0 ? take_keys(l, found) : RQ_OK;
    if (found != NULL) rados_omap_get_end(found);
    *ret_more = more != 0;
    return rc;
}

rq_err rq__rados_keys(rq__rados *r, const char *name, rq_arena *arena, const char ***ret,
                      size_t *ret_count, rq_error *why)
{
    key_list l = {.arena = arena};
    for (bool more = true; more;) {
        rq_err taken;
        size_t before = l.count;
        int rc = more_keys(r, name, &l, &more, &taken);
        if (rc == -ENOENT) break;
        RQ_TRY(rq__rados_result(rc, "list", name, why));
        if (taken == RQ_OK && more && l.count == before) taken = RQ_E_IO; /* or it never ends */
        if (taken != RQ_OK) return rq_fail(why, taken, "Ceph: cannot list %s", name);
    }
    *ret = l.keys;
    *ret_count = l.count;
    return RQ_OK;
}

/* --- sets ---------------------------------------------------------------------------------- */

static void set_name(const char *name, char ret[static RQ__RADOS_NAME_MAX])
{
    snprintf(ret, RQ__RADOS_NAME_MAX, "set/%s", name);
}

static rq_err set_put(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    const char *value = "";
    size_t key_len = strlen(key), value_len = 0;
    set_name(name, object);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_set2(op, &key, &value, &key_len, &value_len, 1);
    return rq__rados_result(rq__rados_write(rq__rados_of(s), object, op), "add to", object, why);
}

static rq_err set_del(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    size_t key_len = strlen(key);
    set_name(name, object);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_omap_rm_keys2(op, &key, &key_len, 1);
    int rc = rq__rados_write(rq__rados_of(s), object, op);
    return rc == -ENOENT ? RQ_OK : rq__rados_result(rc, "remove from", object, why);
}

static rq_err set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                       size_t *ret_count, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    set_name(name, object);
    return rq__rados_keys(rq__rados_of(s), object, arena, ret, ret_count, why);
}

/* --- the connection ------------------------------------------------------------------------ */

static uint64_t now_ns(const rq_shared *s)
{
    (void)s;
    return rq_clock_ns(CLOCK_BOOTTIME);
}

static void rados_free(rq_shared *s)
{
    rq__rados *r = rq__rados_of(s);
    if (r->io != NULL) rados_ioctx_destroy(r->io);
    if (r->cluster != NULL) rados_shutdown(r->cluster);
    rq__quiet_times_clear(&r->quiet_times);
    free(r);
}

static void tenure_quiet(rq_shared *s, const char *name, uint64_t quiet_ns)
{
    rq__quiet_note(&rq__rados_of(s)->quiet_times, name, quiet_ns);
}

static const rq_shared functions = {
    .tenure_begin = rq__rados_tenure_begin,
    .tenure_end = rq__rados_tenure_end,
    .tenure_free = rq__rados_tenure_free,
    .tenure_revoke = rq__rados_tenure_revoke,
    .tenure_quiet = tenure_quiet,
    .now_ns = now_ns,
    .slog_open = rq__rados_slog_open,
    .slog_submit = rq__rados_slog_submit,
    .slog_name = rq__rados_slog_name,
    .slog_close = rq__rados_slog_close,
    .slog_drop = rq__rados_slog_drop,
    .slog_lengths = rq__rados_slog_lengths,
    .slog_read = rq__rados_slog_read,
    .slog_remove = rq__rados_slog_remove,
    .object_cas = rq__rados_object_cas,
    .object_get = rq__rados_object_get,
    .set_put = set_put,
    .set_del = set_del,
    .set_list = set_list,
    .free = rados_free,
};

static rq_err set_timeouts(rq__rados *r, unsigned seconds, rq_error *why)
{
    char operation[16], connection[16];
    snprintf(operation, sizeof operation, "%u", seconds == 0 ? TIMEOUT_S : seconds);
    snprintf(connection, sizeof connection, "%u", CONNECT_TIMEOUT_S);
    const char *settings[][2] = {{"rados_osd_op_timeout", operation},
                                 {"rados_mon_op_timeout", connection},
                                 {"client_mount_timeout", connection}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(settings); i++)
        RQ_TRY(rq__rados_result(rados_conf_set(r->cluster, settings[i][0], settings[i][1]), "set",
                                settings[i][0], why));
    return RQ_OK;
}

static rq_err connect_to(rq__rados *r, const rq_rados_options *o, rq_error *why)
{
    int rc = rados_create2(&r->cluster, "ceph", o->user, 0);
    RQ_TRY(rq__rados_result(rc, "create a client for", o->user, why));
    rc = rados_conf_read_file(r->cluster, o->conf);
    if (rc < 0)
        return rq_fail(why, RQ_E_CONFIG, "Ceph: cannot read %s: %s", o->conf, strerror(-rc));
    RQ_TRY(set_timeouts(r, o->timeout_s, why));
    RQ_TRY(rq__rados_result(rados_connect(r->cluster), "connect to the monitors of", o->conf, why));
    rc = rados_ioctx_create(r->cluster, o->pool, &r->io);
    if (rc == -ENOENT) return rq_fail(why, RQ_E_CONFIG, "Ceph: there is no pool \"%s\"", o->pool);
    RQ_TRY(rq__rados_result(rc, "open pool", o->pool, why));
    rados_ioctx_set_namespace(r->io, o->space);
    return RQ_OK;
}

/* --- the pool ------------------------------------------------------------------------------ */

/* Asks the monitors for a setting of the pool. */
static int pool_setting(rq__rados *r, const char *pool, const char *name, char *ret, size_t size)
{
    char command[512], *out = NULL;
    size_t len = 0;
    snprintf(command, sizeof command,
             "{\"prefix\":\"osd pool get\",\"pool\":\"%s\",\"var\":\"%s\",\"format\":\"json\"}",
             pool, name);
    const char *commands[] = {command};
    int rc = rados_mon_command(r->cluster, commands, 1, "", 0, &out, &len, NULL, NULL);
    snprintf(ret, size, "%.*s", rc < 0 || out == NULL ? 0 : (int)len, out == NULL ? "" : out);
    rados_buffer_free(out);
    return rc;
}

static bool plain(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(name);
    return len > 0 && len <= RQ_SHARED_NAME_MAX && strspn(name, good) == len;
}

/* A pool with min_size 1 acknowledges writes that only one disk has, and loses them with it. An
 * erasure-coded pool has no omap keys, and small writes are slow. */
static rq_err check_pool(rq__rados *r, const char *pool, rq_error *why)
{
    char answer[512];
    int rc = pool_setting(r, pool, "erasure_code_profile", answer, sizeof answer);
    if (rc == 0)
        return rq_fail(why, RQ_E_CONFIG,
                       "Ceph: pool \"%s\" is erasure-coded; it must be replicated", pool);
    if (rc != -EACCES) /* the monitor's word for: not erasure-coded */
        return rq__rados_result(rc, "read the type of pool", pool, why);
    rc = pool_setting(r, pool, "min_size", answer, sizeof answer);
    RQ_TRY(rq__rados_result(rc, "read min_size of pool", pool, why));
    const char *found = strstr(answer, "\"min_size\":");
    long min_size = found == NULL ? 0 : strtol(found + strlen("\"min_size\":"), NULL, 10);
    if (min_size >= MIN_SIZE_LEAST) return RQ_OK;
    return rq_fail(
        why, RQ_E_CONFIG,
        "Ceph: pool \"%s\" has min_size %ld: one lost disk would lose acknowledged writes; "
        "it must be %d or more (ceph osd pool set %s min_size %d)",
        pool, min_size, MIN_SIZE_LEAST, pool, MIN_SIZE_LEAST);
}

__attribute__((visibility("default"))) rq_shared_rados_entry rq__shared_rados_new;

rq_err rq__shared_rados_new(const char *version, const rq_rados_options *o, rq_executor *executor,
                            rq_shared **ret, rq_error *why)
{
    if (strcmp(version, RQ_VERSION) != 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "the plug-in for Ceph has version %s, not %s",
                       RQ_VERSION, version);
    if (!plain(o->pool) || !plain(o->space))
        return rq_fail(why, RQ_E_CONFIG, "Ceph: bad name of a pool or namespace: \"%.200s\"",
                       plain(o->pool) ? o->space : o->pool);
    rq__rados *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    r->base = functions;
    r->executor = executor;
    rq__quiet_times_init(&r->quiet_times);
    rq_err rc = connect_to(r, o, why);
    if (rc == RQ_OK) rc = check_pool(r, o->pool, why);
    if (rc == RQ_OK)
        *ret = &r->base;
    else
        rados_free(&r->base);
    return rc;
}
