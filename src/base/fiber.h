/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fiber is a function with a stack of its own. A thread enters it, and it runs until it leaves; the next
 * enter, perhaps by another thread, continues behind the leave. So a task can wait for others in the middle of
 * its work while the same thread runs them.
 *
 * A fiber has the signal mask of the thread that has entered it.
 *
 * A fiber must not leave while it holds a mutex: the thread that continues it may be another one.
 */
#ifndef RQ_BASE_FIBER_H
#define RQ_BASE_FIBER_H

#include <stddef.h>
#include <ucontext.h>

typedef struct rq_fiber rq_fiber;

/* The first member of the owner's struct; its fields are those of fiber.c. */
struct rq_fiber {
    void (*run)(rq_fiber *f);
    ucontext_t own;
    ucontext_t caller; /* who has entered it last */
    void *stack;
    size_t stack_len;
    /* For sanitizers, which must be told of each change of stacks. */
    void *own_fake_stack, *caller_fake_stack;
    const void *caller_stack;
    size_t caller_stack_len;
    void *own_tsan, *caller_tsan;
};

/* Makes a fiber, zeroed memory of `size` bytes that begins with rq_fiber; NULL: no memory. `run`
 * must not return: it leaves, again and again. */
rq_fiber *rq_fiber_new(size_t size, void (*run)(rq_fiber *f));
/* REQUIRES: it has never been entered, or has left for good. NULL is allowed. */
void rq_fiber_free(rq_fiber *f);
/* Runs the fiber until it leaves. */
void rq_fiber_enter(rq_fiber *f);
/* REQUIRES: called on the fiber. */
void rq_fiber_leave(rq_fiber *f);

#endif
