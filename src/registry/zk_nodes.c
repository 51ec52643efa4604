/* SPDX-License-Identifier: Apache-2.0 */
/* The active master's znodes; see zk_nodes.h. Lists are sorted by path, so that two of them are compared in one pass. */
#include "registry/zk_nodes.h"

#include <stdlib.h>
#include <string.h>

typedef struct rq__node_list {
    rq_arena arena;
    rq_member_node *items;
    size_t count;
} node_list;

static void list_free(node_list *l)
{
    if (l == NULL) return;
    rq_arena_clear(&l->arena);
    free(l);
}

static int by_path(const void *a, const void *b)
{
    const rq_member_node *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static rq_err list_fill(node_list *l, const rq_member_node *items, size_t count)
{
    l->items = rq_arena_calloc(&l->arena, count + 1, sizeof *l->items);
    if (l->items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        l->items[i].path = rq_arena_cstr(&l->arena, rq_slice_cstr(items[i].path));
        l->items[i].value = rq_arena_copy(&l->arena, items[i].value);
        if (l->items[i].path == NULL || l->items[i].value.ptr == NULL) return RQ_E_NO_MEMORY;
    }
    l->count = count;
    if (count > 1) qsort(l->items, count, sizeof *l->items, by_path);
    return RQ_OK;
}

rq_err rq__zk_nodes_give(rq__zk_nodes *n, const rq_member_node *items, size_t count)
{
    node_list *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = list_fill(l, items, count);
    if (rc == RQ_OK) {
        pthread_mutex_lock(&n->lock);
        node_list *former = n->next;
        n->next = l;
        l = former;
        pthread_mutex_unlock(&n->lock);
    }
    list_free(l);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------- */

typedef struct writing {
    rq__zk *zk;
    const char *root;
    rq_arena *arena;
    rq_error *why;
} writing;

static rq_err put(const writing *w, const rq_member_node *node)
{
    rq_error detail = {.code = RQ_OK};
    const char *path = rq_arena_printf(w->arena, "%s/%s", w->root, node->path);
    if (path == NULL) return rq_no_memory(w->why);
    rq_err rc = rq__zk_set(w->zk, path, node->value, &detail);
    if (rc == RQ_E_NOT_FOUND) {
        rq_error_clear(&detail);
        rc = rq__zk_create(w->zk, path, node->value, false, &detail);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(w->why, rc, "%s", detail.message);
}

static rq_err drop(const writing *w, const char *name)
{
    rq_error detail = {.code = RQ_OK};
    const char *path = rq_arena_printf(w->arena, "%s/%s", w->root, name);
    if (path == NULL) return rq_no_memory(w->why);
    rq_err rc = rq__zk_remove(w->zk, path, -1, &detail);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(w->why, rc, "%s", detail.message);
}

static int order(const node_list *a, size_t i, const node_list *b, size_t k)
{
    if (i == a->count) return 1;
    return k == b->count ? -1 : strcmp(a->items[i].path, b->items[k].path);
}

/* Writes the differences to the list that this process wrote before. */
static rq_err write_difference(const writing *w, const node_list *now, const node_list *before)
{
    size_t i = 0, k = 0;
    while (i < now->count || k < before->count) {
        int o = order(now, i, before, k);
        bool same = o == 0 && rq_slice_eq(now->items[i].value, before->items[k].value);
        if (o > 0)
            RQ_TRY(drop(w, before->items[k].path));
        else if (!same)
            RQ_TRY(put(w, &now->items[i]));
        i += o <= 0;
        k += o >= 0;
    }
    return RQ_OK;
}

/* Removes nodes that an earlier master has left of tables and namespaces that are gone. */
static rq_err drop_others(const writing *w, const node_list *now, const char *folder)
{
    const char **names, *path = rq_arena_printf(w->arena, "%s/%s", w->root, folder);
    size_t count;
    if (path == NULL) return rq_no_memory(w->why);
    RQ_TRY(rq__zk_children(w->zk, path, w->arena, &names, &count, w->why));
    for (size_t i = 0; i < count; i++) {
        const rq_member_node key = {.path = rq_arena_printf(w->arena, "%s/%s", folder, names[i])};
        if (key.path == NULL) return rq_no_memory(w->why);
        if (bsearch(&key, now->items, now->count, sizeof key, by_path) == NULL)
            RQ_TRY(drop(w, key.path));
    }
    return RQ_OK;
}

static rq_err write_all(const writing *w, const node_list *now)
{
    static const char *const folders[] = {"table", "namespace"};
    for (size_t i = 0; i < now->count; i++)
        RQ_TRY(put(w, &now->items[i]));
    for (size_t i = 0; i < RQ_ARRAY_LEN(folders); i++)
        RQ_TRY(drop_others(w, now, folders[i]));
    return RQ_OK;
}

/* `now` becomes the latest list. */
static void take_next(rq__zk_nodes *n)
{
    pthread_mutex_lock(&n->lock);
    node_list *next = n->next;
    n->next = NULL;
    pthread_mutex_unlock(&n->lock);
    if (next == NULL) return;
    if (n->now != n->written) list_free(n->now);
    n->now = next;
}

rq_err rq__zk_nodes_write(rq__zk_nodes *n, rq__zk *zk, const char *root, rq_arena *arena,
                          rq_error *why)
{
    const writing w = {.zk = zk, .root = root, .arena = arena, .why = why};
    take_next(n);
    if (n->now == NULL || n->now == n->written) return RQ_OK;
    node_list *before = n->written;
    n->written = NULL; /* after an error what is written is not known */
    rq_err rc = before == NULL ? write_all(&w, n->now) : write_difference(&w, n->now, before);
    list_free(before);
    if (rc == RQ_OK) n->written = n->now;
    return rc;
}

void rq__zk_nodes_forget(rq__zk_nodes *n)
{
    if (n->written != n->now) list_free(n->written);
    n->written = NULL;
}

void rq__zk_nodes_init(rq__zk_nodes *n)
{
    *n = (rq__zk_nodes){0};
    pthread_mutex_init(&n->lock, NULL);
}

void rq__zk_nodes_clear(rq__zk_nodes *n)
{
    rq__zk_nodes_forget(n);
    list_free(n->now);
    list_free(n->next);
    pthread_mutex_destroy(&n->lock);
}
