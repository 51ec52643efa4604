/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a table: folders and descriptor, opening the regions, then the rows in meta (ddl_parts.c), the last
 * of which makes it a table, then the view. HBASE: HMaster.createTable, CreateTableProcedure. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

#include "catalog/descriptor_change.h"
#include "catalog/tableinfo.h"
#include "catalog/tracker.h"
#include "vfs/batch.h"

/* HBase's server trusts its client to sort and check the keys. This one does not. */
static rq_err sort_keys(rq__proc *p, rq_error *why)
{
    if (p->of.create.count == 0) return RQ_OK;
    qsort(p->of.create.split_keys, p->of.create.count, sizeof *p->of.create.split_keys,
          rq_slice_order);
    for (size_t i = 0; i < p->of.create.count; i++) {
        char a[256];
        if (p->of.create.split_keys[i].len == 0)
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "Empty split key must not be passed in the split keys.");
        if (p->of.create.split_keys[i].len > RQ_ROW_LEN_MAX)
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Row length %zu is > %d",
                           p->of.create.split_keys[i].len, RQ_ROW_LEN_MAX);
        if (i > 0 && rq_slice_eq(p->of.create.split_keys[i - 1], p->of.create.split_keys[i])) {
            rq_bytes_to_string(p->of.create.split_keys[i], a, sizeof a);
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "All split keys must be unique, found duplicate: %s, %s", a, a);
        }
    }
    return RQ_OK;
}

rq_err rq__create_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq_table_name_check(p->ns, p->qualifier, why));
    RQ_TRY(rq__name_len_check("Table qualifier", p->qualifier, why));
    RQ_TRY(rq__internal_check(p, why));
    RQ_TRY(rq__descriptor_parse(p->descriptor, true, &p->schema, why));
    if (!rq_slice_eq(p->schema->ns, p->ns) || !rq_slice_eq(p->schema->qualifier, p->qualifier))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "the descriptor belongs to table %.*s",
                       (int)p->schema->name.len, (const char *)p->schema->name.ptr);
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    bool there = rq_catalog_namespace_find(c, p->ns) != NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    if (!there)
        return rq_fail(why, RQ_E_NAMESPACE_NOT_FOUND, "%.*s", (int)p->ns.len,
                       (const char *)p->ns.ptr);
    RQ_TRY(sort_keys(p, why));
    RQ_TRY(rq__cluster_check_schema(c, p->schema, why));
    return rq__descriptor_check(c->config, p->schema, why);
}

static int64_t quota(const rq_namespace *ns, const char *key)
{
    const rq_attribute *a = rq_attributes_find(&ns->configuration, key);
    char text[32];
    if (a == NULL || a->value.len == 0 || a->value.len >= sizeof text) return INT64_MAX;
    memcpy(text, a->value.ptr, a->value.len);
    text[a->value.len] = '\0';
    return strtoll(text, NULL, 10); /* checked when the namespace was made */
}

/* The tables and regions of a namespace, and their limits. */
typedef struct usage {
    int64_t tables, regions, max_tables, max_regions;
    int64_t own_regions; /* of the procedure's table; included in `regions` */
} usage;

/* Adds the tables and regions that other procedures are about to create. Between the publication of
 * a table and the end of its procedure the table is counted twice, here and in add_present.
 * REQUIRES: procedures.lock. */
static void add_coming(const rq_catalog *c, const rq__proc *p, usage *u)
{
    for (const rq__proc *other = c->procedures.active; other != NULL; other = other->next) {
        if (other == p || !rq_slice_eq(other->ns, p->ns)) continue;
        u->tables += other->coming_tables;
        u->regions += other->coming_regions;
    }
}

static void add_present(rq_catalog *c, const rq__proc *p, usage *u)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq__view *v = rq__views_now(&c->views);
    const rq_namespace *ns = rq__view_namespace(v, p->ns);
    for (size_t i = 0; i < v->table_count; i++) {
        const rq_table_schema *t = v->tables[i]->schema;
        if (!rq_slice_eq(t->ns, p->ns)) continue;
        u->tables++;
        u->regions += (int64_t)v->tables[i]->region_count;
        if (rq_slice_eq(t->qualifier, p->qualifier))
            u->own_regions = (int64_t)v->tables[i]->region_count;
    }
    if (ns != NULL) {
        u->max_tables = quota(ns, "hbase.namespace.quota.maxtables");
        u->max_regions = quota(ns, "hbase.namespace.quota.maxregions");
    }
    rq_epoch_unpin(c->env->epoch, &m);
}

/* The usage of the procedure's namespace. REQUIRES: procedures.lock. */
static usage find_usage(rq_catalog *c, const rq__proc *p)
{
    usage u = {.max_tables = INT64_MAX, .max_regions = INT64_MAX};
    add_coming(c, p, &u); /* first: what is published meanwhile is not missed */
    add_present(c, p, &u);
    return u;
}

static bool has_quotas(const rq_catalog *c, const rq__proc *p)
{
    return c->config != NULL && rq_config_int(c->config, RQ_SET_QUOTA) != 0 &&
           !rq_slice_eq(p->ns, RQ_SLICE_LIT("hbase"));
}

/* HBASE: NamespaceAuditor.checkQuotaToSplitRegion. */
rq_err rq__split_check_quota(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (!has_quotas(c, p)) return RQ_OK;
    pthread_mutex_lock(&c->procedures.lock);
    usage u = find_usage(c, p);
    bool fits = u.regions < u.max_regions;
    p->coming_regions = fits ? 1 : 0;
    pthread_mutex_unlock(&c->procedures.lock);
    if (fits) return RQ_OK;
    return rq_fail(why, RQ_E_QUOTA_EXCEEDED,
                   "Region split not possible for :%.*s as quota limits are exceeded ",
                   (int)p->of.split.region.len, (const char *)p->of.split.region.ptr);
}

static rq_err check_usage(const rq__proc *p, const usage *u, int64_t wanted, bool is_new,
                          rq_error *why)
{
    int64_t regions = is_new ? u->regions : u->regions - u->own_regions;
    if (is_new && u->tables >= u->max_tables)
        return rq_fail(why, RQ_E_QUOTA_EXCEEDED,
                       "The table %.*s cannot be created as it would exceed maximum number of "
                       "tables allowed  in the namespace.  The total number of tables permitted "
                       "is %lld",
                       (int)p->table.len, (const char *)p->table.ptr, (long long)u->max_tables);
    if (regions + wanted > u->max_regions)
        return rq_fail(why, RQ_E_QUOTA_EXCEEDED,
                       "The table %.*s is not allowed to have %lld regions. The total number of "
                       "regions permitted is only %lld, while current region count is %lld. This "
                       "may be transient, please retry later if there are any ongoing split "
                       "operations in the namespace.",
                       (int)p->table.len, (const char *)p->table.ptr, (long long)wanted,
                       (long long)u->max_regions, (long long)regions);
    return RQ_OK;
}

/* HBASE: NamespaceStateManager.checkAndUpdateNamespaceTableCount; only with hbase.quota.enabled. */
rq_err rq__namespace_quota_check(rq_catalog *c, rq__proc *p, int64_t wanted, bool is_new,
                                 rq_error *why)
{
    if (!has_quotas(c, p)) return RQ_OK;
    pthread_mutex_lock(&c->procedures.lock);
    usage u = find_usage(c, p);
    rq_err rc = check_usage(p, &u, wanted, is_new, why);
    int64_t more = is_new ? wanted : wanted - u.own_regions;
    p->coming_tables = rc == RQ_OK && is_new;
    p->coming_regions = rc == RQ_OK && more > 0 ? more : 0;
    pthread_mutex_unlock(&c->procedures.lock);
    return rc;
}

rq_err rq__create_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) == RQ_OK) {
        rq__table_node_unref(t);
        return rq__fail_table(RQ_E_TABLE_EXISTS, p, why);
    }
    RQ_TRY(rq__tracker_check_create(p->schema, why));
    RQ_TRY(rq__namespace_quota_check(c, p, (int64_t)p->of.create.count + 1, true, why));
    RQ_TRY(rq__make_regions(c, p, p->of.create.split_keys, p->of.create.count, why));
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(p->schema));
    return p->descriptor.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__create_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &batch, why));
    /* Written again after a restart, because an existing file might not be durable yet. The new
     * file must be durable before an old one is removed, because the table may be in use. */
    rq_err rc = rq__tableinfo_write(p->resumed ? c->env->vfs : batch, p->schema, why);
    if (rc == RQ_OK) rc = rq__create_regions(c, p, batch, why);
    return rq_vfs_batch_end(batch, c->env->executor, rc, why);
}

rq_err rq__create_open(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__need_opened(p, p->regions, p->region_count, why));
    RQ_TRY(rq__open_regions(c, p, p->opened, p->opened_count, why));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < p->opened_count; i++) {
        rq__opened *o = &p->opened[i];
        if (o->rc == RQ_OK) continue;
        if (rc == RQ_OK) rc = rq_fail(why, o->rc, "%s", o->why.message);
        rq__opened_clear(o, 1); /* another attempt opens it again */
    }
    return rc;
}

rq_err rq__create_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return rq__meta_put_opened(c, p, true, why);
}

rq_err rq__create_publish(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__region_node **nodes = calloc(p->opened_count + 1, sizeof(rq__region_node *));
    if (nodes == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < p->opened_count; i++)
        nodes[i] = p->opened[i].node;
    rq_err rc = rq__publish_table(c, p->schema, RQ_TABLE_ENABLED, nodes, p->opened_count, why);
    free(nodes);
    if (rc == RQ_OK) rq__opened_served(p->opened, p->opened_count);
    if (rc == RQ_OK) rq__opened_clear(p->opened, p->opened_count);
    return rc;
}

rq__commit_state rq__create_seen(rq_catalog *c, const rq__proc *p)
{
    rq__table_node *t;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK) return RQ__COMMIT_NO;
    rq__table_node_unref(t);
    return RQ__COMMIT_YES;
}

/* Whether the folder has regions that this procedure did not create. They belong to a table that
 * hbase:meta has lost, and need the descriptor in the folder. */
static rq_err has_other_regions(rq_catalog *c, const char *dir, rq_arena *a, bool *ret,
                                rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    *ret = false;
    RQ_TRY(rq_vfs_list_if_any(c->env->vfs, dir, a, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        *ret |= entries[i].name[0] != '.';
    return RQ_OK;
}

static rq_err remove_made(rq_catalog *c, const rq__proc *p, rq_arena *a, rq_error *why)
{
    bool others;
    RQ_TRY(rq__destroy_regions(c, p->regions, p->region_count, why));
    const char *dir = rq__table_dir(a, p->ns, p->qualifier);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(has_other_regions(c, dir, a, &others, why));
    return others ? RQ_OK : rq_vfs_remove_tree(c->env->vfs, dir, why);
}

/* No client has written to the new regions. Their rows in meta are removed first, so folders that cannot be removed are
 * harmless. */
rq_err rq__create_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    rq_arena a;
    RQ_TRY(rq__parts_undo(c, p, why));
    rq_arena_init(&a);
    if (remove_made(c, p, &a, &own) != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot remove the region folders of a failed create; they are unused: %s",
                    own.message);
    rq_arena_clear(&a);
    return RQ_OK;
}
