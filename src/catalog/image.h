/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files of a running server's folder at one moment (region/image.h), for a backup or
 * fsck.
 *
 * Clients continue to read and write. Procedures pause between two steps: no step begins until
 * `sink` has the list. The call first waits for the end of all running steps.
 *
 * The list has every write that was acknowledged before the call, except unflushed SKIP_WAL writes,
 * and later writes up to one position of the log. Of a concurrent bulk load it has, region by
 * region, all files or none.
 */
#ifndef RQ_CATALOG_IMAGE_H
#define RQ_CATALOG_IMAGE_H

#include "catalog/catalog.h"
#include "region/image.h"

/* On return `holder` keeps the listed files and the log until the caller releases it (the log only
 * until rq_holder_keep_log). Blocks. REQUIRES: one call at a time, none during rq_catalog_stop. */
RQ_NODISCARD
rq_err rq_catalog_image(rq_catalog *c, rq_holder *holder, const rq_image_sink *sink, rq_error *why);

#endif
