/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that failed for a reason that says nothing about the file's content: the file is neither absent nor damaged, and
 * nothing may be made, moved or written in its place. */
#ifndef RQ_CATALOG_UNREAD_H
#define RQ_CATALOG_UNREAD_H

#include "base/err.h"

#include <stdbool.h>

static inline bool rq__is_unread(rq_err rc)
{
    return rc == RQ_E_IO || rc == RQ_E_NO_MEMORY || rc == RQ_E_PERMISSION || rc == RQ_E_NO_SPACE;
}

#endif
