/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a key's format (rorqual/rowkey.h), parsed:
 *
 *     format   = word { blanks word }
 *     word     = literal | name ":" { modifier "-" } type | computed
 *     literal  = "'" characters, \xNN, \' or \\ "'"
 *     modifier = "desc" | "asc" | "opt" | "rev"
 *     type     = a name of types.def | ("u" | "i") bits | ("text" | "bytes" | "digits" | "geohash") "(" number ")"
 *     computed = ("salt" | "phoenix" | "md5" | "murmur3" | "xxh3") "(" number { "," ("hex" | name) } ")"
 */
#include "rowkey/rowkey_priv.h"

#include <ctype.h>
#include <stdlib.h>

#define FORMAT_MAX 4096
#define NAME_MAX_BYTES 64

typedef struct named_type {
    const char *name;
    rq__part part;
} named_type;

static const named_type types[] = {
#define X(type_name, part_kind, part_width, ...)                                                   \
    {type_name, {.kind = part_kind, .width = part_width, __VA_ARGS__}},
#include "rowkey/types.def"
#undef X
};

/* --- words ------------------------------------------------------------------------------------ */

/* A word ends at a blank that is neither quoted nor in parentheses. */
static rq_err next_word(const char **at, rq_slice *ret, rq_error *why)
{
    const char *p = *at + strspn(*at, " \t\n");
    const char *begin = p;
    bool quoted = false;
    int depth = 0;
    for (; *p != '\0' && (quoted || depth > 0 || strchr(" \t\n", *p) == NULL); p++) {
        if (quoted && *p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '\'')
            quoted = !quoted;
        else if (!quoted)
            depth += (*p == '(') - (*p == ')');
    }
    *ret = rq_slice_of(begin, (size_t)(p - begin));
    *at = p;
    if (quoted) return rq_fail(why, RQ_E_INVALID, "a literal has no closing quote: %s", begin);
    if (depth != 0) return rq_fail(why, RQ_E_INVALID, "parentheses do not match: %s", begin);
    return RQ_OK;
}

static bool is_name(const char *s)
{
    size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return len > 0 && len <= NAME_MAX_BYTES && s[len] == '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 'text' with \xNN and \c. `word` has its quotes. */
static rq_err parse_literal(const char *word, rq_key_format *f, rq__part *p, rq_error *why)
{
    size_t len = strlen(word), n = 0;
    uint8_t *bytes = rq_arena_alloc(&f->arena, len);
    if (bytes == NULL) return rq_no_memory(why);
    const char *end = word + len - 1;
    for (const char *c = word + 1; c < end; c++) {
        if (*c == '\'')
            return rq_fail(why, RQ_E_INVALID, "%s: text after the literal's closing quote", word);
        if (*c != '\\') {
            bytes[n++] = (uint8_t)*c;
        } else if (c[1] == 'x' && end - c > 3 && hex_digit(c[2]) >= 0 && hex_digit(c[3]) >= 0) {
            bytes[n++] = (uint8_t)(hex_digit(c[2]) << 4 | hex_digit(c[3]));
            c += 3;
        } else if (c[1] == '\\' || c[1] == '\'') {
            bytes[n++] = (uint8_t) * ++c;
        } else {
            return rq_fail(why, RQ_E_INVALID, "%s: unknown escape; allowed are \\xNN, \\' and \\\\",
                           word);
        }
    }
    if (len < 2 || *end != '\'' || n == 0)
        return rq_fail(why, RQ_E_INVALID, "%s: a literal must have at least one byte", word);
    *p = (rq__part){.kind = RQ__PART_LITERAL, .literal = rq_slice_of(bytes, n)};
    return RQ_OK;
}

/* --- types ------------------------------------------------------------------------------------ */

/* "16)" or "16,…)"; *rest is what follows the number, "" or ",…". */
static bool take_number(const char *s, uint32_t *ret, const char **rest)
{
    char *end;
    if (!isdigit((unsigned char)*s)) return false;
    unsigned long v = strtoul(s, &end, 10);
    if (v > UINT32_MAX || (*end != ')' && *end != ',')) return false;
    *ret = (uint32_t)v;
    *rest = *end == ')' ? "" : end;
    return *end != ')' || end[1] == '\0';
}

static rq_err check_width(const char *word, uint32_t width, uint32_t most, rq_error *why)
{
    if (width >= 1 && width <= most) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "%s: the number must be 1 to %u", word, most);
}

/* "u24", "i64" */
static bool parse_integer(const char *type, rq__part *p)
{
    char *end;
    if ((type[0] != 'u' && type[0] != 'i') || !isdigit((unsigned char)type[1])) return false;
    unsigned long bits = strtoul(type + 1, &end, 10);
    if (*end != '\0' || bits == 0 || bits > 64 || bits % 8 != 0) return false;
    p->kind = type[0] == 'u' ? RQ__PART_UINT : RQ__PART_INT;
    p->width = (uint32_t)(bits / 8);
    return true;
}

/* "digits(8)" */
static rq_err parse_sized(const char *word, const char *type, rq__part *p, rq_error *why)
{
    static const struct {
        const char *name;
        uint32_t most;
        rq__part part;
    } sized[] = {
        {"digits(", 19, {.kind = RQ__PART_DIGITS}},
        {"text(", RQ__KEY_MAX, {.kind = RQ__PART_FIXED, .is_text = true}},
        {"bytes(", RQ__KEY_MAX, {.kind = RQ__PART_FIXED}},
        {"geohash(", 12, {.kind = RQ__PART_GEOHASH}},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(sized); i++) {
        const char *rest = NULL;
        size_t len = strlen(sized[i].name);
        if (strncmp(type, sized[i].name, len) != 0) continue;
        *p = sized[i].part;
        if (!take_number(type + len, &p->width, &rest) || *rest != '\0')
            return rq_fail(why, RQ_E_INVALID, "%s: expected %sNUMBER)", word, sized[i].name);
        return check_width(word, p->width, sized[i].most, why);
    }
    return rq_fail(why, RQ_E_INVALID, "%s: unknown type %s", word, type);
}

static rq_err parse_base(const char *word, const char *type, rq__part *p, rq_error *why)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, type) == 0) {
            *p = types[i].part;
            return RQ_OK;
        }
    if (parse_integer(type, p)) return RQ_OK;
    return parse_sized(word, type, p, why);
}

static rq_err check_modifiers(const char *word, const rq__part *p, rq_error *why)
{
    bool raw = p->kind == RQ__PART_RAW_INT || p->kind == RQ__PART_RAW_FLOAT;
    bool number = p->kind == RQ__PART_UINT || p->kind == RQ__PART_INT || p->kind == RQ__PART_DIGITS;
    if (raw && p->desc)
        return rq_fail(why, RQ_E_INVALID,
                       "%s: desc- is not allowed for raw types, whose bytes are not in the order "
                       "of their values",
                       word);
    if (p->rev && !number)
        return rq_fail(why, RQ_E_INVALID, "%s: rev- is allowed only for u, i and digits types",
                       word);
    if (p->opt && p->kind >= RQ__PART_OB_INT)
        return rq_fail(why, RQ_E_INVALID,
                       "%s: opt- is not allowed for HBase's ordered-bytes types (ob-)", word);
    return RQ_OK;
}

/* "desc-opt-u64" */
static rq_err parse_type(const char *word, const char *type, rq__part *p, rq_error *why)
{
    bool desc = false, opt = false, rev = false;
    const char *base = type;
    for (;; base = strchr(base, '-') + 1) {
        if (strncmp(base, "desc-", 5) == 0)
            desc = true;
        else if (strncmp(base, "opt-", 4) == 0)
            opt = true;
        else if (strncmp(base, "rev-", 4) == 0)
            rev = true;
        else if (strncmp(base, "asc-", 4) != 0)
            break;
    }
    RQ_TRY(parse_base(word, base, p, why));
    p->desc = desc;
    p->opt = opt;
    p->rev = rev;
    p->type = type;
    return check_modifiers(word, p, why);
}

/* --- computed parts --------------------------------------------------------------------------- */

typedef struct computed {
    const char *name;
    uint32_t most;
    rq__part part;
} computed;

static const computed computeds[] = {
    {"salt(", 65536, {.kind = RQ__PART_SALT}},
    {"phoenix(", 256, {.kind = RQ__PART_PHOENIX}},
    {"md5(", 16, {.kind = RQ__PART_HASH, .hash = RQ__HASH_MD5}},
    {"murmur3(", 4, {.kind = RQ__PART_HASH, .hash = RQ__HASH_MURMUR3}},
    {"xxh3(", 8, {.kind = RQ__PART_HASH, .hash = RQ__HASH_XXH3}},
};

static const computed *computed_of(const char *word)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(computeds); i++)
        if (strncmp(word, computeds[i].name, strlen(computeds[i].name)) == 0) return &computeds[i];
    return NULL;
}

static uint32_t salt_width(const rq__part *p)
{
    uint32_t width = p->buckets > 256 ? 2 : 1;
    if (!p->hex) return width;
    for (width = 1; width < 4 && p->buckets > 1u << (4 * width);)
        width++;
    return width;
}

static rq_err parse_computed(const char *word, const computed *c, rq__part *p, rq_error *why)
{
    uint32_t number;
    const char *rest = NULL;
    *p = c->part;
    if (!take_number(word + strlen(c->name), &number, &rest))
        return rq_fail(why, RQ_E_INVALID, "%s: expected %sNUMBER) or %sNUMBER,hex,PART…)", word,
                       c->name, c->name);
    if (strncmp(rest, ",hex", 4) == 0 && (rest[4] == ',' || rest[4] == ')')) {
        if (p->kind == RQ__PART_PHOENIX)
            return rq_fail(why, RQ_E_INVALID,
                           "%s: hex is not allowed, because Phoenix's salt is one byte", word);
        p->hex = true;
        rest += 4;
    }
    p->arguments = *rest == ',' ? rest : "";
    RQ_TRY(check_width(word, number, c->most * (p->kind == RQ__PART_HASH && p->hex ? 2 : 1), why));
    if (p->kind == RQ__PART_HASH) {
        p->width = number;
    } else {
        p->buckets = number;
        p->width = salt_width(p);
    }
    return RQ_OK;
}

static rq_err find_covered(rq_key_format *f, size_t at, rq_slice name, rq_error *why)
{
    for (size_t i = at + 1; i < f->count; i++)
        if (f->parts[i].name != NULL && rq_slice_eq(rq_slice_cstr(f->parts[i].name), name)) {
            f->parts[at].covers |= UINT64_C(1) << i;
            return RQ_OK;
        }
    return rq_fail(why, RQ_E_INVALID, "%s: no later part has the name %.*s", f->parts[at].type,
                   (int)name.len, (const char *)name.ptr);
}

/* The input of a computed part's hash: the named parts, or all parts behind it except other
 * computed parts. */
static rq_err resolve_computed(rq_key_format *f, size_t at, rq_error *why)
{
    rq__part *p = &f->parts[at];
    for (const char *c = p->arguments; *c == ',';) {
        size_t len = strcspn(c + 1, ",)");
        RQ_TRY(find_covered(f, at, rq_slice_of(c + 1, len), why));
        c += 1 + len;
    }
    for (size_t i = at + 1; i < f->count && *p->arguments == '\0'; i++)
        if (!rq__part_is_computed(&f->parts[i])) p->covers |= UINT64_C(1) << i;
    if (p->covers == 0)
        return rq_fail(why, RQ_E_INVALID, "%s: no part follows that could be hashed", p->type);
    return RQ_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static rq_err parse_word(rq_key_format *f, char *word, rq__part *p, rq_error *why)
{
    const computed *c = computed_of(word);
    if (word[0] == '\'') return parse_literal(word, f, p, why);
    if (c != NULL) {
        RQ_TRY(parse_computed(word, c, p, why));
        p->type = word;
        return RQ_OK;
    }
    char *colon = strchr(word, ':');
    if (colon == NULL)
        return rq_fail(
            why, RQ_E_INVALID,
            "%s: expected NAME:TYPE, 'literal', or a computed part such as salt(N) or md5(N)",
            word);
    char *type = colon + 1;
    char *name = rq_arena_cstr(&f->arena, rq_slice_of(word, (size_t)(colon - word)));
    if (name == NULL) return rq_no_memory(why);
    if (!is_name(name))
        return rq_fail(why, RQ_E_INVALID,
                       "%s: a part's name must have 1 to %d letters, digits or _", word,
                       NAME_MAX_BYTES);
    for (size_t i = 0; i < f->count; i++)
        if (f->parts[i].name != NULL && strcmp(f->parts[i].name, name) == 0)
            return rq_fail(why, RQ_E_INVALID, "%s: two parts have this name", word);
    RQ_TRY(parse_type(word, type, p, why));
    p->name = name;
    f->value_count++;
    return RQ_OK;
}

static rq_err check_part(rq_key_format *f, size_t i, rq_error *why)
{
    rq__part *p = &f->parts[i];
    p->is_last = i + 1 == f->count;
    if (p->kind == RQ__PART_VAR && !p->is_last && f->parts[i + 1].kind == RQ__PART_LITERAL) {
        p->literal = f->parts[i + 1].literal;
        if (p->desc || p->opt)
            return rq_fail(
                why, RQ_E_INVALID,
                "part %s (%s): a part that ends with a literal cannot be descending or null",
                p->name, p->type);
    }
    if (p->kind == RQ__PART_OB_BLOB && !p->is_last)
        return rq_fail(why, RQ_E_INVALID,
                       "part %s: ob-blob has no end and must be the last part; use ob-blobvar",
                       p->name);
    return rq__part_is_computed(p) ? resolve_computed(f, i, why) : RQ_OK;
}

static rq_err check_length(const rq_key_format *f, rq_error *why)
{
    size_t sum = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t least, most;
        rq__part_lengths(&f->parts[i], &least, &most);
        sum += least;
    }
    if (sum <= RQ__KEY_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID,
                   "keys of this format have %zu bytes or more; a row may have 32,767", sum);
}

static rq_err parse_words(const char *text, rq_key_format *f, rq_error *why)
{
    for (;;) {
        rq_slice word;
        RQ_TRY(next_word(&text, &word, why));
        if (word.len == 0) break;
        char *copy = rq_arena_cstr(&f->arena, word);
        if (copy == NULL) return rq_no_memory(why);
        if (f->count == RQ__PARTS_MAX)
            return rq_fail(why, RQ_E_INVALID, "%s: more than %d parts", copy, RQ__PARTS_MAX);
        RQ_TRY(parse_word(f, copy, &f->parts[f->count], why));
        f->count++;
    }
    if (f->value_count == 0)
        return rq_fail(why, RQ_E_INVALID, "the format needs at least one part NAME:TYPE");
    for (size_t i = 0; i < f->count; i++)
        RQ_TRY(check_part(f, i, why));
    for (size_t i = f->count; i > 0 && rq__part_is_nullable_ob(&f->parts[i - 1]); i--)
        f->parts[i - 1].may_be_missing = true;
    return check_length(f, why);
}

rq_err rq__format_parse(const char *text, rq_key_format **ret, rq_error *why)
{
    if (strlen(text) > FORMAT_MAX)
        return rq_fail(why, RQ_E_INVALID, "the format is longer than %d characters", FORMAT_MAX);
    rq_key_format *f = calloc(1, sizeof *f);
    if (f == NULL) return rq_no_memory(why);
    rq_err rc = parse_words(text, f, why);
    if (rc == RQ_OK)
        *ret = f;
    else
        rq_key_format_free(f);
    return rc;
}

void rq_key_format_free(rq_key_format *format)
{
    if (format == NULL) return;
    rq_arena_clear(&format->arena);
    free(format);
}
