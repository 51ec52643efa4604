/* SPDX-License-Identifier: Apache-2.0 */
/* See hashdir.h. */
#include "transfer/hashdir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MANIFEST_BYTES_MAX ((size_t)1024 * 1024)
#define FILES_MAX 1000000
#define INDEX_INTERVAL 128 /* HADOOP: io.map.index.interval */

/* --- Java's properties ------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes \uNNNN below 0x80; HashTable writes no others there. */
static bool take_unicode(const char *at, char *ret)
{
    int n = 0;
    for (size_t i = 0; i < 4; i++) {
        if (hex_digit(at[i]) < 0) return false;
        n = n << 4 | hex_digit(at[i]);
    }
    *ret = (char)n;
    return n > 0 && n < 0x80;
}

/* Removes escapes in place, up to a blank, '=' or ':' (is_key) or to the end. Returns the rest of
 * the text; NULL: malformed. */
static char *unescape(char *at, bool is_key)
{
    char *out = at;
    while (*at != '\0' && !(is_key && (is_blank(*at) || *at == '=' || *at == ':'))) {
        if (*at != '\\') {
            *out++ = *at++;
        } else if (at[1] == 'u') {
            if (!take_unicode(at + 2, out++)) return NULL;
            at += 6;
        } else if (at[1] == '\0') {
            return NULL; /* a line that goes on: HashTable writes none */
        } else {
            *out++ = at[1] == 't' ? '\t' : at[1] == 'n' ? '\n' : at[1] == 'r' ? '\r' : at[1];
            at += 2;
        }
    }
    char *rest = *at == '\0' ? at : at + 1;
    bool seen = *at == '=' || *at == ':';
    *out = '\0';
    while (is_key && (is_blank(*rest) || (!seen && (*rest == '=' || *rest == ':'))))
        seen |= !is_blank(*rest++);
    return rest;
}

static bool take_hex(const char *text, rq_arena *arena, rq_slice *ret)
{
    size_t len = strlen(text);
    uint8_t *bytes = rq_arena_alloc(arena, len / 2 + 1);
    if (bytes == NULL || len % 2 != 0) return false;
    for (size_t i = 0; i < len / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret = rq_slice_of(bytes, len / 2);
    return true;
}

static bool take_number(const char *text, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *ret <= INT64_MAX;
}

static bool take_property(rq__hash_manifest *m, char *name, char *value, rq_arena *arena)
{
    uint64_t n = 0;
    if (strcmp(name, "table") == 0) {
        m->table = value;
    } else if (strcmp(name, "columnFamilies") == 0) {
        m->families = value;
    } else if (strcmp(name, "targetBatchSize") == 0) {
        return take_number(value, &m->batch_bytes);
    } else if (strcmp(name, "numHashFiles") == 0) {
        return take_number(value, &m->files) && m->files <= FILES_MAX;
    } else if (strcmp(name, "scanBatch") == 0) {
        return take_number(value, &m->scan_batch);
    } else if (strcmp(name, "versions") == 0) {
        return take_number(value, &m->versions);
    } else if (strcmp(name, "startTimestamp") == 0) {
        if (!take_number(value, &n)) return false;
        m->from_ms = (int64_t)n;
    } else if (strcmp(name, "endTimestamp") == 0) {
        if (!take_number(value, &n)) return false;
        m->to_ms = (int64_t)n;
    } else if (strcmp(name, "startRowHex") == 0) {
        return take_hex(value, arena, &m->start);
    } else if (strcmp(name, "stopRowHex") == 0) {
        return take_hex(value, arena, &m->stop);
    } else if (strcmp(name, "rawScan") == 0) {
        m->is_raw = strcmp(value, "true") == 0;
    }
    return true;
}

static rq_err take_line(rq__hash_manifest *m, char *line, rq_arena *arena, rq_error *why)
{
    while (is_blank(*line))
        line++;
    if (*line == '\0' || *line == '#' || *line == '!') return RQ_OK;
    char *value = unescape(line, true);
    if (value == NULL || unescape(value, false) == NULL || !take_property(m, line, value, arena))
        return rq_fail(why, RQ_E_CORRUPT, "the manifest's line '%.100s' is damaged", line);
    if (strcmp(line, "hashAlgorithm") == 0 && strcmp(value, "MD5") != 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "hash type %.40s is not supported, only MD5", value);
    return RQ_OK;
}

rq_err rq__hash_manifest_parse(rq_slice text, rq_arena *arena, rq__hash_manifest *ret,
                               rq_error *why)
{
    *ret = (rq__hash_manifest){0};
    if (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)
        return rq_fail(why, RQ_E_CORRUPT, "the manifest is damaged: it contains a zero byte");
    char *line = rq_arena_cstr(arena, text);
    if (line == NULL) return rq_no_memory(why);
    while (line != NULL) {
        char *end = strpbrk(line, "\r\n");
        if (end != NULL) *end = '\0';
        RQ_TRY(take_line(ret, line, arena, why));
        line = end == NULL ? NULL : end + 1;
    }
    if (ret->table == NULL || ret->batch_bytes == 0 || ret->files == 0)
        return rq_fail(why, RQ_E_CORRUPT,
                       "the manifest lacks table, targetBatchSize or numHashFiles");
    return RQ_OK;
}

rq_err rq__hash_manifest_read(rq_vfs *v, rq_arena *arena, rq__hash_manifest *ret, rq_error *why)
{
    rq_slice text;
    RQ_TRY(rq_vfs_read_file(v, "manifest", MANIFEST_BYTES_MAX, arena, &text, why));
    return rq__hash_manifest_parse(text, arena, ret, why);
}

/* --- writing the manifest --------------------------------------------------------------------- */

static rq_err put_text(rq_buf *b, const char *name, const char *value)
{
    RQ_TRY(rq_buf_printf(b, "%s=", name));
    for (const char *at = value; *at != '\0'; at++) {
        if (strchr(":=#!\\", *at) != NULL || (at == value && *at == ' '))
            RQ_TRY(rq_buf_append_u8(b, '\\'));
        RQ_TRY(rq_buf_append_u8(b, (uint8_t)*at));
    }
    return rq_buf_append_u8(b, '\n');
}

static rq_err put_hex(rq_buf *b, const char *name, rq_slice value)
{
    if (value.len == 0) return RQ_OK;
    RQ_TRY(rq_buf_printf(b, "%s=", name));
    for (size_t i = 0; i < value.len; i++)
        RQ_TRY(rq_buf_printf(b, "%02x", value.ptr[i]));
    return rq_buf_append_u8(b, '\n');
}

static rq_err put_number(rq_buf *b, const char *name, uint64_t n)
{
    return n == 0 ? RQ_OK : rq_buf_printf(b, "%s=%" PRIu64 "\n", name, n);
}

static rq_err put_manifest(rq_buf *b, const rq__hash_manifest *m)
{
    RQ_TRY(put_text(b, "table", m->table));
    if (m->families != NULL) RQ_TRY(put_text(b, "columnFamilies", m->families));
    RQ_TRY(put_number(b, "targetBatchSize", m->batch_bytes));
    RQ_TRY(put_number(b, "numHashFiles", m->files));
    RQ_TRY(put_hex(b, "startRowHex", m->start));
    RQ_TRY(put_hex(b, "stopRowHex", m->stop));
    RQ_TRY(put_number(b, "scanBatch", m->scan_batch));
    RQ_TRY(put_number(b, "versions", m->versions));
    RQ_TRY(put_number(b, "startTimestamp", (uint64_t)m->from_ms));
    RQ_TRY(put_number(b, "endTimestamp", (uint64_t)m->to_ms));
    RQ_TRY(put_text(b, "rawScan", m->is_raw ? "true" : "false"));
    return put_text(b, "hashAlgorithm", "MD5");
}

rq_err rq__hash_manifest_write(rq_vfs *v, const rq__hash_manifest *m, rq_error *why)
{
    rq_buf b = {0};
    rq_err rc = put_manifest(&b, m) == RQ_OK ? rq__put_file(v, "manifest", rq_buf_slice(&b), why)
                                             : rq_no_memory(why);
    rq_buf_clear(&b);
    return rc;
}

rq_transfer_scan rq__hash_manifest_scan(const rq__hash_manifest *m)
{
    return (rq_transfer_scan){.start = m->start,
                              .stop = m->stop,
                              .versions = m->versions,
                              .from_ms = m->from_ms,
                              .to_ms = m->to_ms,
                              .is_raw = m->is_raw,
                              .batch = m->scan_batch,
                              .columns = m->families};
}

/* --- SequenceFiles ---------------------------------------------------------------------------- */

rq_err rq__hash_partitions_write(rq_vfs *v, const rq_slice *rows, size_t count, rq_error *why)
{
    rq__seq_writer w;
    rq_err rc = rq__seq_writer_open(v, "partitions", RQ__CLASS_NULL, &w, why);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        rc = rq__seq_append(&w, rows[i], (rq_slice){0}, why);
    if (rc == RQ_OK) rc = rq__seq_writer_finish(&w, why);
    rq__seq_writer_close(&w);
    return rc;
}

rq_err rq__map_writer_open(rq_vfs *v, size_t i, rq__map_writer *ret, rq_error *why)
{
    char path[64];
    *ret = (rq__map_writer){0};
    snprintf(path, sizeof path, "hashes/part-r-%05zu", i);
    RQ_TRY(rq_vfs_mkdirs(v, path, why));
    snprintf(path, sizeof path, "hashes/part-r-%05zu/data", i);
    RQ_TRY(rq__seq_writer_open(v, path, RQ__CLASS_BYTES, &ret->data, why));
    snprintf(path, sizeof path, "hashes/part-r-%05zu/index", i);
    return rq__seq_writer_open(v, path, RQ__CLASS_LONG, &ret->index, why);
}

rq_err rq__map_append(rq__map_writer *w, rq_slice key, const uint8_t hash[RQ__HASH_LEN],
                      rq_error *why)
{
    uint8_t value[4 + RQ__HASH_LEN], position[8];
    if (w->count++ % INDEX_INTERVAL == 0) {
        rq_put_be64(position, rq__out_len(&w->data.out));
        RQ_TRY(rq__seq_append(&w->index, key, rq_slice_of(position, sizeof position), why));
    }
    rq_put_be32(value, RQ__HASH_LEN);
    memcpy(value + 4, hash, RQ__HASH_LEN);
    return rq__seq_append(&w->data, key, rq_slice_of(value, sizeof value), why);
}

rq_err rq__map_writer_finish(rq__map_writer *w, rq_error *why)
{
    RQ_TRY(rq__seq_writer_finish(&w->data, why));
    return rq__seq_writer_finish(&w->index, why);
}

void rq__map_writer_close(rq__map_writer *w)
{
    rq__seq_writer_close(&w->data);
    rq__seq_writer_close(&w->index);
}

void rq__hash_reader_init(rq_vfs *v, uint64_t files, rq__hash_place from, rq__hash_reader *ret)
{
    *ret = (rq__hash_reader){.vfs = v, .files = files, .file = from.file, .seq.start = from.offset};
}

void rq__hash_reader_close(rq__hash_reader *r)
{
    if (r->is_open) rq__seq_reader_close(&r->seq);
    r->is_open = false;
}

/* Files of blocks can be positioned only at the beginning of a block: the caller skips the rest. */
static rq_err open_file(rq__hash_reader *r, rq_error *why)
{
    uint64_t offset = r->seq.start;
    snprintf(r->path, sizeof r->path, "hashes/part-r-%05" PRIu64 "/data", r->file);
    r->is_open = true;
    RQ_TRY(rq__seq_reader_open(r->vfs, r->path, RQ__CLASS_BYTES, &r->seq, why));
    if (offset > r->seq.header_end) rq__in_seek(&r->seq.in, offset);
    return RQ_OK;
}

rq_err rq__hash_next(rq__hash_reader *r, rq_slice *ret_key, uint8_t ret_hash[RQ__HASH_LEN],
                     rq__hash_place *ret_place, rq_error *why)
{
    for (; r->file < r->files; r->file++) {
        rq_slice value;
        if (!r->is_open) RQ_TRY(open_file(r, why));
        rq_err rc = rq__seq_next(&r->seq, UINT64_MAX, ret_key, &value, why);
        if (rc == RQ_E_END) {
            rq__hash_reader_close(r);
            r->seq.start = 0;
            continue;
        }
        RQ_TRY(rc);
        if (value.len != 4 + RQ__HASH_LEN || rq_get_be32(value.ptr) != RQ__HASH_LEN)
            return rq_fail(why, RQ_E_CORRUPT, "%s: a hash does not have %d bytes", r->path,
                           RQ__HASH_LEN);
        memcpy(ret_hash, value.ptr + 4, RQ__HASH_LEN);
        *ret_place = (rq__hash_place){r->file, r->seq.start};
        return RQ_OK;
    }
    return RQ_E_END;
}
