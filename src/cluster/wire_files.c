/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files in messages: those of a region, for snapshots, and of MOB files being written. What another server names
 * becomes a part of paths and of a snapshot's manifest, so names are checked. */
#include "cluster/wire_priv.h"

#include <string.h>

#define NAME_MAX_LEN 255

/* --- encoding --------------------------------------------------------------------------------- */

static Pb__RegionFile *put_file(const rq_region_file *f, rq_arena *a)
{
    Pb__RegionFile *m = rq_arena_alloc(a, sizeof *m);
    if (m == NULL) return NULL;
    pb__region_file__init(m);
    m->name = rq__wire_binary(f->name);
    m->has_reference = f->reference.len > 0;
    m->reference = rq__wire_binary(f->reference);
    m->size = f->size;
    return m;
}

static Pb__RegionFamilyFiles *put_family(const rq_family_files *f, rq_arena *a)
{
    Pb__RegionFamilyFiles *m = rq_arena_alloc(a, sizeof *m);
    Pb__RegionFile **list = rq_arena_calloc(a, f->count + 1, sizeof *list);
    if (m == NULL || list == NULL) return NULL;
    pb__region_family_files__init(m);
    m->name = rq__wire_binary(f->name);
    m->file = list;
    for (; m->n_file < f->count; m->n_file++) {
        list[m->n_file] = put_file(&f->files[m->n_file], a);
        if (list[m->n_file] == NULL) return NULL;
    }
    return m;
}

rq_err rq__wire_put_files(const rq_region_files *files, rq_arena *a, Pb__RegionAnswer *m)
{
    m->family = rq_arena_calloc(a, files->count + 1, sizeof(Pb__RegionFamilyFiles *));
    if (m->family == NULL) return RQ_E_NO_MEMORY;
    for (; m->n_family < files->count; m->n_family++) {
        m->family[m->n_family] = put_family(&files->families[m->n_family], a);
        if (m->family[m->n_family] == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

rq_err rq__wire_put_names(const rq_slice *names, size_t count, rq_arena *a,
                          ProtobufCBinaryData **ret)
{
    *ret = rq_arena_calloc(a, count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        (*ret)[i] = rq__wire_binary(names[i]);
    return RQ_OK;
}

/* --- decoding --------------------------------------------------------------------------------- */

static rq_err check_name(rq_slice name, rq_error *why)
{
    bool good = name.len > 0 && name.len <= NAME_MAX_LEN && name.ptr[0] != '.' &&
                memchr(name.ptr, '/', name.len) == NULL && memchr(name.ptr, 0, name.len) == NULL;
    return good
               ? RQ_OK
               : rq_fail(why, RQ_E_DO_NOT_RETRY, "a file name of %zu bytes is not valid", name.len);
}

static rq_err take_file(const Pb__RegionFile *m, rq_region_file *ret, rq_error *why)
{
    *ret = (rq_region_file){.name = rq__wire_slice(m->name), .size = m->size};
    if (m->has_reference) ret->reference = rq__wire_slice(m->reference);
    return check_name(ret->name, why);
}

static rq_err take_family(const Pb__RegionFamilyFiles *m, rq_arena *a, rq_family_files *ret,
                          rq_error *why)
{
    ret->name = rq__wire_slice(m->name);
    RQ_TRY(check_name(ret->name, why));
    ret->files = rq_arena_calloc(a, m->n_file + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_no_memory(why);
    for (; ret->count < m->n_file; ret->count++)
        RQ_TRY(take_file(m->file[ret->count], &ret->files[ret->count], why));
    return RQ_OK;
}

rq_err rq__wire_take_files(const Pb__RegionAnswer *m, rq_arena *a, rq_region_files *ret,
                           rq_error *why)
{
    *ret = (rq_region_files){0};
    ret->families = rq_arena_calloc(a, m->n_family + 1, sizeof *ret->families);
    if (ret->families == NULL) return rq_no_memory(why);
    for (; ret->count < m->n_family; ret->count++)
        RQ_TRY(take_family(m->family[ret->count], a, &ret->families[ret->count], why));
    return RQ_OK;
}

rq_err rq__wire_take_names(const ProtobufCBinaryData *list, size_t count, rq_arena *a,
                           rq_slice **ret, rq_error *why)
{
    *ret = rq_arena_calloc(a, count + 1, sizeof **ret);
    if (*ret == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        (*ret)[i] = rq__wire_slice(list[i]);
        RQ_TRY(check_name((*ret)[i], why));
    }
    return RQ_OK;
}

/* --- copies ----------------------------------------------------------------------------------- */

static rq_err copy_slice(rq_slice from, rq_arena *a, rq_slice *ret)
{
    *ret = rq_arena_copy(a, from);
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err copy_family(const rq_family_files *from, rq_arena *a, rq_family_files *ret)
{
    RQ_TRY(copy_slice(from->name, a, &ret->name));
    ret->files = rq_arena_calloc(a, from->count + 1, sizeof *ret->files);
    if (ret->files == NULL) return RQ_E_NO_MEMORY;
    for (; ret->count < from->count; ret->count++) {
        const rq_region_file *f = &from->files[ret->count];
        rq_region_file *to = &ret->files[ret->count];
        to->size = f->size;
        RQ_TRY(copy_slice(f->name, a, &to->name));
        RQ_TRY(copy_slice(f->reference, a, &to->reference));
    }
    return RQ_OK;
}

rq_err rq__wire_copy_files(const rq_region_files *files, rq_arena *a, rq_region_files *ret)
{
    *ret = (rq_region_files){0};
    ret->families = rq_arena_calloc(a, files->count + 1, sizeof *ret->families);
    if (ret->families == NULL) return RQ_E_NO_MEMORY;
    for (; ret->count < files->count; ret->count++)
        RQ_TRY(copy_family(&files->families[ret->count], a, &ret->families[ret->count]));
    return RQ_OK;
}

rq_err rq__wire_copy_names(const rq_slice *names, size_t count, rq_arena *a, rq_slice **ret)
{
    *ret = rq_arena_calloc(a, count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(copy_slice(names[i], a, &(*ret)[i]));
    return RQ_OK;
}
