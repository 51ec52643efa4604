/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and keys: the input's first line is a format, the rest a key. If a key can be decoded,
 * its values, and their texts, must encode to the same key. An input that begins with FF is a
 * column of OpenTSDB: the qualifier's length, qualifier and value. */
#include "rowkey/tsdb_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const rq_key_format *format, rq_bytes key)
{
    static uint8_t again[40000];
    size_t len;
    rq_key_values *values;
    if (rq_key_decode(format, key, &values, NULL) != RQ_OK) return;
    RQ_ASSERT(rq_key_encode_text(format, values->texts, values->count, again, sizeof again, &len,
                                 NULL) == RQ_OK);
    RQ_ASSERT(len == key.len && (len == 0 || memcmp(again, key.data, len) == 0));
    rq_key_values_free(values);
}

static rq_err take_value(void *ctx, const rq_tsdb_value *value)
{
    (void)ctx;
    RQ_ASSERT(value->time_ms >= 0);
    return RQ_OK;
}

static void check_column(const uint8_t *data, size_t size)
{
    size_t len = size < 2 ? 0 : data[1];
    if (size < 2 || len > size - 2) return;
    rq_err rc =
        rq__tsdb_decode(rq_slice_of(data + 2, len), rq_slice_of(data + 2 + len, size - 2 - len), 0,
                        take_value, NULL, NULL);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_MALFORMED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    rq_key_format *format;
    rq_names *advice;
    rq_key_list *keys;
    if (size > 0 && data[0] == 0xff) {
        check_column(data, size);
        return 0;
    }
    const uint8_t *line = size == 0 ? NULL : memchr(data, '\n', size);
    if (line == NULL || (size_t)(line - data) >= sizeof text) return 0;
    memcpy(text, data, (size_t)(line - data));
    text[line - data] = '\0';
    if (rq_key_format_parse(text, &format, NULL) != RQ_OK) return 0;
    check_key(format, (rq_bytes){line + 1, size - 1 - (size_t)(line - data)});
    if (rq_key_lint(format, &advice, NULL) == RQ_OK) rq_names_free(advice);
    if (rq_split_format(format, 20, &keys, NULL) == RQ_OK) rq_key_list_free(keys);
    rq_key_format_free(format);
    return 0;
}
