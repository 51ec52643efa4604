/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of a cluster's closed regions: a master removes regions and their families, and makes new ones
 * of their files. Rule 7 of owned.h. */
#include "region/owned.h"

#include "region/engine_priv.h"

/* No server has it open. Its edits in logs are given up with it. */
static rq_err check_closed(rq_engine *e, const char *encoded, rq_slice owner, rq_error *why)
{
    uint64_t quiet_ns = 0;
    rq_region *open = rq__engine_find(e, encoded);
    rq_region_unref(open);
    if (open != NULL) return rq_fail(why, RQ_E_STATE, "region %s is open", encoded);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__owned_check_owner(e->cluster, owner, &quiet_ns, &detail);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "region %s: %s", encoded, detail.message);
}

/* *ret_there false: it has no manifest. */
static rq_err read_closed(rq_engine *e, const char *encoded, rq_arena *arena, rq__claimed *ret,
                          rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    *ret = (rq__claimed){0};
    rq_err rc =
        rq__owned_read(e->cluster, encoded, arena, &ret->manifest, &ret->generation, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    ret->there = true;
    return check_closed(e, encoded, ret->manifest.owner, why);
}

rq_err rq__owned_claim(rq_engine *e, const char *encoded, rq_arena *arena, rq__claimed *ret,
                       rq_error *why)
{
    RQ_TRY(read_closed(e, encoded, arena, ret, why));
    if (!ret->there) return RQ_OK;
    ret->manifest.owner = rq_slice_cstr(e->cluster->server_name);
    ret->manifest.open_number++;
    return rq__owned_swap_taking(e->cluster, encoded, &ret->manifest, &ret->generation, why);
}

static void need_no_more(const rq_engine *e, const char *encoded, const rq__manifest_log *l)
{
    char name[RQ_SHARED_NAME_MAX + 1] = {0};
    memcpy(name, l->name.ptr, l->name.len);
    rq_err rc = rq_wal_need_no_more(e->cluster->shared, name, encoded, l->opening, NULL);
    if (rc != RQ_OK)
        rq_log_warn(
            e->env.log, "region",
            "region %s was removed, but the write-ahead log of %s is kept longer than needed: %s",
            encoded, name, rq_err_text(rc));
}

/* After an error: whether the manifest is gone nevertheless. */
static bool is_gone(const rq_engine *e, const char *encoded)
{
    rq_arena arena = {0};
    rq__manifest m;
    uint64_t generation;
    rq_err rc = rq__owned_read(e->cluster, encoded, &arena, &m, &generation, NULL);
    rq_arena_clear(&arena);
    return rc == RQ_E_NOT_FOUND;
}

rq_err rq__owned_remove(const rq_engine *e, const char *encoded, const rq__claimed *claimed,
                        rq_error *why)
{
    char name[RQ__OWNED_NAME_SIZE];
    rq_error detail = {.code = RQ_OK};
    if (!claimed->there) return RQ_OK;
    rq__owned_name(encoded, name);
    rq_err rc = rq_object_remove(e->cluster->shared, name, claimed->generation, &detail);
    if (rc != RQ_OK && !is_gone(e, encoded)) return rq_fail(why, rc, "%s", detail.message);
    for (size_t i = 0; i < claimed->manifest.log_count; i++)
        need_no_more(e, encoded, &claimed->manifest.logs[i]);
    return RQ_OK;
}

/* A fenced owner stays: whoever opens the region waits until its lease has run out. */
rq_err rq__owned_drop_family(rq_engine *e, const char *encoded, rq_arena *arena, rq_slice family,
                             rq_error *why)
{
    rq__claimed c;
    RQ_TRY(read_closed(e, encoded, arena, &c, why));
    rq__manifest *m = &c.manifest;
    const rq__manifest_family *f = c.there ? rq__manifest_family_of(m, family) : NULL;
    if (f == NULL) return RQ_OK;
    size_t i = (size_t)(f - m->families);
    m->family_count--;
    memmove(&m->families[i], &m->families[i + 1], (m->family_count - i) * sizeof *m->families);
    m->open_number++;
    return rq__owned_swap_closed(e->cluster, encoded, m, &c.generation, why);
}

/* An earlier attempt may have moved some of the files. */
rq_err rq__owned_archive_removed(rq_vfs *vfs, const rq_region_info *info, const rq__manifest *m,
                                 rq_error *why)
{
    for (size_t i = 0; i < m->removed_count; i++) {
        const rq__manifest_family *f = &m->removed[i];
        for (size_t k = 0; k < f->file_count; k++) {
            char name[RQ_STORE_FILE_NAME_MAX + 1];
            rq_error own = {.code = RQ_OK};
            rq_bytes_to_string(f->files[k], name, sizeof name);
            rq_err rc = rq__archive_file(vfs, info, f->name, name, &own);
            if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
        }
    }
    return RQ_OK;
}

static rq_err remove_families(rq_engine *e, const char *encoded, rq__claimed *c,
                              const rq_region_numbers *noted, rq_error *why)
{
    rq__manifest *m = &c->manifest;
    RQ_TRY(check_closed(e, encoded, m->owner, why));
    if (m->open_number != noted->openings)
        return rq_fail(why, RQ_E_CONFLICT, "region %s was opened after it was closed", encoded);
    /* Otherwise files of an earlier truncation are still to be archived, and there are no families. */
    if (m->removed_count == 0) {
        m->removed = m->families;
        m->removed_count = m->family_count;
        m->family_count = 0;
    }
    m->truncations++;
    m->open_number++;
    return rq__owned_swap_closed(e->cluster, encoded, m, &c->generation, why);
}

static rq_err truncate_closed(rq_engine *e, const rq_region_info *info, rq_arena *arena,
                              const rq_region_numbers *noted, rq_error *why)
{
    rq__claimed c;
    rq__manifest *m = &c.manifest;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__owned_read(e->cluster, info->encoded, arena, m, &c.generation, &detail);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    if (m->truncations == noted->truncations)
        RQ_TRY(remove_families(e, info->encoded, &c, noted, why));
    if (m->removed_count == 0) return RQ_OK;
    RQ_TRY(rq__owned_archive_removed(e->env.vfs, info, m, why));
    m->removed_count = 0;
    return rq__owned_swap_closed(e->cluster, info->encoded, m, &c.generation, why);
}

rq_err rq_region_numbers_of(const rq_engine *e, const rq_region_info *info, rq_region_numbers *ret,
                            rq_error *why)
{
    rq_arena arena = {0};
    rq__manifest m;
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__owned_read(e->cluster, info->encoded, &arena, &m, &generation, &detail);
    if (rc == RQ_OK) *ret = (rq_region_numbers){m.open_number, m.truncations};
    rq_arena_clear(&arena);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_region_truncate(rq_engine *e, const rq_region_info *info, const rq_region_numbers *noted,
                          rq_error *why)
{
    rq_arena arena = {0};
    rq_err rc = truncate_closed(e, info, &arena, noted, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq__owned_read_closed(const rq__cluster *c, const char *encoded, rq_arena *arena,
                             rq__manifest *ret, rq_error *why)
{
    uint64_t generation;
    RQ_TRY(rq__owned_read(c, encoded, arena, ret, &generation, why));
    if (ret->owner.len == 0 && ret->log_count == 0) return RQ_OK;
    return rq_fail(why, RQ_E_STATE, "region %s was not closed", encoded);
}

rq_err rq_engine_owner_of(const rq_engine *e, const char *encoded, rq_arena *arena,
                          const char **ret, bool *ret_ended, rq_error *why)
{
    rq__manifest m;
    uint64_t generation, quiet_ns;
    rq_error detail = {.code = RQ_OK};
    RQ_TRY(rq__owned_read(e->cluster, encoded, arena, &m, &generation, why));
    *ret = rq_arena_cstr(arena, m.owner);
    if (*ret == NULL) return rq_no_memory(why);
    rq_err rc = rq__owned_check_owner(e->cluster, m.owner, &quiet_ns, &detail);
    *ret_ended = rc == RQ_OK;
    return rc == RQ_OK || rc == RQ_E_STATE ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_engine_check_not_fenced(const rq_engine *e, rq_error *why)
{
    rq_wal_state state;
    if (e->cluster == NULL) return RQ_OK;
    RQ_TRY(rq_wal_state_of(e->cluster->shared, e->cluster->server_name, &state, why));
    return state == RQ_WAL_OPEN ? RQ_OK : rq_fail(why, RQ_E_STATE, "this server has been fenced");
}
