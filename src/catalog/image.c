/* SPDX-License-Identifier: Apache-2.0 */
/* See image.h. */
#include "catalog/image.h"

#include "catalog/catalog_priv.h"

rq_err rq_catalog_image(rq_catalog *c, rq_holder *holder, const rq_image_sink *sink, rq_error *why)
{
    rq__procedures_pause(c);
    rq_err rc = rq_image_take(c->engine, holder, sink, why);
    rq__procedures_go_on(c);
    return rc;
}
