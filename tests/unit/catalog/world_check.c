/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the world as text, and checks that the view, hbase:meta and the folders agree. */
#include "world.h"

#include "base/checksum.h"
#include "catalog/meta.h"
#include "catalog/peers.h"
#include "catalog/tableinfo.h"

static void put_attributes(rq_buf *b, const rq_attributes *a)
{
    for (size_t i = 0; i < a->count; i++)
        assert_int_equal(rq_buf_printf(b, " %.*s=%.*s", (int)a->items[i].key.len,
                                       (const char *)a->items[i].key.ptr,
                                       (int)a->items[i].value.len,
                                       (const char *)a->items[i].value.ptr),
                         RQ_OK);
}

static char *text_of(rq_buf *b)
{
    char *text = strndup(b->len == 0 ? "" : (const char *)b->ptr, b->len);
    rq_buf_clear(b);
    return text;
}

/* Without positions: they depend on the log. */
static void describe_peers(world *w, rq_buf *b)
{
    rq_arena a = {0};
    rq_peer_info *peers;
    size_t count = 0;
    if (rq_catalog_peers(w->catalog, &a, &peers, &count) != RQ_OK) return;
    for (size_t i = 0; i < count; i++)
        (void)!rq_buf_printf(b, "peer %s %s %08x\n", peers[i].id, peers[i].enabled ? "on" : "off",
                             rq_crc32c(0, peers[i].config.ptr, peers[i].config.len));
    rq_arena_clear(&a);
}

char *world_describe(world *w)
{
    static const char *const states[] = {"ENABLED", "DISABLED", "DISABLING", "ENABLING"};
    rq_buf b = {0};
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *const *tables;
    const rq_namespace *const *spaces;
    size_t n, k;
    rq_catalog_tables(w->catalog, &tables, &n);
    rq_catalog_namespaces(w->catalog, &spaces, &k);
    for (size_t i = 0; i < n; i++) {
        const rq_table_schema *s = tables[i]->schema;
        if (rq_slice_eq(s->ns, RQ_SLICE_LIT("hbase"))) continue;
        (void)!rq_buf_printf(&b, "%.*s %s", (int)s->name.len, (const char *)s->name.ptr,
                             states[tables[i]->state]);
        put_attributes(&b, &s->attributes);
        (void)!rq_buf_printf(&b, "\n");
        for (size_t f = 0; f < s->family_count; f++) {
            (void)!rq_buf_printf(&b, "  %.*s", (int)s->families[f].name.len,
                                 (const char *)s->families[f].name.ptr);
            put_attributes(&b, &s->families[f].attributes);
            (void)!rq_buf_printf(&b, "\n");
        }
        for (size_t r = 0; r < tables[i]->region_count; r++) {
            const rq_catalog_region *c = rq_catalog_table_region(tables[i], r);
            (void)!rq_buf_printf(&b, "  [%.*s, %.*s) %s %s\n", (int)c->info->start_key.len,
                                 (const char *)c->info->start_key.ptr, (int)c->info->end_key.len,
                                 (const char *)c->info->end_key.ptr, c->info->encoded,
                                 c->region != NULL ? "open" : "closed");
        }
    }
    for (size_t i = 0; i < k; i++) {
        (void)!rq_buf_printf(&b, "namespace %.*s", (int)spaces[i]->name.len,
                             (const char *)spaces[i]->name.ptr);
        put_attributes(&b, &spaces[i]->configuration);
        (void)!rq_buf_printf(&b, "\n");
    }
    rq_epoch_unpin(w->env->epoch, &m);
    describe_peers(w, &b);
    return text_of(&b);
}

/* --- view, meta and disk agree ---------------------------------------------------------------- */

typedef struct checking {
    world *w;
    rq_buf *out;
    size_t tables, regions;
    rq_buf parents; /* encoded names of regions that were split or merged and are still kept */
} checking;

static rq_err note_parents(void *ctx, const rq__meta_row *row, rq_error *why)
{
    checking *c = ctx;
    (void)why;
    if (row->malformed != NULL || row->is_table) return RQ_OK;
    if (row->info.split) (void)!rq_buf_printf(&c->parents, "%s ", row->info.encoded);
    for (size_t i = 0; i < row->merged_count; i++)
        (void)!rq_buf_printf(&c->parents, "%s ", row->merged[i].encoded);
    return RQ_OK;
}

static bool is_known(const checking *c, const char *encoded)
{
    if (rq_catalog_region_find(c->w->catalog, rq_slice_cstr(encoded)) != NULL) return true;
    return c->parents.len > 0 &&
           memmem(c->parents.ptr, c->parents.len, encoded, strlen(encoded)) != NULL;
}

static rq_err check_row(void *ctx, const rq__meta_row *row, rq_error *why)
{
    checking *c = ctx;
    (void)why;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->w->env->epoch, &m);
    if (row->malformed != NULL) {
        (void)!rq_buf_printf(c->out, "meta: malformed %s\n", row->malformed);
    } else if (row->is_table) {
        const rq_catalog_table *t = rq_catalog_table_find(c->w->catalog, row->row);
        c->tables++;
        if (t == NULL)
            (void)!rq_buf_printf(c->out, "meta has table %.*s, the view has not\n",
                                 (int)row->row.len, (const char *)row->row.ptr);
        else if (t->state != row->table_state)
            (void)!rq_buf_printf(c->out, "%.*s: meta says state %d, the view %d\n",
                                 (int)row->row.len, (const char *)row->row.ptr, row->table_state,
                                 t->state);
    } else if (!row->info.split) {
        const rq_catalog_region *r =
            rq_catalog_region_find(c->w->catalog, rq_slice_cstr(row->info.encoded));
        c->regions++;
        if (r == NULL)
            (void)!rq_buf_printf(c->out, "meta has region %s, the view has not\n",
                                 row->info.encoded);
        else if ((r->state == RQ_REGION_OPEN) != (row->state == RQ_REGION_OPEN))
            (void)!rq_buf_printf(c->out, "%s: meta says region state %d, the view %d\n",
                                 row->info.encoded, row->state, r->state);
        const rq_catalog_table *t = rq_catalog_table_find(c->w->catalog, row->info.table);
        int replicas = t == NULL ? 0 : rq_catalog_replication(t->schema) - 1;
        if (row->state == RQ_REGION_OPEN && row->last_replica != replicas)
            (void)!rq_buf_printf(c->out, "%s: meta has %d replicas, the view %d\n",
                                 row->info.encoded, row->last_replica, replicas);
    }
    rq_epoch_unpin(c->w->env->epoch, &m);
    return RQ_OK;
}

static void check_disk(const checking *c, const rq_catalog_table *t)
{
    world *w = c->w;
    rq_buf *out = c->out;
    rq_table_schema *s = NULL;
    rq_error why = {0};
    if (rq_tableinfo_read(w->env->vfs, t->schema->ns, t->schema->qualifier, &s, &why) != RQ_OK)
        (void)!rq_buf_printf(out, "no descriptor: %s\n", why.message);
    else if (!rq_slice_eq(rq_table_schema_pb(s), rq_table_schema_pb(t->schema)))
        (void)!rq_buf_printf(out, "%.*s: the descriptor on disk is another\n",
                             (int)t->schema->name.len, (const char *)t->schema->name.ptr);
    rq_table_schema_unref(s);
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count;
    char *dir = rq__table_dir(&a, t->schema->ns, t->schema->qualifier);
    if (rq_vfs_list(w->env->vfs, dir, &a, &entries, &count, &why) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) { /* every folder belongs to a region */
        if (entries[i].name[0] == '.') continue;
        if (!is_known(c, entries[i].name))
            (void)!rq_buf_printf(out, "%s/%s belongs to no region\n", dir, entries[i].name);
    }
    rq_arena_clear(&a);
}

/* Every manifest belongs to a region. */
static void check_manifests(const checking *c)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count;
    if (rq_vfs_list(c->w->env->vfs, ".rorqual/regions", &a, &entries, &count, NULL) != RQ_OK)
        count = 0;
    char *store = rq_arena_cstr(&a, rq_slice_cstr(""));
    for (size_t i = 0; i < count; i++) {
        char encoded[RQ_ENCODED_NAME_LEN + 1];
        snprintf(encoded, sizeof encoded, "%.*s", (int)strcspn(entries[i].name, "."),
                 entries[i].name);
        if (is_known(c, encoded)) continue;
        if (store[0] == '\0') store = rq_arena_cstr(&a, rq_slice_cstr(encoded)); /* master:store */
        if (strcmp(store, encoded) != 0)
            (void)!rq_buf_printf(c->out, "manifest %s belongs to no region\n", entries[i].name);
    }
    rq_arena_clear(&a);
}

char *world_check(world *w)
{
    rq_buf out = {0};
    checking c = {.w = w, .out = &out};
    rq_arena a;
    rq_arena_init(&a);
    rq_error why = {0};
    rq_region *meta = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_host_region *found;
    rq_err rc = rq_host_find(w->host, RQ_SLICE_LIT("hbase:meta,,1"), &found, &why);
    if (rc == RQ_OK) meta = rq_region_ref(found->region);
    const rq_catalog_table *const *tables;
    size_t n, regions = 0;
    rq_catalog_tables(w->catalog, &tables, &n);
    for (size_t i = 0; i < n; i++) {
        if (!tables[i]->schema->is_meta) regions += tables[i]->region_count;
    }
    rq_epoch_unpin(w->env->epoch, &m);
    if (rc == RQ_OK) rc = rq__meta_scan(meta, note_parents, &c, NULL, &why);
    m = (rq_epoch_member){0};
    rq_epoch_pin(w->env->epoch, &m);
    rq_catalog_tables(w->catalog, &tables, &n);
    for (size_t i = 0; i < n; i++)
        check_disk(&c, tables[i]);
    check_manifests(&c);
    rq_epoch_unpin(w->env->epoch, &m);
    if (rc == RQ_OK) rc = rq__meta_scan(meta, check_row, &c, NULL, &why);
    rq_buf_clear(&c.parents);
    if (rc != RQ_OK) (void)!rq_buf_printf(&out, "meta cannot be read: %s\n", why.message);
    if (meta != NULL) rq_region_unref(meta);
    if (rc == RQ_OK && (c.tables + 1 != n || c.regions != regions))
        (void)!rq_buf_printf(&out, "meta: %zu tables, %zu regions; view: %zu tables, %zu regions\n",
                             c.tables, c.regions, n - 1, regions);
    rq_arena_clear(&a);
    return text_of(&out);
}
