/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running catalog's folder at one moment (region/image.h), for a backup or a look at it.
 *
 * Clients read and write on. Changes of tables and regions wait between two of their steps while the list is
 * taken: longer than the longest step that runs, and for as long as `sink` takes.
 *
 * The list has everything that was acknowledged before the call, except what clients wrote with SKIP_WAL
 * and was not flushed. Of later writes it has those up to one position of the log. A bulk load that runs
 * at the same time is in it or not, as a whole for each region.
 */
#ifndef RQ_CATALOG_IMAGE_H
#define RQ_CATALOG_IMAGE_H

#include "catalog/catalog.h"
#include "region/image.h"

/* `holder` holds files and log until it is released (its log: until rq_holder_keep_log). Blocks; any
 * thread that may. REQUIRES: one at a time; not during rq_catalog_stop. */
RQ_NODISCARD
rq_err rq_catalog_image(rq_catalog *c, rq_holder *holder, const rq_image_sink *sink, rq_error *why);

#endif
