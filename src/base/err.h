/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: one number (rorqual/errors.h) from one table (errors.def), which also gives the Java exception class for the
 * HBase client and whether the client may retry. 0 is success. Where a person needs details (file,
 * offset, expected and found value), a function takes a nullable `rq_error *why`. The code that
 * detects the error fills it once; the client sees the message after the class name.
 */
#ifndef RQ_BASE_ERR_H
#define RQ_BASE_ERR_H

#include "rorqual/errors.h"

#include "base/macros.h"

#include <stdbool.h>

/* Codes that no call of the library returns: a read needs a block that is not in memory, or its
 * time slice is spent; the end of a sequence. */
#define RQ_E_AGAIN ((rq_err)1)
#define RQ_E_END ((rq_err)2)

enum {
    RQ_ERR_COUNT = 1 /* RQ_OK */
#define X(name, java_class, retry, text) +1
#include "base/errors.def"
#undef X
};

typedef struct rq_error {
    rq_err code;
    /* Fits HBase's longest texts; longer ones are cut. NUL-terminated. */
    char message[1024];
} rq_error;

/* Every request calls this, so it writes only two fields. An initializer would zero the whole
 * kilobyte. */
static inline void rq_error_clear(rq_error *why)
{
    why->code = RQ_OK;
    why->message[0] = '\0';
}

/* Fills `why`, unless it is NULL or already filled, and returns `code`, so that callers can
 * write `return rq_fail(…)`. */
RQ_COLD rq_err rq_fail(rq_error *why, rq_err code, const char *fmt, ...) RQ_PRINTF(3, 4);
/* Fails with RQ_E_NO_MEMORY. */
RQ_COLD rq_err rq_no_memory(rq_error *why);

/* Translates a decoder's result for bytes read from storage: malformed bytes there are damage,
 * so RQ_E_MALFORMED becomes RQ_E_CORRUPT. Not for the bytes of a request, which are never
 * RQ_E_CORRUPT. */
static inline rq_err rq_err_of_storage(rq_err rc, rq_error *why)
{
    if (RQ_LIKELY(rc != RQ_E_MALFORMED)) return rc;
    if (why != NULL && why->code == RQ_E_MALFORMED) why->code = RQ_E_CORRUPT;
    return RQ_E_CORRUPT;
}

/* Fully qualified Java class, e.g. "org.apache.hadoop.hbase.TableNotFoundException". */
const char *rq_err_java_class(rq_err code);
bool rq_err_do_not_retry(rq_err code);

#endif
