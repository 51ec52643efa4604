/* SPDX-License-Identifier: Apache-2.0 */
/* The host's life, its open regions, and lookups of requests. See host.h. */
#include "host/host_priv.h"

#include <stdlib.h>

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_host_new(rq_engine *engine, const rq_server_name *name, const struct rq_config *config,
                   rq_host **ret)
{
    rq_host *h = calloc(1, sizeof *h);
    if (h == NULL) return RQ_E_NO_MEMORY;
    h->engine = engine;
    h->env = rq_engine_env(engine);
    h->config = config;
    pthread_mutex_init(&h->lock, NULL);
    h->name = rq_server_name_new(name);
    rq_err rc = h->name == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (rc == RQ_OK) rc = rq__region_names_init(&h->names, h->env->epoch);
    if (rc == RQ_OK) rc = rq__by_name_init(&h->open);
    if (rc == RQ_OK) rc = rq__by_name_init(&h->own);
    if (rc == RQ_OK) rc = rq__by_name_init(&h->moved);
    if (rc != RQ_OK) {
        rq_host_free(h);
        return rc;
    }
    *ret = h;
    return RQ_OK;
}

/* Closes without a flush. */
static void abandon(const rq_host *h, rq_region *r)
{
    rq_error why = {0};
    if (rq_region_close(r, true, &why) != RQ_OK)
        rq_log_warn(h->env->log, "host", "cannot close region %s: %s",
                    rq_region_get_info(r)->encoded, why.message);
}

static rq__open_region *open_of(rq__named *n)
{
    return n == NULL ? NULL : RQ_CONTAINER_OF(n, rq__open_region, named);
}

void rq_host_free(rq_host *h)
{
    if (h == NULL) return;
    if (h->open.buckets != NULL) (void)rq_host_close_rest(h, true, NULL);
    rq__own_names_clear(h);
    if (h->moved.buckets != NULL) rq__moved_clear(h);
    rq__by_name_clear(&h->open);
    rq__by_name_clear(&h->own);
    rq__by_name_clear(&h->moved);
    rq__region_names_clear(&h->names);
    rq_server_name_unref(h->name);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

const rq_server_name *rq_host_name(const rq_host *h)
{
    return h->name;
}

rq_engine *rq_host_engine(const rq_host *h)
{
    return h->engine;
}

const struct rq_config *rq__host_config(const rq_host *h)
{
    return h->config;
}

rq_region_names *rq_host_names(rq_host *h)
{
    return &h->names;
}

/* --- open regions ----------------------------------------------------------------------------- */

rq_region *rq_host_ref(rq_host *h, const rq_region_info *info)
{
    pthread_mutex_lock(&h->lock);
    rq__open_region *o = open_of(rq__by_name_find(&h->open, info->encoded));
    rq_region *r = o == NULL ? NULL : rq_region_ref(o->region);
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Takes the reference. */
static void enter(rq_host *h, rq__open_region *o, rq_region *r)
{
    memcpy(o->named.encoded, rq_region_get_info(r)->encoded, sizeof o->named.encoded);
    o->region = r;
    pthread_mutex_lock(&h->lock);
    rq__by_name_put(&h->open, &o->named);
    rq__moved_forget(h, o->named.encoded);
    pthread_mutex_unlock(&h->lock);
}

rq_err rq__host_open(rq_host *h, const rq_region_info *info, rq_table_schema *schema,
                     int64_t *ret_seqnum, rq_error *why)
{
    rq_region *r = rq_host_ref(h, info);
    if (r != NULL) {
        *ret_seqnum = (int64_t)rq_region_open_seqid(r);
        rq_region_unref(r);
        return RQ_OK;
    }
    rq__open_region *o = malloc(sizeof *o);
    if (o == NULL || rq__own_name_begin(h, info, schema->region_replication) != RQ_OK) {
        free(o);
        return rq_no_memory(why);
    }
    rq_err rc = rq_region_open(h->engine, info, schema, &r, why);
    if (rc != RQ_OK) {
        rq__own_name_end(h, info->encoded);
        free(o);
        return rc;
    }
    *ret_seqnum = (int64_t)rq_region_open_seqid(r);
    rq__own_name_opened(h, r, *ret_seqnum);
    enter(h, o, r);
    return RQ_OK;
}

static rq_region *leave(rq_host *h, const rq_region_info *info)
{
    pthread_mutex_lock(&h->lock);
    rq__open_region *o = open_of(rq__by_name_find(&h->open, info->encoded));
    if (o != NULL) rq__by_name_remove(&h->open, &o->named);
    pthread_mutex_unlock(&h->lock);
    rq_region *r = o == NULL ? NULL : o->region;
    free(o);
    return r;
}

static rq_err close_flushed(const rq_host *h, rq_region *r, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq_region_close(r, false, &own);
    if (rc == RQ_OK) return RQ_OK;
    char name[256];
    rq_bytes_to_string(rq_region_get_info(r)->name, name, sizeof name);
    const char *text = own.code != RQ_OK ? own.message : rq_err_text(rc);
    rq_log_error(h->env->log, "host",
                 "region %s is closed without a flush; its edits stay in the write-ahead log: %s",
                 name, text);
    abandon(h, r);
    return rq_fail(why, rc, "%s", text);
}

/* HBASE: HRegionServer.removeRegion. */
static int64_t close_seqnum(const rq_region *r)
{
    rq_region_load load;
    rq_region_get_load(r, &load);
    return (int64_t)(load.max_flushed_seqid > 0 ? load.max_flushed_seqid : rq_region_open_seqid(r));
}

rq_err rq_host_close(rq_host *h, const rq_region_info *info, bool abandoned, int64_t *ret_seqnum,
                     rq_error *why)
{
    rq__own_name_end(h, info->encoded);
    rq_region *r = leave(h, info);
    rq_err rc = RQ_OK;
    if (r == NULL) return RQ_OK;
    if (abandoned)
        abandon(h, r);
    else
        rc = close_flushed(h, r, why);
    if (ret_seqnum != NULL) *ret_seqnum = close_seqnum(r);
    rq_region_unref(r);
    return rc;
}

/* References to the open regions; malloc'ed. */
static rq_region **ref_all(rq_host *h, size_t *ret_count)
{
    *ret_count = 0;
    pthread_mutex_lock(&h->lock);
    rq_region **list = malloc((h->open.count + 1) * sizeof(rq_region *));
    for (size_t i = 0; list != NULL && i <= h->open.mask; i++)
        for (rq__named *n = h->open.buckets[i]; n != NULL; n = n->next)
            list[(*ret_count)++] = rq_region_ref(open_of(n)->region);
    pthread_mutex_unlock(&h->lock);
    return list;
}

rq_err rq_host_each(rq_host *h, rq_err (*visit)(void *ctx, const rq_region *r), void *ctx)
{
    size_t count;
    rq_region **list = ref_all(h, &count);
    rq_err rc = list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK) rc = visit(ctx, list[i]);
        rq_region_unref(list[i]);
    }
    free(list);
    return rc;
}

static rq_region *any_open(rq_host *h)
{
    pthread_mutex_lock(&h->lock);
    rq__open_region *o = open_of(rq__by_name_any(&h->open));
    rq_region *r = o == NULL ? NULL : rq_region_ref(o->region);
    pthread_mutex_unlock(&h->lock);
    return r;
}

rq_err rq_host_close_rest(rq_host *h, bool abandoned, rq_error *why)
{
    rq_err rc = RQ_OK;
    rq_region *r;
    while ((r = any_open(h)) != NULL) {
        rq_err more = rq_host_close(h, rq_region_get_info(r), abandoned, NULL, why);
        if (rc == RQ_OK) rc = more;
        rq_region_unref(r);
    }
    return rc;
}

/* --- lookups ---------------------------------------------------------------------------------- */

RQ_COLD static rq_err not_served(const rq_host *h, const rq_host_region *r, rq_slice encoded,
                                 rq_slice shown, rq_error *why)
{
    char name[600];
    RQ_TRY(rq__moved_check((rq_host *)(uintptr_t)h, encoded, why));
    rq_bytes_to_string(shown, name, sizeof name);
    if (r != NULL && r->state == RQ_REGION_OPENING)
        return rq_fail(why, RQ_E_REGION_OPENING, "Region %s is opening on %s", name, h->name->text);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is not online on %s", name, h->name->text);
}

/* HBASE: HRegionServer.getRegionByEncodedName; `shown` is the name the client sent. */
RQ_INLINE rq_err find(const rq_host *h, rq_slice encoded, rq_slice shown,
                      const rq_host_region **ret, rq_error *why)
{
    const rq_host_region *r = rq_region_names_find(&h->names, encoded);
    *ret = r;
    return RQ_LIKELY(r != NULL && r->region != NULL) ? RQ_OK
                                                     : not_served(h, r, encoded, shown, why);
}

rq_err rq_host_find_encoded(const rq_host *h, rq_slice encoded, const rq_host_region **ret,
                            rq_error *why)
{
    return find(h, encoded, encoded, ret, why);
}

/* The encoded name of "hbase:meta,,1" or, with a replica's id behind it, of "hbase:meta,,1_0001". */
static bool meta_encoded(rq_slice name, char ret[RQ_ENCODED_NAME_LEN + 1])
{
    size_t first = strlen("hbase:meta,,1");
    rq_arena a = {0};
    rq_region_info info;
    char id[5] = {0};
    if (name.len == first) {
        memcpy(ret, RQ_META_ENCODED, sizeof RQ_META_ENCODED);
        return true;
    }
    if (name.len != first + sizeof id || name.ptr[first] != '_') return false;
    memcpy(id, name.ptr + first + 1, 4);
    rq_err rc = rq_region_info_make(&a, RQ_SLICE_LIT("hbase"), RQ_SLICE_LIT("meta"), (rq_slice){0},
                                    (rq_slice){0}, 1, (int32_t)strtol(id, NULL, 16), &info);
    bool same = rc == RQ_OK && rq_slice_eq(info.name, name);
    if (same) memcpy(ret, info.encoded, RQ_ENCODED_NAME_LEN + 1);
    rq_arena_clear(&a);
    return same;
}

/* A name that does not end with the encoded one: hbase:meta or one of its replicas, or none. */
RQ_COLD static rq_err find_unnamed(const rq_host *h, rq_slice name, const rq_host_region **ret,
                                   rq_error *why)
{
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    *ret = NULL;
    if (rq_slice_starts_with(name, RQ_SLICE_LIT("hbase:meta,,1")) && meta_encoded(name, encoded))
        return find(h, rq_slice_cstr(encoded), name, ret, why);
    return not_served(h, NULL, (rq_slice){0}, name, why);
}

rq_err rq_host_find(const rq_host *h, rq_slice name, const rq_host_region **ret, rq_error *why)
{
    /* HBASE: RegionInfo.encodeRegionName: the part between the last two dots. Only hbase:meta,,1
     * still has the old form without it. */
    if (RQ_LIKELY(name.len > RQ_ENCODED_NAME_LEN + 1 && name.ptr[name.len - 1] == '.')) {
        const uint8_t *encoded = name.ptr + name.len - RQ_ENCODED_NAME_LEN - 1;
        return find(h, rq_slice_of(encoded, RQ_ENCODED_NAME_LEN), name, ret, why);
    }
    return find_unnamed(h, name, ret, why);
}
