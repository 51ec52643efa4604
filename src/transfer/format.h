/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of exported files, and the option that selects each. */
#ifndef RQ_TRANSFER_FORMAT_H
#define RQ_TRANSFER_FORMAT_H

#include "transfer/columns.h"

typedef enum rq_transfer_format {
    RQ_FORMAT_SEQUENCE, /* HBase's Export: a SequenceFile of Results */
    RQ_FORMAT_TSV,
    RQ_FORMAT_CSV,
    RQ_FORMAT_JSON,
} rq_transfer_format;

#define RQ_TRANSFER_FORMATS 4
const char *rq_transfer_format_name(rq_transfer_format f);

#endif
