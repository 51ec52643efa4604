/* SPDX-License-Identifier: Apache-2.0 */
/* The library's calls, which behave alike on every back end:
 *
 *   test_api [PART]... [URL]...   the parts, or all, on each URL; without a URL
 *                                 on "memory:" and on a temporary folder, with threads of the library
 *                                 and without
 *   test_api list                 the parts' names; no two have tables of the same name, so several parts
 *                                 may run at a time on one cluster
 *
 * A cluster must not have the tables of the tests. */
#include "api_rows.h"

typedef struct part {
    const char *name;
    int (*run)(void);
    bool wanted;
} part;

static part parts[] = {
    {"definitions", run_definitions, false},
    {"gets", run_gets, false},
    {"changes", run_changes, false},
    {"batches", run_batches, false},
    {"scans", run_scans, false},
    {"fetch_ahead", run_fetch_ahead, false},
    {"options", run_options, false},
    {"life", run_life, false},
    {"refused", run_refused, false},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static int run(const char *url, bool no_threads)
{
    int failed = 0;
    printf("%s%s\n", url, no_threads ? ", no threads" : "");
    at = (fixture){.url = url, .no_threads = no_threads};
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i].wanted) failed += parts[i].run();
    return failed;
}

static int run_here(void)
{
    char folder[] = "/tmp/rq_api_XXXXXX", url[64], command[64];
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(url, sizeof url, "file:%s", folder);
    int failed = run("memory:", false) + run(url, false) + run("memory:", true) + run(url, true);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}

static bool want(const char *name)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0) return parts[i].wanted = true;
    return false;
}

static int list(void)
{
    for (size_t i = 0; i < PARTS; i++)
        puts(parts[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0, first = 1;
    if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
    while (first < argc && want(argv[first]))
        first++;
    for (size_t i = 0; first == 1 && i < PARTS; i++)
        parts[i].wanted = true;
    for (int i = first; i < argc; i++)
        failed += run(argv[i], false);
    return argc > first ? failed : run_here();
}
