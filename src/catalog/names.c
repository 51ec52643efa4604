/* SPDX-License-Identifier: Apache-2.0 */
/* Legal names of tables and namespaces. HBASE: TableName 2.6, with the texts that clients see.
 * HBase treats the name as UTF-16: letters and digits of any script are legal. Positions in its
 * messages count UTF-16 units, and so do they here. */
#include "catalog/catalog_priv.h"

#include <locale.h>
#include <wctype.h>

#define NAME_SHOWN_MAX 256

typedef struct name_walk {
    rq_cursor bytes;
    size_t index; /* index of the current character, in UTF-16 units */
    uint32_t c;
    locale_t locale; /* for Unicode's character classes; created at the first character above
                      * ASCII */
} name_walk;

/* Decodes one UTF-8 character; a malformed byte becomes U+FFFD, as in Java's decoder. */
static bool walk_next(name_walk *w)
{
    if (rq_cursor_left(&w->bytes) == 0) return false;
    const uint8_t *p = w->bytes.ptr;
    size_t left = rq_cursor_left(&w->bytes);
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    size_t more = p[0] < 0x80 ? 0 : p[0] >= 0xf0 && p[0] < 0xf8 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    uint32_t c = p[0] < 0x80 ? p[0] : p[0] & (0x3fu >> more);
    bool good = p[0] < 0x80 || (p[0] >= 0xc0 && p[0] < 0xf8 && more < left);
    for (size_t i = 1; good && i <= more; i++) {
        good = (p[i] & 0xc0) == 0x80;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (good && (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))) good = false;
    w->c = good ? c : 0xfffd;
    w->bytes.ptr += good ? more + 1 : 1;
    return true;
}

static bool is_alphanumeric(name_walk *w)
{
    if (w->c < 0x80)
        return (w->c >= '0' && w->c <= '9') || (w->c >= 'a' && w->c <= 'z') ||
               (w->c >= 'A' && w->c <= 'Z');
    /* HBase checks single UTF-16 units: a surrogate is never a letter. */
    if (w->c > 0xffff) return false;
    if (w->locale == (locale_t)0) w->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return w->locale != (locale_t)0 && iswalnum_l((wint_t)w->c, w->locale) != 0;
}

/* The first character that is neither alphanumeric nor in `also`; false if there is none. */
static bool find_illegal(rq_slice name, const char *also, size_t *ret_index, uint32_t *ret_c)
{
    name_walk w = {.bytes = rq_cursor_of(name)};
    bool found = false;
    while (walk_next(&w)) {
        if (!is_alphanumeric(&w) && (w.c == 0 || w.c >= 0x80 || strchr(also, (int)w.c) == NULL)) {
            *ret_index = w.index;
            *ret_c = w.c > 0xffff ? 0xd800 + ((w.c - 0x10000) >> 10) : w.c;
            found = true;
            break;
        }
        w.index += w.c > 0xffff ? 2 : 1;
    }
    if (w.locale != (locale_t)0) freelocale(w.locale);
    return found;
}

/* The character as UTF-8 text, "?" for half a surrogate pair (as Java prints it). */
static void char_text(uint32_t c, char out[static 5])
{
    memset(out, 0, 5);
    if (c < 0x80) {
        out[0] = (char)c;
    } else if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
    } else if (c >= 0xd800 && c < 0xe000) {
        out[0] = '?';
    } else {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
    }
}

static int shown(rq_slice s)
{
    return s.len > NAME_SHOWN_MAX ? NAME_SHOWN_MAX : (int)s.len;
}

rq_err rq__namespace_name_check(rq_slice ns, rq_error *why)
{
    if (ns.len == 0) return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Namespace name must not be empty");
    if (rq_slice_eq(ns, RQ_SLICE_LIT("zookeeper")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Tables may not be named 'zookeeper'");
    size_t at;
    uint32_t c;
    if (find_illegal(ns, "_", &at, &c)) {
        char text[5];
        char_text(c, text);
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "Illegal character <%s> at %zu. Namespaces may only contain 'alphanumeric "
                       "characters' from any language and digits: %.*s",
                       text, at, shown(ns), (const char *)ns.ptr);
    }
    return RQ_OK;
}

rq_err rq__name_len_check(const char *of, rq_slice name, rq_error *why)
{
    if (name.len <= RQ_NAME_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "%s is longer than %d bytes", of, RQ_NAME_MAX);
}

/* `of` begins HBase's messages. */
static rq_err qualifier_check(rq_slice q, const char *of, rq_error *why)
{
    if (q.ptr[0] == '.' || q.ptr[0] == '-')
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "Illegal first character <%d> at 0. %s qualifiers can only start with "
                       "'alphanumeric characters' from any language: %.*s",
                       q.ptr[0], of, shown(q), (const char *)q.ptr);
    if (rq_slice_eq(q, RQ_SLICE_LIT("zookeeper")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Tables may not be named 'zookeeper'");
    size_t at;
    uint32_t c;
    if (find_illegal(q, "_-.", &at, &c)) {
        char text[5];
        char_text(c, text);
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "Illegal character code:%u, <%s> at %zu. %s qualifiers may only contain "
                       "'alphanumeric characters' and digits: %.*s",
                       c, text, at, of, shown(q), (const char *)q.ptr);
    }
    return RQ_OK;
}

rq_err rq__snapshot_name_check(rq_slice name, rq_error *why)
{
    if (name.len == 0) return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Snapshot");
    return qualifier_check(name, "Snapshot", why);
}

rq_err rq_table_name_check(rq_slice ns, rq_slice qualifier, rq_error *why)
{
    if (rq_slice_eq(qualifier, RQ_SLICE_LIT("-ROOT-")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "-ROOT- has been deprecated.");
    if (rq_slice_eq(qualifier, RQ_SLICE_LIT(".META.")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       ".META. no longer exists. The table has been renamed to hbase:meta");
    RQ_TRY(rq__namespace_name_check(ns, why));
    if (qualifier.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Table qualifier must not be empty");
    return qualifier_check(qualifier, "User-space table", why);
}

rq_err rq_table_name_parse(rq_slice name, rq_slice *ret_ns, rq_slice *ret_qualifier, rq_error *why)
{
    if (name.len == 0) return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Name is null or empty");
    rq_slice ns = RQ_SLICE_LIT("default");
    rq_slice qualifier = name;
    const uint8_t *colon = memrchr(name.ptr, ':', name.len);
    if (colon != NULL) {
        ns = rq_slice_of(name.ptr, (size_t)(colon - name.ptr));
        qualifier = rq_slice_of(colon + 1, name.len - ns.len - 1);
    }
    RQ_TRY(rq_table_name_check(ns, qualifier, why));
    *ret_ns = ns;
    *ret_qualifier = qualifier;
    return RQ_OK;
}

bool rq__table_is_internal(rq_slice ns, rq_slice qualifier)
{
    return rq_slice_eq(ns, RQ_SLICE_LIT("master")) ||
           (rq_slice_eq(ns, RQ_SLICE_LIT("hbase")) && rq_slice_eq(qualifier, RQ_SLICE_LIT("meta")));
}

/* The text is that of HBASE: Mutation.checkRow. In HBase the check is only made when the procedure
 * that creates the region writes meta. */
rq_err rq__region_name_check(const rq_region_info *info, rq_error *why)
{
    if (info->name.len <= RQ_ROW_LEN_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                   "Row length %zu is > %d: the name of a region of table %.*s with a start key of "
                   "%zu bytes is too long for a row of hbase:meta",
                   info->name.len, RQ_ROW_LEN_MAX, (int)info->table.len,
                   (const char *)info->table.ptr, info->start_key.len);
}
