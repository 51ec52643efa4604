/* SPDX-License-Identifier: Apache-2.0 */
/* Work for MOB families. The servers of a cluster are asked which MOB files they are writing. Periodically, unreferenced files
 * are archived (region/mob_cleaner.h), and MOB files are compacted, which removes deleted and replaced values. HBASE:
 * MobFileCleanerChore, MobFileCompactionChore. */
#include "catalog/catalog_priv.h"

#include <string.h>

/* A round starts again if a region is split, merged or deleted while it reads the region. */
#define ROUNDS_MAX 3

/* References to all tables' schemas, in the arena. */
static rq_err all_schemas(rq_catalog *c, rq_arena *a, rq_table_schema ***ret, size_t *ret_count)
{
    rq_epoch_member pin;
    rq_epoch_pin(c->env->epoch, &pin);
    const rq__view *v = rq__views_now(&c->views);
    rq_table_schema **list = rq_arena_calloc(a, v->table_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < v->table_count; i++)
        if (v->tables[i]->schema != NULL)
            list[(*ret_count)++] = rq_table_schema_ref(v->tables[i]->schema);
    rq_epoch_unpin(c->env->epoch, &pin);
    *ret = list;
    return list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- what other servers write ------------------------------------------------------------------ */

rq_err rq__calls_for_mob_writes(rq_catalog *c, rq__proc *p, rq__calls **ret)
{
    rq_arena a = {0};
    const rq_server_name **list = NULL;
    size_t count = 0;
    rq_err rc = c->calls.servers == NULL ? RQ_OK : rq_catalog_servers(c, &a, &list, &count);
    rq__calls *k = rc == RQ_OK ? rq__calls_new(c, p, RQ_CALL_LIST_MOB_WRITES, count) : NULL;
    if (k != NULL) k->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool other = k != NULL && strcmp(list[i]->text, c->server->text) != 0;
        if (other)
            k->list[k->count++].server = list[i];
        else
            rq_server_name_unref(list[i]);
    }
    rq_arena_clear(&a);
    if (k != NULL && rq__calls_with_arenas(k) == RQ_OK) {
        *ret = k;
        return RQ_OK;
    }
    rq__calls_free(k);
    return RQ_E_NO_MEMORY;
}

rq_err rq__mob_writers_of(const rq__calls *k, rq_arena *a, rq_mob_writers *ret)
{
    size_t files = 0;
    for (size_t i = 0; i < k->count; i++)
        files += k->list[i].mob_write_count;
    *ret = (rq_mob_writers){.servers = rq_arena_calloc(a, k->count + 1, sizeof *ret->servers),
                            .files = rq_arena_calloc(a, files + 1, sizeof *ret->files)};
    if (ret->servers == NULL || ret->files == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < k->count; i++) {
        const rq_region_call *call = &k->list[i];
        if (call->rc != RQ_OK) continue;
        ret->servers[ret->server_count++] = rq_slice_cstr(call->server->text);
        for (size_t j = 0; j < call->mob_write_count; j++)
            ret->files[ret->file_count++] = call->mob_writes[j];
    }
    return RQ_OK;
}

static rq_err copy_all(rq_arena *a, rq_slice *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        list[i] = rq_arena_copy(a, list[i]);
        if (list[i].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

/* Blocks this thread. The calls go to other servers only, so they need no thread of this process's pools: no deadlock. */
static rq_err ask(void *ctx, rq_arena *a, rq_mob_writers *ret, rq_error *why)
{
    rq__calls *k;
    rq_err rc = rq__calls_for_mob_writes(ctx, NULL, &k);
    if (rc != RQ_OK) return rq_no_memory(why);
    rc = rq__calls_send(k);
    if (rc == RQ_OK) rc = rq__calls_undone(k);
    if (rc == RQ_OK) rc = rq__mob_writers_of(k, a, ret);
    if (rc == RQ_OK) rc = copy_all(a, ret->servers, ret->server_count);
    if (rc == RQ_OK) rc = copy_all(a, ret->files, ret->file_count);
    rq__calls_free(k);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- cleaning --------------------------------------------------------------------------------- */

static rq_err clean(rq_catalog *c, size_t *ret_archived, rq_error *why)
{
    rq_arena a = {0};
    rq_table_schema **list;
    size_t count = 0;
    rq_err rc = all_schemas(c, &a, &list, &count);
    rq_mob_cleaning what = {
        .tables = list,
        .table_count = count,
        .min_age_ms = c->config == NULL ? 3600000 : rq_config_int(c->config, RQ_SET_MOB_MIN_AGE),
        .now_ms = rq__catalog_wall_ms(c),
        .ask = c->calls.servers == NULL ? NULL : ask,
        .ctx = c,
    };
    if (rc == RQ_OK) rc = rq_mob_clean(c->engine, &what, ret_archived, why);
    for (size_t i = 0; i < count; i++)
        rq_table_schema_unref(list[i]);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__catalog_clean_mob(rq_catalog *c, size_t *ret_archived, rq_error *why)
{
    rq_error own;
    rq_err rc = RQ_E_STATE;
    *ret_archived = 0;
    for (int round = 0; round < ROUNDS_MAX && rc != RQ_OK; round++) {
        size_t archived = 0;
        own = (rq_error){0};
        rc = clean(c, &archived, &own);
        *ret_archived += archived;
    }
    if (*ret_archived > 0)
        rq_log_info(c->env->log, "catalog", "moved %zu unreferenced MOB files to archive/",
                    *ret_archived);
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "%s", own.code == RQ_OK ? rq_err_text(rc) : own.message);
}

/* --- compaction ------------------------------------------------------------------------------- */

/* The names of the requested MOB families, in the arena. */
static rq_err mob_families(const rq_table_schema *t, rq_slice family, rq_arena *a, rq_slice **ret,
                           size_t *ret_count)
{
    rq_slice *list = rq_arena_calloc(a, t->family_count + 1, sizeof *list);
    *ret_count = 0;
    for (size_t i = 0; list != NULL && i < t->family_count; i++) {
        const rq_family_schema *f = &t->families[i];
        if (f->is_mob && (family.len == 0 || rq_slice_eq(f->name, family)))
            list[(*ret_count)++] = f->name;
    }
    *ret = list;
    return list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void log_failures(rq_catalog *c, const rq__calls *k)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->list[i].rc != RQ_OK)
            rq_log_info(c->env->log, "catalog", "region %s: its MOB files were not compacted: %s",
                        k->list[i].info->encoded,
                        k->list[i].why != NULL ? k->list[i].why->message
                                               : rq_err_text(k->list[i].rc));
}

static rq_err compact_table(rq_catalog *c, const rq__table_node *t, rq_slice family)
{
    rq_arena a = {0};
    rq_slice *families;
    size_t count;
    rq__calls *k = NULL;
    rq_err rc = mob_families(t->pub.schema, family, &a, &families, &count);
    if (rc == RQ_OK && count > 0) {
        k = rq__calls_new(c, NULL, RQ_CALL_COMPACT, t->pub.region_count);
        if (k == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (k != NULL) {
        k->count = 0;
        for (size_t i = 0; i < t->pub.region_count; i++) {
            rq__region_node *n = rq__table_region(t, i);
            if (n->pub.server == NULL) continue;
            k->list[k->count].families = families;
            k->list[k->count].family_count = count;
            rq__calls_of_node(k, k->count++, n);
        }
        rc = rq__calls_send(k);
        log_failures(c, k);
    }
    rq__calls_free(k);
    rq_arena_clear(&a);
    return rc;
}

/* References on the tables, in the arena: on all, or on the one named. */
static rq_err list_tables(rq_catalog *c, rq_slice table, rq_arena *a, rq__table_node ***ret,
                          size_t *ret_count)
{
    rq_epoch_member pin = {0};
    rq_epoch_pin(c->env->epoch, &pin);
    const rq__view *v = rq__views_now(&c->views);
    rq__table_node **list = rq_arena_calloc(a, v->table_count + 1, sizeof *list);
    *ret_count = 0;
    for (size_t i = 0; list != NULL && i < v->table_count; i++)
        if (table.len == 0 || rq_slice_eq(v->tables[i]->schema->name, table))
            list[(*ret_count)++] =
                rq__table_node_ref(RQ_CONTAINER_OF(v->tables[i], rq__table_node, pub));
    rq_epoch_unpin(c->env->epoch, &pin);
    *ret = list;
    return list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq_catalog_compact_mob(rq_catalog *c, rq_slice table, rq_slice family, rq_error *why)
{
    rq_arena a = {0};
    rq__table_node **list;
    size_t count = 0;
    rq_err rc = list_tables(c, table, &a, &list, &count);
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK) rc = compact_table(c, list[i], family);
        rq__table_node_unref(list[i]);
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- on their own ----------------------------------------------------------------------------- */

static void run_cleaner(rq_catalog *c)
{
    size_t archived;
    rq_error why = {0};
    if (rq__catalog_clean_mob(c, &archived, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "cannot archive unreferenced MOB files: %s",
                    why.message);
}

static void run_compactor(rq_catalog *c)
{
    rq_error why = {0};
    if (rq_catalog_compact_mob(c, (rq_slice){0}, (rq_slice){0}, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "MOB compaction failed: %s", why.message);
}

void rq__mob_chores_start(rq_catalog *c)
{
    rq__chore_start(&c->mob_cleaner, c, run_cleaner);
    rq__chore_start(&c->mob_compactor, c, run_compactor);
}
