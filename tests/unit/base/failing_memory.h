/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that fail when a test says so: failing_memory.c stands before the malloc family in a
 * program linked with failing_memory_args (tests/unit/base/meson.build), and asks the test each
 * time.
 */
#ifndef RQ_TESTS_FAILING_MEMORY_H
#define RQ_TESTS_FAILING_MEMORY_H

#include <stdbool.h>

/* The test's: shall this allocation fail? Any thread. */
bool allocation_fails(void);

#endif
