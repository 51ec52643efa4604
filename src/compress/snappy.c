/* SPDX-License-Identifier: Apache-2.0 */
/* One chunk of Hadoop's block framing in Snappy (codec_priv.h), and the library, which is loaded when a codec
 * needs it: libsnappy is C++, and few servers use it. A later load of a loaded library takes microseconds
 * and opens no file. A static build has the library linked. */
#include "compress/codec_priv.h"

#include <dlfcn.h>

#ifdef RQ_SNAPPY_LINKED

rq_err rq__snappy_load(rq__snappy *ret, rq_error *why)
{
    (void)why;
    *ret = (rq__snappy){snappy_max_compressed_length, snappy_compress, snappy_uncompressed_length,
                        snappy_uncompress};
    return RQ_OK;
}

#else

#define LIBRARY "libsnappy.so.1"

/* POSIX's way to make a function's address of dlsym's result. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

rq_err rq__snappy_load(rq__snappy *ret, rq_error *why)
{
    /* NODELETE: functions stay valid after dlclose, which only gives the reference back. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool found = library != NULL && find(library, "snappy_max_compressed_length", &ret->bound) &&
                 find(library, "snappy_compress", &ret->compress) &&
                 find(library, "snappy_uncompressed_length", &ret->raw_len) &&
                 find(library, "snappy_uncompress", &ret->decompress);
    rq_err rc = found ? RQ_OK
                      : rq_fail(why, RQ_E_UNSUPPORTED, "Snappy needs the library " LIBRARY ": %s",
                                dlerror());
    if (library != NULL) (void)dlclose(library);
    return rc;
}

#endif

static size_t snappy_bound(const rq_codec *c, size_t raw_len)
{
    return c->snappy.bound(raw_len);
}

static rq_err snappy_chunk(rq_codec *c, rq_slice raw, uint8_t *out, size_t room, size_t *ret_len)
{
    *ret_len = room;
    return c->snappy.compress((const char *)raw.ptr, raw.len, (char *)out, ret_len) == SNAPPY_OK
               ? RQ_OK
               : RQ_E_NO_MEMORY;
}

static rq_err unsnappy_chunk(rq_codec *c, rq_slice packed, uint8_t *out, size_t room,
                             size_t *ret_len)
{
    const char *p = (const char *)packed.ptr;
    if (c->snappy.raw_len(p, packed.len, ret_len) != SNAPPY_OK || *ret_len > room ||
        c->snappy.decompress(p, packed.len, (char *)out, ret_len) != SNAPPY_OK)
        return RQ_E_MALFORMED;
    return RQ_OK;
}

const rq__chunks rq__chunks_snappy = {snappy_bound, snappy_chunk, unsnappy_chunk};
