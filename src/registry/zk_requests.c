/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of ZooKeeper's protocol on computed znodes (znodes.h): reads are answered, writes
 * refused. To add one, write its function and add a line to `requests`. */
#include "registry/zk_priv.h"

#include "base/meter.h"

/* The node with its stat, or RQ_E_NOT_FOUND. */
static rq_err read_node(rq__zk_connection *c, rq_slice path, bool lists, rq__znode *ret,
                        rq__zk_stat *ret_stat)
{
    const rq_registry *r = c->registry;
    RQ_TRY(rq__znode_get(&r->znodes, path, lists, &c->arena, ret));
    int64_t started = rq_catalog_server(r->catalog)->start_code;
    int64_t changed = ret->changes ? rq__zk_zxid_now(r) : r->zxid_start;
    *ret_stat = (rq__zk_stat){
        .czxid = r->zxid_start,
        .mzxid = changed,
        .ctime = started,
        .mtime = started,
        .cversion = (int32_t)ret->child_count,
        .ephemeral_owner = ret->ephemeral ? started : 0,
        .data_length = (int32_t)ret->data.len,
        .child_count = (int32_t)ret->child_count,
        .pzxid = changed,
    };
    return RQ_OK;
}

/* --- requests --------------------------------------------------------------------------------- */

/* Body of the reply, behind its header; *err is ZooKeeper's. */
typedef rq_err request_fn(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err);

/* Reads the path and, unless `watched` is NULL, the flag after it, and looks up the node. *err: the error
 * for the client; *node is valid if *err is RQ__ZK_OK. */
static rq_err take_node(rq__zk_connection *c, rq_cursor *in, bool lists, rq_slice *path,
                        bool *watched, rq__znode *node, rq__zk_stat *stat, int32_t *err)
{
    if (!rq__zk_read_buffer(in, path) || (watched != NULL && !rq__zk_read_bool(in, watched))) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    rq_err rc = read_node(c, *path, lists, node, stat);
    if (rc != RQ_E_NOT_FOUND) return rc;
    *err = RQ__ZK_NO_NODE;
    return RQ_OK;
}

static rq_err do_exists(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, false, &path, &watched, &node, &stat, err));
    if (*err == RQ__ZK_MARSHALLING) return RQ_OK;
    bool there = *err == RQ__ZK_OK;
    if (watched) RQ_TRY(rq__zk_watch_add(c, RQ__ZK_WATCH_DATA, path, there ? &node : NULL));
    return there ? rq__zk_write_stat(out, &stat) : RQ_OK;
}

static rq_err do_get_data(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, false, &path, &watched, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    if (watched) RQ_TRY(rq__zk_watch_add(c, RQ__ZK_WATCH_DATA, path, &node));
    RQ_TRY(rq__zk_write_buffer(out, node.data));
    return rq__zk_write_stat(out, &stat);
}

static rq_err get_children(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err,
                           bool with_stat)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, true, &path, &watched, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    if (watched) RQ_TRY(rq__zk_watch_add(c, RQ__ZK_WATCH_CHILD, path, &node));
    RQ_TRY(rq_buf_append_be32(out, (uint32_t)node.child_count));
    for (size_t i = 0; i < node.child_count; i++)
        RQ_TRY(rq__zk_write_buffer(out, node.children[i]));
    return with_stat ? rq__zk_write_stat(out, &stat) : RQ_OK;
}

static rq_err do_get_children(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    return get_children(c, in, out, err, false);
}

static rq_err do_get_children2(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    return get_children(c, in, out, err, true);
}

/* All clients may read, none may write. */
static rq_err do_get_acl(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, false, &path, NULL, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    RQ_TRY(rq_buf_append_be32(out, 1));
    RQ_TRY(rq_buf_append_be32(out, 1)); /* READ */
    RQ_TRY(rq__zk_write_buffer(out, RQ_SLICE_LIT("world")));
    RQ_TRY(rq__zk_write_buffer(out, RQ_SLICE_LIT("anyone")));
    return rq__zk_write_stat(out, &stat);
}

static rq_err do_sync(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    (void)c;
    if (rq__zk_read_buffer(in, &path)) return rq__zk_write_buffer(out, path);
    *err = RQ__ZK_MARSHALLING;
    return RQ_OK;
}

static rq_err do_nothing(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    (void)c;
    (void)in;
    (void)out;
    (void)err;
    return RQ_OK;
}

/* The watches' memory is free before the client reads the answer: its connection may live a little longer. */
static rq_err close_session(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq__zk_watches_clear(c);
    return do_nothing(c, in, out, err);
}

static rq_err refuse_write(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    (void)c;
    (void)in;
    (void)out;
    *err = RQ__ZK_NO_AUTH;
    return RQ_OK;
}

/* Limit for the paths in one setWatches. Java's client sends 128 kB of paths at once (ClientCnxn.SET_WATCHES_MAX_LENGTH),
 * none shorter than "/hbase/…". So many take some milliseconds, so they are handled in slices: after each, the same frame is
 * read again, up to the first path that was not handled. */
#define SET_WATCHES_MAX 16384
#define PATH_STEPS 8 /* of base/meter.h, for a path; the children of a node count one each */

/* The three lists of setWatches, in order. `exist` has nodes that did not exist. */
typedef enum watch_list { LIST_DATA, LIST_EXIST, LIST_CHILD } watch_list;

typedef struct set_again {
    int64_t since; /* the last zxid that the client has seen */
    size_t count;  /* paths so far, those of earlier slices included */
    rq_meter slice;
} set_again;

/* The event for a node that may have changed since; 0: none, it is to be watched. All nodes of tables count as changed when
 * any table has changed, because they have the same zxid. `stat` NULL: the node does not exist. */
static int event_since(watch_list list, int64_t since, const rq__zk_stat *stat)
{
    if (stat == NULL) return list == LIST_EXIST ? 0 : RQ__ZK_NODE_DELETED;
    if (list == LIST_EXIST) return RQ__ZK_NODE_CREATED;
    if (list == LIST_DATA) return stat->mzxid > since ? RQ__ZK_NODE_DATA_CHANGED : 0;
    return stat->pzxid > since ? RQ__ZK_NODE_CHILDREN_CHANGED : 0;
}

static rq_err set_watch(rq__zk_connection *c, watch_list list, int64_t since, rq_slice path,
                        size_t *steps)
{
    rq__zk_watch_kind kind = list == LIST_CHILD ? RQ__ZK_WATCH_CHILD : RQ__ZK_WATCH_DATA;
    rq__znode node;
    rq__zk_stat stat = {0};
    if (rq__zk_is_watched(c, kind, path)) return RQ_OK;
    rq_arena_reset(&c->arena);
    rq_err rc = read_node(c, path, false, &node, &stat);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    int event = event_since(list, since, rc == RQ_OK ? &stat : NULL);
    if (event != 0) return rq__zk_send_event(c, (enum rq__zk_event)event, path);
    if (list == LIST_CHILD && rc == RQ_OK) {
        RQ_TRY(read_node(c, path, true, &node, &stat));
        *steps += node.child_count;
    }
    return rq__zk_watch_add(c, kind, path, rc == RQ_OK ? &node : NULL);
}

/* RQ_E_AGAIN: the slice is over. */
static rq_err set_watches_of(rq__zk_connection *c, rq_cursor *in, watch_list list, set_again *s,
                             int32_t *err)
{
    int32_t count;
    if (!rq__zk_read_i32(in, &count)) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    for (int32_t i = 0; i < count; i++) {
        rq_slice path;
        if (s->count++ == SET_WATCHES_MAX) return RQ_E_REQUEST_TOO_BIG;
        if (!rq__zk_read_buffer(in, &path)) {
            *err = RQ__ZK_MARSHALLING;
            return RQ_OK;
        }
        if (s->count <= c->set_again) continue; /* in an earlier slice */
        size_t steps = PATH_STEPS;
        RQ_TRY(set_watch(c, list, s->since, path, &steps));
        c->set_again = s->count;
        if (rq_meter_spent(&s->slice, c->registry->env.executor, steps)) return RQ_E_AGAIN;
    }
    return RQ_OK;
}

static rq_err do_set_watches(rq__zk_connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    set_again s = {0};
    rq_err rc = RQ_OK;
    (void)out;
    if (!rq__zk_read_i64(in, &s.since)) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    for (watch_list list = LIST_DATA; list <= LIST_CHILD && rc == RQ_OK && *err == RQ__ZK_OK;
         list++)
        rc = set_watches_of(c, in, list, &s, err);
    if (rc != RQ_E_AGAIN) c->set_again = 0;
    return rc;
}

/* --- all of them ------------------------------------------------------------------------------ */

static const struct {
    int32_t op;
    request_fn *run;
} requests[] = {
    {RQ__ZK_EXISTS, do_exists},
    {RQ__ZK_GET_DATA, do_get_data},
    {RQ__ZK_GET_CHILDREN, do_get_children},
    {RQ__ZK_GET_CHILDREN2, do_get_children2},
    {RQ__ZK_GET_ACL, do_get_acl},
    {RQ__ZK_SYNC, do_sync},
    {RQ__ZK_PING, do_nothing},
    {RQ__ZK_AUTH, do_nothing},
    {RQ__ZK_SET_WATCHES, do_set_watches},
    {RQ__ZK_SET_WATCHES2, do_set_watches},
    {RQ__ZK_CREATE, refuse_write},
    {RQ__ZK_CREATE2, refuse_write},
    {RQ__ZK_DELETE, refuse_write},
    {RQ__ZK_SET_DATA, refuse_write},
    {RQ__ZK_SET_ACL, refuse_write},
    {RQ__ZK_CLOSE_SESSION, close_session},
};

static request_fn *find_request(int32_t op)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(requests); i++)
        if (requests[i].op == op) return requests[i].run;
    return NULL;
}

static rq_err answer(rq__zk_connection *c, int32_t xid, int32_t err, const rq_buf *body)
{
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq__zk_reply_header(out, xid, rq__zk_zxid_of(c->registry, c->view_seen), err));
    if (err == RQ__ZK_OK) RQ_TRY(rq_buf_append(out, body->ptr, body->len));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

rq_err rq__zk_handle_request(rq__zk_connection *c, rq_slice frame)
{
    rq_cursor in = rq_cursor_of(frame);
    rq_buf body = {0};
    int32_t xid, op, err = RQ__ZK_OK;
    if (!rq__zk_read_i32(&in, &xid) || !rq__zk_read_i32(&in, &op)) return RQ_E_MALFORMED;
    request_fn *run = find_request(op);
    rq_err rc = RQ_OK;
    if (run == NULL)
        err = RQ__ZK_UNIMPLEMENTED;
    else
        rc = run(c, &in, &body, &err);
    /* No room for a watch: answers with the one error of ZooKeeper that every client retries after
     * a pause. Clients ignore the answer to setWatches, so that connection is closed, and they
     * start again. */
    if (rc == RQ_E_NO_MEMORY && run != do_set_watches) {
        rc = RQ_OK;
        err = RQ__ZK_OPERATION_TIMEOUT;
    }
    if (rc == RQ_OK) rc = answer(c, xid, err, &body);
    rq_buf_clear(&body);
    rq_arena_clear(&c->arena); /* an idle connection holds none */
    if (rc == RQ_OK && op == RQ__ZK_CLOSE_SESSION) rq_stream_finish(c->stream);
    return rc;
}
