/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a server (tests/peers/delayed): delays all bytes that it sends by DELAY_US. */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long microseconds_until_now(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - begun->tv_sec) * 1000000 + (now.tv_nsec - begun->tv_nsec) / 1000;
}

/* Without sleeping: a sleep of 50 us takes twice as long. */
static void delay(void)
{
    const char *text = getenv("DELAY_US");
    long wanted = text != NULL ? atol(text) : 0;
    struct timespec begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (microseconds_until_now(&begun) < wanted)
        ;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    delay();
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    delay();
    return syscall(SYS_sendmsg, fd, message, flags);
}
