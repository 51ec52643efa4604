/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a shared library that is loaded when something needs it. Mapping and relocating a library at the
 * start of each process costs page faults and system calls, whether it is used or not.
 *
 * A library's functions are a list FUNCTIONS(X) of their names. Their table is a struct with a pointer for each, in
 * the list's order:
 *
 *     typedef struct functions { FUNCTIONS(RQ_LIBRARY_MEMBER) } functions;
 *
 * In a static build (RQ_LIBRARIES_LINKED) the libraries are linked, and the table is {FUNCTIONS(RQ_LIBRARY_LINKED)}.
 */
#ifndef RQ_BASE_LIBRARY_H
#define RQ_BASE_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

#define RQ_LIBRARY_MEMBER(function) __typeof__(function) *function;
#define RQ_LIBRARY_NAME(function) #function,
#define RQ_LIBRARY_LINKED(function) function,

typedef struct rq_library {
    const char *what;         /* needs it; begins the error's message */
    const char *files[2];     /* names under which systems have it; the second may be NULL */
    const char *const *names; /* of its functions; ends with NULL */
} rq_library;

/* Fills the table with the functions' addresses. The library stays loaded until the process ends; a later load takes
 * microseconds and opens no file. RQ_E_UNSUPPORTED: the library is not installed or lacks a function; `why` has the
 * name files[0]. */
RQ_NODISCARD rq_err rq_library_load(const rq_library *library, void *ret_table, rq_error *why);

#endif
