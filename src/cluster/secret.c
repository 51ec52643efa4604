/* SPDX-License-Identifier: Apache-2.0 */
/* See secret.h. */
#include "cluster/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rq_err check(const char *path, const struct stat *st, rq_error *why)
{
    if (!S_ISREG(st->st_mode))
        return rq_fail(why, RQ_E_CONFIG, "the cluster's secret %s: not a file", path);
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return rq_fail(why, RQ_E_CONFIG,
                       "the cluster's secret %s: the file belongs to user %lu, but this process "
                       "runs as user %lu",
                       path, (unsigned long)st->st_uid, (unsigned long)geteuid());
    if ((st->st_mode & 077) != 0)
        return rq_fail(
            why, RQ_E_CONFIG,
            "the cluster's secret %s: mode %04o lets other users access the file; set it to 600",
            path, st->st_mode & 07777);
    return RQ_OK;
}

/* At most `size` bytes. */
static rq_err read_bytes(const char *path, int fd, uint8_t *to, size_t size, size_t *ret_len,
                         rq_error *why)
{
    *ret_len = 0;
    while (*ret_len < size) {
        ssize_t n = read(fd, to + *ret_len, size - *ret_len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return rq_fail(why, RQ_E_CONFIG, "the cluster's secret %s: %s", path, strerror(errno));
        if (n == 0) return RQ_OK;
        *ret_len += (size_t)n;
    }
    return RQ_OK;
}

static rq_err derive(const char *path, const uint8_t *bytes, size_t len, rq_secret *ret,
                     rq_error *why)
{
    static const rq_slice label = RQ_SLICE_LIT("rorqual cluster secret 1");
    if (len > RQ_SECRET_MAX)
        return rq_fail(why, RQ_E_CONFIG, "the cluster's secret %s: more than %d bytes", path,
                       RQ_SECRET_MAX);
    while (len > 0 && strchr(" \t\r\n", bytes[len - 1]) != NULL && bytes[len - 1] != '\0')
        len--;
    if (len < RQ_SECRET_MIN)
        return rq_fail(why, RQ_E_CONFIG,
                       "the cluster's secret %s: %zu bytes, but at least %d are needed; for "
                       "example: head -c 32 /dev/urandom | base64",
                       path, len, RQ_SECRET_MIN);
    rq_hmac_sha256(rq_slice_of(bytes, len), &label, 1, ret->key);
    return RQ_OK;
}

rq_err rq_secret_read(const char *path, rq_secret *ret, rq_error *why)
{
    uint8_t bytes[RQ_SECRET_MAX + 1];
    struct stat st;
    size_t len;
    /* Does not wait if the path is a pipe without a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return rq_fail(why, RQ_E_CONFIG, "the cluster's secret %s: %s", path, strerror(errno));
    rq_err rc = RQ_OK;
    if (fstat(fd, &st) != 0)
        rc = rq_fail(why, RQ_E_CONFIG, "the cluster's secret %s: %s", path, strerror(errno));
    if (rc == RQ_OK) rc = check(path, &st, why);
    if (rc == RQ_OK) rc = read_bytes(path, fd, bytes, sizeof bytes, &len, why);
    if (rc == RQ_OK) rc = derive(path, bytes, len, ret, why);
    explicit_bzero(bytes, sizeof bytes);
    close(fd);
    return rc;
}
