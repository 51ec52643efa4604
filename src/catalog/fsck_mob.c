/* SPDX-License-Identifier: Apache-2.0 */
/* MOB files without references: left by a crash between writing the values and the store file that
 * was to refer to them, by compactions, or by a dropped table. They only take space, and the
 * cleaner archives them in time (region/mob_cleaner.h), so each is reported as a note.
 *
 * Runs after all regions were checked, when their references are known. */
#include "catalog/fsck_priv.h"

#include <stdlib.h>

#define ROOT "mobdir/data"
#define LEVELS 4 /* namespace, table, region, family */

typedef struct mob_look {
    rq__fsck *k;
    const char **referred; /* sorted paths */
    size_t count;
} mob_look;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static rq_err sort_targets(mob_look *m)
{
    size_t room = 0;
    for (const rq__fsck_path *p = m->k->targets.first; p != NULL; p = p->next)
        room++;
    m->referred = rq_arena_calloc(&m->k->arena, room + 1, sizeof *m->referred);
    if (m->referred == NULL) return RQ_E_NO_MEMORY;
    for (const rq__fsck_path *p = m->k->targets.first; p != NULL; p = p->next)
        m->referred[m->count++] = p->path;
    qsort(m->referred, m->count, sizeof *m->referred, by_text);
    return RQ_OK;
}

static rq_err look_at_file(mob_look *m, const char *path)
{
    rq_stat st = {0};
    if (m->count > 0 && bsearch(&path, m->referred, m->count, sizeof *m->referred, by_text) != NULL)
        return RQ_OK;
    rq_err rc = rq_vfs_stat(m->k->vfs, path, &st, NULL);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    rq__fsck_report(m->k, RQ_FINDING_NOTE, path,
                    "no readable store file refers to this MOB file (%llu bytes)",
                    (unsigned long long)st.size);
    return RQ_OK;
}

/* Links (HBASE: HFileLink, with '=' in their names) refer to files elsewhere; no read follows those
 * in a MOB folder. */
static bool is_mob_file(const rq_dir_entry *e)
{
    return !e->is_dir && e->name[0] != '.' && strchr(e->name, '=') == NULL;
}

static rq_err look_at_dir(mob_look *m, const char *dir, int level, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq__fsck_list(m->k, dir, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        bool down = level < LEVELS && entries[i].is_dir && entries[i].name[0] != '.';
        if (!down && (level < LEVELS || !is_mob_file(&entries[i]))) continue;
        const char *path = rq_arena_printf(&m->k->arena, "%s/%s", dir, entries[i].name);
        if (path == NULL) return rq_no_memory(why);
        rq_err rc = down ? look_at_dir(m, path, level + 1, why) : look_at_file(m, path);
        if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", path, rq_err_text(rc));
    }
    return RQ_OK;
}

rq_err rq__fsck_mob(rq__fsck *k, rq_error *why)
{
    mob_look m = {.k = k};
    RQ_TRY(sort_targets(&m));
    return look_at_dir(&m, ROOT, 0, why);
}
