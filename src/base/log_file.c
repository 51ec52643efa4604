/* SPDX-License-Identifier: Apache-2.0 */
/* See log_file.h. */
#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX_MAX 12 /* bytes of ".NUMBER", with the zero byte */
#define FLAGS (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY)

/* Opens the log file for appending, and creates it if it is absent, with the mode of the file of descriptor `old` (-1: 0640). */
static int create(const char *path, int old)
{
    struct stat st;
    int fd = old < 0 || fstat(old, &st) != 0 ? -1 : open(path, FLAGS | O_EXCL, 0600);
    if (fd < 0) return open(path, FLAGS, 0640);
    (void)fchmod(fd, st.st_mode & 0666); /* if it fails, only the owner can read the file */
    return fd;
}

static void take_size(rq_log_file *f)
{
    struct stat st;
    f->bytes = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* Opens the file at the path under the log's descriptor number. 0 or errno. */
static int replace(rq_log_file *f, const char *path)
{
    int opened = create(path, f->fd);
    if (opened < 0) return errno;
    int error = dup3(opened, f->fd, O_CLOEXEC) < 0 ? errno : 0;
    close(opened);
    if (error == 0) take_size(f);
    return error;
}

rq_err rq_log_file_open(rq_log_file *f, rq_log *log, rq_error *why)
{
    RQ_ASSERT(log->sink != NULL);
    f->fd = create(f->path, -1);
    if (f->fd < 0)
        return rq_fail(why, RQ_E_IO, "cannot open the log file %s: %s", f->path, strerror(errno));
    take_size(f);
    log->fd = f->fd;
    pthread_mutex_lock(&log->sink->lock);
    log->sink->file = f;
    pthread_mutex_unlock(&log->sink->lock);
    return RQ_OK;
}

rq_err rq_log_file_reopen(rq_log_file *f, rq_log *log, rq_error *why)
{
    pthread_mutex_lock(&log->sink->lock);
    int error = replace(f, f->path);
    pthread_mutex_unlock(&log->sink->lock);
    if (error == 0) return RQ_OK;
    return rq_fail(why, RQ_E_IO, "cannot reopen the log file %s: %s", f->path, strerror(error));
}

/* --- rolling ---------------------------------------------------------------------------------- */

/* The path of the `number`th former file; 0: of the present file. */
static const char *path_of(const char *path, unsigned number, char buf[PATH_MAX])
{
    if (number == 0) return path;
    snprintf(buf, PATH_MAX, "%s.%u", path, number);
    return buf;
}

/* Whether the path leads to the file that the log writes to; false if another process has renamed that file. */
static bool is_present(const char *path, const struct stat *log_file)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == log_file->st_dev && st.st_ino == log_file->st_ino;
}

/* Renames the present file and the former ones. False: one cannot be renamed, so the newer ones keep their names. */
static bool make_way(const char *path, unsigned backups)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (strlen(path) + SUFFIX_MAX > PATH_MAX) return false;
    if (backups == 0) return unlink(path) == 0;
    for (unsigned i = backups; i > 0; i--)
        if (rename(path_of(path, i - 1, from), path_of(path, i, to)) != 0 && errno != ENOENT)
            return false;
    return true;
}

/* If the present file cannot be renamed, the next try comes after another bytes_max bytes. If no new file can be
 * created, the next try comes with the next line. */
static void roll(rq_log_file *f)
{
    char target[PATH_MAX];
    struct stat st;
    f->bytes = 0;
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
    const char *path = realpath(f->path, target); /* a link stays */
    if (path == NULL) path = f->path;
    if (is_present(path, &st) && !make_way(path, f->backups)) return;
    if (replace(f, path) != 0) f->bytes = f->bytes_max;
}

void rq__log_file_grew(rq_log_file *f, size_t len)
{
    f->bytes += len;
    if (f->bytes_max != 0 && f->bytes >= f->bytes_max) roll(f);
}
