/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces: a row of hbase:namespace (info:d, NamespaceDescriptor) each, and a folder below
 * data/. HBASE: CreateNamespaceProcedure, ModifyNamespaceProcedure, DeleteNamespaceProcedure,
 * TableNamespaceManager.
 */
#include "catalog/ddl_priv.h"

#include <errno.h>
#include <stdlib.h>

static bool exists(rq_catalog *c, rq_slice name)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    bool there = rq_catalog_namespace_find(c, name) != NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    return there;
}

static rq_err not_found(const rq__proc *p, rq_error *why)
{
    return rq_fail(why, RQ_E_NAMESPACE_NOT_FOUND, "%.*s", (int)p->ns.len, (const char *)p->ns.ptr);
}

/* HBASE: TableNamespaceManager.validateTableAndRegionCount. */
static rq_err check_quota(const rq_namespace *ns, const char *key, const char *plural,
                          const char *singular, rq_error *why)
{
    const rq_attribute *a = rq_attributes_find(&ns->configuration, key);
    if (a == NULL || a->value.len == 0) return RQ_OK;
    char text[32];
    char *end = text;
    long long n = 0;
    if (a->value.len < sizeof text) {
        memcpy(text, a->value.ptr, a->value.len);
        text[a->value.len] = '\0';
        errno = 0;
        n = strtoll(text, &end, 10);
        if (errno != 0) end = text;
    }
    if (end == text || *end != '\0')
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "NumberFormatException while getting max %s.",
                       plural);
    if (n <= 0)
        return rq_fail(why, RQ_E_CONSTRAINT,
                       "The max %s quota for %.*s is less than or equal to zero.", singular,
                       (int)ns->name.len, (const char *)ns->name.ptr);
    return RQ_OK;
}

static rq_err check_descriptor(const rq__proc *p, rq_error *why)
{
    rq__namespace_node *n;
    RQ_TRY(rq__namespace_node_new(p->descriptor, &n, why));
    rq_err rc = RQ_OK;
    if (!rq_slice_eq(n->pub.name, p->ns))
        rc = rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "the descriptor belongs to another namespace");
    if (rc == RQ_OK)
        rc = check_quota(&n->pub, "hbase.namespace.quota.maxregions", "regions", "region", why);
    if (rc == RQ_OK)
        rc = check_quota(&n->pub, "hbase.namespace.quota.maxtables", "tables", "tables", why);
    rq__namespace_node_unref(n);
    return rc;
}

/* hbase:namespace's only region, with a reference. If it is closed, the error is the one HBase's
 * clients get. */
static rq_err table_ref(rq_catalog *c, rq_region **ret, rq_error *why)
{
    rq__table_node *t;
    rq_slice q = RQ_SLICE_LIT("namespace");
    RQ_TRY(rq__catalog_table_ref(c, RQ_SLICE_LIT("hbase"), q, &t, why));
    rq_err rc = RQ_OK;
    if (t->pub.state != RQ_TABLE_ENABLED)
        rc = rq_fail(why, RQ_E_TABLE_NOT_ENABLED, "hbase:namespace is disabled.");
    else if (t->pub.region_count == 0 || rq__table_region(t, 0)->pub.region == NULL)
        rc = rq_fail(why, RQ_E_NOT_SERVING_REGION, "hbase:namespace is not online on %s",
                     c->server->text);
    else
        *ret = rq_region_ref(rq__table_region(t, 0)->pub.region);
    rq__table_node_unref(t);
    return rc;
}

static rq_err check_table(rq_catalog *c, rq_error *why)
{
    rq_region *r;
    RQ_TRY(table_ref(c, &r, why));
    rq_region_unref(r);
    return RQ_OK;
}

static rq_err write_row(rq_catalog *c, rq__proc *p, bool put, rq_error *why)
{
    rq_region *r;
    RQ_TRY(table_ref(c, &r, why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = put ? rq__batch_put(&b, p->ns, "info", RQ_SLICE_LIT("d"), p->descriptor)
                    : rq__batch_delete_family(&b, p->ns, "info");
    if (rc == RQ_OK) rc = rq__batch_commit(&b, r, true, why);
    if (rc == RQ_OK) p->committed = true;
    rq_arena_clear(&a);
    rq_region_unref(r);
    return rc;
}

/* --- create, modify --------------------------------------------------------------------------- */

rq_err rq__ns_create_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    (void)c;
    RQ_TRY(rq__namespace_name_check(p->ns, why));
    RQ_TRY(rq__name_len_check("Namespace name", p->ns, why));
    return rq__internal_check(p, why);
}

rq_err rq__ns_create_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(check_table(c, why));
    if (exists(c, p->ns))
        return rq_fail(why, RQ_E_NAMESPACE_EXISTS, "Namespace %.*s already exists", (int)p->ns.len,
                       (const char *)p->ns.ptr);
    return check_descriptor(p, why);
}

rq_err rq__ns_create_folder(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    char *dir = rq_arena_printf(&a, "data/%.*s", (int)p->ns.len, (const char *)p->ns.ptr);
    rq_err rc = dir == NULL ? RQ_E_NO_MEMORY : rq_vfs_mkdirs(c->env->vfs, dir, why);
    rq_arena_clear(&a);
    return rc;
}

/* The commit of create and modify, followed by the view. */
rq_err rq__ns_put(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(write_row(c, p, true, why));
    rq__namespace_node *n;
    RQ_TRY(rq__namespace_node_new(p->descriptor, &n, why));
    rq__edit e;
    rq_err rc = rq__edit_begin(&c->views, &e);
    if (rc != RQ_OK) {
        rq__namespace_node_unref(n);
        return rc;
    }
    rc = rq__edit_put_namespace(&e, n);
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rc;
}

rq_err rq__ns_modify_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__namespace_name_check(p->ns, why));
    return exists(c, p->ns) ? RQ_OK : not_found(p, why);
}

rq_err rq__ns_modify_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(check_table(c, why));
    if (!exists(c, p->ns)) return not_found(p, why);
    return check_descriptor(p, why);
}

/* --- delete ----------------------------------------------------------------------------------- */

rq_err rq__ns_delete_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(check_table(c, why));
    if (!exists(c, p->ns)) return not_found(p, why);
    int len = (int)p->ns.len;
    const char *name = (const char *)p->ns.ptr;
    if (rq_slice_eq(p->ns, RQ_SLICE_LIT("default")) || rq_slice_eq(p->ns, RQ_SLICE_LIT("hbase")))
        return rq_fail(why, RQ_E_CONSTRAINT, "Reserved namespace %.*s cannot be removed.", len,
                       name);
    size_t tables = 0;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq__view *v = rq__views_now(&c->views);
    for (size_t i = 0; i < v->table_count; i++)
        tables += rq_slice_eq(v->tables[i]->schema->ns, p->ns);
    rq_epoch_unpin(c->env->epoch, &m);
    if (tables > 0)
        return rq_fail(why, RQ_E_CONSTRAINT,
                       "Only empty namespaces can be removed. Namespace %.*s has %zu tables", len,
                       name, tables);
    return RQ_OK;
}

rq_err rq__ns_delete_row(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(write_row(c, p, false, why));
    rq__edit e;
    RQ_TRY(rq__edit_begin(&c->views, &e));
    rq_err rc = rq__edit_remove_namespace(&e, p->ns);
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rc;
}

/* Files that are not ours stay in the folder, and then the folder stays, too. */
static rq_err remove_folder(rq_catalog *c, const rq__proc *p, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    char *dir = rq_arena_printf(&a, "data/%.*s", (int)p->ns.len, (const char *)p->ns.ptr);
    rq_err rc = dir == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    rq_error gone = {0};
    if (rc == RQ_OK) {
        rq_err removed = rq_vfs_remove(c->env->vfs, dir, &gone);
        if (removed == RQ_OK)
            rc = rq_vfs_sync_dir(c->env->vfs, "data", why);
        else if (removed != RQ_E_NOT_FOUND)
            rq_log_warn(c->env->log, "catalog",
                        "cannot remove the folder of a dropped namespace: %s", gone.message);
    }
    rq_arena_clear(&a);
    return rc;
}

/* The folder is still empty: no table could be created in it yet. */
rq_err rq__ns_create_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    (void)why;
    if (remove_folder(c, p, &own) != RQ_OK)
        rq_log_warn(
            c->env->log, "catalog",
            "cannot remove the folder of a namespace whose creation failed; it is unused: %s",
            own.message);
    return RQ_OK;
}

rq_err rq__ns_delete_rest(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(remove_folder(c, p, why));
    return rq__drop_quotas(c, 'n', p->ns, why);
}
