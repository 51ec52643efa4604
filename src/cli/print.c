/* SPDX-License-Identifier: Apache-2.0 */
/* See print.h. */
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>

/* Escaped bytes can take four times their length. */
void rq__print_bytes(rq_slice s)
{
    char text[1024];
    while (s.len > 0) {
        rq_slice part = {s.ptr, s.len < 200 ? s.len : 200};
        rq_bytes_to_string(part, text, sizeof(text));
        fputs(text, stdout);
        s.ptr += part.len;
        s.len -= part.len;
    }
}

/* The same as a JSON string. */
void rq__print_json_bytes(rq_slice s)
{
    char text[1024];
    putchar('"');
    while (s.len > 0) {
        rq_slice part = {s.ptr, s.len < 200 ? s.len : 200};
        rq_bytes_to_string(part, text, sizeof(text));
        for (const char *c = text; *c != '\0'; c++) {
            if (*c == '"' || *c == '\\') putchar('\\');
            putchar(*c);
        }
        s.ptr += part.len;
        s.len -= part.len;
    }
    putchar('"');
}

/* `before` is the text before the member: "{" or ",". */
void rq__print_json_number(const char *before, const char *name, int64_t v)
{
    printf("%s\"%s\":%" PRId64, before, name, v);
}

void rq__print_json_text(const char *before, const char *name, rq_slice v)
{
    printf("%s\"%s\":", before, name);
    rq__print_json_bytes(v);
}

void rq__print_key(const rq_cell *c)
{
    rq__print_bytes(rq_cell_row(c));
    putchar('/');
    rq__print_bytes(rq_cell_family(c));
    if (c->family_len > 0) putchar(':');
    rq__print_bytes(rq_cell_qualifier(c));
    if (c->timestamp == RQ_TIMESTAMP_LATEST)
        printf("/LATEST_TIMESTAMP/");
    else if (c->timestamp == RQ_TIMESTAMP_OLDEST)
        printf("/OLDEST_TIMESTAMP/");
    else
        printf("/%" PRId64 "/", c->timestamp);
    fputs(rq_cell_type_name(c->type), stdout);
}
