/* SPDX-License-Identifier: Apache-2.0 */
/* GetClusterStatus, read by the shell's `status`, hbtop, split calculators and balancer tools.
 * A standalone server is the only one, and also the master. As in HBase, only the requested parts are filled
 * in. HBASE: HMaster.getClusterMetricsWithoutCoprocessor. */
#include "service/listing.h"
#include "service/master_priv.h"
#include "cluster/load.h"
#include "service/messages.h"
#include "service/user_metrics.h"

#include "base/machine.h"
#include "catalog/coprocessors.h"

#include "proto/files.pb-c.h"
#include "proto/master.pb-c.h"

#include <string.h>

/* The version we are compatible with; clients compare it. */
#define HBASE_VERSION "2.6.1"

static bool wants(const Pb__GetClusterStatusRequest *r, Pb__Option option)
{
    for (size_t i = 0; i < r->n_options; i++)
        if (r->options[i] == option) return true;
    return r->n_options == 0;
}

/* HBASE: HRegionServer.buildServerLoad: requests of the region server's service, and their rate. */
static void add_requests(const rq_admin_services *a, Pb__ServerLoad *m)
{
    rq_metrics_rates rates;
    rq_request_counts past; /* of closed regions: totals do not fall when a table is dropped */
    rq_engine_past_counts(a->engine, &past);
    m->has_read_requests_count = m->has_write_requests_count = 1;
    m->read_requests_count = past.reads;
    m->write_requests_count = past.writes;
    for (size_t i = 0; i < m->n_region_loads; i++) {
        m->read_requests_count += m->region_loads[i]->read_requests_count;
        m->write_requests_count += m->region_loads[i]->write_requests_count;
    }
    if (a->metrics == NULL) return;
    rq_metrics_get_rates(a->metrics, &rates);
    m->has_total_number_of_requests = m->has_number_of_requests = 1;
    m->total_number_of_requests = rates.requests;
    m->number_of_requests = (uint64_t)rates.requests_per_second;
}

static rq_err add_sources(const rq_admin_services *a, rq_arena *arena, Pb__ServerLoad *m)
{
    rq_source_status *list;
    size_t count;
    RQ_TRY(rq_replication_status(a->replication, arena, &list, &count));
    m->replloadsource = rq_arena_alloc(arena, (count + 1) * sizeof *m->replloadsource);
    if (m->replloadsource == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].running) continue; /* HBase shows the sources that run */
        const rq_source_load load = rq_source_load_of(&list[i]);
        Pb__ReplicationLoadSource *one = rq_source_load_message(arena, &load);
        if (one == NULL) return RQ_E_NO_MEMORY;
        m->replloadsource[m->n_replloadsource++] = one;
    }
    return RQ_OK;
}

/* The endpoints that open regions have. HBASE: HRegionServer.getRegionServerCoprocessors. */
static rq_err add_coprocessors(const rq_admin_services *a, rq_arena *arena, Pb__ServerLoad *m)
{
    static const struct {
        rq_coprocessor which;
        const char *name;
    } all[] = {{RQ_COPROCESSOR_AGGREGATE, "AggregateImplementation"},
               {RQ_COPROCESSOR_BULK_DELETE, "BulkDeleteEndpoint"},
               {RQ_COPROCESSOR_MULTI_ROW, "MultiRowMutationEndpoint"}};
    const rq_catalog_table *const *tables;
    size_t count;
    unsigned everywhere = 0, users = 0, found = 0;
    RQ_TRY(rq_coprocessors_of_settings(a->config, &everywhere, &users, NULL));
    rq_catalog_tables(a->catalog, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        if (tables[i]->state != RQ_TABLE_ENABLED) continue;
        found |= rq_coprocessors_of_table(tables[i]->schema) | everywhere;
        if (!rq_slice_eq(tables[i]->schema->ns, RQ_SLICE_LIT("hbase"))) found |= users;
    }
    m->coprocessors = rq_arena_alloc(arena, RQ_ARRAY_LEN(all) * sizeof(Pb__Coprocessor *));
    Pb__Coprocessor *list = rq_arena_alloc(arena, RQ_ARRAY_LEN(all) * sizeof *list);
    if (m->coprocessors == NULL || list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        if ((found & all[i].which) == 0) continue;
        Pb__Coprocessor *p = &list[m->n_coprocessors];
        pb__coprocessor__init(p);
        p->name = (char *)(uintptr_t)all[i].name;
        m->coprocessors[m->n_coprocessors++] = p;
    }
    return RQ_OK;
}

/* HBASE: until something is applied, both times are the start's. */
static rq_err add_replication(const rq_admin_services *a, rq_arena *arena, Pb__ServerLoad *m)
{
    if (a->replication == NULL) return RQ_OK;
    rq_sink_load sink;
    rq_sink_get_load(rq_replication_sink(a->replication), &sink);
    m->replloadsink = rq_sink_load_message(arena, &sink);
    return m->replloadsink == NULL ? RQ_E_NO_MEMORY : add_sources(a, arena, m);
}

/* HBase removes the quotas of dropped tables by a coprocessor of its own. */
static rq_err add_master_coprocessors(const rq_admin_services *a, rq_arena *arena,
                                      Pb__ClusterStatus *m)
{
    if (rq_config_int(a->config, RQ_SET_QUOTA) == 0 ||
        rq_config_int(a->config, RQ_SET_QUOTA_REMOVE) == 0)
        return RQ_OK;
    Pb__Coprocessor *one = rq_arena_alloc(arena, sizeof *one);
    m->master_coprocessors = rq_arena_alloc(arena, sizeof(Pb__Coprocessor *));
    if (one == NULL || m->master_coprocessors == NULL) return RQ_E_NO_MEMORY;
    pb__coprocessor__init(one);
    one->name = (char *)(uintptr_t) "MasterQuotasObserver";
    m->master_coprocessors[0] = one;
    m->n_master_coprocessors = 1;
    return RQ_OK;
}

static Pb__ServerTask *task_of(rq_arena *arena, const rq_procedure *p)
{
    Pb__ServerTask *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__server_task__init(m);
    m->description =
        rq_arena_printf(arena, "pid=%llu, %s, table=%.*s:%.*s", (unsigned long long)p->id,
                        p->java_class, (int)p->ns.len, (const char *)p->ns.ptr,
                        (int)p->qualifier.len, (const char *)p->qualifier.ptr);
    m->status = (char *)(uintptr_t)(p->parked         ? "parked: its step failed permanently"
                                    : p->step == NULL ? "begins"
                                                      : p->step);
    m->state =
        p->waiting || p->parked ? PB__SERVER_TASK__STATE__WAITING : PB__SERVER_TASK__STATE__RUNNING;
    m->has_starttime = 1;
    m->starttime = (uint64_t)p->submitted_ms;
    return m->description == NULL ? NULL : m;
}

/* The master's tasks are its unfinished procedures. */
static rq_err add_tasks(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m)
{
    rq_procedure *list;
    size_t count;
    RQ_TRY(rq_catalog_unfinished_procedures(a->catalog, arena, &list, &count));
    m->master_tasks = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__ServerTask *));
    if (m->master_tasks == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ServerTask *t = task_of(arena, &list[i]);
        if (t == NULL) return RQ_E_NO_MEMORY;
        m->master_tasks[m->n_master_tasks++] = t;
    }
    return RQ_OK;
}

static Pb__ServerLoad *server_load(const rq_admin_services *a, rq_arena *arena)
{
    rq_engine_stats stats;
    Pb__ServerLoad *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__server_load__init(m);
    m->region_loads = rq__region_loads_message(arena, a->catalog, NULL, &m->n_region_loads);
    if (m->region_loads == NULL) return NULL;
    add_requests(a, m);
    if (add_replication(a, arena, m) != RQ_OK || add_coprocessors(a, arena, m) != RQ_OK)
        return NULL;
    rq_engine_get_stats(a->engine, &stats);
    int64_t now = a->env.executor->now_ms(a->env.executor);
    m->has_used_heap_mb = m->has_max_heap_mb = 1;
    m->used_heap_mb = (uint32_t)(rq_machine_resident_bytes() >> 20);
    m->max_heap_mb = (uint32_t)((stats.memstore_bytes_max + stats.block_cache_bytes_max) >> 20);
    /* HBase sends -1 where there are no pages. */
    uint16_t info_port = rq_catalog_info_port(a->catalog);
    m->has_info_server_port = 1;
    m->info_server_port = info_port == 0 ? UINT32_MAX : info_port;
    m->has_report_start_time = m->has_report_end_time = 1;
    m->report_end_time = (uint64_t)now;
    m->report_start_time = (uint64_t)now - RQ_METRICS_PERIOD_NS / 1000000; /* of the rate */
    if (a->users != NULL && rq__user_loads(a->users, arena, m) != RQ_OK) return NULL;
    return m;
}

/* --- the other servers of a cluster: what they last reported of their regions ------------------ */

/* The servers, sorted, and the loads that are sent of them. */
typedef struct server_loads {
    const rq_server_name **list;
    size_t count, own; /* own: this process's */
    Pb__ServerLoad **loads;
} server_loads;

/* The number of the other server that has the region open; `count`: none has. */
static size_t other_with(const server_loads *s, const rq_catalog_region *r)
{
    size_t at =
        r->state == RQ_REGION_OPEN ? rq_server_names_find(s->list, s->count, r->server) : s->count;
    return at == s->own ? s->count : at;
}

static Pb__ServerLoad *new_load(const rq_admin_services *a, rq_arena *arena, size_t regions)
{
    Pb__ServerLoad *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__server_load__init(m);
    m->region_loads = rq_arena_alloc(arena, (regions + 1) * sizeof(Pb__RegionLoad *));
    if (m->region_loads == NULL) return NULL;
    m->has_read_requests_count = m->has_write_requests_count = 1;
    m->has_info_server_port = m->has_report_end_time = 1;
    m->info_server_port = UINT32_MAX; /* HBase sends -1 where there are no pages */
    m->report_end_time = (uint64_t)a->env.executor->now_ms(a->env.executor);
    return m;
}

static rq_err add_reported_sink(const rq_server_load *load, rq_arena *arena, Pb__ServerLoad *m)
{
    if (!load->has_sink) return RQ_OK;
    m->replloadsink = rq_sink_load_message(arena, &load->sink);
    return m->replloadsink == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err add_reported_sources(const rq_admin_services *a, const rq_server_name *server,
                                   rq_arena *arena, Pb__ServerLoad *m)
{
    rq_source_load *list;
    size_t count;
    RQ_TRY(rq_catalog_server_sources(a->catalog, server, arena, &list, &count));
    if (count == 0) return RQ_OK;
    m->replloadsource = rq_arena_alloc(arena, count * sizeof *m->replloadsource);
    if (m->replloadsource == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ReplicationLoadSource *one = rq_source_load_message(arena, &list[i]);
        if (one == NULL) return RQ_E_NO_MEMORY;
        m->replloadsource[m->n_replloadsource++] = one;
    }
    return RQ_OK;
}

/* The figures that the server reported of itself: its totals include regions that it has closed. */
static rq_err add_server(const rq_server_load *load, rq_arena *arena, Pb__ServerLoad *m)
{
    m->has_number_of_requests = m->has_total_number_of_requests = 1;
    m->number_of_requests = load->requests_per_second;
    m->total_number_of_requests = load->requests;
    m->read_requests_count = load->reads;
    m->write_requests_count = load->writes;
    m->has_used_heap_mb = m->has_max_heap_mb = 1;
    m->used_heap_mb = load->used_heap_mb;
    m->max_heap_mb = load->max_heap_mb;
    m->has_report_start_time = m->has_report_end_time = 1;
    m->report_start_time = load->begin_ms;
    m->report_end_time = load->end_ms;
    m->has_info_server_port = 1;
    m->info_server_port = load->info_port;
    return add_reported_sink(load, arena, m);
}

/* A region without a report counts, too. */
static rq_err add_reported(const rq_admin_services *a, rq_arena *arena, const rq_catalog_region *r,
                           Pb__ServerLoad *m)
{
    rq_region_load load = {0};
    (void)rq_catalog_load(a->catalog, r, &load);
    Pb__RegionLoad *one = rq_reported_load_message(arena, r->info, &load);
    if (one == NULL) return RQ_E_NO_MEMORY;
    m->region_loads[m->n_region_loads++] = one;
    m->read_requests_count += one->read_requests_count;
    m->write_requests_count += one->write_requests_count;
    return RQ_OK;
}

/* Walks all regions twice, however many servers there are. */
static rq_err other_loads(const rq_admin_services *a, rq_arena *arena, const server_loads *s)
{
    const rq_catalog_table *const *tables;
    size_t table_count, at;
    size_t *regions = rq_arena_calloc(arena, s->count + 1, sizeof *regions); /* by server */
    if (regions == NULL) return RQ_E_NO_MEMORY;
    rq_catalog_tables(a->catalog, &tables, &table_count);
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t]->region_count; i++)
            regions[other_with(s, rq_catalog_table_region(tables[t], i))]++;
    for (size_t i = 0; i < s->count; i++)
        if ((s->loads[i] = new_load(a, arena, regions[i])) == NULL) return RQ_E_NO_MEMORY;
    for (size_t t = 0; t < table_count; t++) {
        for (size_t i = 0; i < tables[t]->region_count; i++) {
            const rq_catalog_region *r = rq_catalog_table_region(tables[t], i);
            if ((at = other_with(s, r)) < s->count) RQ_TRY(add_reported(a, arena, r, s->loads[at]));
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        rq_server_load load;
        if (rq_catalog_server_load(a->catalog, s->list[i], &load))
            RQ_TRY(add_server(&load, arena, s->loads[i]));
        RQ_TRY(add_reported_sources(a, s->list[i], arena, s->loads[i]));
    }
    return RQ_OK;
}

/* The load of this process. In a cluster the master's services know neither the rate of this process's requests nor its
 * replication: both are taken from its own report to the master. */
static Pb__ServerLoad *own_load(const rq_admin_services *a, rq_arena *arena)
{
    rq_server_load load;
    Pb__ServerLoad *m = server_load(a, arena);
    if (m == NULL || !rq_catalog_server_load(a->catalog, rq_catalog_server(a->catalog), &load))
        return m;
    if (!m->has_number_of_requests) {
        m->has_number_of_requests = m->has_total_number_of_requests = 1;
        m->number_of_requests = load.requests_per_second;
        m->total_number_of_requests = load.requests;
    }
    rq_err rc = add_reported_sink(&load, arena, m);
    if (rc == RQ_OK) rc = add_reported_sources(a, rq_catalog_server(a->catalog), arena, m);
    return rc == RQ_OK ? m : NULL;
}

static rq_err find_loads(const rq_admin_services *a, rq_arena *arena, server_loads *s)
{
    s->own = rq_server_names_find(s->list, s->count, rq_catalog_server(a->catalog));
    s->loads = rq_arena_calloc(arena, s->count + 1, sizeof *s->loads);
    if (s->loads == NULL) return RQ_E_NO_MEMORY;
    if (s->count > 1 || s->own == s->count) RQ_TRY(other_loads(a, arena, s));
    if (s->own < s->count && (s->loads[s->own] = own_load(a, arena)) == NULL) return RQ_E_NO_MEMORY;
    return RQ_OK;
}

/* --- the list of servers ---------------------------------------------------------------------- */

static rq_err add_live(rq_arena *arena, Pb__ServerName *name, Pb__ServerLoad *load,
                       Pb__ClusterStatus *m)
{
    Pb__LiveServerInfo *live = rq_arena_alloc(arena, sizeof *live);
    if (live == NULL) return RQ_E_NO_MEMORY;
    pb__live_server_info__init(live);
    live->server = name;
    live->server_load = load;
    m->live_servers[m->n_live_servers++] = live;
    return RQ_OK;
}

/* Its host is copied into the arena. NULL: out of memory. */
static Pb__ServerName *copied_name(rq_arena *arena, const rq_server_name *s)
{
    Pb__ServerName *name = rq__server_name_message(arena, s);
    if (name != NULL) name->host_name = rq_arena_cstr(arena, rq_slice_cstr(s->host));
    return name == NULL || name->host_name == NULL ? NULL : name;
}

static rq_err add_each(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m,
                       const Pb__GetClusterStatusRequest *r, server_loads *s)
{
    bool live = wants(r, PB__OPTION__LIVE_SERVERS), names = wants(r, PB__OPTION__SERVERS_NAME);
    m->live_servers = rq_arena_alloc(arena, (s->count + 1) * sizeof(Pb__LiveServerInfo *));
    m->servers_name = rq_arena_alloc(arena, (s->count + 1) * sizeof(Pb__ServerName *));
    if (m->live_servers == NULL || m->servers_name == NULL) return RQ_E_NO_MEMORY;
    if (live) RQ_TRY(find_loads(a, arena, s));
    for (size_t i = 0; i < s->count; i++) {
        Pb__ServerName *name = copied_name(arena, s->list[i]);
        if (name == NULL) return RQ_E_NO_MEMORY;
        if (live) RQ_TRY(add_live(arena, name, s->loads[i], m));
        if (names) m->servers_name[m->n_servers_name++] = name;
    }
    return RQ_OK;
}

static rq_err add_servers(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m,
                          const Pb__GetClusterStatusRequest *r)
{
    server_loads s = {0};
    RQ_TRY(rq_catalog_servers(a->catalog, arena, &s.list, &s.count));
    rq_err rc = add_each(a, arena, m, r, &s);
    for (size_t i = 0; i < s.count; i++)
        rq_server_name_unref(s.list[i]);
    if (rc != RQ_OK || !wants(r, PB__OPTION__MASTER)) return rc;
    m->master = rq__server_name_message(arena, rq_catalog_master(a->catalog));
    return m->master == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err add_dead(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m)
{
    const rq_server_name **list;
    size_t count;
    rq_err rc = rq_catalog_dead_servers(a->catalog, arena, &list, &count);
    if (rc == RQ_OK)
        m->dead_servers = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__ServerName *));
    if (rc == RQ_OK && m->dead_servers == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ServerName *name = rc == RQ_OK ? copied_name(arena, list[i]) : NULL;
        if (rc == RQ_OK && name == NULL) rc = RQ_E_NO_MEMORY;
        if (rc == RQ_OK) m->dead_servers[m->n_dead_servers++] = name;
        rq_server_name_unref(list[i]);
    }
    return rc;
}

static rq_err add_standbys(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m)
{
    rq_server_name *list;
    size_t count;
    if (a->standbys == NULL) return RQ_OK;
    RQ_TRY(a->standbys(a->standbys_ctx, arena, &list, &count));
    m->backup_masters = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__ServerName *));
    if (m->backup_masters == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ServerName *name = rq__server_name_message(arena, &list[i]);
        if (name == NULL) return RQ_E_NO_MEMORY;
        m->backup_masters[m->n_backup_masters++] = name;
    }
    return RQ_OK;
}

static bool is_closed(rq_region_state state)
{
    return state == RQ_REGION_CLOSED || state == RQ_REGION_OFFLINE;
}

/* HBase's counts: all are 0 for a disabled table, and regions that are not open are in transition,
 * closed ones too. `all`: the actual counts, for Rorqual's own tools. HBASE:
 * AssignmentManager.getRegionStatesCount. */
static Pb__TableRegionStatesCount *count_states(rq_arena *arena, const rq_catalog_table *t,
                                                bool all)
{
    Pb__TableRegionStatesCount *m = rq_arena_alloc(arena, sizeof *m);
    Pb__RegionStatesCount *c = rq_arena_alloc(arena, sizeof *c);
    if (m == NULL || c == NULL) return NULL;
    pb__table_region_states_count__init(m);
    pb__region_states_count__init(c);
    bool disabled = t->state == RQ_TABLE_DISABLED || t->state == RQ_TABLE_DISABLING;
    size_t count = disabled && !all ? 0 : t->region_count;
    for (size_t i = 0; i < count; i++) {
        rq_region_state state = rq_catalog_table_region(t, i)->state;
        c->open_regions += state == RQ_REGION_OPEN;
        c->closed_regions += all ? is_closed(state) : state == RQ_REGION_CLOSED;
    }
    c->total_regions = (uint32_t)count;
    c->regions_in_transition = c->total_regions - c->open_regions - (all ? c->closed_regions : 0);
    m->region_states_count = c;
    m->table_name = rq__table_name_message(arena, t->schema->ns, t->schema->qualifier);
    return m->table_name == NULL ? NULL : m;
}

static rq_err add_tables(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m)
{
    const rq_catalog_table *const *tables;
    size_t count;
    rq_catalog_tables(a->catalog, &tables, &count);
    m->table_region_states_count =
        rq_arena_alloc(arena, (count + 1) * sizeof(Pb__TableRegionStatesCount *));
    m->rorqual_tables = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__TableRegionStatesCount *));
    if (m->table_region_states_count == NULL || m->rorqual_tables == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__TableRegionStatesCount *c = count_states(arena, tables[i], false);
        Pb__TableRegionStatesCount *all = count_states(arena, tables[i], true);
        if (c == NULL || all == NULL) return RQ_E_NO_MEMORY;
        m->table_region_states_count[m->n_table_region_states_count++] = c;
        m->rorqual_tables[m->n_rorqual_tables++] = all;
    }
    return RQ_OK;
}

static Pb__RegionInTransition *in_transition(rq_arena *arena, const rq_catalog_region *r)
{
    Pb__RegionInTransition *m = rq_arena_alloc(arena, sizeof *m);
    Pb__RegionSpecifier *spec = rq_arena_alloc(arena, sizeof *spec);
    Pb__RegionState *state = rq_arena_alloc(arena, sizeof *state);
    if (m == NULL || spec == NULL || state == NULL) return NULL;
    pb__region_in_transition__init(m);
    pb__region_specifier__init(spec);
    pb__region_state__init(state);
    spec->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    spec->value = rq__pb_binary(r->info->name);
    state->region_info = rq__region_info_message(arena, r->info);
    state->state = rq__region_state_message(r->state);
    state->has_stamp = 1;
    state->stamp = (uint64_t)r->changed_ms;
    m->spec = spec;
    m->region_state = state;
    return state->region_info == NULL ? NULL : m;
}

/* Regions being opened, closed, split or merged, and those that could not be opened; not those
 * that were closed on request. HBASE: RegionStates.getRegionsStateInTransition. */
static bool is_in_transition(const rq_catalog_region *r)
{
    return r->state != RQ_REGION_OPEN && !is_closed(r->state);
}

static rq_err add_transitions(const rq_admin_services *a, rq_arena *arena, Pb__ClusterStatus *m)
{
    const rq_catalog_table *const *tables;
    size_t count, n = 0;
    rq_catalog_tables(a->catalog, &tables, &count);
    for (size_t i = 0; i < count; i++)
        n += tables[i]->state == RQ_TABLE_DISABLED ? 0 : tables[i]->region_count;
    m->regions_in_transition = rq_arena_alloc(arena, (n + 1) * sizeof(Pb__RegionInTransition *));
    m->rorqual_closed_regions = rq_arena_alloc(arena, (n + 1) * sizeof(Pb__RegionInTransition *));
    if (m->regions_in_transition == NULL || m->rorqual_closed_regions == NULL)
        return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < tables[i]->region_count; k++) {
            const rq_catalog_region *r = rq_catalog_table_region(tables[i], k);
            if (tables[i]->state == RQ_TABLE_DISABLED || r->state == RQ_REGION_OPEN) continue;
            Pb__RegionInTransition *t = in_transition(arena, r);
            if (t == NULL) return RQ_E_NO_MEMORY;
            if (is_in_transition(r))
                m->regions_in_transition[m->n_regions_in_transition++] = t;
            else
                m->rorqual_closed_regions[m->n_rorqual_closed_regions++] = t;
        }
    }
    return RQ_OK;
}

static rq_err list_cluster(rq__listing *l, rq_slice *ret)
{
    rq_admin_services *a = l->services;
    rq_arena *arena = &l->call->arena;
    const Pb__GetClusterStatusRequest *r = (const Pb__GetClusterStatusRequest *)l->call->param;
    Pb__GetClusterStatusResponse response = PB__GET_CLUSTER_STATUS_RESPONSE__INIT;
    Pb__ClusterStatus status = PB__CLUSTER_STATUS__INIT;
    Pb__HBaseVersionFileContent version = PB__HBASE_VERSION_FILE_CONTENT__INIT;
    Pb__ClusterId id = PB__CLUSTER_ID__INIT;
    response.cluster_status = &status;
    version.version = (char *)HBASE_VERSION;
    id.cluster_id = (char *)rq_root_cluster_id(rq_catalog_root(a->catalog));
    if (wants(r, PB__OPTION__HBASE_VERSION)) {
        status.hbase_version = &version;
        status.rorqual_version = (char *)RQ_VERSION;
    }
    if (wants(r, PB__OPTION__CLUSTER_ID)) status.cluster_id = &id;
    if (wants(r, PB__OPTION__BALANCER_ON)) {
        status.has_balancer_on = 1;
        status.balancer_on = rq_catalog_switch_get(a->catalog, RQ_SWITCH_BALANCER);
    }
    if (wants(r, PB__OPTION__MASTER_INFO_PORT)) {
        status.has_master_info_port = 1;
        uint16_t port = rq_catalog_info_port(a->catalog);
        status.master_info_port = port == 0 ? -1 : port;
    }
    RQ_TRY(add_servers(a, arena, &status, r));
    if (wants(r, PB__OPTION__DEAD_SERVERS)) RQ_TRY(add_dead(a, arena, &status));
    if (wants(r, PB__OPTION__BACKUP_MASTERS)) RQ_TRY(add_standbys(a, arena, &status));
    if (wants(r, PB__OPTION__REGIONS_IN_TRANSITION)) RQ_TRY(add_transitions(a, arena, &status));
    if (wants(r, PB__OPTION__MASTER_COPROCESSORS))
        RQ_TRY(add_master_coprocessors(a, arena, &status));
    if (wants(r, PB__OPTION__TASKS)) RQ_TRY(add_tasks(a, arena, &status));
    if (wants(r, PB__OPTION__TABLE_TO_REGIONS_COUNT)) RQ_TRY(add_tables(a, arena, &status));
    return rq__listing_pack(l, &response.base, ret);
}

void rq__get_cluster_status(void *ctx, rq_call *call)
{
    rq__listing_reply_long(ctx, call, list_cluster);
}
