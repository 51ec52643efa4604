/* SPDX-License-Identifier: Apache-2.0 */
/* The proofs of two servers, and the file with the secret; RFC 4231's cases of HMAC-SHA256. */
#include "cluster/handshake.h"

#include "../base/unit.h"
#include "proto/cluster.pb-c.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- HMAC ------------------------------------------------------------------------------------- */

static void check_hmac(rq_slice key, const char *text, const char *hex)
{
    uint8_t mac[RQ_HMAC_LEN];
    char got[2 * RQ_HMAC_LEN + 1];
    const rq_slice whole = rq_slice_cstr(text);
    const rq_slice parts[] = {rq_slice_of(whole.ptr, 3), (rq_slice){0},
                              rq_slice_of(whole.ptr + 3, whole.len - 3)};
    rq_hmac_sha256(key, parts, RQ_ARRAY_LEN(parts), mac);
    for (size_t i = 0; i < sizeof mac; i++)
        snprintf(got + 2 * i, 3, "%02x", mac[i]);
    assert_string_equal(got, hex);
}

static void hmac_is_that_of_rfc_4231(void **state)
{
    (void)state;
    uint8_t key[131];
    memset(key, 0x0b, 20);
    check_hmac(rq_slice_of(key, 20), "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac(rq_slice_cstr("Jefe"), "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    check_hmac(rq_slice_of(key, sizeof key),
               "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    assert_true(rq_same_in_constant_time(key, key + 1, 32));
    key[9] ^= 1;
    assert_false(rq_same_in_constant_time(key, key + 10, 32));
}

/* --- handshakes ------------------------------------------------------------------------------- */

static const rq_server_name a = {.host = "a", .port = 1, .start_code = 5, .text = "a,1,5"},
                            b = {.host = "b", .port = 2, .start_code = 6, .text = "b,2,6"},
                            b_later = {.host = "b", .port = 2, .start_code = 7, .text = "b,2,7"};

static rq_secret secret_of(const char *text)
{
    rq_secret s;
    const rq_slice bytes = rq_slice_cstr(text);
    rq_hmac_sha256(rq_slice_cstr("tests"), &bytes, 1, s.key);
    return s;
}

typedef struct talk {
    rq_arena arena;
    rq_secret theirs, ours; /* the secrets of the caller and of the called server */
    rq_caller caller;
    rq_called called;
    const rq_server_name *self[1];
    rq_slice hello, nonce, proof, answer;
    rq_error why;
} talk;

static void talk_begin(talk *t, const char *theirs, const char *ours)
{
    *t = (talk){.theirs = secret_of(theirs), .ours = secret_of(ours), .self = {&b}};
    t->caller = (rq_caller){.secret = &t->theirs, .from = &a, .to = &b};
    assert_int_equal(rq_unguessable(t->caller.nonce, RQ_NONCE_LEN), RQ_OK);
    assert_int_equal(rq_caller_hello(&t->caller, &t->arena, &t->hello), RQ_OK);
}

static rq_err take_hello(talk *t)
{
    uint8_t nonce[RQ_NONCE_LEN];
    t->why = (rq_error){0};
    assert_int_equal(rq_unguessable(nonce, RQ_NONCE_LEN), RQ_OK);
    return rq_called_hello(&t->called, t->self, 1, nonce, t->hello, &t->arena, &t->nonce, &t->why);
}

static rq_err take_proof(talk *t, rq_slice proof)
{
    t->why = (rq_error){0};
    return rq_called_prove(&t->called, &t->ours, proof, &t->arena, &t->answer, &t->why);
}

static void talk_to_proof(talk *t)
{
    assert_int_equal(take_hello(t), RQ_OK);
    assert_int_equal(t->called.state, RQ_CALLED_CHALLENGED);
    assert_int_equal(rq_caller_prove(&t->caller, t->nonce, &t->arena, &t->proof, &t->why), RQ_OK);
}

static void talk_end(talk *t)
{
    rq_called_clear(&t->called);
    rq_arena_clear(&t->arena);
}

static void both_prove(void **state)
{
    (void)state;
    talk t;
    talk_begin(&t, "one", "one");
    talk_to_proof(&t);
    assert_int_equal(take_proof(&t, t.proof), RQ_OK);
    assert_int_equal(t.called.state, RQ_CALLED_PROVEN);
    assert_string_equal(t.called.from->text, a.text);
    assert_int_equal(rq_caller_check(&t.caller, t.answer, &t.why), RQ_OK);
    /* a proof sent twice is refused */
    assert_int_equal(take_proof(&t, t.proof), RQ_E_ACCESS_DENIED);
    assert_int_equal(t.called.state, RQ_CALLED_REFUSED);
    talk_end(&t);
}

static void another_secret_is_refused(void **state)
{
    (void)state;
    talk t;
    talk_begin(&t, "one", "two");
    talk_to_proof(&t);
    assert_int_equal(take_proof(&t, t.proof), RQ_E_ACCESS_DENIED);
    assert_string_equal(t.why.message, "a,1,5 does not have this cluster's secret");
    assert_int_equal(t.called.state, RQ_CALLED_REFUSED);
    /* no second attempt on the same connection */
    assert_int_equal(take_hello(&t), RQ_E_ACCESS_DENIED);
    talk_end(&t);
}

/* Every bit of a proof matters; a called server that does not know the secret is detected. */
static void changed_proofs_are_refused(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * (RQ_HMAC_LEN + 2); bit++) {
        talk t;
        talk_begin(&t, "one", "one");
        talk_to_proof(&t);
        uint8_t *bytes = rq_arena_alloc(&t.arena, t.proof.len);
        memcpy(bytes, t.proof.ptr, t.proof.len);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(take_proof(&t, rq_slice_of(bytes, t.proof.len)), RQ_OK);
        assert_int_equal(t.called.state, RQ_CALLED_REFUSED);
        /* A proof that is sent back is not accepted. */
        t.why = (rq_error){0};
        assert_int_equal(rq_caller_check(&t.caller, t.proof, &t.why), RQ_E_ACCESS_DENIED);
        assert_string_equal(t.why.message, "b,2,6 does not have this cluster's secret");
        talk_end(&t);
    }
}

static void a_proof_is_of_use_once(void **state)
{
    (void)state;
    talk first, second;
    talk_begin(&first, "one", "one");
    talk_to_proof(&first);
    /* The same hello on another connection gets another nonce. */
    talk_begin(&second, "one", "one");
    second.hello = first.hello;
    assert_int_equal(take_hello(&second), RQ_OK);
    assert_int_equal(take_proof(&second, first.proof), RQ_E_ACCESS_DENIED);
    assert_int_equal(take_proof(&first, first.proof), RQ_OK);
    talk_end(&first);
    talk_end(&second);
}

/* A third party relays a server's hello to another server: the names do not match. */
static void a_proof_is_for_two_names(void **state)
{
    (void)state;
    talk t;
    talk_begin(&t, "one", "one");
    t.self[0] = &b_later; /* b has restarted under a new start code */
    assert_int_equal(take_hello(&t), RQ_E_DO_NOT_RETRY);
    assert_string_equal(t.why.message,
                        "the connection was intended for server b,2,6; this server is b,2,7");
    assert_int_equal(t.called.state, RQ_CALLED_REFUSED);
    talk_end(&t);
    /* The hello names another caller than the proof. */
    talk_begin(&t, "one", "one");
    rq_caller other = t.caller;
    other.from = &b_later;
    assert_int_equal(rq_caller_hello(&other, &t.arena, &t.hello), RQ_OK);
    talk_to_proof(&t);
    assert_int_equal(take_proof(&t, t.proof), RQ_E_ACCESS_DENIED);
    talk_end(&t);
}

static void a_greeting_has_an_order(void **state)
{
    (void)state;
    talk t;
    talk_begin(&t, "one", "one");
    assert_int_equal(take_proof(&t, RQ_SLICE_LIT("\x0a\x00")), RQ_E_ACCESS_DENIED);
    assert_int_equal(take_hello(&t), RQ_E_ACCESS_DENIED);
    talk_end(&t);
    talk_begin(&t, "one", "one");
    assert_int_equal(take_hello(&t), RQ_OK);
    assert_int_equal(take_hello(&t), RQ_E_ACCESS_DENIED);
    talk_end(&t);
    static const char *const bad[] = {"", "\xff", "\x1a\x00", "\x0a\x03\x0a\x01h"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        talk_begin(&t, "one", "one");
        t.hello = rq_slice_cstr(bad[i]);
        assert_int_not_equal(take_hello(&t), RQ_OK);
        assert_int_equal(t.called.state, RQ_CALLED_REFUSED);
        assert_int_equal(rq_caller_prove(&t.caller, t.hello, &t.arena, &t.proof, &t.why),
                         RQ_E_ACCESS_DENIED);
        talk_end(&t);
    }
}

/* --- the file with the secret ----------------------------------------------------------------- */

static void write_file(const char *path, const char *text, size_t len, mode_t mode)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void check_refused(const char *path, const char *words)
{
    rq_secret s;
    rq_error why = {0};
    assert_int_equal(rq_secret_read(path, &s, &why), RQ_E_CONFIG);
    if (strstr(why.message, words) == NULL) fail_msg("%s", why.message);
    assert_null(strstr(why.message, "KNOWN"));
}

static void the_file_is_read_if_others_cannot(void **state)
{
    (void)state;
    static const char good[] = "KNOWN to servers only";
    char folder[] = "/tmp/rq-secret-XXXXXX", path[64], long_one[RQ_SECRET_MAX + 1];
    rq_secret first, second;
    rq_error why = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/secret", folder);
    check_refused(path, "No such file");
    check_refused(folder, "not a file");
    write_file(path, good, strlen(good), 0600);
    assert_int_equal(rq_secret_read(path, &first, &why), RQ_OK);
    /* with the line end that editors and echo add */
    write_file(path, "KNOWN to servers only \r\n", 24, 0400);
    assert_int_equal(rq_secret_read(path, &second, &why), RQ_OK);
    assert_memory_equal(&first, &second, sizeof first);
    write_file(path, "KNOWN to servers onlyX", 22, 0600);
    assert_int_equal(rq_secret_read(path, &second, &why), RQ_OK);
    assert_memory_not_equal(&first, &second, sizeof first);
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0666, 0777};
    for (size_t i = 0; i < RQ_ARRAY_LEN(modes); i++) {
        write_file(path, good, strlen(good), modes[i]);
        check_refused(path, "set it to 600");
    }
    write_file(path, "KNOWN: 15 bytes\n", 16, 0600);
    check_refused(path, "15 bytes, but at least");
    write_file(path, "", 0, 0600);
    check_refused(path, "0 bytes, but at least");
    memset(long_one, 'K', sizeof long_one);
    write_file(path, long_one, sizeof long_one, 0600);
    check_refused(path, "more than 4096 bytes");
    write_file(path, long_one, sizeof long_one - 1, 0600);
    assert_int_equal(rq_secret_read(path, &second, &why), RQ_OK);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(path, "not a file");
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hmac_is_that_of_rfc_4231),
        cmocka_unit_test(both_prove),
        cmocka_unit_test(another_secret_is_refused),
        cmocka_unit_test(changed_proofs_are_refused),
        cmocka_unit_test(a_proof_is_of_use_once),
        cmocka_unit_test(a_proof_is_for_two_names),
        cmocka_unit_test(a_greeting_has_an_order),
        cmocka_unit_test(the_file_is_read_if_others_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
