/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers by ucontext. One mapping has the stack and, at its upper end, the owner's struct:
 *
 *     guard page | stack, used downwards | struct
 */
#include "base/fiber.h"

#include "base/asan.h"
#include "base/err.h"
#include "base/macros.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#if RQ_ASAN
#include <sanitizer/common_interface_defs.h>
#define FIBER_BYTES ((size_t)4 << 20)
#else
#define FIBER_BYTES ((size_t)1 << 20)
#endif
#if RQ_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define GUARD_BYTES 4096

static void switch_begin(void **fake_stack, const void *bottom, size_t len, void *tsan)
{
#if RQ_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, len);
#else
    (void)fake_stack;
    (void)bottom;
    (void)len;
#endif
#if RQ_TSAN
    __tsan_switch_to_fiber(tsan, 0);
#else
    (void)tsan;
#endif
}

static void switch_end(void *fake_stack, const void **bottom, size_t *len)
{
#if RQ_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom, len);
#else
    (void)fake_stack;
    (void)bottom;
    (void)len;
#endif
}

/* makecontext passes ints. */
static void fiber_main(unsigned high, unsigned low)
{
    rq_fiber *f = (rq_fiber *)(((uintptr_t)high << 32) | (uintptr_t)low);
    switch_end(NULL, &f->caller_stack, &f->caller_stack_len);
    f->run(f);
    RQ_ASSERT(false && "a fiber's function has returned");
}

static bool make_context(rq_fiber *f)
{
    uintptr_t self = (uintptr_t)f;
    if (getcontext(&f->own) != 0) return false;
    f->own.uc_stack.ss_sp = f->stack;
    f->own.uc_stack.ss_size = f->stack_len;
    makecontext(&f->own, (void (*)(void))fiber_main, 2, (unsigned)(self >> 32), (unsigned)self);
    return true;
}

rq_fiber *rq_fiber_new(size_t size, void (*run)(rq_fiber *f))
{
    size_t stack_len = FIBER_BYTES - (size + 63) / 64 * 64;
    uint8_t *stack = mmap(NULL, FIBER_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return NULL;
    rq_fiber *f = (rq_fiber *)(void *)(stack + stack_len);
    f->run = run;
    f->stack = stack;
    f->stack_len = stack_len;
    /* An overflow of the stack stops at the guard page. */
    if (mprotect(stack, GUARD_BYTES, PROT_NONE) != 0 || !make_context(f)) {
        munmap(stack, FIBER_BYTES);
        return NULL;
    }
#if RQ_TSAN
    f->own_tsan = __tsan_create_fiber(0);
#endif
    return f;
}

void rq_fiber_free(rq_fiber *f)
{
    if (f == NULL) return;
#if RQ_TSAN
    __tsan_destroy_fiber(f->own_tsan);
#endif
    munmap(f->stack, FIBER_BYTES);
}

void rq_fiber_enter(rq_fiber *f)
{
#if RQ_TSAN
    f->caller_tsan = __tsan_get_current_fiber();
#endif
    /* A context has a signal mask of its own; a fiber has that of the thread that enters it. */
    int rc = pthread_sigmask(SIG_SETMASK, NULL, &f->own.uc_sigmask);
    RQ_ASSERT(rc == 0);
    switch_begin(&f->caller_fake_stack, f->stack, f->stack_len, f->own_tsan);
    rc = swapcontext(&f->caller, &f->own);
    RQ_ASSERT(rc == 0);
    switch_end(f->caller_fake_stack, NULL, NULL);
}

void rq_fiber_leave(rq_fiber *f)
{
    switch_begin(&f->own_fake_stack, f->caller_stack, f->caller_stack_len, f->caller_tsan);
    int rc = swapcontext(&f->own, &f->caller);
    RQ_ASSERT(rc == 0);
    switch_end(f->own_fake_stack, &f->caller_stack, &f->caller_stack_len);
}
