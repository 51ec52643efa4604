/* SPDX-License-Identifier: Apache-2.0 */
/* See site.h. */
#include "cli/site.h"

#include "base/machine.h"

#include <stdlib.h>

bool rq__site_add(rq_site *s, rq_site_kind kind, rq_setting setting, const char *text)
{
    rq_site_source *more = realloc(s->sources, (s->count + 1) * sizeof *more);
    if (more == NULL) return false;
    s->sources = more;
    more[s->count++] = (rq_site_source){kind, setting, text};
    return true;
}

static rq_err read_source(rq_config *c, const rq_site_source *from, rq_error *why)
{
    switch (from->kind) {
    case RQ_SITE_FILE:
        return rq_config_load(c, from->text, why);
    case RQ_SITE_PAIR:
        return rq_config_set_pair(c, from->text, why);
    case RQ_SITE_VALUE:
        break;
    }
    return rq_config_set(c, rq_setting_get(from->setting)->name, from->text, why);
}

rq_err rq__site_read(const rq_site *s, rq_config **ret, rq_error *why)
{
    rq_config *c;
    if (rq_config_new(&c) != RQ_OK) return rq_no_memory(why);
    rq_err rc = RQ_OK;
    for (int options = 0; options < 2; options++) /* options go before files and -D */
        for (size_t i = 0; i < s->count && rc == RQ_OK; i++)
            if ((s->sources[i].kind == RQ_SITE_VALUE) == options)
                rc = read_source(c, &s->sources[i], why);
    if (rc == RQ_OK) rc = rq_config_check(c, rq_machine_memory(), why);
    if (rc == RQ_OK)
        *ret = c;
    else
        rq_config_free(c);
    return rc;
}

void rq__site_clear(rq_site *s)
{
    free(s->sources);
    *s = (rq_site){0};
}
