/* SPDX-License-Identifier: Apache-2.0 */
/* See host_port.h. */
#include "base/host_port.h"

#include <stdio.h>
#include <string.h>

bool rq_host_port_split(rq_slice text, char *host, size_t size, uint16_t *ret_port)
{
    size_t colon = text.len;
    unsigned long port = 0;
    while (colon > 0 && text.ptr[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon == text.len) return false;
    rq_slice h = rq_slice_of(text.ptr, colon - 1);
    bool brackets = h.len > 2 && h.ptr[0] == '[' && h.ptr[h.len - 1] == ']';
    if (brackets) h = rq_slice_of(h.ptr + 1, h.len - 2);
    if (h.len >= size) return false;
    for (size_t i = colon; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        port = port * 10 + (text.ptr[i] - (unsigned)'0');
        if (port > UINT16_MAX) return false;
    }
    memcpy(host, h.ptr, h.len);
    host[h.len] = '\0';
    *ret_port = (uint16_t)port;
    return true;
}

/* How many colons the text has: 0, 1, or more than one. */
static unsigned colons(rq_slice text)
{
    unsigned n = 0;
    for (size_t i = 0; i < text.len && n < 2; i++)
        n += text.ptr[i] == ':';
    return n;
}

int rq_host_with_port(char *buf, size_t size, rq_slice entry, rq_slice port)
{
    bool in_brackets = entry.len > 0 && entry.ptr[0] == '[';
    bool has_port = in_brackets ? entry.ptr[entry.len - 1] != ']' : colons(entry) == 1;
    bool is_bare = !in_brackets && colons(entry) > 1; /* an IPv6 address without its brackets */
    return snprintf(buf, size, "%s%.*s%s%s%.*s", is_bare ? "[" : "", (int)entry.len,
                    (const char *)entry.ptr, is_bare ? "]" : "", has_port ? "" : ":",
                    has_port ? 0 : (int)port.len, (const char *)port.ptr);
}
