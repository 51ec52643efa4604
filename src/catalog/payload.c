/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of each kind of procedure (rq__payload): taken from the submission, encoded and
 * decoded. Data that is only needed until prepare is not in the record: when the record is written,
 * the procedure is prepared, or its kind has no such data. */
#include "catalog/proc_priv.h"

#define FLAG_PRESERVE_SPLITS 1
#define FLAG_NO_REOPEN 2
#define FLAG_FLUSH 8

static rq_err copy(rq__proc *p, rq_slice from, rq_slice *to)
{
    *to = rq_arena_copy(&p->arena, from);
    return to->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err copy_list(rq__proc *p, const rq_slice *from, size_t count, rq_slice **ret,
                        size_t *ret_count)
{
    rq_slice *list = rq_arena_calloc(&p->arena, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(copy(p, from[i], &list[i]));
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}

static rq_err put_name(rq_buf *b, rq_slice name)
{
    return name.len == 0 ? RQ_OK : rq__record_put(b, RQ__TAG_NAME, name);
}

const rq__payload_kind rq__payload_none = {0};

/* --- namespaces ------------------------------------------------------------------------------- */

static rq_err namespace_take(rq__proc *p, const rq_ddl *d)
{
    return copy(p, d->of.put_namespace.descriptor, &p->descriptor);
}

const rq__payload_kind rq__payload_namespace = {.take = namespace_take};

/* --- peers ------------------------------------------------------------------------------------ */

static rq_err peer_take(rq__proc *p, const rq_ddl *d)
{
    return copy(p, d->of.put_peer.description, &p->descriptor);
}

const rq__payload_kind rq__payload_peer = {.take = peer_take};

/* --- create ----------------------------------------------------------------------------------- */

static rq_err create_take(rq__proc *p, const rq_ddl *d)
{
    RQ_TRY(copy(p, d->of.create.schema, &p->descriptor));
    return copy_list(p, d->of.create.split_keys, d->of.create.split_key_count,
                     &p->of.create.split_keys, &p->of.create.count);
}

const rq__payload_kind rq__payload_create = {.take = create_take};

/* --- truncate --------------------------------------------------------------------------------- */

static rq_err truncate_take(rq__proc *p, const rq_ddl *d)
{
    p->of.truncate.preserve_splits = d->of.truncate.preserve_splits;
    return RQ_OK;
}

static uint8_t truncate_flags(const rq__proc *p)
{
    return p->of.truncate.preserve_splits ? FLAG_PRESERVE_SPLITS : 0;
}

static bool truncate_set_flags(rq__proc *p, uint8_t flags)
{
    p->of.truncate.preserve_splits = flags & FLAG_PRESERVE_SPLITS;
    return flags == FLAG_PRESERVE_SPLITS;
}

const rq__payload_kind rq__payload_truncate = {
    .take = truncate_take,
    .flags = truncate_flags,
    .set_flags = truncate_set_flags,
};

/* --- alter ------------------------------------------------------------------------------------ */

static rq_err modify_take(rq__proc *p, const rq_ddl *d)
{
    p->of.alter.no_reopen = d->of.modify.no_reopen;
    return copy(p, d->of.modify.schema, &p->of.alter.schema);
}

static rq_err put_family_take(rq__proc *p, const rq_ddl *d)
{
    return copy(p, d->of.put_family.schema, &p->of.alter.family_schema);
}

static rq_err delete_family_take(rq__proc *p, const rq_ddl *d)
{
    return copy(p, d->of.delete_family.family, &p->of.alter.family);
}

static rq_err tracker_take(rq__proc *p, const rq_ddl *d)
{
    RQ_TRY(copy(p, d->of.tracker.name, &p->of.alter.tracker));
    return copy(p, d->of.tracker.family, &p->of.alter.family);
}

static uint8_t alter_flags(const rq__proc *p)
{
    return p->of.alter.no_reopen ? FLAG_NO_REOPEN : 0;
}

static bool alter_set_flags(rq__proc *p, uint8_t flags)
{
    p->of.alter.no_reopen = flags & FLAG_NO_REOPEN;
    return flags == FLAG_NO_REOPEN;
}

static rq_err alter_encode(const rq__proc *p, rq_buf *b)
{
    RQ_TRY(put_name(b, p->of.alter.family));
    for (size_t i = 0; i < p->of.alter.removed_count; i++)
        RQ_TRY(rq__record_put(b, RQ__TAG_REMOVED_FAMILY, p->of.alter.removed[i]));
    return RQ_OK;
}

/* Appends to a list that a record gives piece by piece; its room grows at each power of two. */
static rq_err add_to_list(rq__proc *p, rq_slice value, rq_slice **list, size_t *count)
{
    size_t n = *count;
    if (n >= RQ__RECORD_LIST_MAX) return RQ_E_CORRUPT;
    if ((n & (n - 1)) == 0) {
        rq_slice *more = rq_arena_calloc(&p->arena, n == 0 ? 1 : n * 2, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (n > 0) memcpy(more, *list, n * sizeof *more);
        *list = more;
    }
    RQ_TRY(copy(p, value, &(*list)[n]));
    *count = n + 1;
    return RQ_OK;
}

static bool alter_decode(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret)
{
    if (tag != RQ__TAG_NAME && tag != RQ__TAG_REMOVED_FAMILY) return false;
    *ret = tag == RQ__TAG_NAME
               ? copy(p, value, &p->of.alter.family)
               : add_to_list(p, value, &p->of.alter.removed, &p->of.alter.removed_count);
    return true;
}

/* Regions that have lost some families, or have one that the table no longer has. */
static bool alter_holds_closed(const rq__proc *p)
{
    return p->of.alter.removed_count > 0;
}

#define ALTER(takes)                                                                               \
    {                                                                                              \
        .take = takes, .flags = alter_flags, .set_flags = alter_set_flags, .encode = alter_encode, \
        .decode = alter_decode, .holds_closed = alter_holds_closed,                                \
    }

const rq__payload_kind rq__payload_modify = ALTER(modify_take);
const rq__payload_kind rq__payload_put_family = ALTER(put_family_take);
const rq__payload_kind rq__payload_delete_family = ALTER(delete_family_take);
const rq__payload_kind rq__payload_tracker = ALTER(tracker_take);

/* --- flush: never recorded -------------------------------------------------------------------- */

static rq_err flush_take(rq__proc *p, const rq_ddl *d)
{
    return copy_list(p, d->of.flush.families, d->of.flush.family_count, &p->of.flush.families,
                     &p->of.flush.count);
}

const rq__payload_kind rq__payload_flush = {.take = flush_take};

/* --- split ------------------------------------------------------------------------------------ */

static rq_err split_take(rq__proc *p, const rq_ddl *d)
{
    RQ_TRY(copy(p, d->of.split.region, &p->of.split.region));
    RQ_TRY(copy(p, d->of.split.row, &p->of.split.row));
    return copy(p, d->of.split.shown_name, &p->of.split.shown_name);
}

static rq_err split_encode(const rq__proc *p, rq_buf *b)
{
    return put_name(b, p->of.split.region);
}

static bool split_decode(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret)
{
    if (tag != RQ__TAG_NAME) return false;
    *ret = copy(p, value, &p->of.split.region);
    return true;
}

static rq_err split_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                                void *ctx)
{
    return each(ctx, p->of.split.region);
}

const rq__payload_kind rq__payload_split = {
    .take = split_take,
    .encode = split_encode,
    .decode = split_decode,
    .each_region = split_each_region,
};

/* --- merge ------------------------------------------------------------------------------------ */

static rq_err merge_take(rq__proc *p, const rq_ddl *d)
{
    p->of.merge.forcible = d->of.merge.forcible;
    return copy_list(p, d->of.merge.regions, d->of.merge.region_count, &p->of.merge.regions,
                     &p->of.merge.count);
}

static rq_err merge_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                                void *ctx)
{
    for (size_t i = 0; i < p->of.merge.count; i++)
        RQ_TRY(each(ctx, p->of.merge.regions[i]));
    return RQ_OK;
}

const rq__payload_kind rq__payload_merge = {
    .take = merge_take,
    .each_region = merge_each_region,
};

/* --- one region ------------------------------------------------------------------------------- */

static rq_err region_take(rq__proc *p, const rq_ddl *d)
{
    p->of.region.override = d->of.one_region.override;
    RQ_TRY(copy(p, d->of.one_region.server, &p->of.region.server));
    return copy(p, d->of.one_region.region, &p->of.region.name);
}

static rq_err put_number(rq_buf *b, uint8_t tag, uint64_t n)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, n);
    return rq__record_put(b, tag, rq_slice_of(bytes, sizeof bytes));
}

static rq_err region_encode(const rq__proc *p, rq_buf *b)
{
    RQ_TRY(put_name(b, p->of.region.name));
    RQ_TRY(put_number(b, RQ__TAG_OPEN_SEQNUM, (uint64_t)p->of.region.open_seqnum));
    uint64_t truncations = p->of.region.noted.truncations;
    return truncations == 0 ? RQ_OK : put_number(b, RQ__TAG_TRUNCATIONS, truncations);
}

static bool region_decode(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret)
{
    bool is_seqnum = tag == RQ__TAG_OPEN_SEQNUM;
    if (tag != RQ__TAG_NAME && !is_seqnum && tag != RQ__TAG_TRUNCATIONS) return false;
    if (tag == RQ__TAG_NAME)
        *ret = copy(p, value, &p->of.region.name);
    else if (value.len != 8)
        *ret = RQ_E_CORRUPT;
    else if (is_seqnum)
        p->of.region.open_seqnum = (int64_t)rq_get_be64(value.ptr);
    else
        p->of.region.noted.truncations = rq_get_be64(value.ptr);
    return true;
}

static rq_err region_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                                 void *ctx)
{
    return each(ctx, p->of.region.name);
}

/* Only a truncation outlives a restart: some of the region's families may already be removed. */
static bool region_holds_closed(const rq__proc *p)
{
    return p->ops->kind == RQ_DDL_TRUNCATE_REGION;
}

const rq__payload_kind rq__payload_region = {
    .take = region_take,
    .encode = region_encode,
    .decode = region_decode,
    .each_region = region_each_region,
    .holds_closed = region_holds_closed,
};

/* --- snapshots -------------------------------------------------------------------------------- */

static rq_err snapshot_take(rq__proc *p, const rq_ddl *d)
{
    p->of.snapshot.flush = d->of.snapshot.flush;
    p->of.snapshot.names_disabled = d->of.snapshot.names_disabled;
    RQ_TRY(copy(p, d->of.snapshot.name, &p->of.snapshot.name));
    return copy(p, d->of.snapshot.description, &p->of.snapshot.description);
}

static uint8_t snapshot_flags(const rq__proc *p)
{
    return p->of.snapshot.flush ? FLAG_FLUSH : 0;
}

static bool snapshot_set_flags(rq__proc *p, uint8_t flags)
{
    p->of.snapshot.flush = flags & FLAG_FLUSH;
    return flags == FLAG_FLUSH;
}

static rq_err snapshot_encode(const rq__proc *p, rq_buf *b)
{
    RQ_TRY(rq__record_put(b, RQ__TAG_SNAPSHOT, p->of.snapshot.name));
    return rq__record_put(b, RQ__TAG_DESCRIPTION, p->of.snapshot.description);
}

static bool snapshot_decode(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret)
{
    if (tag != RQ__TAG_SNAPSHOT && tag != RQ__TAG_DESCRIPTION) return false;
    *ret = copy(p, value,
                tag == RQ__TAG_SNAPSHOT ? &p->of.snapshot.name : &p->of.snapshot.description);
    return true;
}

static rq_slice snapshot_made(const rq__proc *p, bool *ret_exclusive)
{
    *ret_exclusive = true;
    return p->of.snapshot.name;
}

const rq__payload_kind rq__payload_snapshot = {
    .take = snapshot_take,
    .flags = snapshot_flags,
    .set_flags = snapshot_set_flags,
    .encode = snapshot_encode,
    .decode = snapshot_decode,
    .snapshot = snapshot_made,
};

static rq_err restore_take(rq__proc *p, const rq_ddl *d)
{
    RQ_TRY(copy(p, d->of.restore.name, &p->of.snapshot.name));
    return copy(p, d->of.restore.tracker, &p->of.snapshot.tracker);
}

static rq_err restore_encode(const rq__proc *p, rq_buf *b)
{
    return rq__record_put(b, RQ__TAG_SNAPSHOT, p->of.snapshot.name);
}

static rq_slice snapshot_used(const rq__proc *p, bool *ret_exclusive)
{
    *ret_exclusive = false;
    return p->of.snapshot.name;
}

const rq__payload_kind rq__payload_restore = {
    .take = restore_take,
    .encode = restore_encode,
    .decode = snapshot_decode,
    .snapshot = snapshot_used,
};

/* --- locks of LockService --------------------------------------------------------------------- */

static rq_err lock_take(rq__proc *p, const rq_ddl *d)
{
    RQ_TRY(copy(p, d->of.lock.description, &p->of.lock.description));
    return copy_list(p, d->of.lock.regions, d->of.lock.region_count, &p->of.lock.regions,
                     &p->of.lock.count);
}

static rq_err lock_encode(const rq__proc *p, rq_buf *b)
{
    RQ_TRY(put_name(b, p->of.lock.description));
    for (size_t i = 0; i < p->of.lock.count; i++)
        RQ_TRY(rq__record_put(b, RQ__TAG_LOCKED_REGION, p->of.lock.regions[i]));
    return RQ_OK;
}

static bool lock_decode(rq__proc *p, uint8_t tag, rq_slice value, rq_err *ret)
{
    if (tag != RQ__TAG_NAME && tag != RQ__TAG_LOCKED_REGION) return false;
    *ret = tag == RQ__TAG_NAME ? copy(p, value, &p->of.lock.description)
                               : add_to_list(p, value, &p->of.lock.regions, &p->of.lock.count);
    return true;
}

static rq_err lock_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                               void *ctx)
{
    for (size_t i = 0; i < p->of.lock.count; i++)
        RQ_TRY(each(ctx, p->of.lock.regions[i]));
    return RQ_OK;
}

const rq__payload_kind rq__payload_lock = {
    .take = lock_take,
    .encode = lock_encode,
    .decode = lock_decode,
    .each_region = lock_each_region,
};
