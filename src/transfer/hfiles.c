/* SPDX-License-Identifier: Apache-2.0 */
/* See hfiles.h. */
#include "transfer/hfiles.h"

#include "base/clock.h"
#include "base/hmac.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_BYTES_MAX (UINT64_C(10) << 30) /* HBASE: hbase.hregion.max.filesize */
#define PATH_BYTES 1024

static int64_t now_ms(void)
{
    return (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
}

static rq_hfile_options options_of(const rq_family_schema *f)
{
    rq_hfile_options o = rq_hfile_options_default();
    o.compression = f->compression;
    o.encoding = f->encoding;
    o.block_bytes = f->block_bytes;
    o.bloom = f->bloom;
    o.bloom_prefix_len = f->bloom_prefix_len;
    o.create_time_ms = now_ms();
    return o;
}

/* 32 hexadecimal digits, as a store file's name. Other processes, on other machines too, may make files of the same
 * family at the same time. */
static rq_err make_name(char ret[33], rq_error *why)
{
    uint8_t random[16];
    if (rq_unguessable(random, sizeof random) != RQ_OK)
        return rq_fail(why, RQ_E_IO, "cannot get random numbers from the system for a file's name");
    snprintf(ret, 33, "%016" PRIx64 "%016" PRIx64, rq_get_be64(random), rq_get_be64(random + 8));
    return RQ_OK;
}

rq_err rq__hfile_begin_at(rq_vfs *v, const char *path, const rq_family_schema *f,
                          rq_hfile_writer **ret, rq_error *why)
{
    uint8_t time[8];
    rq_hfile_options o = options_of(f);
    RQ_TRY(rq_compression_check(o.compression, why));
    RQ_TRY(rq_hfile_writer_open(v, path, &o, ret, why));
    rq_put_be64(time, (uint64_t)now_ms());
    return rq_hfile_writer_append_file_info(*ret, RQ_SLICE_LIT("BULKLOAD_TIMESTAMP"),
                                            rq_slice_of(time, sizeof time), why);
}

/* With a new name, in the family's folder. */
static rq_err begin(rq__hfiles *h, size_t family, rq_error *why)
{
    char path[PATH_BYTES], name[33];
    const rq_family_schema *f = &h->schema->families[family];
    int len = snprintf(path, sizeof path, "%s%s%.*s", h->folder, h->folder[0] == '\0' ? "" : "/",
                       (int)f->name.len, (const char *)f->name.ptr);
    RQ_TRY(rq_vfs_mkdirs(h->vfs, path, why));
    RQ_TRY(make_name(name, why));
    snprintf(path + len, sizeof path - (size_t)len, "/%s", name);
    return rq__hfile_begin_at(h->vfs, path, f, &h->writers[family], why);
}

static rq_err finish(rq__hfiles *h, size_t family, rq_error *why)
{
    rq_hfile_writer *w = h->writers[family];
    if (w == NULL) return RQ_OK;
    rq_err rc = rq_hfile_writer_finish(w, NULL, why);
    rq_hfile_writer_close(w);
    h->writers[family] = NULL;
    h->files += rc == RQ_OK;
    return rc;
}

static rq_err finish_all(rq__hfiles *h, rq_error *why)
{
    for (size_t i = 0; h->writers != NULL && i < h->schema->family_count; i++)
        RQ_TRY(finish(h, i, why));
    return RQ_OK;
}

void rq__hfiles_clear(rq__hfiles *h)
{
    for (size_t i = 0; h->writers != NULL && i < h->schema->family_count; i++)
        rq_hfile_writer_close(h->writers[i]);
    free(h->writers);
    h->writers = NULL;
}

/* Moves to the region that has the row; files of earlier regions are complete. */
static rq_err enter_range(rq__hfiles *h, const rq_cell *c, rq_error *why)
{
    bool moved = false;
    while (h->range + 1 < h->range_count &&
           rq_slice_compare(rq_cell_row(c), h->ranges[h->range + 1].start) >= 0) {
        h->range++;
        moved = true;
    }
    return moved ? finish_all(h, why) : RQ_OK;
}

static rq_err find_family(const rq__hfiles *h, const rq_cell *c, size_t *ret, rq_error *why)
{
    const rq_table_schema *t = h->schema;
    for (size_t i = 0; i < t->family_count; i++)
        if (rq_slice_eq(t->families[i].name, rq_cell_family(c))) {
            *ret = i;
            return RQ_OK;
        }
    return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "table %.*s has no column family %.*s",
                   (int)t->name.len, (const char *)t->name.ptr, c->family_len,
                   (const char *)c->family);
}

/* Cells of one row may go to two files, of which none is larger than the others of the store. */
static rq_err roll(rq__hfiles *h, size_t family, rq_error *why)
{
    rq_hfile_writer *w = h->writers[family];
    return w != NULL && rq_hfile_writer_bytes(w) > FILE_BYTES_MAX ? finish(h, family, why) : RQ_OK;
}

rq_err rq__hfiles_put(void *ctx, const rq_cell *c, rq_error *why)
{
    rq__hfiles *h = ctx;
    size_t family = 0;
    if (h->writers == NULL) h->writers = calloc(h->schema->family_count, sizeof *h->writers);
    if (h->writers == NULL) return rq_no_memory(why);
    RQ_TRY(find_family(h, c, &family, why));
    RQ_TRY(enter_range(h, c, why));
    RQ_TRY(roll(h, family, why));
    if (h->writers[family] == NULL) RQ_TRY(begin(h, family, why));
    h->cells++;
    return rq_hfile_writer_append(h->writers[family], c, why);
}

rq_err rq__hfiles_end(rq__hfiles *h, rq_error *why)
{
    return finish_all(h, why);
}
