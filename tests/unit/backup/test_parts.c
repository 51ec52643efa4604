/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of backup that need no server: the list of a backup, and the holders' list on the control
 * socket. */
#include "backup/control.h"
#include "backup/marker.h"
#include "backup/session.h"
#include "backup/socket.h"

#include "catalog/root.h"
#include "vfs/memory.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void a_name_with_a_line_break_is_not_listed(void **state)
{
    (void)state;
    rq_vfs *v;
    rq_error why = {0};
    rq_arena a = {0};
    rq_listed_file file = {.kind = 'f', .size = 3, .path = "data/x"};
    rq_backup_list list = {.source = "/var/lib/a", .taken_ms = 7, .files = &file, .count = 1};
    rq_backup_list read;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_mkdir(v, ".rorqual", &why), RQ_OK);
    list.bytes = 3;

    list.source = "/var/lib/a\nb";
    assert_int_equal(rq__backup_list_write(v, &list, &why), RQ_E_UNSUPPORTED);
    list.source = "/var/lib/a";
    file.path = "data/x\ny";
    assert_int_equal(rq__backup_list_write(v, &list, &why), RQ_E_UNSUPPORTED);
    assert_int_equal(rq__backup_list_read(v, &a, &read, NULL), RQ_E_NOT_FOUND);

    file.path = "data/x y";
    assert_int_equal(rq__backup_list_write(v, &list, NULL), RQ_OK);
    assert_int_equal(rq__backup_list_read(v, &a, &read, NULL), RQ_OK);
    assert_string_equal(read.source, "/var/lib/a");
    assert_int_equal(read.count, 1);
    assert_string_equal(read.files[0].path, "data/x y");
    rq_arena_clear(&a);
    rq_vfs_free(v);
}

/* A server's end of the socket: answers one "holders". */
static void *answer_holders(void *listener)
{
    uint8_t body[RQ__HOLDER_LEN];
    char request[64];
    rq_buf b = {0};
    int fd = accept(*(int *)listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_true(recv(fd, request, sizeof request, 0) > 0);
    rq_put_be64(body, 5);
    rq_put_be64(body + 8, 1);
    rq_put_be64(body + 16, 0);
    rq_put_be64(body + 24, 9);
    assert_int_equal(rq__record_append(&b, 'b', "backup", sizeof body), RQ_OK);
    assert_int_equal(rq_buf_append(&b, body, sizeof body), RQ_OK);
    assert_int_equal(rq__record_append(&b, RQ__RECORD_END, "", 0), RQ_OK);
    assert_int_equal(rq__socket_send(fd, b.ptr, b.len), RQ_OK);
    rq_buf_clear(&b);
    close(fd);
    return NULL;
}

static int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void a_list_of_holders_leaves_nothing_open(void **state)
{
    (void)state;
    char folder[] = "/tmp/rorqual-holders-XXXXXX", path[128];
    rq__socket_address at;
    rq_holder_info *list;
    size_t count = 0;
    rq_arena a = {0};
    pthread_t server;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/.rorqual", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(rq__socket_address_of(folder, &at, NULL), RQ_OK);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at.un, sizeof at.un), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(pthread_create(&server, NULL, answer_holders, &listener), 0);
    int before = open_descriptors();

    assert_int_equal(rq_source_holders(folder, &a, &list, &count, NULL), RQ_OK);
    pthread_join(server, NULL);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].name, "backup");
    assert_int_equal(list[0].since_ms, 5);
    assert_true(list[0].holds_all_files);
    assert_int_equal(list[0].log_from, 9);

    rq_arena_clear(&a);
    rq__socket_address_clear(&at);
    close(listener);
    snprintf(path, sizeof path, "%s/" RQ_CONTROL_NAME, folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/.rorqual", folder);
    rmdir(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_with_a_line_break_is_not_listed),
        cmocka_unit_test(a_list_of_holders_leaves_nothing_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
