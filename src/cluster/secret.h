/* SPDX-License-Identifier: Apache-2.0 */
/* The secret that the servers of a cluster share: a file that each of them has, readable by no other user. */
#ifndef RQ_CLUSTER_SECRET_H
#define RQ_CLUSTER_SECRET_H

#include "base/hmac.h"

#define RQ_SECRET_MIN 16 /* bytes of the file, without white space at its end */
#define RQ_SECRET_MAX 4096

/* A digest of the file's bytes; the bytes are not kept. */
typedef struct rq_secret {
    uint8_t key[RQ_HMAC_LEN];
} rq_secret;

/* RQ_E_CONFIG: the path is no file, others may read or write the file, it belongs to another user, or it is too
 * short or too long. `why` never contains bytes of the file. */
RQ_NODISCARD
rq_err rq_secret_read(const char *path, rq_secret *ret, rq_error *why);

#endif
