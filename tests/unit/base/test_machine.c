/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits of cgroups, versions 1 and 2 (base/machine.h); brackets around IPv6 addresses. */
#include "unit.h"

#include "base/address.h"
#include "base/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

/* Writes a file, and makes the folders of its path. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/rorqual-machine-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void no_group_is_no_limit(void **state)
{
    (void)state;
    assert_true(rq__cgroup_memory_limit(root) == UINT64_MAX);
    put("/proc/self/cgroup", "0::/\n");
    assert_true(rq__cgroup_memory_limit(root) == UINT64_MAX);
    put("/sys/fs/cgroup/memory.max", "max\n");
    assert_true(rq__cgroup_memory_limit(root) == UINT64_MAX);
}

static void the_lowest_limit_of_the_groups_above_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.max", "536870912\n");
    put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    assert_true(rq__cgroup_memory_limit(root) == 536870912);
}

static void a_container_sees_its_own_group_as_the_top(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/system.slice/elsewhere\n");
    put("/sys/fs/cgroup/memory.max", "268435456\n");
    assert_true(rq__cgroup_memory_limit(root) == 268435456);
}

static void version_1_is_read_too(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n3:hugetlb,memory:/docker/1\n1:name=systemd:/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(rq__cgroup_memory_limit(root) == UINT64_MAX);
    put("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "134217728\n");
    assert_true(rq__cgroup_memory_limit(root) == 134217728);
}

static void an_ipv6_address_is_bracketed(void **state)
{
    char buf[RQ_HOST_PORT_MAX];
    (void)state;
    assert_string_equal(rq_host_port("127.0.0.1", 2181, buf), "127.0.0.1:2181");
    assert_string_equal(rq_host_port("::1", 2181, buf), "[::1]:2181");
    assert_string_equal(rq_host_port("host.example", 1, buf), "host.example:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_group_is_no_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_lowest_limit_of_the_groups_above_counts, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_container_sees_its_own_group_as_the_top, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(version_1_is_read_too, make_root, remove_root),
        cmocka_unit_test(an_ipv6_address_is_bracketed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
