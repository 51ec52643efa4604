/* SPDX-License-Identifier: Apache-2.0 */
/* .rorqual/open exists while a server works on the folder. A killed server leaves it for the next
 * start to find; a clean stop removes it. On a full disk there may be no space for the file. The
 * start continues without it, because it only matters if HBase works on the folder after a crash,
 * and retries writing it every second. Meanwhile the log cannot take records either, unless space
 * becomes free in between. */
#include "catalog/catalog_priv.h"
#include "catalog/root_priv.h"

#define RETRY_MS 1000

rq_err rq__open_mark_write(rq_catalog *c, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq__root_mark_open(c->root, &own);
    c->open_mark.interval_ms = rc == RQ_E_NO_SPACE ? RETRY_MS : 0;
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_NO_SPACE) return rq_fail(why, rc, "%s", own.message);
    rq_log_warn(c->env->log, "catalog",
                "the disk is full: writes are refused until space is free: %s", own.message);
    return RQ_OK;
}

static void work(rq_catalog *c)
{
    if (rq__root_mark_open(c->root, NULL) == RQ_OK) c->open_mark.interval_ms = 0;
}

void rq__open_mark_start(rq_catalog *c)
{
    rq__chore_start(&c->open_mark, c, work);
}
