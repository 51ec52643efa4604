/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls have the same results on the vfs in memory and on the one on files. test_vfs_memory
 * [SEED] */
#include "../base/unit.h"
#include "vfs_pair.h"

#include "vfs/memory.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <unistd.h>

enum { CALLS = 4000 };

static uint64_t seed = 1;

/* Both get the same calls. */
typedef struct pair {
    rq_vfs *memory, *posix;
    char root[64];
} pair;

static int make_pair(void **state)
{
    static pair p;
    strcpy(p.root, "/tmp/rorqual-vfs-XXXXXX");
    if (mkdtemp(p.root) == NULL || rq_vfs_memory_new(&p.memory) != RQ_OK ||
        rq_vfs_posix_new(p.root, &p.posix, NULL) != RQ_OK)
        return -1;
    *state = &p;
    return 0;
}

static int remove_pair(void **state)
{
    pair *p = *state;
    vfs_pair_clear(p->posix);
    rq_vfs_free(p->memory);
    rq_vfs_free(p->posix);
    return rmdir(p->root);
}

static void random_calls_agree(void **state)
{
    pair *p = *state;
    vfs_pair_agrees(&(vfs_pair){p->memory, p->posix}, seed, CALLS);
}

static void a_lock_excludes(void **state)
{
    pair *p = *state;
    rq_file *lock, *other;
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &lock, NULL), RQ_OK);
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &other, NULL), RQ_E_LOCKED);
    assert_int_equal(rq_file_close(lock), RQ_OK);
    assert_int_equal(rq_vfs_lock(p->memory, "lock", &other, NULL), RQ_OK);
    assert_int_equal(rq_file_close(other), RQ_OK);
}

/* One thread writes the bytes after `at` once; concurrent readers see all of them or none. */
static void *append(void *arg)
{
    rq_file *f = arg;
    uint8_t bytes[100];
    memset(bytes, 7, sizeof bytes);
    for (uint64_t at = 0; at < 1000 * sizeof bytes; at += sizeof bytes)
        if (rq_file_write(f, bytes, sizeof bytes, at, NULL) != RQ_OK) return NULL;
    return arg;
}

static void threads_read_while_one_writes(void **state)
{
    pair *p = *state;
    rq_file *f;
    pthread_t writer;
    void *ok;
    assert_int_equal(rq_vfs_open(p->memory, "file", RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, NULL),
                     RQ_OK);
    assert_int_equal(pthread_create(&writer, NULL, append, f), 0);
    for (size_t len = 0; len < 1000;) {
        static uint8_t bytes[100000];
        assert_int_equal(rq_file_read(f, bytes, sizeof bytes, 0, &len, NULL), RQ_OK);
        assert_int_equal(len % 100, 0);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(bytes[i], 7);
    }
    pthread_join(writer, &ok);
    assert_ptr_equal(ok, f);
    assert_int_equal(rq_file_close(f), RQ_OK);
}

#define IN_PAIR(f) cmocka_unit_test_setup_teardown(f, make_pair, remove_pair)

int main(int argc, char **argv)
{
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        IN_PAIR(random_calls_agree),
        IN_PAIR(a_lock_excludes),
        IN_PAIR(threads_read_while_one_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
