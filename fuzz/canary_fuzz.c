/* SPDX-License-Identifier: Apache-2.0 */
/* The canary: a parser with a planted bug that replay and fuzzer must find. If this target passes,
 * the test harness is broken. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 && data[0] == 'R' && data[1] == 'Q' && data[2] != '!') abort();
    return 0;
}
