/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail when a test says so: failing_memory.c wraps the malloc family in programs
 * linked with failing_memory_args (tests/unit/base/meson.build), and asks the test at each
 * allocation. */
#ifndef RQ_TESTS_FAILING_MEMORY_H
#define RQ_TESTS_FAILING_MEMORY_H

#include <stdbool.h>

/* Defined by the test: whether this allocation fails. Called by any thread. */
bool allocation_fails(void);

#endif
