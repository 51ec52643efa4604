/* SPDX-License-Identifier: Apache-2.0 */
/* What the plug-in for Ceph makes of lost answers. A few functions of librados are replaced here, so that no Ceph is needed:
 * operations are made by librados, but their results are the test's. */
#include "vfs/shared_rados_priv.h"

#include "../base/unit.h"

#include "vfs/sim.h"

#include <errno.h>

#define OTHERS "+00000000000000ff"

/* --- librados --------------------------------------------------------------------------------- */

/* Results of the operations on the head of a tenure. */
static struct {
    int create, read, look;
    const char *found;             /* by `read`; NULL: the own token */
    char own[RQ__RADOS_OWNER_MAX]; /* which `create` was to write */
} head;

void rados_write_op_setxattr(rados_write_op_t op, const char *name, const char *value, size_t len)
{
    (void)op;
    (void)name;
    assert_true(len < sizeof head.own);
    memcpy(head.own, value, len);
    head.own[len] = '\0';
}

int rados_write_op_operate2(rados_write_op_t op, rados_ioctx_t io, const char *object,
                            struct timespec *time, int flags)
{
    (void)op;
    (void)io;
    (void)object;
    (void)time;
    (void)flags;
    return head.create;
}

int rados_getxattr(rados_ioctx_t io, const char *object, const char *name, char *buf, size_t len)
{
    (void)io;
    (void)object;
    (void)name;
    const char *text = head.found == NULL ? head.own : head.found;
    if (head.read < 0) return head.read;
    assert_true(strlen(text) <= len);
    memcpy(buf, text, strlen(text));
    return (int)strlen(text);
}

/* The first renewal. */
int rados_read_op_operate(rados_read_op_t op, rados_ioctx_t io, const char *object, int flags)
{
    (void)op;
    (void)io;
    (void)object;
    (void)flags;
    return head.look;
}

/* --- tenures ---------------------------------------------------------------------------------- */

static uint64_t now_ns(const rq_shared *s)
{
    (void)s;
    return 1;
}

static rq_err begin(rq_sim *sim)
{
    rq_tenure *t = NULL;
    rq__rados r = {.base = {.now_ns = now_ns}, .executor = rq_sim_env(sim)->executor};
    rq_err rc = rq__rados_tenure_begin(&r.base, "h,16020,1", &t, NULL);
    if (rc == RQ_OK) rq__rados_tenure_free(t);
    return rc;
}

/* librados may send the creation again: it then finds the object that its first sending has made. Whose it is, only the owner
 * tells, which may be out of reach. */
static void a_name_is_taken_only_if_its_owner_says_so(void **state)
{
    (void)state;
    static const struct {
        int create, read;
        const char *found;
        rq_err want;
    } cases[] = {
        {0, 0, NULL, RQ_OK},
        {-EEXIST, 0, NULL, RQ_OK},
        {-ETIMEDOUT, 0, NULL, RQ_OK},
        {-EEXIST, 0, OTHERS, RQ_E_EXISTS},
        {-ETIMEDOUT, 0, OTHERS, RQ_E_EXISTS},
        {-EEXIST, -ETIMEDOUT, NULL, RQ_E_TIMEOUT},
        {-EEXIST, -EIO, NULL, RQ_E_IO},
        {-ETIMEDOUT, -EACCES, NULL, RQ_E_PERMISSION},
        {-ETIMEDOUT, -ENOENT, NULL, RQ_E_TIMEOUT},
        {-EEXIST, -ENOENT, NULL, RQ_E_EXISTS}, /* it was removed in between */
        {-ENOSPC, -ENOENT, NULL, RQ_E_NO_SPACE},
    };
    rq_sim *sim;
    assert_int_equal(rq_sim_new(1, NULL, &sim), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        memset(&head, 0, sizeof head);
        head.create = cases[i].create;
        head.read = cases[i].read;
        head.found = cases[i].found;
        rq_err rc = begin(sim);
        if (rc != cases[i].want) fail_msg("case %zu: %s", i, rq_err_text(rc));
    }
    rq_sim_free(sim);
}

/* The name is taken, but the tenure may have ended before its first renewal, or the storage does not answer any more. */
static void a_tenure_begins_with_a_renewal(void **state)
{
    (void)state;
    static const struct {
        int look;
        rq_err want;
    } cases[] = {{0, RQ_OK},
                 {-ECANCELED, RQ_E_SERVER_ABORTED},
                 {-ENOENT, RQ_E_SERVER_ABORTED},
                 {-ETIMEDOUT, RQ_E_TIMEOUT}};
    rq_sim *sim;
    assert_int_equal(rq_sim_new(1, NULL, &sim), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        memset(&head, 0, sizeof head);
        head.look = cases[i].look;
        assert_int_equal(begin(sim), cases[i].want);
    }
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_taken_only_if_its_owner_says_so),
        cmocka_unit_test(a_tenure_begins_with_a_renewal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
