/* SPDX-License-Identifier: Apache-2.0 */
/* The compaction settings of a store: from its family, else its table, else the site. HBASE:
 * HStore's CompoundConfiguration, CompactionConfiguration, ExponentialCompactionWindowFactory. */
#include "region/engine_priv.h"

#include <stdlib.h>
#include <strings.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static void override_u32(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                         uint32_t *value)
{
    rq_slice text;
    if (!rq_schema_setting(t, f, property, &text) || text.len == 0 || text.len > 9) return;
    uint32_t v = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return;
        v = v * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    if (v > 0) *value = v;
}

/* A setting as a C string; false if it is absent, or longer than a number can be. */
static bool setting_text(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                         char text[static 24])
{
    rq_slice given;
    if (!rq_schema_setting(t, f, property, &given) || given.len == 0 || given.len >= 24)
        return false;
    memcpy(text, given.ptr, given.len);
    text[given.len] = '\0';
    return true;
}

void rq__setting_i64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     int64_t *value)
{
    char text[24];
    char *end;
    if (!setting_text(t, f, property, text)) return;
    long long v = strtoll(text, &end, 10);
    if (*end == '\0' && v >= 0) *value = v;
}

void rq__setting_u64(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                     uint64_t *value)
{
    int64_t v = -1;
    rq__setting_i64(t, f, property, &v);
    if (v >= 0) *value = (uint64_t)v;
}

static void override_flag(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                          bool *value)
{
    char text[24];
    if (!setting_text(t, f, property, text)) return;
    if (strcasecmp(text, "true") == 0) *value = true;
    if (strcasecmp(text, "false") == 0) *value = false;
}

/* HBase reads floats. */
static void override_ratio(const rq_table_schema *t, const rq_family_schema *f,
                           const char *property, double *value)
{
    char text[24];
    char *end;
    if (!setting_text(t, f, property, text)) return;
    float v = strtof(text, &end);
    if (*end == '\0' && v >= 0 && v < 1e9F) *value = (double)v;
}

static void set_tiers(const rq_table_schema *t, const rq_family_schema *f,
                      rq_compaction_settings *s)
{
    rq_tier_settings *tier = &s->tiered;
#define KEY(name) "hbase.hstore.compaction.date.tiered." name
    rq__setting_i64(t, f, KEY("max.storefile.age.millis"), &tier->max_age_ms);
    override_u32(t, f, KEY("incoming.window.min"), &tier->incoming_min);
    rq__setting_i64(t, f, KEY("base.window.millis"), &tier->base_window_ms);
    override_u32(t, f, KEY("windows.per.tier"), &tier->windows_per_tier);
    rq__setting_i64(t, f, KEY("max.tier.age.millis"), &tier->max_tier_age_ms);
    override_flag(t, f, KEY("single.output.for.minor.compaction"), &tier->single_output);
    rq_slice within;
    if (rq_schema_setting(t, f, KEY("window.policy.class"), &within))
        (void)rq_compaction_policy_within(within, &tier->within); /* unknown: the site's */
#undef KEY
}

/* Unsupported policies (stripes, user-defined classes) are refused when a table is created. A
 * folder taken over from HBase may have one; its files can be compacted by any policy. */
static void set_policy(const rq_region *r, const rq_family_schema *f, rq_compaction_settings *s)
{
    rq_slice engine = rq_slice_cstr(r->engine->store_engine);
    rq_slice policy = rq_slice_cstr(r->engine->compaction_policy);
    (void)rq_schema_setting(r->schema, f, "hbase.hstore.engine.class", &engine);
    (void)rq_schema_setting(r->schema, f, "hbase.hstore.defaultengine.compactionpolicy.class",
                            &policy);
    if (f->is_mob) engine = (rq_slice){0}; /* HBASE: MobStoreEngine is a default one */
    if (rq_compaction_policy_of(engine, policy, &s->policy)) return;
    s->policy = RQ_COMPACT_EXPLORING;
    rq_log_warn(r->env.log, "region",
                "region %s: store engine %.*s with compaction policy %.*s is not supported; using "
                "the exploring policy",
                r->info.encoded, (int)engine.len, (const char *)engine.ptr, (int)policy.len,
                (const char *)policy.ptr);
}

void rq__compaction_settings_of_store(const rq_region *r, const rq_family_schema *f,
                                      rq_compaction_settings *s)
{
    const rq_table_schema *t = r->schema;
    *s = atomic_load_explicit(&r->engine->compaction, memory_order_acquire)->settings;
    /* The catalog's own tables are compacted as in HBase. */
    if (!r->schema->is_meta) set_policy(r, f, s);
    override_u32(t, f, "hbase.hstore.compactionThreshold", &s->min_files); /* its old name */
    override_u32(t, f, "hbase.hstore.compaction.min", &s->min_files);
    override_u32(t, f, "hbase.hstore.compaction.max", &s->max_files);
    override_u32(t, f, "hbase.hstore.blockingStoreFiles", &s->blocking_files);
    rq__setting_u64(t, f, "hbase.hstore.compaction.min.size", &s->min_bytes);
    rq__setting_u64(t, f, "hbase.hstore.compaction.max.size", &s->max_bytes);
    rq__setting_u64(t, f, "hbase.hstore.compaction.max.size.offpeak", &s->offpeak_max_bytes);
    override_ratio(t, f, "hbase.hstore.compaction.ratio", &s->ratio);
    override_ratio(t, f, "hbase.hstore.compaction.ratio.offpeak", &s->offpeak_ratio);
    rq__setting_i64(t, f, "hbase.hregion.majorcompaction", &s->major_period_ms);
    override_ratio(t, f, "hbase.hregion.majorcompaction.jitter", &s->major_jitter);
    rq__setting_u64(t, f, "hbase.regionserver.thread.compaction.throttle", &s->throttle_bytes);
    override_flag(t, f, "hbase.hfile.drop.behind.compaction", &s->drop_behind);
    override_flag(t, f, "hbase.store.delete.expired.storefile", &s->drop_expired);
    set_tiers(t, f, s);
    if (s->min_files < 2)
        s->min_files = 2; /* a single file is no compaction; HBase has the same minimum */
    if (s->min_bytes == 0) s->min_bytes = r->flush_bytes;
    if (s->offpeak_max_bytes == 0) s->offpeak_max_bytes = s->max_bytes;
    if (s->throttle_bytes == 0) s->throttle_bytes = 2 * (uint64_t)s->max_files * r->flush_bytes;
    if (s->tiered.max_tier_age_ms == 0) s->tiered.max_tier_age_ms = s->tiered.max_age_ms;
    if (s->tiered.base_window_ms < 1) s->tiered.base_window_ms = 6 * DAY_MS / 24;
    if (s->tiered.windows_per_tier < 2) s->tiered.windows_per_tier = 2;
}

rq_compaction_settings rq__compaction_settings_of_site(const rq_config *c)
{
    rq_compaction_settings s = {
        .min_files = (uint32_t)rq_config_int(c, RQ_SET_COMPACTION_MIN),
        .max_files = (uint32_t)rq_config_int(c, RQ_SET_COMPACTION_MAX),
        .ratio = (double)(float)rq_config_real(c, RQ_SET_COMPACTION_RATIO),
        .offpeak_ratio = (double)(float)rq_config_real(c, RQ_SET_COMPACTION_RATIO_OFFPEAK),
        .min_bytes = (uint64_t)rq_config_int(c, RQ_SET_COMPACTION_MIN_SIZE),
        .max_bytes = (uint64_t)rq_config_int(c, RQ_SET_COMPACTION_MAX_SIZE),
        .offpeak_max_bytes = (uint64_t)rq_config_int(c, RQ_SET_COMPACTION_MAX_SIZE_OFFPEAK),
        .throttle_bytes = (uint64_t)rq_config_int(c, RQ_SET_COMPACTION_THROTTLE),
        .blocking_files = (uint32_t)rq_config_int(c, RQ_SET_BLOCKING_FILES),
        .major_period_ms = rq_config_int(c, RQ_SET_MAJOR_PERIOD),
        .major_jitter = (double)(float)rq_config_real(c, RQ_SET_MAJOR_JITTER),
        .keep_seqid_period_ms = rq_config_int(c, RQ_SET_KEEP_SEQID) * DAY_MS,
        .time_to_purge_deletes_ms = rq_config_int(c, RQ_SET_PURGE_DELETES),
        .drop_behind = rq_config_int(c, RQ_SET_DROP_BEHIND) != 0,
        .drop_expired = rq_config_int(c, RQ_SET_DELETE_EXPIRED) != 0,
        .tiered =
            {
                .max_age_ms = rq_config_int(c, RQ_SET_TIER_MAX_AGE),
                .incoming_min = (uint32_t)rq_config_int(c, RQ_SET_TIER_INCOMING_MIN),
                .base_window_ms = rq_config_int(c, RQ_SET_TIER_BASE_WINDOW),
                .windows_per_tier = (uint32_t)rq_config_int(c, RQ_SET_TIER_WINDOWS),
                .max_tier_age_ms = rq_config_int(c, RQ_SET_TIER_MAX_TIER_AGE),
                .single_output = rq_config_int(c, RQ_SET_TIER_SINGLE_OUTPUT) != 0,
            },
    };
    (void)rq_compaction_policy_within(rq_slice_cstr(rq_config_text(c, RQ_SET_TIER_WITHIN)),
                                      &s.tiered.within); /* unknown: exploring */
    if (s.min_files < 2) s.min_files = 2;
    if (s.max_files < s.min_files) s.max_files = s.min_files;
    return s;
}

/* --- publishing ------------------------------------------------------------------------------- */

rq_err rq__compaction_publish(rq__compaction_node *_Atomic *list, const rq_compaction_settings *s)
{
    rq__compaction_node *old = atomic_load_explicit(list, memory_order_relaxed);
    /* Equal bytes are equal settings; unequal padding only adds a node.
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (old != NULL && memcmp(&old->settings, s, sizeof *s) == 0) return RQ_OK;
    rq__compaction_node *node = calloc(1, sizeof *node);
    if (node == NULL) return RQ_E_NO_MEMORY;
    memcpy(&node->settings, s, sizeof *s); /* padding too: it is compared */
    node->older = old;
    atomic_store_explicit(list, node, memory_order_release);
    return RQ_OK;
}

void rq__compaction_clear(rq__compaction_node *_Atomic *list)
{
    rq__compaction_node *node = atomic_load_explicit(list, memory_order_relaxed);
    atomic_store_explicit(list, NULL, memory_order_relaxed);
    while (node != NULL) {
        rq__compaction_node *older = node->older;
        free(node);
        node = older;
    }
}

rq_err rq__compaction_reconfigure(rq_region *r)
{
    for (size_t i = 0; i < r->store_count; i++) {
        rq_compaction_settings s = {0};
        rq__compaction_settings_of_store(r, &r->schema->families[i], &s);
        RQ_TRY(rq__compaction_publish(&r->stores[i].compaction, &s));
    }
    return RQ_OK;
}
