/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a file that is read in sequence asks for read-ahead.
 *
 * POSIX_FADV_NORMAL reads ahead as much as the device's setting says (read_ahead_kb), _SEQUENTIAL
 * twice as much, and a second window before the first is used up. Most devices have 128 kB, which is
 * little for a scan, so it is doubled. Some have 8 MB: doubled, a scan that merges two files has
 * up to 64 MB in flight, and where memory is short a large part is evicted before it is used, and
 * read again (measured: 1.8 bytes read for one that was wanted).
 */
#include "vfs/posix_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ENOUGH_KB 1024

/* Of the file's device; -1: unknown (no sysfs, a file system without a device). */
static long read_ahead_kb(int fd)
{
    struct stat st;
    char path[64];
    char text[32];
    if (fstat(fd, &st) != 0) return -1;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev),
             minor(st.st_dev));
    int bdi = open(path, O_RDONLY | O_CLOEXEC);
    if (bdi < 0) return -1;
    ssize_t n = read(bdi, text, sizeof text - 1);
    close(bdi);
    if (n <= 0) return -1;
    text[n] = '\0';
    return strtol(text, NULL, 10);
}

int rq__sequence_advice_for(long kb)
{
    return kb >= ENOUGH_KB ? POSIX_FADV_NORMAL : POSIX_FADV_SEQUENTIAL;
}

int rq__sequence_advice(int fd)
{
    return rq__sequence_advice_for(read_ahead_kb(fd));
}
