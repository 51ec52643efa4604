/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the shared folder: object/NAME/G is generation G, and the highest counts. A swap from G
 * links G + 1, which one writer can do.
 *
 *  1. The highest generation is never removed; who wrote it removes those below the one before. A
 *     removed object is a generation that says so, so that generations rise forever.
 *  2. A writer may be paused between reading G and linking G + 1, while another writer's G + 1 is made,
 *     replaced and removed: then its link succeeds although it came too late. So after the link it reads
 *     the highest generation again. If the link came too late, there is a higher generation than its own,
 *     whose history has another token for G + 1.
 */
#include <stdio.h>

#include "vfs/shared_posix.h"

/* Number of times a look is repeated because files were added and removed meanwhile. */
#define TRIES_MAX 32
#define FILE_MAX (RQ_OBJECT_BYTES_MAX + 4096u)

typedef struct object {
    rq__folder *f;
    rq_arena *arena;
    char dir[RQ__DIR_MAX];
} object;

static object object_of(rq_shared *s, const char *name, rq_arena *arena)
{
    object o = {.f = rq__folder_of(s), .arena = arena};
    snprintf(o.dir, sizeof o.dir, "object/%s", name);
    return o;
}

static bool parse_generation(const char *name, uint64_t *ret)
{
    uint64_t n = 0;
    for (const char *p = name; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || n > (UINT64_MAX - 9) / 10) return false;
        n = n * 10 + (uint64_t)(*p - '0');
    }
    *ret = n;
    return name[0] != '\0';
}

/* *ret 0: there is none. */
static rq_err newest_file(const object *o, uint64_t *ret, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(o->f->vfs, o->dir, o->arena, &entries, &count, why));
    *ret = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t g;
        if (parse_generation(entries[i].name, &g) && g > *ret) *ret = g;
    }
    return RQ_OK;
}

static rq_err read_generation(const object *o, uint64_t generation, rq__object_record *ret,
                              rq_error *why)
{
    char path[RQ__FILE_MAX];
    rq_slice file;
    rq_error detail = {.code = RQ_OK};
    snprintf(path, sizeof path, "%s/%llu", o->dir, (unsigned long long)generation);
    RQ_TRY(rq_vfs_read_file(o->f->vfs, path, FILE_MAX, o->arena, &file, why));
    rq_err rc = rq__object_decode(file, ret, &detail);
    if (rc == RQ_OK && ret->generation != generation)
        rc = rq_fail(&detail, RQ_E_CORRUPT, "the file contains generation %llu",
                     (unsigned long long)ret->generation);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", path, detail.message);
}

/* The newest generation; ret->generation 0: there is none. */
static rq_err newest(const object *o, rq__object_record *ret, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = RQ_E_NOT_FOUND;
    for (unsigned tries = 0; rc == RQ_E_NOT_FOUND && tries < TRIES_MAX; tries++) {
        uint64_t generation;
        RQ_TRY(newest_file(o, &generation, why));
        *ret = (rq__object_record){.generation = generation};
        rq_error_clear(&detail);
        /* One that is not found was replaced and removed since. */
        rc = generation == 0 ? RQ_OK : read_generation(o, generation, ret, &detail);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static uint64_t generation_of(const rq__object_record *r)
{
    return r->removed ? 0 : r->generation;
}

rq_err rq__folder_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                             uint64_t *ret_generation, rq_error *why)
{
    object o = object_of(s, name, arena);
    rq__object_record r;
    RQ_TRY(newest(&o, &r, why));
    if (r.generation > 0) RQ_TRY(rq_vfs_sync_dir(o.f->vfs, o.dir, why));
    if (generation_of(&r) == 0)
        return rq_fail(why, RQ_E_NOT_FOUND, "object %s does not exist", name);
    *ret = r.bytes;
    *ret_generation = r.generation;
    return RQ_OK;
}

/* --- the swap ------------------------------------------------------------------------------ */

static void push_token(rq__object_record *r, uint64_t token)
{
    if (r->history_count < RQ__HISTORY_MAX) r->history_count++;
    memmove(r->history + 1, r->history, (r->history_count - 1) * sizeof r->history[0]);
    r->history[0] = token;
}

/* Rule 2. RQ_E_CONFLICT: the link came too late. */
static rq_err confirm(const object *o, uint64_t generation, uint64_t token, rq_error *why)
{
    rq__object_record now;
    RQ_TRY(newest(o, &now, why));
    uint64_t since = now.generation - generation;
    if (since >= now.history_count)
        return rq_fail(why, RQ_E_IO, "%s: it is unknown whether generation %llu was written",
                       o->dir, (unsigned long long)generation);
    if (now.history[since] == token) return RQ_OK;
    return rq_fail(why, RQ_E_CONFLICT, "%s is at generation %llu", o->dir,
                   (unsigned long long)now.generation);
}

static void remove_file(const object *o, const char *name)
{
    char path[RQ__FILE_MAX];
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    /* A file that stays is not the newest; the next swap tries again. */
    rq_err gone = rq_vfs_remove(o->f->vfs, path, NULL);
    (void)gone;
}

/* Removes temporary files and the generations below `lowest`. */
static void sweep(const object *o, uint64_t lowest)
{
    rq_dir_entry *entries;
    size_t count;
    if (rq_vfs_list_if_any(o->f->vfs, o->dir, o->arena, &entries, &count, NULL) != RQ_OK) return;
    for (size_t i = 0; i < count; i++) {
        uint64_t g;
        bool temporary = strncmp(entries[i].name, RQ__TEMPORARY, strlen(RQ__TEMPORARY)) == 0;
        if (temporary || (parse_generation(entries[i].name, &g) && g < lowest))
            remove_file(o, entries[i].name);
    }
}

/* RQ_E_NOT_FOUND: the temporary file was swept; again. */
static rq_err swap_once(const object *o, uint64_t expected, const rq_slice *bytes,
                        uint64_t *ret_generation, rq_error *why)
{
    rq__object_record r;
    rq_slice file;
    char name[32];
    uint64_t token = o->f->executor->random(o->f->executor);
    RQ_TRY(newest(o, &r, why));
    if (generation_of(&r) != expected)
        return rq_fail(why, RQ_E_CONFLICT, "%s is at generation %llu, not %llu", o->dir,
                       (unsigned long long)generation_of(&r), (unsigned long long)expected);
    r.generation++;
    r.removed = bytes == NULL;
    r.bytes = bytes == NULL ? (rq_slice){NULL, 0} : *bytes;
    push_token(&r, token);
    if (rq__object_encode(o->arena, &r, &file) != RQ_OK) return rq_no_memory(why);
    snprintf(name, sizeof name, "%llu", (unsigned long long)r.generation);
    rq_err rc = rq__folder_publish(o->f, o->dir, name, file, why);
    if (rc == RQ_E_EXISTS) return RQ_E_CONFLICT;
    if (rc == RQ_OK) rc = confirm(o, r.generation, token, why);
    if (rc == RQ_E_CONFLICT) remove_file(o, name);
    if (rc != RQ_OK) return rc;
    sweep(o, r.generation - 1);
    *ret_generation = r.generation;
    return RQ_OK;
}

rq_err rq__folder_object_cas(rq_shared *s, const char *name, uint64_t expected,
                             const rq_slice *bytes, uint64_t *ret_generation, rq_error *why)
{
    rq_arena arena = {0};
    object o = object_of(s, name, &arena);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = RQ_E_NOT_FOUND;
    for (unsigned tries = 0; rc == RQ_E_NOT_FOUND && tries < TRIES_MAX; tries++) {
        rq_error_clear(&detail);
        rc = expected == 0 ? rq_vfs_mkdirs(o.f->vfs, o.dir, &detail) : RQ_OK;
        if (rc == RQ_OK) rc = swap_once(&o, expected, bytes, ret_generation, &detail);
    }
    rq_arena_clear(&arena);
    if (rc == RQ_OK) return RQ_OK;
    return rq_fail(why, rc, "cannot replace object %s: %s", name, detail.message);
}
