/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text, as the command line reads and prints them. Printed text can be parsed again. */
#include "rowkey/rowkey_priv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static rq_err no(const rq__part *p, rq_error *why, const char *text, const char *what)
{
    return rq__part_fail(p, RQ_E_INVALID, why, "'%.200s' is no %s", text, what);
}

/* --- numbers and times ------------------------------------------------------------------------ */

static rq_err integer_of(const rq__part *p, const char *text, rq_key_value *ret, rq_error *why)
{
    char *end;
    bool minus = text[0] == '-';
    errno = 0;
    if (!isdigit((unsigned char)text[minus])) return no(p, why, text, "integer");
    if (minus)
        *ret = rq_key_int(strtoll(text, &end, 10));
    else
        *ret = rq_key_uint(strtoull(text, &end, 10));
    if (errno != 0 || *end != '\0') return no(p, why, text, "integer of 64 bits");
    return RQ_OK;
}

static rq_err real_of(const rq__part *p, const char *text, rq_key_value *ret, rq_error *why)
{
    char *end;
    *ret = rq_key_real(strtod(text, &end));
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]))
        return no(p, why, text, "number");
    if (p->width == 4) ret->real = (double)(float)ret->real; /* 0.1 is the float next to it */
    return RQ_OK;
}

/* "2022-12-31T23:59:59.123Z", UTC; hours and fractions may be missing. *ret in units of the part. */
static bool date_of(const rq__part *p, const char *text, uint64_t *ret)
{
    struct tm t = {0};
    int used = 0, used_time = 0, used_seconds = 0;
    uint64_t fraction = 0, scale = 1;
    if (sscanf(text, "%4d-%2d-%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &used) != 3) return false;
    text += used;
    if (sscanf(text, "%*1[T ]%2d:%2d%n", &t.tm_hour, &t.tm_min, &used_time) == 2) text += used_time;
    if (sscanf(text, ":%2d%n", &t.tm_sec, &used_seconds) == 1) text += used_seconds;
    if (used_seconds > 0 && *text == '.')
        for (text++; isdigit((unsigned char)*text) && scale < 1000000000; text++) {
            fraction = fraction * 10 + (uint64_t)(*text - '0');
            scale *= 10;
        }
    if (*text == 'Z') text++;
    if (*text != '\0' || t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 ||
        t.tm_mday > 31 || t.tm_hour < 0 || t.tm_hour > 23 || t.tm_min < 0 || t.tm_min > 59 ||
        t.tm_sec < 0 || t.tm_sec > 59)
        return false;
    t.tm_year -= 1900;
    t.tm_mon--;
    int day = t.tm_mday;
    uint64_t seconds = (uint64_t)timegm(&t), units = (uint64_t)(1000000000 / p->unit_ns);
    if (t.tm_mday != day || seconds > INT64_MAX / units) return false; /* "02-30" */
    *ret = seconds * units + fraction * units / scale;
    return true;
}

static rq_err time_of(const rq__part *p, const char *text, rq_key_value *ret, rq_error *why)
{
    uint64_t v;
    if (strchr(text + 1, '-') == NULL || text[0] == '\0') return integer_of(p, text, ret, why);
    if (!date_of(p, text, &v)) return no(p, why, text, "time like 2022-12-31T23:59:59Z");
    *ret = rq_key_uint(v);
    return RQ_OK;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (isdigit((unsigned char)c)) return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static rq_err bytes_of(const char *text, rq_arena *arena, rq_key_value *ret, rq_error *why)
{
    size_t len = strlen(text), n = 0;
    uint8_t *bytes = rq_arena_alloc(arena, len + 1);
    if (bytes == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\') {
            bytes[n++] = (uint8_t)text[i];
        } else if (text[i + 1] == 'x' && i + 3 < len && hex_digit(text[i + 2]) >= 0 &&
                   hex_digit(text[i + 3]) >= 0) {
            bytes[n++] = (uint8_t)(hex_digit(text[i + 2]) << 4 | hex_digit(text[i + 3]));
            i += 3;
        } else {
            bytes[n++] = '\\'; /* as HBase's Bytes.toBytesBinary */
        }
    }
    *ret = rq_key_bytes((rq_bytes){bytes, n});
    return RQ_OK;
}

static rq_err uuid_of(const rq__part *p, const char *text, rq_arena *arena, rq_key_value *ret,
                      rq_error *why)
{
    uint8_t *bytes = rq_arena_alloc(arena, 16);
    if (bytes == NULL) return rq_no_memory(why);
    for (size_t n = 0, i = 0; n < 32; i++) {
        int digit = hex_digit(text[i]);
        if (text[i] == '-' && (i == 8 || i == 13 || i == 18 || i == 23)) continue;
        if (digit < 0) return no(p, why, text, "UUID");
        bytes[n / 2] = (uint8_t)(n % 2 == 0 ? digit << 4 : bytes[n / 2] | digit);
        if (++n == 32 && text[i + 1] != '\0') return no(p, why, text, "UUID");
    }
    *ret = rq_key_bytes((rq_bytes){bytes, 16});
    return RQ_OK;
}

static rq_err geohash_of(const rq__part *p, const char *text, rq_arena *arena, rq_key_value *ret,
                         rq_error *why)
{
    char *end, *end_longitude, hash[16];
    if (strchr(text, ',') == NULL) return bytes_of(text, arena, ret, why);
    rq_point point = {.latitude = strtod(text, &end)};
    if (end == text || *end != ',') return no(p, why, text, "latitude,longitude");
    point.longitude = strtod(end + 1, &end_longitude);
    if (end_longitude == end + 1 || *end_longitude != '\0' ||
        rq__geohash_encode(point, p->width, hash, NULL) != RQ_OK)
        return no(p, why, text, "latitude,longitude (-90 to 90, -180 to 180)");
    char *copy = rq_arena_printf(arena, "%s", hash);
    if (copy == NULL) return rq_no_memory(why);
    *ret = rq_key_text(copy);
    return RQ_OK;
}

/* --- both ways -------------------------------------------------------------------------------- */

static rq_err number_of(const rq__part *p, const char *text, rq_key_value *ret, rq_error *why)
{
    if (strchr("in", text[0] == '-' ? text[1] | 0x20 : text[0] | 0x20) != NULL)
        return real_of(p, text, ret, why); /* inf, nan */
    *ret = rq_key_text(text);
    ret->kind = RQ_VALUE_DECIMAL;
    return RQ_OK;
}

rq_err rq__value_of_text(const rq__part *p, const char *text, rq_arena *arena, rq_key_value *ret,
                         rq_error *why)
{
    if ((p->opt || rq__part_is_nullable_ob(p)) && strcmp(text, "null") == 0) {
        *ret = rq_key_null();
        return RQ_OK;
    }
    switch (p->kind) {
    case RQ__PART_UINT:
    case RQ__PART_INT:
    case RQ__PART_DIGITS:
    case RQ__PART_OB_INT:
    case RQ__PART_RAW_INT:
        return integer_of(p, text, ret, why);
    case RQ__PART_FLOAT:
    case RQ__PART_OB_FLOAT:
    case RQ__PART_RAW_FLOAT:
        return real_of(p, text, ret, why);
    case RQ__PART_SECONDS:
    case RQ__PART_TIME:
    case RQ__PART_TIME_DIGITS:
        return time_of(p, text, ret, why);
    case RQ__PART_OB_NUM:
        return number_of(p, text, ret, why);
    case RQ__PART_UUID:
        return uuid_of(p, text, arena, ret, why);
    case RQ__PART_GEOHASH:
        return geohash_of(p, text, arena, ret, why);
    case RQ__PART_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return no(p, why, text, "true or false");
        *ret = rq_key_bool(text[0] == 't');
        return RQ_OK;
    default:
        return bytes_of(text, arena, ret, why);
    }
}

static const char *uuid_text(const uint8_t *b, rq_arena *arena)
{
    return rq_arena_printf(
        arena, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
        b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static const char *bytes_text(rq_bytes b, rq_arena *arena)
{
    char *text = rq_arena_alloc(arena, 4 * b.len + 1);
    if (text != NULL) rq_bytes_to_string(rq_slice_of(b.data, b.len), text, 4 * b.len + 1);
    return text;
}

const char *rq__value_to_text(const rq__part *p, const rq_key_value *v, rq_arena *arena)
{
    switch (v->kind) {
    case RQ_VALUE_NULL:
        return "null";
    case RQ_VALUE_INT:
        return rq_arena_printf(arena, "%" PRId64, v->integer);
    case RQ_VALUE_UINT:
        return rq_arena_printf(arena, "%" PRIu64, v->natural);
    case RQ_VALUE_REAL:
        return rq_arena_printf(arena, "%.*g", p->width == 4 ? 9 : 17, v->real);
    case RQ_VALUE_BOOL:
        return v->natural != 0 ? "true" : "false";
    case RQ_VALUE_DECIMAL:
        return v->bytes.data;
    default:
        break;
    }
    return p->kind == RQ__PART_UUID ? uuid_text(v->bytes.data, arena) : bytes_text(v->bytes, arena);
}
