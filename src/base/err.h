/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: one number from one table (errors.def), which also carries the Java class an HBase client
 * is told and whether it may retry. 0 is success. Where a human needs more (which file, which
 * offset, expected and found) a function takes a nullable `rq_error *why`, filled once by whoever
 * detects the fault; the message is what the client sees after the class name.
 */
#ifndef RQ_BASE_ERR_H
#define RQ_BASE_ERR_H

#include "base/macros.h"

#include <stdbool.h>

typedef enum rq_err {
    RQ_OK = 0,
#define X(name, java_class, retry, text) name,
#include "base/errors.def"
#undef X
    RQ_ERR_COUNT
} rq_err;

typedef struct rq_error {
    rq_err code;
    /* Fits HBase's longest texts; longer ones are cut. NUL-terminated. */
    char message[1024];
} rq_error;

/* Where every request passes: only the first byte of the kilobyte is written, which an initializer
 * would zero. */
static inline void rq_error_clear(rq_error *why)
{
    why->code = RQ_OK;
    why->message[0] = '\0';
}

/* Fills `why` (when not NULL and not yet filled) and returns `code`, so that it can be returned. */
RQ_COLD rq_err rq_fail(rq_error *why, rq_err code, const char *fmt, ...) RQ_PRINTF(3, 4);

/* What decoding said of bytes that came from storage: malformed ones are damage there. Storage calls
 * this; bytes of a request never become RQ_E_CORRUPT. */
static inline rq_err rq_err_of_storage(rq_err rc, rq_error *why)
{
    if (RQ_LIKELY(rc != RQ_E_MALFORMED)) return rc;
    if (why != NULL && why->code == RQ_E_MALFORMED) why->code = RQ_E_CORRUPT;
    return RQ_E_CORRUPT;
}

/* Static texts of the table; never NULL. */
const char *rq_err_name(rq_err code);
const char *rq_err_text(rq_err code);
/* Fully qualified Java class, e.g. "org.apache.hadoop.hbase.TableNotFoundException". */
const char *rq_err_java_class(rq_err code);
bool rq_err_do_not_retry(rq_err code);

#endif
