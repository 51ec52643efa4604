/* SPDX-License-Identifier: Apache-2.0 */
/* A pairing heap. A timer's children are a list by `next`; `prev` is the sibling in front of it, or for the
 * first child the parent. */
#include "net/timers.h"

/* Of two roots; either may be NULL. */
static rq_loop_timer *merge(rq_loop_timer *a, rq_loop_timer *b)
{
    if (a == NULL) return b;
    if (b == NULL) return a;
    rq_loop_timer *parent = a->due_ns <= b->due_ns ? a : b;
    rq_loop_timer *child = parent == a ? b : a;
    child->prev = parent;
    child->next = parent->child;
    if (child->next != NULL) child->next->prev = child;
    parent->child = child;
    return parent;
}

static rq_loop_timer *root_of(rq_loop_timer *t)
{
    t->next = t->prev = NULL;
    return t;
}

/* Makes a list of siblings one heap: merges them in pairs, then the pairs from the last to the first. */
static rq_loop_timer *merge_list(rq_loop_timer *list)
{
    rq_loop_timer *pairs = NULL, *root = NULL, *next;
    for (rq_loop_timer *a = list; a != NULL; a = next) {
        rq_loop_timer *b = a->next;
        next = b == NULL ? NULL : b->next;
        a = merge(root_of(a), b == NULL ? NULL : root_of(b));
        a->next = pairs;
        pairs = a;
    }
    for (rq_loop_timer *a = pairs; a != NULL; a = next) {
        next = a->next;
        root = merge(root, root_of(a));
    }
    return root;
}

void rq__timers_add(rq_loop_timer **root, rq_loop_timer *t)
{
    t->child = NULL;
    *root = merge(*root, root_of(t));
}

void rq__timers_remove(rq_loop_timer **root, rq_loop_timer *t)
{
    rq_loop_timer *below = merge_list(t->child);
    if (t == *root) {
        *root = below;
    } else {
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next != NULL) t->next->prev = t->prev;
        *root = merge(*root, below);
    }
    t->next = t->prev = t->child = NULL;
}

void rq__timers_hasten(rq_loop_timer **root)
{
    rq_loop_timer *first = NULL, **last = &first, *next;
    uint64_t due = 0;
    while (*root != NULL) {
        rq_loop_timer *t = *root;
        rq__timers_remove(root, t);
        *last = t;
        last = &t->next;
    }
    for (rq_loop_timer *t = first; t != NULL; t = next) {
        next = t->next;
        t->due_ns = due++;
        rq__timers_add(root, t);
    }
}
