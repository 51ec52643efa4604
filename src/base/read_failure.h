/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of reads that say nothing about the file's content. The file must not be taken for absent or damaged: nothing
 * may be created or written in its place, and it is not moved. */
#ifndef RQ_BASE_READ_FAILURE_H
#define RQ_BASE_READ_FAILURE_H

#include "base/err.h"

#include <stdbool.h>

static inline bool rq_is_read_failure(rq_err rc)
{
    return rc == RQ_E_IO || rc == RQ_E_NO_MEMORY || rc == RQ_E_PERMISSION || rc == RQ_E_NO_SPACE;
}

#endif
