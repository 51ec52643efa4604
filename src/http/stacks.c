/* SPDX-License-Identifier: Apache-2.0 */
/* /stacks: what threads and calls are doing, as SIGQUIT writes it to the log. The report waits up to some
 * seconds for loops that hang: rq__later. */
#include "http/http_priv.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static rq_err read_all(int fd, rq_buf *out)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0) return RQ_E_IO;
    RQ_TRY(rq_buf_reserve(out, (size_t)size));
    ssize_t got = pread(fd, out->ptr, (size_t)size, 0);
    if (got < 0) return RQ_E_IO;
    out->len = (size_t)got;
    return RQ_OK;
}

void rq__stacks_make(rq__page *p, const rq_http_sources *from)
{
    int fd = memfd_create("rorqual-report", MFD_CLOEXEC);
    if (fd < 0) {
        rq__page_fail(p, RQ__HTTP_BROKEN, strerror(errno));
        return;
    }
    from->report(from->report_ctx, fd);
    p->text.rc = read_all(fd, &p->text.buf);
    close(fd);
}
