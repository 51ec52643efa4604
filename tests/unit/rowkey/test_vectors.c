/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys, hashes and split keys made by HBase's own classes. tests/compat/rowkey/KeyOracle.java wrote
 * the files and describes their lines. Each key must be encoded to the same bytes, and decoding and
 * encoding must reproduce the bytes. Arguments: files.
 */
#include "rorqual/rowkey.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS_MAX = 16, KEY_MAX = 4096 };

static rq_failure why = {.size = sizeof why};

static void to_hex(const void *bytes, size_t len, char *out)
{
    if (len == 0) strcpy(out, "-");
    for (size_t i = 0; i < len; i++)
        sprintf(out + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
}

static size_t of_hex(const char *hex, unsigned char *out)
{
    size_t len = 0;
    unsigned byte;
    for (; sscanf(hex + 2 * len, "%2x", &byte) == 1; len++)
        out[len] = (unsigned char)byte;
    return len;
}

static bool wrong(const char *what, const char *expected, const char *got)
{
    printf("FAIL %s\n  HBase: %s\n  here:  %s\n", what, expected, got);
    return false;
}

/* "key FORMAT HEX VALUE…" */
static bool check_key(char **field, size_t count)
{
    static unsigned char key[KEY_MAX], again[KEY_MAX];
    static char hex[2 * KEY_MAX + 1];
    size_t len;
    rq_key_format *format;
    rq_key_values *values;
    if (rq_key_format_parse(field[1], &format, &why) != RQ_OK)
        return wrong(field[1], "", why.message);
    bool ok = rq_key_encode_text(format, (const char *const *)field + 3, count - 3, key, sizeof key,
                                 &len, &why) == RQ_OK;
    if (ok) to_hex(key, len, hex);
    ok = ok && strcmp(hex, field[2]) == 0;
    if (!ok) wrong(field[1], field[2], why.code != RQ_OK ? why.message : hex);
    len = field[2][0] == '-' ? 0 : of_hex(field[2], key);
    if (ok && rq_key_decode(format, rq_bytes_of(key, len), &values, &why) == RQ_OK) {
        size_t again_len;
        ok = rq_key_encode_text(format, values->texts, values->count, again, sizeof again,
                                &again_len, &why) == RQ_OK &&
             again_len == len && memcmp(again, key, len) == 0;
        if (!ok) wrong(field[1], "decoded values have the key again", values->texts[0]);
        rq_key_values_free(values);
    } else if (ok) {
        ok = wrong(field[1], field[2], why.message);
    }
    rq_key_format_free(format);
    return ok;
}

/* "md5 HEX DIGEST", "murmur3 HEX HASH": as prefix of a key */
static bool check_hash(char **field)
{
    static unsigned char bytes[KEY_MAX], key[KEY_MAX];
    char hex[2 * KEY_MAX + 1];
    size_t len = field[1][0] == '-' ? 0 : of_hex(field[1], bytes), width = strlen(field[2]) / 2,
           got;
    rq_key_format *format;
    rq_key_value value = rq_key_bytes(rq_bytes_of(bytes, len));
    if (rq_key_format_parse(width == 16 ? "md5(16) b:bytes" : "murmur3(4) b:bytes", &format,
                            &why) != RQ_OK ||
        rq_key_encode(format, &value, 1, key, sizeof key, &got, &why) != RQ_OK)
        return wrong(field[1], field[2], why.message);
    rq_key_format_free(format);
    to_hex(key, width, hex);
    return strcmp(hex, field[2]) == 0 || wrong(field[1], field[2], hex);
}

/* "split KIND REGIONS HEX,HEX…" */
static bool check_split(char **field)
{
    rq_split_kind kind = strcmp(field[1], "hex") == 0       ? RQ_SPLIT_HEX
                         : strcmp(field[1], "decimal") == 0 ? RQ_SPLIT_DECIMAL
                                                            : RQ_SPLIT_UNIFORM;
    rq_key_list *keys;
    if (rq_split_keys(kind, strtoul(field[2], NULL, 10), &keys, &why) != RQ_OK)
        return wrong(field[1], field[3], why.message);
    char *text = calloc(keys->count + 1, 32), *to = text;
    for (size_t i = 0; i < keys->count; i++) {
        if (i > 0) *to++ = ',';
        to_hex(keys->items[i].data, keys->items[i].len, to);
        to += strlen(to);
    }
    bool ok = strcmp(text, field[3]) == 0 || wrong(field[1], field[3], text);
    rq_key_list_free(keys);
    free(text);
    return ok;
}

static bool check_line(char *line)
{
    char *field[FIELDS_MAX] = {line};
    size_t count = 1;
    line[strcspn(line, "\n")] = '\0';
    for (char *tab = strchr(line, '\t'); tab != NULL && count < FIELDS_MAX;
         tab = strchr(tab + 1, '\t')) {
        *tab = '\0';
        field[count++] = tab + 1;
    }
    why.code = RQ_OK;
    if (strcmp(field[0], "key") == 0 && count >= 3) return check_key(field, count);
    if (strcmp(field[0], "split") == 0 && count == 4) return check_split(field);
    return count == 3 ? check_hash(field) : wrong(line, "a line of the oracle", "?");
}

static size_t check_file(const char *path, size_t *lines)
{
    char *line = NULL;
    size_t cap = 0, failed = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        printf("FAIL %s cannot be read\n", path);
        return 1;
    }
    while (getline(&line, &cap, f) > 0) {
        if (line[0] == '#') continue;
        ++*lines;
        failed += !check_line(line);
    }
    free(line);
    fclose(f);
    return failed;
}

int main(int argc, char **argv)
{
    size_t failed = 0, lines = 0;
    for (int i = 1; i < argc; i++)
        failed += check_file(argv[i], &lines);
    printf("%zu lines, %zu failed\n", lines, failed);
    return failed > 0 || lines == 0;
}
