/* SPDX-License-Identifier: Apache-2.0 */
/* Messages made field by field, from their descriptors; see message.h. */
#include "message.h"

#include "base/macros.h"

#define DEPTH_MAX 12
#define LIST_MAX 60000
#define HUGE_MIN 100000
#define HUGE_BYTES ((size_t)24 << 20)

enum { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };

/* ---- the meaning of fields */

enum meaning {
    BY_TYPE,
    ROW,
    FAMILY,
    QUALIFIER,
    VALUE,
    TIMESTAMP,
    COUNT,
    SCANNER,
    PROCEDURE,
    NONCE,
    REGEX,
    NAMESPACE,
    SNAPSHOT,
    PATH,
    DESTINATION,
    CLASS,
    FLAGS,
    SMALL_TIME,
};

/* The first matching rule applies: message (NULL: any), field, probability that an optional field
 * is set (-1: the default), its meaning. */
static const struct rule {
    const char *message, *field;
    int percent;
    enum meaning means;
} rules[] = {
    {"MutationProto", "row", 99, ROW},
    {"MutationProto", "mutate_type", 98, BY_TYPE},
    {"MutationProto", "timestamp", 20, TIMESTAMP},
    {"MutationProto", "nonce", 40, NONCE},
    {"MutationProto", "time_range", 8, BY_TYPE},
    {"MutationProto", "attribute", 4, BY_TYPE},
    {"MutationProto", "associated_cell_count", 2, COUNT},
    {"QualifierValue", "qualifier", 95, QUALIFIER},
    {"QualifierValue", "value", 90, VALUE},
    {"QualifierValue", "timestamp", 25, TIMESTAMP},
    {"QualifierValue", "tags", 4, BY_TYPE},
    {"MutateRequest", "condition", 15, BY_TYPE},
    {"MultiRequest", "condition", 5, BY_TYPE},
    {"RegionAction", "condition", 10, BY_TYPE},
    {"RegionAction", "atomic", 25, BY_TYPE},
    {"Get", "closest_row_before", 1, BY_TYPE},
    {"Get", "filter", 25, BY_TYPE},
    {"Get", "attribute", 4, BY_TYPE},
    {"Get", "cf_time_range", 10, BY_TYPE},
    {"Get", "time_range", 15, BY_TYPE},
    {"Get", "max_versions", 30, COUNT},
    {"Get", "store_limit", 10, COUNT},
    {"Get", "store_offset", 10, COUNT},
    {"Scan", "start_row", 70, ROW},
    {"Scan", "stop_row", 40, ROW},
    {"Scan", "filter", 35, BY_TYPE},
    {"Scan", "attribute", 4, BY_TYPE},
    {"Scan", "time_range", 10, BY_TYPE},
    {"Scan", "cf_time_range", 8, BY_TYPE},
    {"Scan", "mvcc_read_point", 5, BY_TYPE},
    {"Scan", "batch_size", 20, COUNT},
    {"Scan", "store_limit", 10, COUNT},
    {"Scan", "store_offset", 10, COUNT},
    {"ScanRequest", "next_call_seq", 10, COUNT},
    {"Condition", "row", -1, ROW},
    {"Column", "qualifier", 60, QUALIFIER},
    {"TimeRange", "from", 70, TIMESTAMP},
    {"TimeRange", "to", 90, TIMESTAMP},
    {"Filter", "serialized_filter", 100, BY_TYPE},
    {"RegexStringComparator", "pattern", -1, REGEX},
    {"RegexStringComparator", "pattern_flags", -1, FLAGS},
    {"RegexStringComparator", "charset", -1, CLASS},
    {"RegexStringComparator", "engine", 30, CLASS},
    {"SubstringComparator", "substr", -1, VALUE},
    {"ByteArrayComparable", "value", 98, VALUE},
    {"BinaryComponentComparator", "value", -1, VALUE},
    {"PrefixFilter", "prefix", 95, ROW},
    {"InclusiveStopFilter", "stop_row_key", 95, ROW},
    {"ColumnPrefixFilter", "prefix", -1, QUALIFIER},
    {"MultipleColumnPrefixFilter", "sorted_prefixes", -1, QUALIFIER},
    {"ColumnRangeFilter", NULL, 80, QUALIFIER},
    {"ColumnPaginationFilter", "column_offset", 30, QUALIFIER},
    {"ColumnPaginationFilter", NULL, 60, COUNT},
    {"RowRange", "start_row", 95, ROW},
    {"RowRange", "stop_row", 95, ROW},
    {"RowRange", NULL, 90, BY_TYPE},
    {"FuzzyRowFilter", NULL, 60, BY_TYPE},
    {"BytesBytesPair", NULL, -1, ROW},
    {"TimestampsFilter", "timestamps", -1, TIMESTAMP},
    {"AggregateRequest", "interpreter_class_name", -1, CLASS},
    {"BulkLoadHFileRequest", "bulk_token", 30, SNAPSHOT},
    {"BulkLoadHFileRequest", "cluster_ids", 3, BY_TYPE},
    {"FamilyPath", "path", -1, PATH},
    {"SnapshotDescription", "name", -1, SNAPSHOT},
    {"SnapshotDescription", "type", 50, BY_TYPE},
    {"SnapshotDescription", "users_and_permissions", 2, BY_TYPE},
    {"NamespaceDescriptor", "name", -1, NAMESPACE},
    {"GetProcedureResultRequest", "proc_id", -1, PROCEDURE},
    {"AbortProcedureRequest", "proc_id", -1, PROCEDURE},
    {"BypassProcedureRequest", "proc_id", -1, PROCEDURE},
    {"LockHeartbeatRequest", "proc_id", -1, PROCEDURE},
    {"ProcedureDescription", "signature", -1, CLASS},
    {"MoveRegionRequest", "dest_server_name", 60, DESTINATION},
    {"SplitTableRegionRequest", "split_row", 80, ROW},
    {"SplitRegionRequest", "split_point", 80, ROW},
    {"CreateTableRequest", "split_keys", -1, ROW},
    {"CoprocessorServiceCall", "row", -1, ROW},
    {"ModifyTableStoreFileTrackerRequest", "dst_sft", -1, CLASS},
    {"ModifyColumnStoreFileTrackerRequest", "dst_sft", -1, CLASS},
    {"DeleteColumnRequest", "column_name", -1, FAMILY},
    {NULL, "namespaceName", 80, NAMESPACE},
    {NULL, "namespace", 40, NAMESPACE},
    {NULL, "regex", 60, REGEX},
    {NULL, "nonce", 30, NONCE},
    {NULL, "nonce_group", 30, NONCE},
    {NULL, "nonceGroup", 30, NONCE},
    {NULL, "row", 90, ROW},
    {NULL, "split_keys", -1, ROW},
    {NULL, "family", 70, FAMILY},
    {NULL, "family_name", 70, FAMILY},
    {NULL, "column_family", 60, FAMILY},
    {NULL, "qualifier", 70, QUALIFIER},
    {NULL, "qualifiers", 70, QUALIFIER},
    {NULL, "column_qualifier", 70, QUALIFIER},
    {NULL, "value", 70, VALUE},
    {NULL, "timestamp", 40, TIMESTAMP},
    {NULL, "limit", 80, COUNT},
    {NULL, "page_size", 80, COUNT},
    {NULL, "timeout", 10, SMALL_TIME},
    {NULL, "waitTime", 50, SMALL_TIME},
};

static const struct rule *rule_of(const ProtobufCMessageDescriptor *d,
                                  const ProtobufCFieldDescriptor *f)
{
    static const struct rule none = {NULL, NULL, -1, BY_TYPE};
    for (size_t i = 0; i < RQ_ARRAY_LEN(rules); i++) {
        const struct rule *rule = &rules[i];
        if (rule->message != NULL && strcmp(rule->message, d->short_name) != 0) continue;
        if (rule->field == NULL || strcmp(rule->field, f->name) == 0) return rule;
    }
    return &none;
}

/* ---- bytes and texts */

/* Appends a row of hbase:meta: the name of a region or a table of the fuzzer's. */
static void make_meta_row(maker *m, rq_buf *out)
{
    const world *w = m->world;
    if (w->region_count > 0 && chance(&m->r, 70)) {
        const rq_buf *name = &w->regions[rq_random_below(&m->r, w->region_count)].name;
        put(out, name->ptr, name->len);
    } else {
        put_text(out, world_qualifier((unsigned)rq_random_below(&m->r, WORLD_TABLES)));
    }
}

void make_row(maker *m, rq_buf *out)
{
    size_t before = out->len;
    if (m->of_meta && chance(&m->r, 90)) {
        make_meta_row(m, out);
        return;
    }
    draw_row(&m->r, out);
    if (m->region == NULL || !chance(&m->r, 90)) return;
    rq_slice row = rq_slice_of(out->ptr + before, out->len - before);
    const rq_buf *start = &m->region->start;
    const rq_buf *end = &m->region->end;
    if (rq_slice_compare(row, rq_buf_slice(start)) >= 0 &&
        (end->len == 0 || rq_slice_compare(row, rq_buf_slice(end)) < 0))
        return;
    out->len = before;
    put(out, start->ptr, start->len);
    if (chance(&m->r, 60)) must(rq_buf_append_u8(out, (uint8_t)rq_random_below(&m->r, 10)));
}

static void draw_class(rq_random *r, rq_buf *out)
{
    static const char *const names[] = {
        "UTF-8",
        "ISO-8859-1",
        "US-ASCII",
        "UTF-16",
        "JAVA",
        "JONI",
        "DEFAULT",
        "FILE",
        "MIGRATION",
        "flush-table-proc",
        "rolllog-proc",
        "online-snapshot",
        "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter",
        "org.apache.hadoop.hbase.client.coprocessor.DoubleColumnInterpreter",
        "org.apache.hadoop.hbase.client.coprocessor.BigDecimalColumnInterpreter",
        "x"};
    put_text(out, names[rq_random_below(r, RQ_ARRAY_LEN(names))]);
}

static void draw_path(maker *m, rq_buf *out)
{
    static const char *const odd[] = {"",
                                      "/",
                                      ".",
                                      "..",
                                      "/dev/null",
                                      "/dev/zero",
                                      "/proc/self/mem",
                                      "/etc/passwd",
                                      "file:///etc/passwd",
                                      "hdfs://x/y",
                                      "//",
                                      "/tmp"};
    if (m->world->path_count > 0 && chance(&m->r, 70))
        put_text(out, m->world->paths[rq_random_below(&m->r, m->world->path_count)]);
    else
        put_text(out, odd[rq_random_below(&m->r, RQ_ARRAY_LEN(odd))]);
}

/* In these fields Java's strings have no NUL, and protobuf-c would truncate them there. */
static void make_bytes(maker *m, enum meaning means, bool text, rq_buf *out)
{
    size_t before = out->len;
    switch (means) {
    case ROW:
        make_row(m, out);
        break;
    case FAMILY:
        if (m->of_meta)
            draw_meta_family(&m->r, out);
        else
            draw_family(&m->r, out);
        break;
    case QUALIFIER:
        if (m->of_meta)
            draw_meta_qualifier(&m->r, out);
        else
            draw_qualifier(&m->r, out);
        break;
    case REGEX:
        draw_regex(&m->r, out);
        break;
    case NAMESPACE:
        if (chance(&m->r, 50))
            put_text(out, "fns");
        else
            draw_name(&m->r, "fn", 3, out);
        break;
    case SNAPSHOT:
        draw_name(&m->r, "snap", 6, out);
        break;
    case PATH:
        draw_path(m, out);
        break;
    case CLASS:
        draw_class(&m->r, out);
        break;
    case VALUE:
        draw_value(&m->r, out);
        break;
    default:
        if (text)
            draw_name(&m->r, "x", 10, out);
        else
            draw_bytes(&m->r, out);
    }
    if (text && chance(&m->r, 99))
        for (size_t i = before; i < out->len; i++)
            out->ptr[i] = out->ptr[i] == 0 ? '0' : out->ptr[i] & 0x7f;
}

/* ---- numbers */

static uint64_t make_number(maker *m, const ProtobufCFieldDescriptor *f, enum meaning means)
{
    const world *w = m->world;
    switch (means) {
    case TIMESTAMP:
        return draw_timestamp(&m->r, w->now_ms);
    case PROCEDURE:
        if (w->procedure_count > 0 && chance(&m->r, 80)) {
            size_t known =
                w->procedure_count < WORLD_PROCEDURES ? w->procedure_count : WORLD_PROCEDURES;
            return w->procedures[rq_random_below(&m->r, known)];
        }
        return draw_number(&m->r);
    case NONCE: /* some nonces are repeated */
        return once_in(&m->r, 10) ? draw_number(&m->r) : rq_random_below(&m->r, 50);
    case SMALL_TIME:
        return rq_random_below(&m->r, 200);
    case FLAGS:
        return chance(&m->r, 60) ? 0 : rq_random_below(&m->r, 1024);
    default:
        break;
    }
    if (f->type == PROTOBUF_C_TYPE_BOOL) return rq_random_below(&m->r, 2);
    if (f->type == PROTOBUF_C_TYPE_ENUM && !once_in(&m->r, 100)) {
        const ProtobufCEnumDescriptor *e = f->descriptor;
        return (uint64_t)(int64_t)e->values[rq_random_below(&m->r, e->n_values)].value;
    }
    return draw_number(&m->r);
}

static bool is_fixed(ProtobufCType type, size_t *ret_size)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        *ret_size = 4;
        return true;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        *ret_size = 8;
        return true;
    default:
        return false;
    }
}

static void put_float(maker *m, size_t size, rq_buf *out)
{
    static const double odd[] = {0, 0.5, 1, -1, 1e308, 1e-308, __builtin_inf(), __builtin_nan("")};
    double d = odd[rq_random_below(&m->r, RQ_ARRAY_LEN(odd))];
    float narrow = (float)d;
    put(out, size == 4 ? (const void *)&narrow : (const void *)&d, size);
}

/* ---- encoding */

void put_tag(rq_buf *out, unsigned field, unsigned wire_type)
{
    must(rq_buf_append_varint(out, (uint64_t)field << 3 | wire_type));
}

void put_delimited(rq_buf *out, unsigned field, const rq_buf *bytes)
{
    put_tag(out, field, DELIMITED);
    must(rq_buf_append_varint(out, bytes->len));
    put(out, bytes->ptr, bytes->len);
}

void put_text_field(rq_buf *out, unsigned field, const char *text)
{
    put_tag(out, field, DELIMITED);
    must(rq_buf_append_varint(out, strlen(text)));
    put_text(out, text);
}

void put_number_field(rq_buf *out, unsigned field, uint64_t number)
{
    put_tag(out, field, VARINT);
    must(rq_buf_append_varint(out, number));
}

static void make_one(maker *m, const ProtobufCFieldDescriptor *f, enum meaning means, rq_buf *out)
{
    size_t size = 0;
    bool text = f->type == PROTOBUF_C_TYPE_STRING;
    if (text || f->type == PROTOBUF_C_TYPE_BYTES || f->type == PROTOBUF_C_TYPE_MESSAGE) {
        rq_buf inner = {0};
        if (f->type == PROTOBUF_C_TYPE_MESSAGE)
            make_message(m, f->descriptor, &inner);
        else
            make_bytes(m, means, text, &inner);
        put_delimited(out, f->id, &inner);
        rq_buf_clear(&inner);
    } else if (is_fixed(f->type, &size)) {
        put_tag(out, f->id, size == 4 ? FIXED32 : FIXED64);
        put_float(m, size, out);
    } else {
        put_number_field(out, f->id, make_number(m, f, means));
    }
}

/* Copies of one element. */
static void make_huge_list(maker *m, const ProtobufCFieldDescriptor *f, enum meaning means,
                           rq_buf *out)
{
    size_t count = HUGE_MIN * (1 + rq_random_below(&m->r, 10));
    size_t before = out->len;
    rq_buf one = {0};
    m->huge = false;
    m->long_lists = 0;
    make_one(m, f, means, &one);
    for (size_t i = 0; i < count && out->len - before < HUGE_BYTES; i++)
        put(out, one.ptr, one.len);
    m->bytes += out->len - before;
    rq_buf_clear(&one);
}

/* Thousands of elements: each generated separately, or one repeated. */
static void make_long_list(maker *m, const ProtobufCFieldDescriptor *f, enum meaning means,
                           rq_buf *out)
{
    size_t count = 100 + rq_random_below(&m->r, once_in(&m->r, 3) ? LIST_MAX : 3000);
    bool same = chance(&m->r, 50);
    size_t before = out->len;
    m->long_lists--;
    make_one(m, f, means, out);
    rq_buf first = {0};
    put(&first, out->ptr + before, out->len - before);
    for (size_t i = 1; i < count && out->len - before < m->bytes_max; i++) {
        if (same)
            put(out, first.ptr, first.len);
        else
            make_one(m, f, means, out);
    }
    m->bytes += out->len - before;
    rq_buf_clear(&first);
}

static void make_list(maker *m, const ProtobufCFieldDescriptor *f, enum meaning means, rq_buf *out)
{
    if (m->huge && chance(&m->r, 30)) {
        make_huge_list(m, f, means, out);
        return;
    }
    if (m->long_lists > 0 && m->bytes < m->bytes_max && chance(&m->r, 30)) {
        make_long_list(m, f, means, out);
        return;
    }
    unsigned count = draw_count(&m->r);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && count == 0 && m->depth < 4) count = 1;
    if (m->depth > DEPTH_MAX) count = 0;
    while (count-- > 0)
        make_one(m, f, means, out);
}

static bool is_there(maker *m, const ProtobufCFieldDescriptor *f, const struct rule *rule)
{
    if (f->label == PROTOBUF_C_LABEL_REQUIRED) return !once_in(&m->r, 400);
    if (m->depth > DEPTH_MAX) return false;
    return chance(&m->r, rule->percent >= 0 ? (unsigned)rule->percent : 30);
}

void make_fields(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        const struct rule *rule = rule_of(d, f);
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            if (rule->percent < 0 || chance(&m->r, (unsigned)rule->percent))
                make_list(m, f, rule->means, out);
        } else if (is_there(m, f, rule)) {
            make_one(m, f, rule->means, out);
            if (once_in(&m->r, 300)) make_one(m, f, rule->means, out);
        }
    }
    if (once_in(&m->r, 200)) put_number_field(out, 900 + m->depth, draw_number(&m->r));
}

void make_field(maker *m, const ProtobufCMessageDescriptor *d, const char *name, rq_buf *out)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(d, name);
    RQ_ASSERT(f != NULL);
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        make_list(m, f, rule_of(d, f)->means, out);
    else
        make_one(m, f, rule_of(d, f)->means, out);
}

void make_message(maker *m, const ProtobufCMessageDescriptor *d, rq_buf *out)
{
    message_kind kind = find_message_kind(d);
    m->depth++;
    if (kind != NULL && !once_in(&m->r, 300))
        kind(m, d, out);
    else
        make_fields(m, d, out);
    m->depth--;
    if (m->depth > 0) return;
    if (once_in(&m->r, 25)) draw_damage(&m->r, out);
}
