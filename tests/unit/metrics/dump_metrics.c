/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the output formats for check_forms.py, which parses them:
 *     dump_metrics prometheus | prometheus-regions | hadoop | jmx [QRY] | get BEAN::ATTRIBUTE */
#include "metrics_world.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    metrics_world w;
    rq_err rc = RQ_OK;
    const char *form = argc < 2 ? "" : argv[1], *more = argc < 3 ? NULL : argv[2];
    metrics_world_init(&w);
    metrics_world_get(&w, 100);
    metrics_world_put(&w, 100);
    char *text;
    if (strncmp(form, "prometheus", 10) == 0)
        text = metrics_world_prometheus(&w, strcmp(form, "prometheus-regions") == 0);
    else if (strcmp(form, "hadoop") == 0)
        text = metrics_world_hadoop(&w);
    else if (strcmp(form, "get") == 0)
        text = metrics_world_jmx(&w, &(rq_metrics_query){.get = more}, &rc);
    else
        text =
            metrics_world_jmx(&w, &(rq_metrics_query){.qry = more, .description = argc > 3}, &rc);
    fputs(text, stdout);
    free(text);
    metrics_world_clear(&w);
    return rc == RQ_OK ? 0 : rc == RQ_E_ILLEGAL_ARGUMENT ? 4 : 1;
}
