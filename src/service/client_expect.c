/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets and Mutates that came together, before they are run one after another: what they will look
 * at in memory is asked for, of all of them side by side. A region that is one of many lies in no
 * cache, nor does a row of a large memstore; one by one each request would wait some thirty times,
 * together they wait as often as one.
 *
 * Of a Mutate it is the region alone: its row is asked for when it goes there (region/writer.c).
 *
 * Hints only: a request is read as far as it is of the usual form, and what is imprecise costs
 * time.
 */
#include "service/client_priv.h"

#include "base/pb.h"

/* The bytes of the message's next field, if that is `number`. */
static bool next_bytes(rq_cursor *c, uint8_t number, rq_slice *ret)
{
    if (rq_cursor_left(c) == 0 || *c->ptr != RQ_PB_TAG(number, RQ_PB_BYTES)) return false;
    c->ptr++;
    return rq_pb_delimited(c, ret);
}

/* RegionSpecifier: type, value. */
static rq_region *region_of(const rq_client_service *s, rq_slice specifier)
{
    rq_cursor c = rq_cursor_of(specifier);
    rq_slice name;
    const rq_catalog_region *r = NULL;
    if (specifier.len < 2 || c.ptr[0] != RQ_PB_TAG(1, RQ_PB_VARINT)) return NULL;
    bool encoded = c.ptr[1] == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    c.ptr += 2;
    if (!next_bytes(&c, 2, &name)) return NULL;
    rq_err rc = encoded ? rq_catalog_replica_by_encoded(s->catalog, name, &r, NULL)
                        : rq_catalog_replica_by_name(s->catalog, name, &r, NULL);
    return rc == RQ_OK ? r->region : NULL;
}

/* GetRequest: region, get { row, column … }. MutateRequest: region, mutation { row, type … }. */
static bool read_request(const rq_client_service *s, rq_slice message, rq_region_expected *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_slice specifier, body;
    if (!next_bytes(&c, 1, &specifier) || !next_bytes(&c, 2, &body)) return false;
    c = rq_cursor_of(body);
    if (!next_bytes(&c, 1, &ret->row)) return false;
    ret->writes = rq_cursor_left(&c) > 0 && *c.ptr == RQ_PB_TAG(2, RQ_PB_VARINT);
    ret->region = region_of(s, specifier);
    return ret->region != NULL;
}

void rq__expect_requests(void *ctx, const rq_slice *messages, size_t count)
{
    const rq_client_service *s = ctx;
    rq_region_expected list[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count && n < RQ_REGION_EXPECT_MAX; i++) {
        if (read_request(s, messages[i], &list[n])) n++;
    }
    rq_region_expect(list, n);
}
