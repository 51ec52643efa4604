/* SPDX-License-Identifier: Apache-2.0 */
/* A statement of the shell before mruby parses it (src/shell/rewrite.c): no byte behind its end is
 * read, and the result can be rewritten, too. */
#include "base/macros.h"
#include "shell/rewrite.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_buf out = {0}, again = {0};
    /* A separate allocation, so that reads past the end are detected. */
    char *text = malloc(size > 0 ? size : 1);
    RQ_ASSERT(text != NULL);
    if (size > 0) memcpy(text, data, size);
    RQ_ASSERT(rq__rewrite(text, size, UINT16_MAX, &out) == RQ_OK);
    RQ_ASSERT(rq__rewrite((const char *)out.ptr, out.len, UINT16_MAX, &again) == RQ_OK);
    rq_buf_clear(&out);
    rq_buf_clear(&again);
    free(text);
    return 0;
}
