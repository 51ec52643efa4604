/* SPDX-License-Identifier: Apache-2.0 */
/* The library's calls, alike on every back end: test_api URL … runs all tests on each URL; without
 * one on "memory:" and on a folder of its own. A cluster must be empty. */
#include "api_rows.h"

static int run(const char *url)
{
    printf("%s\n", url);
    at = (fixture){.url = url};
    return run_definitions() + run_gets() + run_changes() + run_batches() + run_scans() +
           run_options() + run_life() + run_refused();
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed += run(argv[i]);
    if (argc > 1) return failed;
    char folder[] = "/tmp/rq_api_XXXXXX", url[64], command[64];
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(url, sizeof url, "file:%s", folder);
    failed = run("memory:") + run(url);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}
