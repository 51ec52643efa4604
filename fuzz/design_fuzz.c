/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of rorqual design: a schema or, after a first byte FF, the lines of a trace. */
#include "design/trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_trace(const uint8_t *data, size_t size)
{
    rq_trace trace;
    rq_error why = {.code = RQ_OK};
    FILE *f = fmemopen((void *)(uintptr_t)data, size, "r");
    if (f == NULL) return;
    rq_err rc = rq_trace_read(f, 100, 1, &trace, &why);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_INVALID || rc == RQ_E_NOT_FOUND);
    RQ_ASSERT((rc == RQ_OK) == (why.message[0] == '\0'));
    RQ_ASSERT(rc != RQ_OK || (trace.count > 0 && trace.count <= trace.reads + trace.writes &&
                              trace.kept_reads + trace.kept_writes == trace.count &&
                              trace.first_ms <= trace.last_ms));
    rq_trace_clear(&trace);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_schema schema;
    rq_error why = {.code = RQ_OK};
    if (size > 0 && data[0] == 0xff) {
        if (size > 1) check_trace(data + 1, size - 1);
        return 0;
    }
    char *text = malloc(size + 1);
    RQ_ASSERT(text != NULL);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    rq_err rc = rq_schema_parse(text, &schema, &why);
    RQ_ASSERT(rc == RQ_OK || why.message[0] != '\0');
    rq_schema_clear(&schema);
    free(text);
    return 0;
}
