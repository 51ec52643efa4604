/* SPDX-License-Identifier: Apache-2.0 */
/* Which library a form needs, and its loading; contract in libraries.h. */
#include "compress/libraries.h"

#ifdef RQ_LIBRARIES_LINKED

static rq_err load(rq_form form, rq__library_table *ret, rq_error *why)
{
    (void)why;
    switch (form) {
    case RQ_FORM_BZIP2:
        ret->bzip2 = (__typeof__(ret->bzip2)){RQ__BZIP2_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    case RQ_FORM_LZ4_BLOCKS:
        ret->lz4 = (__typeof__(ret->lz4)){RQ__LZ4_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    case RQ_FORM_LZO_BLOCKS:
        ret->lzo = (__typeof__(ret->lzo)){RQ__LZO_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    case RQ_FORM_SNAPPY_BLOCKS:
        ret->snappy = (__typeof__(ret->snappy)){RQ__SNAPPY_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    case RQ_FORM_ZLIB:
    case RQ_FORM_GZIP:
        ret->zlib = (__typeof__(ret->zlib)){RQ__ZLIB_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    case RQ_FORM_ZSTD:
    case RQ_FORM_ZSTD_BLOCKS:
        ret->zstd = (__typeof__(ret->zstd)){RQ__ZSTD_FUNCTIONS(RQ_LIBRARY_LINKED)};
        break;
    default:
        break;
    }
    return RQ_OK;
}

#else

static const char *const bzip2_names[] = {RQ__BZIP2_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const lz4_names[] = {RQ__LZ4_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const lzo_names[] = {RQ__LZO_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const snappy_names[] = {RQ__SNAPPY_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const zlib_names[] = {RQ__ZLIB_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
static const char *const zstd_names[] = {RQ__ZSTD_FUNCTIONS(RQ_LIBRARY_NAME) NULL};

static const rq_library bzip2 = {"bzip2",
                                 {"libbz2.so.1.0", "libbz2.so.1"},
                                 bzip2_names}, /* Debian's; others' */
    lz4 = {"LZ4", {"liblz4.so.1"}, lz4_names}, lzo = {"LZO", {"liblzo2.so.2"}, lzo_names},
                        snappy = {"Snappy", {"libsnappy.so.1"}, snappy_names},
                        zlib = {"zlib", {"libz.so.1"}, zlib_names},
                        zstd = {"zstd", {"libzstd.so.1"}, zstd_names};

static const rq_library *const libraries[] = {
    [RQ_FORM_BZIP2] = &bzip2,      [RQ_FORM_LZ4_BLOCKS] = &lz4,
    [RQ_FORM_LZO_BLOCKS] = &lzo,   [RQ_FORM_SNAPPY_BLOCKS] = &snappy,
    [RQ_FORM_ZSTD_BLOCKS] = &zstd, [RQ_FORM_ZSTD] = &zstd,
    [RQ_FORM_ZLIB] = &zlib,        [RQ_FORM_GZIP] = &zlib,
};

static rq_err load(rq_form form, rq__library_table *ret, rq_error *why)
{
    bool needs_one = (size_t)form < RQ_ARRAY_LEN(libraries) && libraries[form] != NULL;
    return needs_one ? rq_library_load(libraries[form], ret, why) : RQ_OK;
}

#endif

/* What lzo_init() of its header does, by the loaded function: checks that the library's types are the header's. */
static bool lzo_fits(const rq__library_table *t)
{
    return t->lzo.__lzo_init_v2(LZO_VERSION, (int)sizeof(short), (int)sizeof(int),
                                (int)sizeof(long), (int)sizeof(lzo_uint32_t), (int)sizeof(lzo_uint),
                                (int)lzo_sizeof_dict_t, (int)sizeof(char *), (int)sizeof(lzo_voidp),
                                (int)sizeof(lzo_callback_t)) == LZO_E_OK;
}

rq_err rq__form_load(rq_form form, rq__library_table *ret, rq_error *why)
{
    RQ_TRY(load(form, ret, why));
    if (form == RQ_FORM_LZO_BLOCKS && !lzo_fits(ret))
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "liblzo2 has a different version than the header Rorqual was built with");
    return RQ_OK;
}
