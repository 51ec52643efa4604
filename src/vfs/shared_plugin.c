/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the plug-in of shared_rados.h. */
#include <dlfcn.h>

#include "vfs/shared_rados.h"

rq_err rq_shared_rados_open(const char *plugin, const rq_rados_options *o, rq_executor *executor,
                            rq_shared **ret, rq_error *why)
{
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return rq_fail(
            why, RQ_E_UNSUPPORTED,
            "cannot open the plug-in for Ceph, which needs librados (Debian: librados2): %s",
            dlerror());
    rq_shared_rados_entry *entry = (rq_shared_rados_entry *)dlsym(library, RQ_RADOS_ENTRY);
    if (entry == NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s is not the plug-in for Ceph: it has no %s",
                       plugin, RQ_RADOS_ENTRY);
    return entry(RQ_VERSION, o, executor, ret, why);
}
