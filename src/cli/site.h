/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a command's settings: --config and -D in the given order, then the options that
 * are short for a setting. The sources are kept so that the settings can be reloaded. */
#ifndef RQ_CLI_SITE_H
#define RQ_CLI_SITE_H

#include "base/config.h"

#include <stddef.h>

typedef enum rq_site_kind { RQ_SITE_FILE, RQ_SITE_PAIR, RQ_SITE_VALUE } rq_site_kind;

typedef struct rq_site_source {
    rq_site_kind kind;
    rq_setting setting; /* of a RQ_SITE_VALUE */
    const char *text;   /* borrowed: a path, name=value, or a value */
} rq_site_source;

typedef struct rq_site {
    rq_site_source *sources;
    size_t count;
} rq_site;

/* False: no memory. */
bool rq__site_add(rq_site *s, rq_site_kind kind, rq_setting setting, const char *text);
/* Reads all sources, and checks the settings against each other and the machine. */
RQ_NODISCARD
rq_err rq__site_read(const rq_site *s, rq_config **ret, rq_error *why);
void rq__site_clear(rq_site *s);

#endif
