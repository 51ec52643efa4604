/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AddressSanitizer knows malloc's blocks only. An allocator that divides larger blocks uses these
 * macros to mark the bytes that nobody may access: free pieces, and a red zone behind each piece in
 * use. Under ASan, pools keep no free pieces, so that freed memory goes to malloc's quarantine. In
 * other builds the macros do nothing.
 *
 * The granule is 8 bytes: a poisoned range begins at a multiple of 8, or inside a granule whose
 * first bytes are in use.
 */
#ifndef RQ_BASE_ASAN_H
#define RQ_BASE_ASAN_H

#include "base/macros.h"

#if RQ_ASAN
/* As in sanitizer/asan_interface.h, but without const: with it gcc warns that the bytes may be
 * uninitialised. */
void __asan_poison_memory_region(volatile void *ptr, size_t len);
void __asan_unpoison_memory_region(volatile void *ptr, size_t len);

#define RQ_RED_ZONE ((size_t)32)
/* From now on an access to these bytes is reported. */
#define RQ_POISON(ptr, len) __asan_poison_memory_region((ptr), (len))
/* From now on these bytes may be accessed. REQUIRES: unpoison memory before it is unmapped, or
 * the next mapping at its address is poisoned. (free() does it itself.) */
#define RQ_UNPOISON(ptr, len) __asan_unpoison_memory_region((ptr), (len))
#else
#define RQ_RED_ZONE ((size_t)0)
#define RQ_POISON(ptr, len) ((void)(ptr), (void)(len))
#define RQ_UNPOISON(ptr, len) ((void)(ptr), (void)(len))
#endif

#endif
