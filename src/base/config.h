/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings. Each has one line in settings.def (name, kind, default, meaning, range); those HBase
 * also has carry HBase's property names. A name that only HBase knows (hbase_settings.def) is
 * accepted and can be listed as unused; an unknown name is an error, so that a typing mistake is
 * found. An rq_config is filled before the server starts; afterwards only rq_config_take changes it. Any thread may
 * read it.
 */
#ifndef RQ_BASE_CONFIG_H
#define RQ_BASE_CONFIG_H

#include "base/err.h"

#include <stdint.h>

typedef enum rq_setting {
#define X(id, ...) id,
#include "base/settings.def"
#undef X
    RQ_SETTING_COUNT
} rq_setting;

typedef enum rq_setting_kind {
    RQ_SETTING_INT,
    RQ_SETTING_SIGNED,
    RQ_SETTING_BYTES,
    RQ_SETTING_MS,
    RQ_SETTING_REAL,
    RQ_SETTING_BOOL,
    RQ_SETTING_TEXT,
} rq_setting_kind;

/* A line of settings.def. */
typedef struct rq_setting_info {
    const char *name;
    rq_setting_kind kind;
    const char *fallback;      /* the default */
    const char *text;          /* the meaning */
    double least, most;        /* range of a number; 0 in `most`: the largest value of its kind */
    bool zero;                 /* 0 is allowed too: it has a meaning of its own */
    bool reloads;              /* changes without a restart */
    const char *unit;          /* where the kind does not say it */
    const char *choices;       /* the texts that are allowed, with '|' between them */
    const char *hbase;         /* HBase's counterpart of a setting of our own; NULL: none */
    const char *hbase_default; /* where HBase has the same setting with another default */
    const char *older;         /* HBase's older name of it */
} rq_setting_info;

/* The line of a setting; static. */
const rq_setting_info *rq_setting_get(rq_setting s);
#define RQ_SETTING_RANGE_MAX 128
/* "0.01 to 0.8", "at least 64k", "fdatasync|handover"; empty: any. Returns `ret`. */
const char *rq_setting_range(const rq_setting_info *i, char ret[RQ_SETTING_RANGE_MAX]);
/* "ms", "bytes", …; empty: none. */
const char *rq_setting_unit(const rq_setting_info *i);
/* 67108864 as "64m". */
void rq_setting_bytes_text(int64_t bytes, char ret[RQ_SETTING_RANGE_MAX]);

typedef struct rq_config rq_config;

RQ_NODISCARD
rq_err rq_config_new(rq_config **ret);
void rq_config_free(rq_config *c);

/* RQ_E_CONFIG for an unknown name or a value that its kind or range does not allow; `why` says
 * which. */
RQ_NODISCARD
rq_err rq_config_set(rq_config *c, const char *name, const char *value, rq_error *why);
/* "name=value", as -D gives it. */
RQ_NODISCARD
rq_err rq_config_set_pair(rq_config *c, const char *pair, rq_error *why);
/* Reads the settings of a file: in the form of hbase-site.xml if it starts with '<', otherwise as lines of name=value
 * with # comments.
 */
RQ_NODISCARD
rq_err rq_config_load(rq_config *c, const char *path, rq_error *why);

int64_t rq_config_int(const rq_config *c, rq_setting s); /* any kind but REAL, TEXT; BOOL: 0, 1 */
double rq_config_real(const rq_config *c, rq_setting s);
const char *rq_config_text(const rq_config *c, rq_setting s);
/* The text of a setting of settings.def by its name, or NULL: for rooms that take a lookup function
 * instead of this header's table. */
const char *rq_config_by_name(const rq_config *c, const char *name);
/* Whether it was set, or is the default. */
bool rq_config_given(const rq_config *c, rq_setting s);
/* Whether it was set by HBase's older name only. */
bool rq__config_given_by_older(const rq_config *c, rq_setting s);

/* The memory budget of the process: rorqual.memory, or its default where `memory` bytes are available
 * (machine.h; 0: unknown). */
uint64_t rq_config_memory_budget(const rq_config *c, uint64_t memory);

/* Checks that concern several settings: sums of shares, and the memory budget against `memory`, the
 * bytes available to the process (machine.h; 0: unknown). Also computes defaults that depend on
 * other settings. Call it once, before the configuration is used. */
RQ_NODISCARD
rq_err rq_config_check(rq_config *c, uint64_t memory, rq_error *why);

/* Called for each setting that differs; `text` is its new value. A setting that does not change
 * without a restart is reported, too, but not taken over. */
typedef void (*rq_config_changed)(void *ctx, rq_setting s, const char *text);
/* Takes over the settings of `from` that change without a restart (rq_setting_info.reloads).
 * Threads may read meanwhile: a text that one of them holds stays valid. One caller at a time. */
RQ_NODISCARD
rq_err rq_config_take(rq_config *c, const rq_config *from, rq_config_changed changed, void *ctx);

/* The i-th name given that only HBase uses, each name once, in the order given; NULL behind the
 * last. Its value is the one given last. */
const char *rq_config_unused(const rq_config *c, size_t i);
const char *rq_config_unused_value(const rq_config *c, size_t i);

#endif
