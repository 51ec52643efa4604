/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of this room includes: cmocka needs these headers before its own. */
#ifndef RQ_TEST_RPC_UNIT_H
#define RQ_TEST_RPC_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
