/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AddressSanitizer sees malloc's pieces and no others. The allocators that cut pieces out of larger
 * memory tell it with these which bytes are nobody's: what is free, and a red zone behind each piece.
 * Pools keep nothing under ASan, so that what is given back stays in malloc's quarantine. In other
 * builds all of it is nothing.
 *
 * The granule is 8 bytes: poisoned memory begins at a multiple of 8, or inside a granule whose
 * first bytes are in use.
 */
#ifndef RQ_BASE_ASAN_H
#define RQ_BASE_ASAN_H

#include "base/macros.h"

#if RQ_ASAN
/* As in sanitizer/asan_interface.h, but not const, for which gcc asks that the bytes are set. */
void __asan_poison_memory_region(volatile void *ptr, size_t len);
void __asan_unpoison_memory_region(volatile void *ptr, size_t len);

#define RQ_RED_ZONE ((size_t)32)
/* An access to these bytes is reported from now on. */
#define RQ_POISON(ptr, len) __asan_poison_memory_region((ptr), (len))
/* They are somebody's. REQUIRES: memory that goes back to the kernel is unpoisoned before, for the
 * next mapping at its address would be poisoned too. (free does it itself.) */
#define RQ_UNPOISON(ptr, len) __asan_unpoison_memory_region((ptr), (len))
#else
#define RQ_RED_ZONE ((size_t)0)
#define RQ_POISON(ptr, len) ((void)(ptr), (void)(len))
#define RQ_UNPOISON(ptr, len) ((void)(ptr), (void)(len))
#endif

#endif
