/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler annotations and the assertion that stays on in release builds. */
#ifndef RQ_BASE_MACROS_H
#define RQ_BASE_MACROS_H

#include <stddef.h>

#define RQ_NODISCARD __attribute__((warn_unused_result))
#define RQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* For small functions that take a function: the compiler shall make one of both. */
#define RQ_INLINE static inline __attribute__((always_inline))
/* What is called when something went wrong, or once in a connection's or a chunk's life: the
 * compiler keeps the way there out of the code that runs for each request, whose cache lines are
 * what a request costs (docs/lab/requests.md). */
#define RQ_COLD __attribute__((cold))
#define RQ_FALLTHROUGH __attribute__((fallthrough))
#define RQ_LIKELY(x) __builtin_expect(!!(x), 1)
#define RQ_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RQ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define RQ_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
/* gcc says it by a macro, clang by a feature. */
#if defined(__SANITIZE_ADDRESS__)
#define RQ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RQ_ASAN 1
#endif
#endif
#ifndef RQ_ASAN
#define RQ_ASAN 0
#endif
/* Documents which lock guards a field; not checked by gcc. */
#define RQ_GUARDED_BY(lock)

/* A broken invariant: better stop than write wrong. On in every build. */
#define RQ_ASSERT(x)                                                                               \
    do {                                                                                           \
        if (RQ_UNLIKELY(!(x))) rq_assert_failed(#x, __FILE__, __LINE__);                           \
    } while (0)

/* Return at once on error; only where nothing is held that would leak. */
#define RQ_TRY(expr)                                                                               \
    do {                                                                                           \
        rq_err rq_try_rc_ = (expr);                                                                \
        if (RQ_UNLIKELY(rq_try_rc_ != RQ_OK)) return rq_try_rc_;                                   \
    } while (0)

#define RQ_CACHE_LINE 64
/* A hint: asks memory for these bytes, which may be gone by now. */
static inline void rq_ask_for(const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += RQ_CACHE_LINE)
        __builtin_prefetch((const char *)from + i);
}

RQ_COLD _Noreturn void rq_assert_failed(const char *expr, const char *file, int line);

#endif
