/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings. Each has one line in settings.def (name, kind, default, meaning); those HBase also has
 * carry HBase's property names. A name that only HBase knows (hbase_settings.def) is accepted and
 * can be listed as unused; a name nobody knows is an error, so a typing mistake never passes
 * silently. Filled before the server starts, read-only afterwards: any thread may read.
 */
#ifndef RQ_BASE_CONFIG_H
#define RQ_BASE_CONFIG_H

#include "base/err.h"

#include <stdint.h>

typedef enum rq_setting {
#define X(id, name, kind, fallback, text) id,
#include "base/settings.def"
#undef X
    RQ_SETTING_COUNT
} rq_setting;

typedef struct rq_config rq_config;

RQ_NODISCARD
rq_err rq_config_new(rq_config **ret);
void rq_config_free(rq_config *c);

/* RQ_E_CONFIG for an unknown name or a value that its kind does not allow; `why` says which. */
RQ_NODISCARD
rq_err rq_config_set(rq_config *c, const char *name, const char *value, rq_error *why);
/* "name=value", as -D gives it. */
RQ_NODISCARD
rq_err rq_config_set_pair(rq_config *c, const char *pair, rq_error *why);
/* A file: hbase-site.xml's form (when it starts with '<'), or lines of name=value with # comments.
 */
RQ_NODISCARD
rq_err rq_config_load(rq_config *c, const char *path, rq_error *why);

int64_t rq_config_int(const rq_config *c, rq_setting s); /* BYTES, INT, MS, BOOL (0, 1) */
double rq_config_real(const rq_config *c, rq_setting s);
const char *rq_config_text(const rq_config *c, rq_setting s);
/* The text of a setting of settings.def by its name, or NULL: for rooms that take a lookup function
 * instead of this header's table. */
const char *rq_config_by_name(const rq_config *c, const char *name);
/* Was it given, or is it the default? */
bool rq_config_given(const rq_config *c, rq_setting s);

/* Names given that are HBase's but not used here, each once, in the order given; NULL behind the
 * last. The value is the one given last. */
const char *rq_config_unused(const rq_config *c, size_t i);
const char *rq_config_unused_value(const rq_config *c, size_t i);

#endif
