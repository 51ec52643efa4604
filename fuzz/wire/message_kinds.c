/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose fields must fit together, so that the server does not reject them early; see
 * message.h. */
#include "message.h"

#include "base/macros.h"
#include "proto/client.pb-c.h"
#include "proto/comparator.pb-c.h"
#include "proto/endpoints.pb-c.h"
#include "proto/filter.pb-c.h"

#include <stdio.h>

#define FILTER_DEPTH 8
#define JAVA_FILTERS "org.apache.hadoop.hbase.filter."

/* ---- names of existing objects */

static void put_bytes_field(rq_buf *out, unsigned field, const void *bytes, size_t len)
{
    rq_buf b = {0};
    put(&b, bytes, len);
    put_delimited(out, field, &b);
    rq_buf_clear(&b);
}

static void table_name(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    if (once_in(&m->r, 60)) {
        make_fields(m, d, out);
        return;
    }
    unsigned table = chance(&m->r, 90) ? m->table : (unsigned)rq_random_below(&m->r, WORLD_TABLES);
    bool meta = once_in(&m->r, 100);
    put_text_field(out, 1, meta ? "hbase" : world_namespace(table));
    put_text_field(out, 2, meta ? "meta" : world_qualifier(table));
}

static void region_specifier(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    if (once_in(&m->r, 100) || m->world->region_count == 0) {
        make_fields(m, d, out);
        return;
    }
    m->of_meta = once_in(&m->r, 40);
    if (m->of_meta) {
        put_number_field(out, 1, 2);
        put_text_field(out, 2, "1588230740");
        return;
    }
    const world_region *region = m->region;
    if (region == NULL || once_in(&m->r, 20))
        region = &m->world->regions[rq_random_below(&m->r, m->world->region_count)];
    bool encoded = chance(&m->r, 50);
    put_number_field(out, 1, encoded ? 2 : 1);
    if (encoded)
        put_text_field(out, 2, region->encoded);
    else
        put_bytes_field(out, 2, region->name.ptr, region->name.len);
}

static void region_info(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    const world_region *region = m->region;
    if (region == NULL || once_in(&m->r, 30)) {
        make_fields(m, d, out);
        return;
    }
    rq_buf name = {0};
    put_text_field(&name, 1, world_namespace(region->table));
    put_text_field(&name, 2, world_qualifier(region->table));
    put_number_field(out, 1, region->id);
    put_delimited(out, 2, &name);
    put_bytes_field(out, 3, region->start.ptr, region->start.len);
    put_bytes_field(out, 4, region->end.ptr, region->end.len);
    if (once_in(&m->r, 10)) put_number_field(out, 7, draw_number(&m->r));
    rq_buf_clear(&name);
}

static void server_name(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    if (once_in(&m->r, 3)) {
        make_fields(m, d, out);
        return;
    }
    put_text_field(out, 1, "127.0.0.1");
    put_number_field(out, 2, draw_number(&m->r));
    put_number_field(out, 3, draw_number(&m->r));
}

/* ---- descriptors */

static void put_pair(rq_buf *out, unsigned field, const rq_buf *first, const rq_buf *second)
{
    rq_buf pair = {0};
    put_delimited(&pair, 1, first);
    put_delimited(&pair, 2, second);
    put_delimited(out, field, &pair);
    rq_buf_clear(&pair);
}

typedef void (*drawn_pair)(rq_random *r, rq_buf *name, rq_buf *value);

static void put_pairs(maker *m, drawn_pair draw, unsigned field, unsigned percent, rq_buf *out)
{
    while (chance(&m->r, percent)) {
        rq_buf name = {0}, value = {0};
        draw(&m->r, &name, &value);
        put_pair(out, field, &name, &value);
        rq_buf_clear(&name);
        rq_buf_clear(&value);
    }
}

static void put_family_schema(maker *m, const char *name, rq_buf *out)
{
    rq_buf drawn = {0};
    if (name != NULL)
        put_text(&drawn, name);
    else
        draw_family(&m->r, &drawn);
    put_delimited(out, 1, &drawn);
    put_pairs(m, draw_family_attribute, 2, 50, out);
    put_pairs(m, draw_setting, 3, 10, out);
    rq_buf_clear(&drawn);
}

static void family_schema(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    (void)d;
    put_family_schema(m, NULL, out);
}

static void table_schema(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    static const char *const families[] = {"f", "g", "c", "m"};
    make_field(m, d, "table_name", out);
    put_pairs(m, draw_table_attribute, 2, 40, out);
    for (size_t i = 0; i < RQ_ARRAY_LEN(families); i++) {
        rq_buf family = {0};
        put_family_schema(m, families[i], &family);
        put_delimited(out, 3, &family);
        rq_buf_clear(&family);
    }
    if (once_in(&m->r, 8)) make_field(m, d, "column_families", out);
    put_pairs(m, draw_setting, 4, 10, out);
}

/* ---- filters and comparators: a class name and bytes that are its message */

static const ProtobufCMessageDescriptor *const wrappers[] = {
    &pb__filter_list__descriptor,
    &pb__skip_filter__descriptor,
    &pb__while_match_filter__descriptor,
    &pb__filter_wrapper__descriptor,
};

static const ProtobufCMessageDescriptor *const filters[] = {
    &pb__row_filter__descriptor,
    &pb__family_filter__descriptor,
    &pb__qualifier_filter__descriptor,
    &pb__value_filter__descriptor,
    &pb__dependent_column_filter__descriptor,
    &pb__single_column_value_filter__descriptor,
    &pb__single_column_value_exclude_filter__descriptor,
    &pb__column_value_filter__descriptor,
    &pb__prefix_filter__descriptor,
    &pb__inclusive_stop_filter__descriptor,
    &pb__page_filter__descriptor,
    &pb__random_row_filter__descriptor,
    &pb__fuzzy_row_filter__descriptor,
    &pb__multi_row_range_filter__descriptor,
    &pb__filter_all_filter__descriptor,
    &pb__column_count_get_filter__descriptor,
    &pb__column_pagination_filter__descriptor,
    &pb__column_prefix_filter__descriptor,
    &pb__multiple_column_prefix_filter__descriptor,
    &pb__column_range_filter__descriptor,
    &pb__first_key_only_filter__descriptor,
    &pb__first_key_value_matching_qualifiers_filter__descriptor,
    &pb__key_only_filter__descriptor,
    &pb__timestamps_filter__descriptor,
};

static const ProtobufCMessageDescriptor *const comparators[] = {
    &pb__binary_comparator__descriptor,
    &pb__long_comparator__descriptor,
    &pb__binary_prefix_comparator__descriptor,
    &pb__big_decimal_comparator__descriptor,
    &pb__bit_comparator__descriptor,
    &pb__null_comparator__descriptor,
    &pb__regex_string_comparator__descriptor,
    &pb__substring_comparator__descriptor,
    &pb__binary_component_comparator__descriptor,
};

static void put_class(const char *class_name, const rq_buf *message, rq_buf *out)
{
    char name[128];
    snprintf(name, sizeof name, JAVA_FILTERS "%s", class_name);
    put_text_field(out, 1, name);
    put_delimited(out, 2, message);
}

/* Nests a filter in another one: a wrapper, or a list that has it several times. */
static void nest_once(maker *m, size_t copies_max, rq_buf *filter)
{
    static const char *const classes[] = {"WhileMatchFilter", "SkipFilter", "FilterWrapper",
                                          "FilterList"};
    rq_buf inner = {0}, outer = {0};
    size_t kind = rq_random_below(&m->r, RQ_ARRAY_LEN(classes));
    bool is_list = kind == RQ_ARRAY_LEN(classes) - 1;
    size_t copies = is_list ? 1 + rq_random_below(&m->r, copies_max) : 1;
    if (is_list) put_number_field(&inner, 1, 1 + rq_random_below(&m->r, 2));
    while (copies-- > 0)
        put_delimited(&inner, is_list ? 2 : 1, filter);
    put_class(classes[kind], &inner, &outer);
    rq_buf_clear(&inner);
    rq_buf_clear(filter);
    *filter = outer;
}

#define NEST_BYTES 100000

/* Nests a filter in many others: mostly in as many as the server accepts, sometimes in thousands, or in lists
 * that have it 100,000 times. */
static void nest(maker *m, rq_buf *filter)
{
    size_t levels = rq_random_below(&m->r, once_in(&m->r, 3) ? 3000 : 100);
    for (size_t i = 0; i < levels; i++)
        nest_once(m, filter->len < NEST_BYTES ? 4 : 1, filter);
    if (!m->huge || filter->len > NEST_BYTES) return;
    m->huge = false;
    nest_once(m, NEST_BYTES, filter);
}

static void filter(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    (void)d;
    bool wraps = m->depth < FILTER_DEPTH && chance(&m->r, 30);
    const ProtobufCMessageDescriptor *of =
        wraps ? wrappers[rq_random_below(&m->r, RQ_ARRAY_LEN(wrappers))]
              : filters[rq_random_below(&m->r, RQ_ARRAY_LEN(filters))];
    rq_buf message = {0}, made = {0};
    make_message(m, of, &message);
    put_class(once_in(&m->r, 200) ? "NoSuchFilter" : of->short_name, &message, &made);
    if (m->huge || once_in(&m->r, 100)) nest(m, &made);
    put(out, made.ptr, made.len);
    rq_buf_clear(&message);
    rq_buf_clear(&made);
}

/* Keys and masks, mostly of equal length. */
static void fuzzy_row(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    static const uint8_t fixed_or_not[] = {0, 1, 0xff, 2};
    (void)d;
    for (unsigned n = 1 + draw_count(&m->r); n > 0; n--) {
        rq_buf key = {0}, mask = {0};
        make_row(m, &key);
        for (size_t i = 0; i < key.len; i++)
            must(rq_buf_append_u8(&mask, fixed_or_not[rq_random_below(&m->r, 4)]));
        if (once_in(&m->r, 20)) draw_bytes(&m->r, &mask);
        put_pair(out, 1, &key, &mask);
        rq_buf_clear(&key);
        rq_buf_clear(&mask);
    }
    if (chance(&m->r, 50)) put_number_field(out, 2, rq_random_below(&m->r, 2));
}

static void comparator(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    (void)d;
    const ProtobufCMessageDescriptor *of =
        comparators[rq_random_below(&m->r, RQ_ARRAY_LEN(comparators))];
    rq_buf message = {0};
    make_message(m, of, &message);
    put_class(of->short_name, &message, out);
    rq_buf_clear(&message);
}

/* ---- endpoints */

static const struct endpoint {
    const char *service, *method;
    const ProtobufCMessageDescriptor *request;
} endpoints[] = {
    {"AggregateService", "GetMax", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetMin", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetSum", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetRowNum", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetAvg", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetStd", &pb__aggregate_request__descriptor},
    {"AggregateService", "GetMedian", &pb__aggregate_request__descriptor},
    {"MultiRowMutationService", "MutateRows", &pb__mutate_rows_request__descriptor},
    {"BulkDeleteService", "delete", &pb__bulk_delete_request__descriptor},
    {"AuthenticationService", "WhoAmI", &pb__who_am_irequest__descriptor},
};

static void service_call(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    const struct endpoint *e = &endpoints[rq_random_below(&m->r, RQ_ARRAY_LEN(endpoints))];
    rq_buf request = {0};
    make_message(m, e->request, &request);
    make_field(m, d, "row", out);
    put_text_field(out, 2, e->service);
    put_text_field(out, 3, e->method);
    put_delimited(out, 4, &request);
    rq_buf_clear(&request);
}

/* ---- writes */

static void make_column(maker *m, rq_buf *family, rq_buf *qualifier)
{
    if (m->of_meta) {
        draw_meta_family(&m->r, family);
        draw_meta_qualifier(&m->r, qualifier);
    } else {
        draw_family(&m->r, family);
        draw_qualifier(&m->r, qualifier);
    }
}

static void append_cell(maker *m, rq_slice row, uint8_t type)
{
    rq_buf family = {0}, qualifier = {0}, value = {0};
    make_column(m, &family, &qualifier);
    draw_value(&m->r, &value);
    rq_cell cell = {
        .row = row.ptr,
        .row_len = (uint16_t)row.len,
        .family = family.ptr,
        .family_len = (uint8_t)family.len,
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .timestamp =
            chance(&m->r, 60) ? INT64_MAX : (int64_t)draw_timestamp(&m->r, m->world->now_ms),
        .type = type,
    };
    (void)!rq_cellblock_append(&m->cells, &cell); /* skipped if the cell is too large */
    rq_buf_clear(&family);
    rq_buf_clear(&qualifier);
    rq_buf_clear(&value);
}

static uint8_t draw_cell_type(rq_random *r, unsigned mutate_type)
{
    static const uint8_t deletes[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_FAMILY_VERSION,
                                      RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    if (once_in(r, 40)) return (uint8_t)rq_random_next(r);
    return mutate_type == 3 ? deletes[rq_random_below(r, RQ_ARRAY_LEN(deletes))] : RQ_TYPE_PUT;
}

/* A mutation with its cells in the cell block. */
static void mutation_with_cells(maker *m, rq_buf *out)
{
    rq_buf row = {0}, other = {0};
    unsigned type = (unsigned)rq_random_below(&m->r, 4);
    unsigned count = 1 + draw_count(&m->r);
    if (once_in(&m->r, 200)) count = 2000;
    if (m->huge) count = 100000;
    m->huge = false;
    make_row(m, &row);
    for (unsigned i = 0; i < count; i++) {
        bool strange = once_in(&m->r, 60);
        rq_buf_reset(&other);
        if (strange) make_row(m, &other);
        append_cell(m, rq_buf_slice(strange ? &other : &row), draw_cell_type(&m->r, type));
    }
    if (chance(&m->r, 80)) put_delimited(out, 1, &row);
    put_number_field(out, 2, type);
    if (chance(&m->r, 30)) put_number_field(out, 6, rq_random_below(&m->r, 5));
    put_number_field(out, 8, once_in(&m->r, 60) ? draw_number(&m->r) : count);
    if (chance(&m->r, 30)) put_number_field(out, 9, rq_random_below(&m->r, 50));
    rq_buf_clear(&row);
    rq_buf_clear(&other);
}

static void mutation(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    if (m->has_codec && chance(&m->r, 50))
        mutation_with_cells(m, out);
    else
        make_fields(m, d, out);
}

/* Mostly one of the three kinds; sometimes none, or several. */
static void action(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    unsigned which = once_in(&m->r, 40)  ? (unsigned)rq_random_below(&m->r, 8)
                     : chance(&m->r, 70) ? 1
                     : chance(&m->r, 80) ? 2
                                         : 4;
    if (!once_in(&m->r, 10))
        put_number_field(out, 1,
                         once_in(&m->r, 10) ? draw_number(&m->r) : rq_random_below(&m->r, 8));
    if ((which & 1) != 0) make_field(m, d, "mutation", out);
    if ((which & 2) != 0) make_field(m, d, "get", out);
    if ((which & 4) != 0) make_field(m, d, "service_call", out);
}

/* Up to a million gets of one short row, or of none. */
static void tiny_actions(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    static const uint8_t get_nothing[] = {0x1a, 0}, get_row[] = {0x1a, 3, 0x0a, 1, 'r'};
    size_t count = (size_t)100000 * (1 + rq_random_below(&m->r, 10));
    bool has_row = chance(&m->r, 70);
    rq_buf action = {0};
    m->huge = false;
    make_field(m, d, "region", out);
    put(&action, has_row ? get_row : get_nothing, has_row ? sizeof get_row : sizeof get_nothing);
    while (count-- > 0)
        put_delimited(out, 3, &action);
    rq_buf_clear(&action);
}

/* Each part has another region, and rows of that region. */
static void region_action(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    const world_region *kept = m->region;
    if (m->world->region_count > 0 && chance(&m->r, 40))
        m->region = &m->world->regions[rq_random_below(&m->r, m->world->region_count)];
    if (m->huge && chance(&m->r, 50))
        tiny_actions(m, d, out);
    else
        make_fields(m, d, out);
    m->region = kept;
}

/* ---- scans */

static void scan_request(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    static const char *const rest[] = {
        "next_call_seq",      "client_handles_partials", "client_handles_heartbeats",
        "track_scan_metrics", "limit_of_rows",           "renew"};
    static const unsigned percent[] = {4, 60, 60, 20, 15, 5};
    if (m->whole) {
        rq_buf nothing = {0};
        make_field(m, d, "region", out);
        put_delimited(out, 2, &nothing);
        put_number_field(out, 4, INT32_MAX);
        return;
    }
    if (m->scanner == 0) {
        make_field(m, d, "region", out);
        make_field(m, d, "scan", out);
    } else {
        put_number_field(out, 3, once_in(&m->r, 100) ? draw_number(&m->r) : m->scanner);
    }
    if (chance(&m->r, 95))
        put_number_field(out, 4,
                         chance(&m->r, 70) ? rq_random_below(&m->r, 100) : draw_number(&m->r));
    if (chance(&m->r, m->scanner == 0 ? 8 : 15)) put_number_field(out, 5, 1);
    for (size_t i = 0; i < RQ_ARRAY_LEN(rest); i++)
        if (chance(&m->r, percent[i])) make_field(m, d, rest[i], out);
}

/* ---- the function for each kind of message */

static const struct {
    const char *name;
    message_kind make;
} kinds[] = {
    {"TableName", table_name},
    {"RegionSpecifier", region_specifier},
    {"RegionInfo", region_info},
    {"ServerName", server_name},
    {"ColumnFamilySchema", family_schema},
    {"TableSchema", table_schema},
    {"Filter", filter},
    {"FuzzyRowFilter", fuzzy_row},
    {"Comparator", comparator},
    {"CoprocessorServiceCall", service_call},
    {"MutationProto", mutation},
    {"Action", action},
    {"RegionAction", region_action},
    {"ScanRequest", scan_request},
};

message_kind find_message_kind(const ProtobufCMessageDescriptor *d)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, d->short_name) == 0) return kinds[i].make;
    return NULL;
}
