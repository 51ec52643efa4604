/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and opens the plug-in of shared_rados.h and cephfs.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vfs/cephfs.h"
#include "vfs/shared_rados.h"

#define NAME "rorqual-rados.so"

#ifdef RQ_LIBRARIES_LINKED
rq_err rq_shared_rados_find(char *ret, size_t size, rq_error *why)
{
    (void)ret;
    (void)size;
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "this program is linked statically, so it cannot load the plug-in for Ceph");
}
#else
static rq_err folder_of_program(char ret[static PATH_MAX], rq_error *why)
{
    ssize_t len = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    if (len < 0) return rq_fail(why, RQ_E_IO, "cannot read /proc/self/exe: %s", strerror(errno));
    ret[len] = '\0';
    char *slash = strrchr(ret, '/');
    if (slash != NULL) *slash = '\0';
    return RQ_OK;
}

rq_err rq_shared_rados_find(char *ret, size_t size, rq_error *why)
{
    static const char *const places[] = {"", "../lib/rorqual/", "../vfs/"}; /* a build's is last */
    char folder[PATH_MAX];
    RQ_TRY(folder_of_program(folder, why));
    for (size_t i = 0; i < RQ_ARRAY_LEN(places); i++) {
        int len = snprintf(ret, size, "%s/%s%s", folder, places[i], NAME);
        if (len > 0 && (size_t)len < size && access(ret, R_OK) == 0) return RQ_OK;
    }
    return rq_fail(why, RQ_E_UNSUPPORTED,
                   "there is no plug-in for Ceph, " NAME
                   ", in %s or %s/../lib/rorqual: install the "
                   "package rorqual-rados, or build with the headers of librados and libcephfs "
                   "(Debian: librados-dev, libcephfs-dev)",
                   folder, folder);
}
#endif

static rq_err find_entry(const char *plugin, const char *name, void **ret, rq_error *why)
{
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "cannot open the plug-in for Ceph, which needs librados and libcephfs "
                       "(Debian: librados2, libcephfs2): %s",
                       dlerror());
    *ret = dlsym(library, name);
    if (*ret != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_UNSUPPORTED, "%s is not the plug-in for Ceph: it has no %s", plugin,
                   name);
}

rq_err rq_shared_rados_open(const char *plugin, const rq_rados_options *o, rq_executor *executor,
                            rq_shared **ret, rq_error *why)
{
    void *entry;
    RQ_TRY(find_entry(plugin, RQ_RADOS_ENTRY, &entry, why));
    return ((rq_shared_rados_entry *)entry)(RQ_VERSION, o, executor, ret, why);
}

rq_err rq_cephfs_open(const char *plugin, const rq_cephfs_options *o, rq_shared *pool, rq_vfs **ret,
                      rq_error *why)
{
    void *entry;
    RQ_TRY(find_entry(plugin, RQ_CEPHFS_ENTRY, &entry, why));
    return ((rq_cephfs_entry *)entry)(RQ_VERSION, o, pool, ret, why);
}
