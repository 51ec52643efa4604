/* SPDX-License-Identifier: Apache-2.0 */
/* Examines a log without opening it: contract in survey.h, rules in format.h. */
#include "wal/survey.h"

#include "wal/header.h"

#include <stdlib.h>

static void report_damage(const rq_wal_survey_calls *calls, const rq_error *what)
{
    if (calls->damage != NULL) calls->damage(calls->ctx, what);
}

static bool is_wal_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, RQ_WAL_SUFFIX) == 0;
}

static rq_err check_copies(rq_vfs *vfs, const char *path, const rq_wal_survey_calls *calls,
                           rq_error *why)
{
    rq_file *f;
    rq_error detail = {0};
    RQ_TRY(rq_vfs_open(vfs, path, RQ_OPEN_READ, &f, why));
    rq_err rc = rq__wal_header_check(f, path, &detail);
    (void)rq_file_close(f);
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_CORRUPT) return rq_fail(why, rc, "%s", detail.message);
    report_damage(calls, &detail);
    return RQ_OK;
}

/* *ret_used: the file was begun, and its header can be read. */
static rq_err look_at(rq_vfs *vfs, const char *path, const rq_wal_survey_calls *calls,
                      rq_wal_surveyed_file *ret, bool *ret_used, rq_error *why)
{
    rq_error detail = {0};
    rq_wal_reader *reader;
    rq_stat st;
    *ret_used = false;
    RQ_TRY(rq_vfs_stat(vfs, path, &st, why));
    rq_err rc = rq__wal_reader_open(vfs, path, &reader, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc == RQ_E_CORRUPT || rc == RQ_E_VERSION) {
        report_damage(calls, &detail);
        return RQ_OK;
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    *ret = (rq_wal_surveyed_file){
        .path = path, .info = *rq__wal_reader_info(reader), .size_bytes = st.size};
    rq__wal_reader_close(reader);
    *ret_used = true;
    return check_copies(vfs, path, calls, why);
}

static int by_number(const void *a, const void *b)
{
    const rq_wal_surveyed_file *x = a, *y = b;
    return (x->info.number > y->info.number) - (x->info.number < y->info.number);
}

static rq_wal_surveyed_file *find_number(const rq_wal_survey *v, uint64_t number)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->files[i].info.number == number) return &v->files[i];
    return NULL;
}

/* Rule 4 of format.h: from the newest header down to the oldest it needs. */
static void find_chain(rq_wal_survey *v, const rq_wal_survey_calls *calls)
{
    rq_wal_surveyed_file *newest = v->count == 0 ? NULL : &v->files[v->count - 1];
    for (rq_wal_surveyed_file *s = newest; s != NULL;) {
        s->live = true;
        if (s->info.number <= newest->info.oldest_number) return;
        rq_wal_surveyed_file *before = find_number(v, s->info.prev_number);
        if (before == NULL || before->live || before->info.first_lsn > s->info.first_lsn) {
            rq_error what = {0};
            (void)rq_fail(&what, RQ_E_CORRUPT,
                          "%s: offset 0: the previous WAL file, number %llu, is missing", s->path,
                          (unsigned long long)s->info.prev_number);
            report_damage(calls, &what);
            return;
        }
        before->sealed = true;
        before->end_lsn = s->info.first_lsn;
        s = before;
    }
}

rq_err rq_wal_survey_dir(rq_vfs *vfs, const char *dir, rq_arena *arena,
                         const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    rq_error detail = {0};
    *ret = (rq_wal_survey){0};
    rq_err rc = rq_vfs_list(vfs, dir, arena, &entries, &count, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    ret->files = rq_arena_calloc(arena, count + 1, sizeof *ret->files);
    if (ret->files == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", dir);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].is_dir || !is_wal_name(entries[i].name)) continue;
        bool used;
        const char *path = rq_arena_printf(arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", dir);
        RQ_TRY(look_at(vfs, path, calls, &ret->files[ret->count], &used, why));
        ret->count += used;
    }
    if (ret->count > 1) qsort(ret->files, ret->count, sizeof *ret->files, by_number);
    find_chain(ret, calls);
    return RQ_OK;
}

rq_err rq_wal_survey_file(rq_vfs *vfs, const char *path, rq_arena *arena,
                          const rq_wal_survey_calls *calls, rq_wal_survey *ret, rq_error *why)
{
    bool used;
    *ret = (rq_wal_survey){.files = rq_arena_calloc(arena, 1, sizeof *ret->files)};
    if (ret->files == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path);
    RQ_TRY(look_at(vfs, path, calls, ret->files, &used, why));
    ret->count = used;
    ret->files[0].live = used;
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err read_records(rq_wal_reader *reader, const rq_wal_surveyed_file *s,
                           const rq_wal_survey_calls *calls, rq_error *why)
{
    for (;;) {
        rq_wal_record r;
        rq_error detail = {0};
        rq_err rc = rq__wal_reader_next(reader, &r, &detail);
        if (rc == RQ_OK) {
            uint64_t offset = rq__wal_reader_lsn_offset(reader, rq__wal_reader_record_lsn(reader));
            if (calls->record != NULL) RQ_TRY(calls->record(calls->ctx, s, &r, offset, why));
            continue;
        }
        if (rc == RQ_E_END) return RQ_OK;
        if (rc != RQ_E_CORRUPT && rc != RQ_E_VERSION) return rq_fail(why, rc, "%s", detail.message);
        report_damage(calls, &detail);
        rc = rq__wal_reader_skip(reader, why);
        if (rc == RQ_E_END) return RQ_OK;
        RQ_TRY(rc);
    }
}

rq_err rq_wal_survey_read(rq_vfs *vfs, const rq_wal_surveyed_file *s,
                          const rq_wal_survey_calls *calls, uint64_t *ret_end, rq_error *why)
{
    rq_wal_reader *reader;
    RQ_TRY(rq__wal_reader_open(vfs, s->path, &reader, why));
    if (s->sealed) rq__wal_reader_set_end(reader, s->end_lsn);
    rq_err rc = read_records(reader, s, calls, why);
    if (ret_end != NULL) *ret_end = rq__wal_reader_offset(reader);
    rq__wal_reader_close(reader);
    return rc;
}
