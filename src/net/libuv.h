/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's functions that loops call. The library is loaded with the first loop of a process (loop.c): an embedded
 * database and most commands have none, and libuv's three hundred symbols are looked up when it is loaded. */
#ifndef RQ_NET_LIBUV_H
#define RQ_NET_LIBUV_H

#include "base/library.h"

#include <uv.h>

#define RQ__UV_FUNCTIONS(X)                                                                        \
    X(uv_async_init)                                                                               \
    X(uv_async_send)                                                                               \
    X(uv_backend_fd)                                                                               \
    X(uv_check_init)                                                                               \
    X(uv_check_start)                                                                              \
    X(uv_close)                                                                                    \
    X(uv_idle_init)                                                                                \
    X(uv_idle_start)                                                                               \
    X(uv_idle_stop)                                                                                \
    X(uv_is_closing)                                                                               \
    X(uv_loop_close)                                                                               \
    X(uv_loop_init)                                                                                \
    X(uv_poll_init)                                                                                \
    X(uv_poll_start)                                                                               \
    X(uv_poll_stop)                                                                                \
    X(uv_prepare_init)                                                                             \
    X(uv_prepare_start)                                                                            \
    X(uv_run)                                                                                      \
    X(uv_timer_init)                                                                               \
    X(uv_timer_start)                                                                              \
    X(uv_timer_stop)                                                                               \
    X(uv_update_time)                                                                              \
    X(uv_walk)

typedef struct rq__uv {
    RQ__UV_FUNCTIONS(RQ_LIBRARY_MEMBER)
} rq__uv;

#endif
