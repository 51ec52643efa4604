/* SPDX-License-Identifier: Apache-2.0 */
/* A peer's configuration as a filter of records; see filter.h. The lists are sorted, so a check of
 * a record is a binary search. */
#include "replication/filter.h"

#include "proto/replication.pb-c.h"

#include <stdlib.h>
#include <string.h>

static int compare_rules(const void *a, const void *b)
{
    return rq_slice_compare(((const rq__table_rule *)a)->table, ((const rq__table_rule *)b)->table);
}

static rq_err copy_names(const ProtobufCBinaryData *from, size_t count, rq_arena *a, rq_slice **ret)
{
    *ret = rq_arena_calloc(a, count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        (*ret)[i] = rq_arena_copy(a, rq_slice_of(from[i].data, from[i].len));
        if ((*ret)[i].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    qsort(*ret, count, sizeof **ret, rq_slice_order);
    return RQ_OK;
}

static rq_err copy_rule(const Pb__TableCF *from, rq_arena *a, rq__table_rule *ret)
{
    const Pb__TableName *t = from->table_name;
    bool is_default = t->namespace_.len == 7 && memcmp(t->namespace_.data, "default", 7) == 0;
    const char *name = rq_arena_printf(a, "%.*s%s%.*s", is_default ? 0 : (int)t->namespace_.len,
                                       (const char *)t->namespace_.data, is_default ? "" : ":",
                                       (int)t->qualifier.len, (const char *)t->qualifier.data);
    if (name == NULL) return RQ_E_NO_MEMORY;
    ret->table = rq_slice_cstr(name);
    ret->family_count = from->n_families;
    return copy_names(from->families, from->n_families, a, &ret->families);
}

static rq_err copy_rules(Pb__TableCF *const *from, size_t count, rq_arena *a, rq__filter *ret)
{
    ret->tables = rq_arena_calloc(a, count + 1, sizeof *ret->tables);
    if (ret->tables == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (from[i]->table_name != NULL)
            RQ_TRY(copy_rule(from[i], a, &ret->tables[ret->table_count++]));
    qsort(ret->tables, ret->table_count, sizeof *ret->tables, compare_rules);
    return RQ_OK;
}

static rq_err fill(const Pb__ReplicationPeer *m, rq_arena *a, rq__filter *ret)
{
    bool all = !m->has_replicate_all || m->replicate_all;
    const char *key = m->clusterkey == NULL ? "" : m->clusterkey;
    *ret = (rq__filter){.replicate_all = all,
                        .namespace_count = all ? m->n_exclude_namespaces : m->n_namespaces,
                        .cluster_key = rq_arena_cstr(a, rq_slice_cstr(key)),
                        .bandwidth = m->has_bandwidth ? m->bandwidth : 0,
                        .serial = m->has_serial && m->serial};
    if (ret->cluster_key == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(copy_names(all ? m->exclude_namespaces : m->namespaces, ret->namespace_count, a,
                      &ret->namespaces));
    return copy_rules(all ? m->exclude_table_cfs : m->table_cfs,
                      all ? m->n_exclude_table_cfs : m->n_table_cfs, a, ret);
}

rq_err rq__filter_make(rq_slice config, rq_arena *arena, rq__filter *ret, rq_error *why)
{
    Pb__ReplicationPeer *m = pb__replication_peer__unpack(NULL, config.len, config.ptr);
    if (m == NULL) return rq_fail(why, RQ_E_CORRUPT, "malformed configuration of a peer");
    rq_err rc = fill(m, arena, ret);
    pb__replication_peer__free_unpacked(m, NULL);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static const rq__table_rule *rule_of(const rq__filter *f, rq_slice table)
{
    rq__table_rule key = {.table = table};
    return f->table_count == 0
               ? NULL
               : bsearch(&key, f->tables, f->table_count, sizeof key, compare_rules);
}

static bool names_namespace(const rq__filter *f, rq_slice table)
{
    const uint8_t *colon = table.len == 0 ? NULL : memchr(table.ptr, ':', table.len);
    rq_slice ns = colon == NULL ? RQ_SLICE_LIT("default")
                                : rq_slice_of(table.ptr, (size_t)(colon - table.ptr));
    return f->namespace_count > 0 &&
           bsearch(&ns, f->namespaces, f->namespace_count, sizeof ns, rq_slice_order) != NULL;
}

bool rq__filter_takes_table(const rq__filter *f, rq_slice table, const rq__table_rule **ret_rule)
{
    *ret_rule = NULL;
    if (rq_slice_starts_with(table, RQ_SLICE_LIT("hbase:"))) return false;
    const rq__table_rule *rule = rule_of(f, table);
    if (names_namespace(f, table)) return !f->replicate_all;
    if (rule == NULL) return f->replicate_all;
    if (f->replicate_all && rule->family_count == 0) return false;
    if (rule->family_count > 0) *ret_rule = rule;
    return true;
}

bool rq__filter_takes_family(const rq__filter *f, const rq__table_rule *rule, rq_slice family)
{
    if (rule == NULL) return true;
    bool named =
        bsearch(&family, rule->families, rule->family_count, sizeof family, rq_slice_order) != NULL;
    return named != f->replicate_all;
}

bool rq__clusters_contain(rq_slice ids, const uint8_t id[static RQ_CLUSTER_ID_LEN])
{
    for (size_t at = 0; at + RQ_CLUSTER_ID_LEN <= ids.len; at += RQ_CLUSTER_ID_LEN)
        if (memcmp(ids.ptr + at, id, RQ_CLUSTER_ID_LEN) == 0) return true;
    return false;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool rq__cluster_id_parse(const char *text, uint8_t ret[static RQ_CLUSTER_ID_LEN])
{
    if (strlen(text) != 36) return false;
    size_t n = 0;
    for (size_t i = 0; i < 36;) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash && text[i] != '-') return false;
        if (dash) {
            i++;
            continue;
        }
        int high = nibble(text[i]);
        int low = high < 0 ? -1 : nibble(text[i + 1]);
        if (low < 0) return false;
        ret[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}
