/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

static void *open_one(const rq_library *library)
{
    /* NODELETE: functions stay valid after dlclose, which only gives the reference back. */
    const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    void *opened = dlopen(library->files[0], how);
    return opened == NULL && library->files[1] != NULL ? dlopen(library->files[1], how) : opened;
}

/* Copied as bytes: ISO C has no cast from an object's pointer to a function's. */
static bool find_all(void *opened, const char *const *names, void *ret_table)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        void *found = dlsym(opened, names[i]);
        if (found == NULL) return false;
        memcpy((char *)ret_table + i * sizeof found, &found, sizeof found);
    }
    return true;
}

rq_err rq_library_load(const rq_library *library, void *ret_table, rq_error *why)
{
    void *opened = open_one(library);
    if (opened != NULL && find_all(opened, library->names, ret_table)) {
        (void)dlclose(opened);
        return RQ_OK;
    }
    const char *reason = dlerror();
    rq_err rc =
        rq_fail(why, RQ_E_UNSUPPORTED, "%s needs the library %s: %s", library->what,
                library->files[0], reason == NULL ? "the library cannot be loaded" : reason);
    if (opened != NULL) (void)dlclose(opened);
    return rc;
}
