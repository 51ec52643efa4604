/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by this room's files: the .def tables as arrays, the object, the
 * collectors. */
#ifndef RQ_METRICS_METRICS_PRIV_H
#define RQ_METRICS_METRICS_PRIV_H

#include "metrics/metrics.h"

#include <stdatomic.h>

/* --- the .def tables as arrays (table.c) ------------------------------------------------------ */
typedef enum rq__kind { RQ__COUNTER, RQ__GAUGE, RQ__TIMES } rq__kind;
typedef enum rq__unit { RQ__COUNT, RQ__BYTES, RQ__NS, RQ__MS, RQ__RATIO } rq__unit;
enum { RQ__SERVER = 1, RQ__TABLE = 2, RQ__REGION = 4 };

typedef enum rq__bean {
#define X(id, ...) RQ__BEAN_##id,
#include "metrics/beans.def"
#undef X
    RQ__BEAN_NONE
} rq__bean;

typedef struct rq__bean_info {
    const char *name;   /* the ObjectName */
    const char *type;   /* modelerType */
    const char *record; /* in /prometheus; "": it is none of HBase's metrics */
    const char *context;
} rq__bean_info;

typedef struct rq__metric_info {
    rq__kind kind;
    rq__unit unit;
    const char *name, *label;
    rq__bean bean;
    const char *attribute, *help;
} rq__metric_info;

typedef struct rq__load_info {
    rq__kind kind;
    rq__unit unit;
    const char *name;
    bool is_max; /* a table's value is the greatest of its regions', not their sum */
    unsigned levels;
    const char *attribute, *help;
} rq__load_info;

typedef enum rq__source {
    RQ__FROM_METRIC, /* factor × the figure */
    RQ__FROM_LOAD,
    RQ__FROM_SHARE, /* factor × metric / (metric + other) */
    RQ__FROM_TIMES,
    RQ__FROM_SLOW,    /* the number of durations above a second */
    RQ__FROM_NOTHING, /* factor */
} rq__source;

/* A line of attributes.def. */
typedef struct rq__attribute {
    rq__bean bean;
    const char *name;
    rq__kind kind;
    rq__source source;
    unsigned metric, other;
    const char *label;
    double factor;
} rq__attribute;

extern const rq__bean_info rq__beans[RQ__BEAN_NONE];
extern const rq__metric_info rq__metrics[RQ_METRIC_COUNT];
extern const rq__load_info rq__loads[RQ_LOAD_COUNT];
extern const rq__attribute rq__attributes[];
extern const size_t rq__attribute_count;

/* --- the object ------------------------------------------------------------------------------- */
typedef struct rq__rate {
    _Atomic uint64_t before; /* at the last tick */
    _Atomic double per_second;
} rq__rate;

struct rq_metrics {
    rq_metrics_sources from;
    rq_rpc_server *_Atomic master, *_Atomic rs;
    rq_catalog *_Atomic catalog; /* NULL: none, or not yet */
    rq_timer timer;
    uint64_t ticked_ns; /* the lane's */
    rq__rate requests, reads, writes;
};

/* The name of the server; NULL: it has none (tests). */
const rq_server_name *rq__metrics_server(const rq_metrics *m);

/* --- collecting ------------------------------------------------------------------------------- */
/* A snapshot under construction. Collectors set values in any order; after the first error they do
 * nothing. */
typedef struct rq__collector {
    rq_metrics *m;
    rq_arena *arena;
    rq_metrics_snapshot *s;
    size_t room;
    rq_err rc;
} rq__collector;

/* Adds a value of the server's; `label` ("": none) is static or in the arena. */
void rq__collect(rq__collector *c, rq_metric metric, const char *label, double value);
/* `times` is in the arena; `table` NULL: the server's. */
void rq__collect_table_times(rq__collector *c, rq_metric metric, const rq_metrics_table *table,
                             const char *label, const rq_times_sum *times);

/* Tables, regions and their sums. */
void rq__collect_loads(rq__collector *c, bool by_region);

/* Reads the counters of operations, for the rates and for the collectors. */
typedef struct rq__op_counts {
    uint64_t requests, reads, writes;
} rq__op_counts;
void rq__op_counts_read(rq_ops *ops, rq__op_counts *ret);

/* RQ_E_RESULT_TOO_LARGE: the text has reached its limit. A server may have a million regions. */
RQ_NODISCARD
rq_err rq__text_fits(const rq_metrics *m, const rq_buf *out);

/* --- text ------------------------------------------------------------------------------------- */
/* Appends a value with at most 12 significant digits; whole numbers up to 10^15 with all digits. */
RQ_NODISCARD
rq_err rq__append_number(rq_buf *out, double value);

/* --- HBase's view (attributes.c) -------------------------------------------------------------- */
/* One attribute: `name` and `help` are valid during the call; `text` NULL: it is a number. */
typedef struct rq__attribute_value {
    rq__bean bean;
    const char *name;
    rq__kind kind; /* COUNTER or GAUGE */
    double value;
    const char *text;
    const char *help;
} rq__attribute_value;
typedef rq_err (*rq__attribute_visit)(void *ctx, const rq__attribute_value *v);
/* A bean. Where each table has a bean, one line of beans.def stands for all of them. `name` is the suffix that this
 * bean has behind the line's ObjectName and record: "_Namespace_NS_table_NAME", or ""; it is valid during the call of
 * the visitor. */
typedef struct rq__bean_ref {
    rq__bean bean;
    const rq_metrics_table *table; /* NULL: the bean is not a table's */
    const char *name;
} rq__bean_ref;
typedef rq_err (*rq__bean_visit)(void *ctx, const rq__bean_ref *bean);
/* Calls `visit` for every bean, in the order of beans.def, until `visit` fails. Tables without durations
 * have no bean. */
RQ_NODISCARD
rq_err rq__beans_each(const rq_metrics_snapshot *s, rq__bean_visit visit, void *ctx);
/* Calls `visit` for every attribute of the bean until `visit` fails. The bean Regions has
 * attributes of the regions in the snapshot. */
RQ_NODISCARD
rq_err rq__attributes_each(const rq_metrics *m, const rq_metrics_snapshot *s,
                           const rq__bean_ref *bean, rq__attribute_visit visit, void *ctx);

/* --- ObjectName (object_name.c) --------------------------------------------------------------- */
/* Whether it is an ObjectName or a pattern of one. */
bool rq__object_name_is_valid(const char *pattern);
/* REQUIRES: the pattern is valid. */
bool rq__object_name_matches(const char *pattern, const char *name);

#endif
