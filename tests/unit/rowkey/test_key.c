/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and keys by random values: the bytes have the order of the values, decoding inverts
 * encoding, and invalid values are refused. */
#include "../api/api_test.h"

#include "rorqual/rowkey.h"

#include <math.h>
#include <time.h>

static rq_failure why = {.size = sizeof why};
static uint64_t state;

static uint64_t chance(void) /* splitmix64 */
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return chance() % n;
}

/* Many small, many large, many equal numbers. */
static uint64_t natural(unsigned bits)
{
    uint64_t v = chance() >> below(64);
    if (below(4) == 0) v = below(3);
    if (below(8) == 0) v = UINT64_MAX - below(3);
    return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

/* --- single parts ----------------------------------------------------------------------------- */

typedef enum draw {
    DRAW_UINT,
    DRAW_INT,
    DRAW_REAL,
    DRAW_BOOL,
    DRAW_BYTES,
    DRAW_TEXT,
    DRAW_HASH
} draw;

typedef struct kind {
    const char *type;
    draw draw;
    unsigned bits; /* bits of numbers; length of fixed bytes and texts, 0: any */
} kind;

static const kind kinds[] = {
    {"u8", DRAW_UINT, 8},
    {"u24", DRAW_UINT, 24},
    {"u64", DRAW_UINT, 64},
    {"i8", DRAW_INT, 8},
    {"i16", DRAW_INT, 16},
    {"i40", DRAW_INT, 40},
    {"i64", DRAW_INT, 64},
    {"f32", DRAW_REAL, 32},
    {"f64", DRAW_REAL, 64},
    {"bool", DRAW_BOOL, 1},
    {"uuid", DRAW_BYTES, 16},
    {"s", DRAW_UINT, 32},
    {"ms", DRAW_UINT, 63},
    {"us", DRAW_UINT, 63},
    {"ns", DRAW_UINT, 63},
    {"msdigits", DRAW_UINT, 63},
    {"digits(19)", DRAW_UINT, 63},
    {"digits(5)", DRAW_UINT, 16},
    {"text(6)", DRAW_TEXT, 6},
    {"bytes(3)", DRAW_BYTES, 3},
    {"text", DRAW_TEXT, 0},
    {"bytes", DRAW_BYTES, 0},
    {"geohash(5)", DRAW_HASH, 5},
    {"ob-i8", DRAW_INT, 8},
    {"ob-i16", DRAW_INT, 16},
    {"ob-i32", DRAW_INT, 32},
    {"ob-i64", DRAW_INT, 64},
    {"ob-f32", DRAW_REAL, 32},
    {"ob-f64", DRAW_REAL, 64},
    {"ob-num", DRAW_INT, 64},
    {"ob-num", DRAW_REAL, 64},
    {"ob-text", DRAW_TEXT, 0},
    {"ob-blobvar", DRAW_BYTES, 0},
    {"opt-u16", DRAW_UINT, 16},
    {"opt-f64", DRAW_REAL, 64},
    {"opt-bytes", DRAW_BYTES, 0},
    {"opt-text", DRAW_TEXT, 0},
    {"opt-bool", DRAW_BOOL, 1},
    {"opt-ms", DRAW_UINT, 63},
    {"opt-uuid", DRAW_BYTES, 16},
    {"opt-digits(5)", DRAW_UINT, 16},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], BYTES_MAX = 24 };

typedef struct value {
    rq_key_value v;
    unsigned char bytes[BYTES_MAX];
} value;

static double real(unsigned bits)
{
    static const double edges[] = {0.0, -0.0, 1, -1, 1e-30, -1e30, INFINITY, -INFINITY, NAN, 0.5};
    union {
        uint64_t u;
        double d;
    } x = {.u = chance()};
    double d = below(3) == 0   ? edges[below(10)]
               : below(2) == 0 ? x.d
                               : (double)(int64_t)below(200) - 100;
    if (isnan(d)) return NAN;
    return bits == 32 ? (double)(float)d : d;
}

static void draw_bytes(const kind *k, value *ret)
{
    static const char letters[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    size_t len = k->bits != 0 ? k->bits : below(5);
    if (k->draw == DRAW_TEXT && k->bits != 0) len = below(k->bits + 1);
    for (size_t i = 0; i < len; i++) {
        static const unsigned char some[] = {0, 1, 2, 0xfe, 0xff, 'a', 'b', 0x80};
        ret->bytes[i] = some[below(8)];
        if (k->draw == DRAW_TEXT && ret->bytes[i] == 0) ret->bytes[i] = 3;
        if (k->draw == DRAW_HASH) ret->bytes[i] = (unsigned char)letters[below(32)];
    }
    ret->v = rq_key_bytes(rq_bytes_of(ret->bytes, len));
}

static bool is_nullable(const kind *k)
{
    static const char *const begin[] = {"opt-", "ob-num", "ob-text", "ob-blobvar"};
    for (int i = 0; i < 4; i++)
        if (strncmp(k->type, begin[i], strlen(begin[i])) == 0) return true;
    return false;
}

static void draw_value(const kind *k, value *ret)
{
    if (is_nullable(k) && below(5) == 0) {
        ret->v = rq_key_null();
        return;
    }
    switch (k->draw) {
    case DRAW_UINT:
        ret->v = rq_key_uint(natural(k->bits));
        break;
    case DRAW_INT:
        ret->v = rq_key_int((int64_t)(natural(k->bits) << (64 - k->bits)) >> (64 - k->bits));
        break;
    case DRAW_REAL:
        ret->v = rq_key_real(real(k->bits));
        break;
    case DRAW_BOOL:
        ret->v = rq_key_bool(below(2) == 1);
        break;
    default:
        draw_bytes(k, ret);
    }
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static int compare_bytes(rq_bytes a, rq_bytes b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n == 0 ? 0 : memcmp(a.data, b.data, n);
    return c != 0 ? sign(c) : (a.len > b.len) - (a.len < b.len);
}

/* -0 sorts before 0, NaN last; in ob-num both zeros are equal. */
static int compare_reals(double a, double b, bool one_zero)
{
    if (isnan(a) || isnan(b)) return (isnan(a) != 0) - (isnan(b) != 0);
    if (a == 0 && b == 0 && !one_zero) return (signbit(b) != 0) - (signbit(a) != 0);
    return (a > b) - (a < b);
}

/* HBase's OrderedBlobVar sorts some values of different lengths in reverse. */
static bool is_ordered(const kind *k)
{
    return strcmp(k->type, "ob-blobvar") != 0;
}

static int compare_values(const kind *k, const rq_key_value *a, const rq_key_value *b)
{
    if (a->kind == RQ_VALUE_NULL || b->kind == RQ_VALUE_NULL)
        return (b->kind == RQ_VALUE_NULL) - (a->kind == RQ_VALUE_NULL);
    switch (k->draw) {
    case DRAW_UINT:
    case DRAW_BOOL:
        return (a->natural > b->natural) - (a->natural < b->natural);
    case DRAW_INT:
        return (a->integer > b->integer) - (a->integer < b->integer);
    case DRAW_REAL:
        return compare_reals(a->real, b->real, strcmp(k->type, "ob-num") == 0);
    default:
        return compare_bytes(a->bytes, b->bytes);
    }
}

/* --- random formats --------------------------------------------------------------------------- */

enum { PARTS_MAX = 5 };

typedef struct shape {
    size_t count;
    const kind *kinds[PARTS_MAX];
    bool desc[PARTS_MAX];
    char text[512];
    rq_key_format *format;
} shape;

/* A last part of an HBase type is not descending: its null is not encoded, and sorts first. */
static void draw_shape(shape *s)
{
    s->count = 1 + below(PARTS_MAX);
    s->text[0] = '\0';
    for (size_t i = 0; i < s->count; i++) {
        s->kinds[i] = &kinds[below(KINDS)];
        s->desc[i] = below(2) == 1;
    }
    for (size_t i = s->count;
         i > 0 && is_nullable(s->kinds[i - 1]) && s->kinds[i - 1]->type[1] == 'b'; i--)
        s->desc[i - 1] = false;
    for (size_t i = 0; i < s->count; i++)
        sprintf(s->text + strlen(s->text), "%sp%zu:%s%s", i == 0 ? "" : " ", i,
                s->desc[i] ? "desc-" : "", s->kinds[i]->type);
    OK(rq_key_format_parse(s->text, &s->format, &why));
}

static void encode(const shape *s, const value *values, rq_bytes *ret)
{
    static unsigned char keys[2][1024];
    static unsigned turn;
    rq_key_value v[PARTS_MAX];
    unsigned char *key = keys[++turn % 2];
    for (size_t i = 0; i < s->count; i++)
        v[i] = values[i].v;
    OK(rq_key_encode(s->format, v, s->count, key, sizeof keys[0], &ret->len, &why));
    ret->data = key;
}

/* 2: different, but without a defined order */
static int compare_all(const shape *s, const value *a, const value *b)
{
    for (size_t i = 0; i < s->count; i++) {
        int c = compare_values(s->kinds[i], &a[i].v, &b[i].v);
        if (c != 0 && !is_ordered(s->kinds[i])) return 2;
        if (c != 0) return s->desc[i] ? -c : c;
    }
    return 0;
}

static void check_decoded(const shape *s, rq_bytes key, const value *values)
{
    rq_key_values *got;
    OK(rq_key_decode(s->format, key, &got, &why));
    assert_int_equal(got->count, s->count);
    for (size_t i = 0; i < s->count; i++) {
        rq_key_value v = got->items[i];
        if (v.kind == RQ_VALUE_DECIMAL) {
            v.real = strtod(v.bytes.data, NULL);
            v.integer = strtoll(v.bytes.data, NULL, 10);
        }
        if (compare_values(s->kinds[i], &v, &values[i].v) != 0)
            fail_msg("%s: part %zu is decoded as %s", s->text, i, got->texts[i]);
    }
    rq_bytes again = {NULL, 0};
    static unsigned char buf[1024];
    OK(rq_key_encode_text(s->format, got->texts, got->count, buf, sizeof buf, &again.len, &why));
    again.data = buf;
    if (compare_bytes(key, again) != 0) fail_msg("%s: the texts have another key", s->text);
    rq_key_values_free(got);
}

static void order_of_bytes_is_order_of_values(void **unused)
{
    (void)unused;
    for (int round = 0; round < 4000; round++) {
        shape s;
        draw_shape(&s);
        for (int pair = 0; pair < 12; pair++) {
            static value a[PARTS_MAX], b[PARTS_MAX];
            rq_bytes x, y;
            for (size_t i = 0; i < s.count; i++) {
                draw_value(s.kinds[i], &a[i]);
                draw_value(s.kinds[i], &b[i]);
                if (below(3) == 0) { /* a copy of the first */
                    b[i] = a[i];
                    if (b[i].v.bytes.data != NULL) b[i].v.bytes.data = b[i].bytes;
                }
            }
            encode(&s, a, &x);
            encode(&s, b, &y);
            int c = compare_all(&s, a, b);
            if (c == 2 ? compare_bytes(x, y) == 0 : compare_bytes(x, y) != c)
                fail_msg("%s: round %d, the bytes' order is not the values'", s.text, round);
            check_decoded(&s, x, a);
        }
        rq_key_format_free(s.format);
    }
}

/* --- examples --------------------------------------------------------------------------------- */

static void expect(const char *format_text, const char *const *values, size_t count,
                   const char *hex)
{
    unsigned char key[256];
    char got[600] = "";
    size_t len;
    rq_key_format *format;
    OK(rq_key_format_parse(format_text, &format, &why));
    OK(rq_key_encode_text(format, values, count, key, sizeof key, &len, &why));
    for (size_t i = 0; i < len; i++)
        sprintf(got + 2 * i, "%02x", key[i]);
    if (strcmp(got, hex) != 0) fail_msg("%s: %s instead of %s", format_text, got, hex);
    rq_key_format_free(format);
}

#define EXPECT(format, hex, ...)                                                                   \
    expect(format, (const char *const[]){__VA_ARGS__},                                             \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), hex)

static void bytes_of_formats(void **unused)
{
    (void)unused;
    EXPECT("user:u64 time:desc-ms",
           "0000000000000007"
           "7ffffffffffffffe",
           "7", "1");
    EXPECT("user:rev-digits(8)", "3730303030303030", "7");
    EXPECT("a:text '_' t:desc-msdigits", "3132335f39323233333732303336383534373735383036", "123",
           "1");
    EXPECT("a:i8", "7f", "-1");
    EXPECT("a:desc-u8", "fe", "1");
    EXPECT("a:desc-digits(3)", "393938", "1");
    EXPECT("a:text b:u8",
           "616200"
           "ff",
           "ab", "255");
    EXPECT("a:bytes b:u8",
           "6100ff"
           "0000"
           "ff",
           "a\\x00", "255");
    EXPECT("a:text(4)", "61620000", "ab");
    EXPECT("t:s", "5a497a00", "2018-01-01T00:00:00Z");
    EXPECT("t:ms", "0000000000000001", "1970-01-01T00:00:00.001Z");
    EXPECT("u:uuid", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff");
    EXPECT("p:geohash(11)",
           "75347072757964717176"
           "6a",
           "57.64911,10.40744");
    EXPECT("salt(16,hex) a:u8 b:u8",
           "65"
           "0102",
           "1", "2");
    EXPECT("phoenix(4) a:text",
           "02"
           "6162",
           "ab"); /* 31 × (31 + 97) + 98 = 4066, modulo 4: 2 */
}

static void refused(const char *format_text, const char *what)
{
    rq_key_format *format = NULL;
    FAILS(RQ_E_INVALID, rq_key_format_parse(format_text, &format, &why));
    if (strstr(why.message, what) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", format_text, why.message, what);
}

static void refused_formats(void **unused)
{
    (void)unused;
    refused("", "needs at least one part");
    refused("salt(16)", "needs at least one part");
    refused("a:u64 salt(16)", "no part follows that could be hashed");
    refused("salt(16,b) a:u64", "no later part has the name b");
    refused("salt(0) a:u64", "1 to 65536");
    refused("salt(65537) a:u64", "1 to 65536");
    refused("salt(99999999999) a:u64", "salt(NUMBER)");
    refused("salt(16 a:u64", "parentheses");
    refused("phoenix(16,hex) a:u64", "is one byte");
    refused("a:u65", "unknown type u65");
    refused("a:u7", "unknown type u7");
    refused("a:u0", "unknown type u0");
    refused("a:u8x", "unknown type");
    refused("a", "expected NAME:TYPE");
    refused(":u8", "letters");
    refused("a b:u8", "expected NAME:TYPE");
    refused("a:u8 a:u8", "two parts");
    refused("a:digits(20)", "1 to 19");
    refused("a:text(0)", "1 to 32767");
    refused("a:text(20000) b:text(20000)", "40000 bytes");
    refused("a:geohash(13)", "1 to 12");
    refused("a:desc-raw-i8", "not in the order");
    refused("a:rev-f32", "rev-");
    refused("a:opt-ob-num", "opt-");
    refused("a:ob-blob b:u8", "last part");
    refused("a:desc-text '_' b:u8", "descending");
    refused("'", "no closing quote");
    refused("'' a:u8", "at least one byte");
    refused("'\\q' a:u8", "unknown escape");
    refused("'a'b' c:u8", "no closing quote");
    char many[1000] = "";
    for (int i = 0; i < 65; i++)
        sprintf(many + strlen(many), "p%d:u8 ", i);
    refused(many, "more than 64");
}

static void refuse_value(const char *format_text, rq_key_value v, const char *what)
{
    unsigned char key[64];
    size_t len;
    rq_key_format *format;
    OK(rq_key_format_parse(format_text, &format, &why));
    FAILS(RQ_E_INVALID, rq_key_encode(format, &v, 1, key, sizeof key, &len, &why));
    if (strstr(why.message, what) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", format_text, why.message, what);
    rq_key_format_free(format);
}

static void refused_values(void **unused)
{
    (void)unused;
    refuse_value("a:u8", rq_key_uint(256), "larger than 255");
    refuse_value("a:u8", rq_key_int(-1), "negative");
    refuse_value("a:i8", rq_key_int(128), "does not fit");
    refuse_value("a:i64", rq_key_uint(UINT64_MAX), "not an integer");
    refuse_value("a:u8", rq_key_text("1"), "not an integer");
    refuse_value("a:u8", rq_key_null(), "opt- allows null");
    refuse_value("a:ob-i8", rq_key_null(), "no null");
    refuse_value("a:ms", rq_key_int(-1), "negative");
    refuse_value("a:f32", rq_key_real(0.1), "not a float");
    refuse_value("a:bool", rq_key_uint(1), "neither");
    refuse_value("a:text(2)", rq_key_text("abc"), "more than 2");
    refuse_value("a:bytes(2)", rq_key_text("a"), "not 2");
    refuse_value("a:text", rq_key_bytes(rq_bytes_of("a\0b", 3)), "byte 00");
    refuse_value("a:text '_'", rq_key_text("a_b"), "the literal after it");
    refuse_value("a:geohash(2)", rq_key_text("ab"), "GeoHash");
    refuse_value("a:uuid", rq_key_text("ab"), "not 16");
    refuse_value("a:desc-ob-blob", rq_key_bytes(rq_bytes_of("\0", 1)), "byte 00");
    static char large[32768];
    refuse_value("a:bytes", rq_key_bytes(rq_bytes_of(large, sizeof large)), "32,767");
}

static void refused_keys(void **unused)
{
    (void)unused;
    static const struct {
        const char *format, *key, *what;
    } cases[] = {
        {"a:u16", "a", "ends in this part"},
        {"a:u8", "ab", "1 bytes after"},
        {"a:bool", "\x02", "neither"},
        {"a:digits(2)", "1x", "not a digit"},
        {"a:text b:u8", "ab", "end mark is missing"},
        {"a:text '_' b:u8", "ab", "missing"},
        {"'x' a:u8", "ya", "does not contain"},
        {"a:ob-i8", "ab", "first byte is"},
        {"a:ob-num", "\x27", "not a number"},
        {"salt(200) a:u8", "\xff\x61", "is not the one that its values encode to"},
        {"a:opt-u8", "\x02\x01", "neither"},
        {"a:ob-num", "\x18\x03\x02", ""},
        {"a:geohash(1)", "a", "GeoHash"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rq_key_format *format;
        rq_key_values *values;
        OK(rq_key_format_parse(cases[i].format, &format, &why));
        rq_err rc = rq_key_decode(format, rq_text(cases[i].key), &values, &why);
        if (cases[i].what[0] == '\0') {
            OK(rc);
            rq_key_values_free(values);
        } else if (rc != RQ_E_MALFORMED || strstr(why.message, cases[i].what) == NULL) {
            fail_msg("%s: %s %s", cases[i].format, rq_err_name(rc), why.message);
        }
        rq_key_format_free(format);
    }
}

/* --- prefixes, salts, lints, splits ------------------------------------------------------------ */

static void prefixes(void **unused)
{
    (void)unused;
    unsigned char key[64], whole[64], stop[64];
    size_t len, whole_len;
    rq_key_format *format;
    rq_key_value v[] = {rq_key_uint(7), rq_key_text("ab"), rq_key_uint(9)};
    OK(rq_key_format_parse("salt(16,user) user:u32 name:text n:u8", &format, &why));
    OK(rq_key_encode(format, v, 3, whole, sizeof whole, &whole_len, &why));
    for (size_t count = 1; count < 3; count++) {
        OK(rq_key_encode(format, v, count, key, sizeof key, &len, &why));
        assert_true(len < whole_len);
        assert_memory_equal(key, whole, len);
    }
    FAILS(RQ_E_INVALID, rq_key_encode(format, v, 0, key, sizeof key, &len, &why));
    FAILS(RQ_E_RESULT_TOO_LARGE, rq_key_encode(format, v, 3, key, 3, &len, &why));
    assert_int_equal(len, whole_len);
    assert_int_equal(rq_key_buckets(format), 16);
    OK(rq_key_salt(format, whole[0], key, &len, &why));
    assert_true(len == 1 && key[0] == whole[0]);
    FAILS(RQ_E_INVALID, rq_key_salt(format, 16, key, &len, &why));
    rq_key_format_free(format);
    assert_int_equal(rq_key_after_prefix(rq_bytes_of("a\xff\xff", 3), stop), 1);
    assert_int_equal(stop[0], 'b');
    assert_int_equal(rq_key_after_prefix(rq_bytes_of("\xff", 1), stop), 0);
}

static void lints(void **unused)
{
    (void)unused;
    static const char *const cases[][2] = {
        {"time:ms id:u64", "salt"},
        {"id:u64 time:desc-ms", "ascending"},
        {"a:text(101)", "at least 101 bytes"},
        {"a:u8", "at most 1 bytes"},
        {"md5(4) a:u64 b:u64", "whole key"},
        {"a:rev-u64 b:ms", "not a range"},
        {"a:raw-i64 b:ms", "negative"},
        {"a:text b:u64", "no fixed length"},
        {"a:text '_' b:u64", "literal"},
        {"a:uuid b:digits(9)", "binary"},
        {"salt(1) a:uuid", "nothing"},
        {"salt(1000) a:uuid", "1000 scans"},
        {"a:uuid b:ob-blobvar", "other way round"},
        {"a:text(20) b:desc-ob-text", "omitted"},
        {"salt(16) user:u64 time:desc-ms", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rq_key_format *format;
        rq_names *advice;
        bool found = false;
        OK(rq_key_format_parse(cases[i][0], &format, &why));
        OK(rq_key_lint(format, &advice, &why));
        for (size_t k = 0; k < advice->count && cases[i][1] != NULL; k++)
            found |= strstr(advice->items[k], cases[i][1]) != NULL;
        if (found != (cases[i][1] != NULL) || (!found && advice->count > 0))
            fail_msg("%s: %zu lints, %s", cases[i][0], advice->count,
                     advice->count > 0 ? advice->items[0] : "");
        rq_names_free(advice);
        rq_key_format_free(format);
    }
}

/* Programs of older and of later versions have a shorter or longer struct. */
static void parts_of_any_size(void **unused)
{
    struct {
        rq_key_part part;
        uint64_t later;
    } given = {.part = {.size = sizeof given, .max_length = 77, .is_descending = true}, .later = 5};
    rq_key_format *f;
    (void)unused;
    OK(rq_key_format_parse("salt(16) a:u32", &f, &why));
    OK(rq_key_part_at(f, 0, &given.part, &why));
    assert_string_equal(given.part.name, "a");
    assert_true(given.part.max_length == 4 && given.part.is_ordered && !given.part.is_descending);
    assert_true(given.part.size == sizeof given && given.later == 5);
    given.part = (rq_key_part){
        .size = offsetof(rq_key_part, max_length), .max_length = 77, .is_ordered = false};
    OK(rq_key_part_at(f, 0, &given.part, &why));
    assert_true(given.part.min_length == 4 && given.part.size == offsetof(rq_key_part, max_length));
    assert_true(given.part.max_length == 77 && !given.part.is_ordered);
    const size_t invalid[] = {0, sizeof(size_t), offsetof(rq_key_part, min_length) - 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        given.part.size = invalid[i];
        FAILS(RQ_E_INVALID, rq_key_part_at(f, 0, &given.part, &why));
    }
    rq_key_format_free(f);
}

static void split_of_format(const char *text, size_t regions, size_t expected, const char *first)
{
    rq_key_format *format;
    rq_key_list *keys;
    OK(rq_key_format_parse(text, &format, &why));
    OK(rq_split_format(format, regions, &keys, &why));
    assert_int_equal(keys->count, expected);
    if (keys->count > 0 && !is(keys->items[0], first)) fail_msg("%s: another first key", text);
    for (size_t i = 1; i < keys->count; i++)
        assert_true(compare_bytes(keys->items[i - 1], keys->items[i]) < 0);
    rq_key_list_free(keys);
    rq_key_format_free(format);
}

static void splits(void **unused)
{
    (void)unused;
    split_of_format("salt(16,hex) a:u64", 16, 15, "1");
    split_of_format("salt(16,hex) a:u64", 4, 3, "4");
    split_of_format("salt(16,hex) u:uuid", 32, 31, "0\x80");
    split_of_format("a:rev-digits(8)", 10, 9, "1");
    split_of_format("a:rev-digits(1)", 1000, 9, "1");
    split_of_format("md5(4,hex) a:u64", 16, 15, "1");
    split_of_format("'x' p:geohash(4)", 32, 31, "x1");
    rq_key_format *format;
    rq_key_list *keys;
    OK(rq_key_format_parse("salt(16) a:u64", &format, &why));
    FAILS(RQ_E_UNSUPPORTED, rq_split_format(format, 20, &keys, &why));
    rq_key_format_free(format);
    FAILS(RQ_E_INVALID, rq_split_keys(RQ_SPLIT_HEX, 1, &keys, &why));
}

static void samples(void **unused)
{
    (void)unused;
    static char texts[1000][8];
    static rq_bytes sample[1000];
    static uint64_t weights[1000];
    rq_key_list *keys;
    for (int i = 0; i < 1000; i++) { /* in arbitrary order */
        sprintf(texts[i], "%03d", i * 7 % 1000);
        sample[i] = rq_text(texts[i]);
        weights[i] = i * 7 % 1000 < 100 ? 9 : 1;
    }
    OK(rq_split_sample(sample, NULL, 1000, 4, &keys, &why));
    assert_int_equal(keys->count, 3);
    assert_true(is(keys->items[0], "250") && is(keys->items[1], "500") &&
                is(keys->items[2], "750"));
    rq_key_list_free(keys);
    /* weight 900 of 1800 is in the first 100 keys */
    OK(rq_split_sample(sample, weights, 1000, 2, &keys, &why));
    assert_true(keys->count == 1 && is(keys->items[0], "100"));
    rq_key_list_free(keys);
    for (int i = 0; i < 1000; i++)
        sample[i] = rq_text(i < 500 ? "a" : "b");
    OK(rq_split_sample(sample, NULL, 1000, 10, &keys, &why));
    assert_true(keys->count == 1 && is(keys->items[0], "b"));
    rq_key_list_free(keys);
    OK(rq_split_sample(sample, NULL, 0, 10, &keys, &why));
    assert_int_equal(keys->count, 0);
    rq_key_list_free(keys);
}

typedef struct weighed_case {
    const char *name;
    uint64_t weights[6]; /* of the keys a, b, c …; as many as are not 0 */
    size_t regions;
    const char *splits; /* one letter each */
} weighed_case;

/* A split key is the key before which the sum is nearest to a region's share, on either side of it. */
static void samples_with_heavy_keys(void **unused)
{
    (void)unused;
    static const weighed_case cases[] = {
        {"the last key is heavy", {1, 1, 1, 9}, 2, "d"},
        {"the first one", {9, 1, 1, 1}, 2, "b"},
        {"one in the middle", {1, 1, 1, 9, 1, 1}, 2, "d"},
        {"one of several regions is one key", {1, 1, 9, 1, 1, 1}, 3, "cd"},
        {"both shares are in the last key", {1, 1, 1, 9}, 3, "d"},
        {"equally near: the later one", {1, 1, 1, 1, 1}, 2, "d"},
        {"an uneven number", {1, 1, 1, 1, 1}, 3, "cd"},
        {"more regions than keys", {1, 1, 1, 1}, 9, "bcd"},
        {"one key", {5}, 2, ""},
    };
    static const rq_bytes names[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weighed_case *c = &cases[i];
        rq_key_list *keys;
        char found[8] = "";
        size_t count = 0;
        while (count < 6 && c->weights[count] > 0)
            count++;
        OK(rq_split_sample(names, c->weights, count, c->regions, &keys, &why));
        for (size_t k = 0; k < keys->count; k++)
            strncat(found, keys->items[k].data, 1);
        rq_key_list_free(keys);
        if (strcmp(found, c->splits) != 0)
            fail_msg("%s: %s instead of %s", c->name, found, c->splits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_bytes_is_order_of_values),
        cmocka_unit_test(bytes_of_formats),
        cmocka_unit_test(refused_formats),
        cmocka_unit_test(refused_values),
        cmocka_unit_test(refused_keys),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(lints),
        cmocka_unit_test(parts_of_any_size),
        cmocka_unit_test(splits),
        cmocka_unit_test(samples),
        cmocka_unit_test(samples_with_heavy_keys),
    };
    const char *seed = getenv("SEED");
    state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
