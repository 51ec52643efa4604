/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual key: makes row keys of values, takes keys apart, judges formats and makes split keys; the
 * row-key toolkit of librorqual (rorqual/rowkey.h) on the command line. */
#include "base/buf.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "rorqual/rowkey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 32767

static const char help[] =
    "usage: rorqual key [--hex] [--json] FORMAT [VALUE...]\n"
    "       rorqual key --decode [--hex] [--json] FORMAT KEY...\n"
    "       rorqual key --lint FORMAT\n"
    "       rorqual key --splits REGIONS [--hex] [--json] FORMAT\n"
    "       rorqual key --splits REGIONS [--hex] [--json] --kind hex|decimal|uniform\n"
    "       rorqual key --splits REGIONS [--hex] [--json] --sample FILE\n"
    "\n"
    "  --decode               print the values of keys\n"
    "  --lint                 print advice on a format\n"
    "  --splits REGIONS       print the split keys of a table with REGIONS regions\n"
    "  --kind KIND            the split keys of HBase's HexStringSplit, DecimalStringSplit, "
    "UniformSplit\n"
    "  --sample FILE          split keys that divide a sample into equal parts: a line has a key\n"
    "                         and, optionally, a tab and its weight; - for standard input\n"
    "  --hex                  keys are hexadecimal digits; otherwise text with \\xNN\n"
    "  --json                 a JSON object on each line\n"
    "FORMAT has a word for each part: NAME:TYPE, a 'literal', or a part computed from the parts "
    "after\n"
    "it: salt(N), phoenix(N), md5(N), murmur3(N), xxh3(N).\n"
    "Types: u8 to u64, i8 to i64, f32 f64 bool uuid, s ms us ns msdigits,\n"
    "digits(N), text(N) bytes(N) text bytes, geohash(N), ob-i8 ... ob-num ob-text ob-blob "
    "ob-blobvar\n"
    "(HBase's OrderedBytes), raw-i8 ... raw-f64 (Bytes.toBytes); desc-, opt-, rev- before them.\n"
    "Fewer values than parts make a prefix. Times may be written 2022-12-31T23:59:59Z. Before "
    "values that\n"
    "begin with '-', write --.\n"
    "\n"
    "examples:\n"
    "  rorqual key 'salt(16) user:u64 time:desc-ms' 7 2022-12-31T23:59:59Z\n"
    "  rorqual key --splits 16 'salt(16) user:u64 time:desc-ms'\n"
    "exit codes: 0 success; 1 a wrong format, value or key; 2 wrong arguments\n";

typedef struct arguments {
    bool decode, lint, hex, json;
    const char *kind, *sample;
    uint64_t splits;
    char **words;
    int word_count;
    rq_failure why; /* of the last call */
} arguments;

/* --- keys as text ----------------------------------------------------------------------------- */

static void print_hex(rq_bytes key)
{
    const uint8_t *p = key.data;
    for (size_t i = 0; i < key.len; i++)
        printf("%02x", p[i]);
}

static void print_key(arguments *a, rq_bytes key)
{
    if (a->json) {
        rq__print_json_text("{", "key", rq_slice_of(key.data, key.len));
        fputs(",\"hex\":\"", stdout);
        print_hex(key);
        printf("\",\"length\":%zu}", key.len);
    } else if (a->hex) {
        print_hex(key);
    } else {
        rq__print_bytes(rq_slice_of(key.data, key.len));
    }
    putchar('\n');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* HBase's Bytes.toBytesBinary, or hexadecimal digits; in place. */
static bool read_key(arguments *a, char *text, size_t *ret_len)
{
    size_t n = 0, len = strlen(text);
    for (size_t i = 0; i < len; n++) {
        int high = a->hex ? hex_digit(text[i]) : -1;
        if (a->hex) {
            int low = hex_digit(text[i + 1]);
            if (high < 0 || low < 0) return false;
            text[n] = (char)(high << 4 | low);
            i += 2;
        } else if (text[i] == '\\' && text[i + 1] == 'x' && i + 3 < len &&
                   hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
            text[n] = (char)(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3]));
            i += 4;
        } else {
            text[n] = text[i++];
        }
    }
    *ret_len = n;
    return true;
}

static int fail(const arguments *a)
{
    fprintf(stderr, "rorqual key: %s\n", a->why.message);
    return 1;
}

/* --- the verbs -------------------------------------------------------------------------------- */

static int encode(arguments *a, const rq_key_format *format)
{
    uint8_t key[KEY_MAX];
    size_t len;
    if (rq_key_encode_text(format, (const char *const *)a->words + 1, (size_t)a->word_count - 1,
                           key, sizeof key, &len, &a->why) != RQ_OK)
        return fail(a);
    print_key(a, (rq_bytes){key, len});
    return 0;
}

static void print_values(arguments *a, const rq_key_format *format, const rq_key_values *v)
{
    for (size_t i = 0; i < v->count; i++) {
        rq_key_part part = {.size = sizeof part};
        if (rq_key_part_at(format, i, &part, NULL) != RQ_OK) return;
        if (a->json)
            rq__print_json_text(i == 0 ? "{" : ",", part.name, rq_slice_cstr(v->texts[i]));
        else
            printf("%s%s=%s", i == 0 ? "" : " ", part.name, v->texts[i]);
    }
    puts(a->json ? "}" : "");
}

static int decode(arguments *a, const rq_key_format *format)
{
    int code = 0;
    for (int i = 1; i < a->word_count; i++) {
        size_t len;
        rq_key_values *values;
        if (!read_key(a, a->words[i], &len))
            return rq__refuse("key", "%s: not hexadecimal digits", a->words[i]);
        if (rq_key_decode(format, (rq_bytes){a->words[i], len}, &values, &a->why) != RQ_OK) {
            code = fail(a);
            continue;
        }
        print_values(a, format, values);
        rq_key_values_free(values);
    }
    return code;
}

static int lint(arguments *a, const rq_key_format *format)
{
    rq_names *advice;
    if (rq_key_lint(format, &advice, &a->why) != RQ_OK) return fail(a);
    for (size_t i = 0; i < advice->count; i++)
        puts(advice->items[i]);
    rq_names_free(advice);
    return 0;
}

static int print_splits(arguments *a, rq_err rc, rq_key_list *const *made)
{
    rq_key_list *keys = *made;
    if (rc != RQ_OK) return fail(a);
    for (size_t i = 0; i < keys->count; i++)
        print_key(a, keys->items[i]);
    if (keys->count + 1 < a->splits)
        fprintf(stderr, "rorqual key: only %zu regions, because there are too few different keys\n",
                keys->count + 1);
    rq_key_list_free(keys);
    return 0;
}

static int split_by_kind(arguments *a)
{
    static const char *const names[] = {
        [RQ_SPLIT_HEX] = "hex", [RQ_SPLIT_DECIMAL] = "decimal", [RQ_SPLIT_UNIFORM] = "uniform"};
    for (unsigned i = 0; i < RQ_ARRAY_LEN(names); i++) {
        rq_key_list *keys = NULL;
        if (strcmp(names[i], a->kind) != 0) continue;
        rq_err rc = rq_split_keys((rq_split_kind)i, a->splits, &keys, &a->why);
        return print_splits(a, rc, &keys);
    }
    return rq__refuse("key", "--kind %s: neither hex, decimal nor uniform", a->kind);
}

/* --- samples ---------------------------------------------------------------------------------- */

typedef struct sample {
    rq_buf bytes;   /* the keys, one after the other */
    rq_buf lengths; /* size_t each */
    rq_buf weights; /* uint64_t each */
    size_t count;
} sample;

/* "KEY" or "KEY<tab>WEIGHT" */
static rq_err take_line(arguments *a, char *line, sample *s)
{
    uint64_t weight = 1;
    size_t len;
    line[strcspn(line, "\n")] = '\0';
    char *tab = strchr(line, '\t');
    if (tab != NULL) *tab++ = '\0';
    if ((tab != NULL && !rq__arg_number(tab, &weight)) || !read_key(a, line, &len) || len == 0)
        return RQ_E_INVALID;
    RQ_TRY(rq_buf_append(&s->bytes, line, len));
    RQ_TRY(rq_buf_append(&s->lengths, &len, sizeof len));
    RQ_TRY(rq_buf_append(&s->weights, &weight, sizeof weight));
    s->count++;
    return RQ_OK;
}

static int read_sample(arguments *a, sample *s)
{
    char *line = NULL;
    size_t cap = 0;
    int code = 0;
    FILE *f = strcmp(a->sample, "-") == 0 ? stdin : fopen(a->sample, "r");
    if (f == NULL) {
        fprintf(stderr, "rorqual key: %s: %m\n", a->sample);
        return 1;
    }
    while (code == 0 && getline(&line, &cap, f) > 0) {
        if (take_line(a, line, s) == RQ_OK) continue;
        fprintf(stderr, "rorqual key: %s: line %zu is not KEY or KEY<tab>WEIGHT\n", a->sample,
                s->count + 1);
        code = 1;
    }
    free(line);
    if (f != stdin) fclose(f);
    return code;
}

static int split_by_sample(arguments *a)
{
    sample s = {0};
    rq_key_list *keys = NULL;
    int code = read_sample(a, &s);
    rq_bytes *items = calloc(s.count + 1, sizeof *items);
    if (code == 0 && items == NULL) code = 1;
    const uint8_t *at = s.bytes.ptr;
    for (size_t i = 0; i < s.count && code == 0; i++) {
        items[i] = (rq_bytes){at, ((const size_t *)(const void *)s.lengths.ptr)[i]};
        at += items[i].len;
    }
    if (code == 0)
        code = print_splits(a,
                            rq_split_sample(items, (const uint64_t *)(const void *)s.weights.ptr,
                                            s.count, a->splits, &keys, &a->why),
                            &keys);
    rq_buf_clear(&s.bytes);
    rq_buf_clear(&s.lengths);
    rq_buf_clear(&s.weights);
    free(items);
    return code;
}

/* --- arguments -------------------------------------------------------------------------------- */

/* Exit code; -1: go on. */
static int parse(arguments *a, int argc, char **argv)
{
    const rq__option options[] = {{"decode", .flag = &a->decode},   {"lint", .flag = &a->lint},
                                  {"splits", .number = &a->splits}, {"kind", .text = &a->kind},
                                  {"sample", .text = &a->sample},   {"hex", .flag = &a->hex},
                                  {"json", .flag = &a->json}};
    int code = rq__parse_options("key", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    a->words = argv + optind;
    a->word_count = argc - optind;
    bool has_format = a->kind == NULL && a->sample == NULL;
    if (!has_format && a->splits == 0)
        return rq__refuse("key", "--kind and --sample need --splits");
    if (a->kind != NULL && a->sample != NULL)
        return rq__refuse("key", "--kind and --sample exclude each other");
    if (has_format != (a->word_count > 0))
        return rq__refuse("key", has_format ? "expected a format"
                                            : "--kind and --sample exclude a format");
    if (a->decode + a->lint + (a->splits > 0) > 1)
        return rq__refuse("key", "--decode, --lint and --splits exclude each other");
    if (a->decode && a->word_count < 2) return rq__refuse("key", "expected a key");
    if ((a->lint || a->splits > 0) && a->word_count > 1)
        return rq__refuse("key", "unknown argument '%s'; a format is one argument", a->words[1]);
    return -1;
}

static int run(arguments *a)
{
    rq_key_format *format;
    rq_key_list *keys = NULL;
    if (a->kind != NULL) return split_by_kind(a);
    if (a->sample != NULL) return split_by_sample(a);
    if (rq_key_format_parse(a->words[0], &format, &a->why) != RQ_OK) return fail(a);
    int code = a->decode ? decode(a, format)
               : a->lint ? lint(a, format)
               : a->splits > 0
                   ? print_splits(a, rq_split_format(format, a->splits, &keys, &a->why), &keys)
                   : encode(a, format);
    rq_key_format_free(format);
    return code;
}

int rq__cmd_key(int argc, char **argv)
{
    arguments a = {.why = {.size = sizeof a.why}};
    int code = parse(&a, argc, argv);
    if (code < 0) code = run(&a);
    return fflush(stdout) == 0 ? code : 1;
}
