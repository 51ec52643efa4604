/* SPDX-License-Identifier: Apache-2.0 */
/* A self-contained page: page.html, with the JSON report in place of the word REVIEW. */
#include "design/design.h"

#include "page.h"

rq_err rq_report_html(const rq_review *r, rq_buf *out)
{
    static const char mark[] = "/*REVIEW*/";
    const char *at = strstr(page, mark);
    RQ_ASSERT(at != NULL);
    RQ_TRY(rq_buf_append(out, page, (size_t)(at - page)));
    RQ_TRY(rq_report_json(r, out));
    at += sizeof mark - 1;
    return rq_buf_append(out, at, strlen(at));
}
