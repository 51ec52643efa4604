/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language: a text that compiles must give a filter that the server accepts. */
#include "filter/filter.h"
#include "filter/language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_arena arena = {0};
    rq_error why = {0};
    rq_slice java_class;
    rq_slice message;
    rq_filter *f;
    if (rq_filter_language_compile(rq_slice_of(data, size), &arena, &java_class, &message, &why) ==
        RQ_OK)
        RQ_ASSERT(rq_filter_parse(java_class, message, &arena, &f, &why) == RQ_OK);
    rq_arena_clear(&arena);
    return 0;
}
