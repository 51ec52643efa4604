/* SPDX-License-Identifier: Apache-2.0 */
/* rq_connect: the URL chooses the back end. */
#include "api/backend.h"
#include "embed/embed.h"
#include "remote/remote.h"

#define TIMEOUT_MS 60000

static rq_err take_options(const rq_connect_options *given, rq_connect_options *ret, rq_error *why)
{
    *ret = (rq_connect_options){.size = sizeof *ret};
    if (given != NULL) {
        RQ_TRY(rq_sized(ret, sizeof *ret, given, offsetof(rq_connect_options, user),
                        "rq_connect_options", why));
    }
    if (ret->timeout_ms == 0) ret->timeout_ms = TIMEOUT_MS;
    if (ret->setting_count > 0 && ret->settings == NULL)
        return rq_fail(why, RQ_E_INVALID, "settings is NULL, but setting_count is not 0");
    if (ret->no_threads && ret->completion_thread)
        return rq_fail(why, RQ_E_INVALID, "no_threads and completion_thread exclude each other");
    return RQ_OK;
}

/* The path of "file:PATH" and "file:///PATH"; NULL: "file://host/…". */
static const char *path_of(const char *rest)
{
    if (strncmp(rest, "//", 2) != 0) return rest;
    return rest[2] == '/' ? rest + 2 : NULL;
}

static const char *after(const char *url, const char *scheme)
{
    size_t len = strlen(scheme);
    return strncmp(url, scheme, len) == 0 ? url + len : NULL;
}

static rq_err connect_to(const char *url, const rq_connect_options *o, rq_db **ret, rq_error *why)
{
    const char *rest;
    if (strcmp(url, "memory:") == 0) return rq_embed_open(NULL, o, ret, why);
    if ((rest = after(url, "file:")) != NULL) {
        const char *path = path_of(rest);
        if (path == NULL || path[0] == '\0')
            return rq_fail(why, RQ_E_INVALID, "not a path on this machine: %s", url);
        return rq_embed_open(path, o, ret, why);
    }
    bool is_cluster = after(url, "hbase://") != NULL || after(url, "hbase+rpc://") != NULL;
    if (is_cluster && o->no_threads)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "no_threads is possible only with file: and memory:, not with %s", url);
    if ((rest = after(url, "hbase://")) != NULL) return rq_remote_open(rest, true, o, ret, why);
    if ((rest = after(url, "hbase+rpc://")) != NULL)
        return rq_remote_open(rest, false, o, ret, why);
    return rq_fail(why, RQ_E_INVALID,
                   "not a database's URL (hbase://HOST:PORT, hbase+rpc://HOST:PORT, file:PATH, "
                   "memory:): %s",
                   url);
}

rq_err rq_connect(const char *url, const rq_connect_options *options, rq_db **ret,
                  rq_failure *failure)
{
    rq_why why;
    rq_connect_options o;
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why_clear(&why);
    rq_err rc = url == NULL ? rq_fail(&why.error, RQ_E_INVALID, "the URL is NULL")
                            : take_options(options, &o, &why.error);
    rq_db *db = NULL;
    if (rc == RQ_OK) rc = connect_to(url, &o, &db, &why.error);
    if (rc == RQ_OK && o.completion_thread) {
        rc = rq_db_start_thread(db, &why.error);
        if (rc != RQ_OK) (void)rq_disconnect(db, NULL); /* the first error counts */
    }
    if (rc == RQ_OK) *ret = db;
    return rq_fill_failure(failure, rc, &why);
}
