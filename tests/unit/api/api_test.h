/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the library, which include only the public header and are linked with the shared library. */
#ifndef RQ_TESTS_API_TEST_H
#define RQ_TESTS_API_TEST_H

#include "rorqual/rorqual.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/socket.h>

#include <cmocka.h>

/* The call succeeds; otherwise prints its message. `why` is the test's rq_failure. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        rq_err ok_rc_ = (call);                                                                    \
        if (ok_rc_ != RQ_OK) fail_msg("%s: %s: %s", #call, rq_err_name(ok_rc_), why.message);      \
    } while (0)

/* The call fails with this error. */
#define FAILS(code, call)                                                                          \
    do {                                                                                           \
        rq_err fails_rc_ = (call);                                                                 \
        if (fails_rc_ != (code))                                                                   \
            fail_msg("%s: %s instead of %s: %s", #call, rq_err_name(fails_rc_), #code,             \
                     why.message);                                                                 \
    } while (0)

static inline bool is(rq_bytes a, const char *text)
{
    return a.len == strlen(text) && (a.len == 0 || memcmp(a.data, text, a.len) == 0);
}

/* Ends the connections of this process, as a server does that stops. Returns their number; 0: the
 * database is embedded. */
static inline int end_connections(void)
{
    enum { DESCRIPTORS = 256 };
    int n = 0;
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && shutdown(fd, SHUT_RDWR) == 0)
            n++;
    }
    return n;
}

#endif
