/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetch for Gets and Mutates that arrived together: before they run one after another, the
 * memory they will touch is requested for all of them in an interleaved way. With many regions, or
 * a large memstore, none of it is in the processor's caches: run one by one, each request would
 * wait for some thirty cache misses; interleaved, the misses of all requests overlap, and together
 * they wait about as long as one.
 *
 * For a Mutate only the region is prefetched here; its row follows in region/writer.c.
 *
 * All of this is a hint: requests of unusual form are skipped, and a wrong guess costs only
 * time. */
#include "service/client_priv.h"

#include "base/pb.h"

/* The next field of the message, if its number is `number`. */
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
    rq_err rc = encoded ? rq_host_find_encoded(s->host, name, &r, NULL)
                        : rq_host_find(s->host, name, &r, NULL);
    return rc == RQ_OK ? r->region : NULL;
}

/* Requests that arrive together mostly name one region: it is looked up once. */
typedef struct last_region {
    rq_slice specifier;
    rq_region *region;
} last_region;

/* GetRequest: region, get { row, column … }. MutateRequest: region, mutation { row, type … }. */
static bool read_request(const rq_client_service *s, rq_slice message, last_region *last,
                         rq_region_expected *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_slice specifier, body;
    if (!next_bytes(&c, 1, &specifier) || !next_bytes(&c, 2, &body)) return false;
    c = rq_cursor_of(body);
    if (!next_bytes(&c, 1, &ret->row)) return false;
    ret->writes = rq_cursor_left(&c) > 0 && *c.ptr == RQ_PB_TAG(2, RQ_PB_VARINT);
    if (!rq_slice_eq(specifier, last->specifier))
        *last = (last_region){specifier, region_of(s, specifier)};
    ret->region = last->region;
    return ret->region != NULL;
}

void rq__expect_requests(void *ctx, const rq_slice *messages, size_t count)
{
    const rq_client_service *s = ctx;
    rq_region_expected list[RQ_REGION_EXPECT_MAX];
    last_region last = {0};
    size_t n = 0;
    for (size_t i = 0; i < count && n < RQ_REGION_EXPECT_MAX; i++) {
        if (read_request(s, messages[i], &last, &list[n])) n++;
    }
    rq_region_expect(list, n);
}
