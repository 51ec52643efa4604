/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler annotations, and an assertion that is also checked in release builds. */
#ifndef RQ_BASE_MACROS_H
#define RQ_BASE_MACROS_H

#include <stddef.h>

#define RQ_NODISCARD __attribute__((warn_unused_result))
#define RQ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* For small functions that take a function pointer: inlining lets the compiler inline the
 * pointed-to function, too. */
#define RQ_INLINE static inline __attribute__((always_inline))
/* Functions called on errors, or once in the life of a connection or chunk. The compiler moves
 * the paths to them out of the code that runs for each request, where every cache line costs
 * time (docs/lab/requests.md). */
#define RQ_COLD __attribute__((cold, noinline))
#define RQ_FALLTHROUGH __attribute__((fallthrough))
#define RQ_LIKELY(x) __builtin_expect(!!(x), 1)
#define RQ_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RQ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define RQ_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
/* gcc defines a macro, clang has a feature test. */
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
#if defined(__SANITIZE_THREAD__)
#define RQ_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RQ_TSAN 1
#endif
#endif
#ifndef RQ_TSAN
#define RQ_TSAN 0
#endif
/* Names the lock that guards a field. Documentation only; gcc does not check it. */
#define RQ_GUARDED_BY(lock)

/* Checks an invariant in every build. If it is broken the process stops, before it can write
 * wrong data. */
#define RQ_ASSERT(x)                                                                               \
    do {                                                                                           \
        if (RQ_UNLIKELY(!(x))) rq__assert_failed(#x, __FILE__, __LINE__);                          \
    } while (0)

/* Returns on error. Use it only where nothing is held that would leak. */
#define RQ_TRY(expr)                                                                               \
    do {                                                                                           \
        rq_err rq_try_rc_ = (expr);                                                                \
        if (RQ_UNLIKELY(rq_try_rc_ != RQ_OK)) return rq_try_rc_;                                   \
    } while (0)

#define RQ_CACHE_LINE 64
/* Prefetches these bytes into the cache. A hint: the memory may already have been freed. */
static inline void rq_prefetch_bytes(const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += RQ_CACHE_LINE)
        __builtin_prefetch((const char *)from + i);
}

RQ_COLD _Noreturn void rq__assert_failed(const char *expr, const char *file, int line);

#endif
