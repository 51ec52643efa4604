/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. */
#include "cluster/handshake.h"

#include "cluster/wire_priv.h"

#include "proto/cluster.pb-c.h"

#include <string.h>

/* --- proofs ----------------------------------------------------------------------------------- */

typedef struct transcript {
    rq_slice role;
    const rq_server_name *from, *to;
    const uint8_t *caller_nonce, *called_nonce;
} transcript;

static void prove(const rq_secret *secret, const transcript *t, uint8_t ret[RQ_HMAC_LEN])
{
    const rq_slice parts[] = {RQ_SLICE_LIT("rorqual peers 1"),
                              t->role,
                              rq_slice_cstr(t->from->text),
                              rq_slice_cstr(t->to->text),
                              rq_slice_of(t->caller_nonce, RQ_NONCE_LEN),
                              rq_slice_of(t->called_nonce, RQ_NONCE_LEN)};
    uint8_t lengths[RQ_ARRAY_LEN(parts)][4];
    rq_slice all[2 * RQ_ARRAY_LEN(parts)];
    for (size_t i = 0; i < RQ_ARRAY_LEN(parts); i++) {
        rq_put_be32(lengths[i], (uint32_t)parts[i].len);
        all[2 * i] = rq_slice_of(lengths[i], 4);
        all[2 * i + 1] = parts[i];
    }
    rq_hmac_sha256(rq_slice_of(secret->key, sizeof secret->key), all, RQ_ARRAY_LEN(all), ret);
}

static void prove_of_caller(const rq_caller *c, const char *role, uint8_t ret[RQ_HMAC_LEN])
{
    const transcript t = {rq_slice_cstr(role), c->from, c->to, c->nonce, c->theirs};
    prove(c->secret, &t, ret);
}

static void prove_of_called(const rq_called *c, const rq_secret *secret, const char *role,
                            uint8_t ret[RQ_HMAC_LEN])
{
    const transcript t = {rq_slice_cstr(role), c->from, c->to, c->theirs, c->nonce};
    prove(secret, &t, ret);
}

static bool is_proof(ProtobufCBinaryData given, const uint8_t wanted[RQ_HMAC_LEN])
{
    return given.len == RQ_HMAC_LEN && rq_same_in_constant_time(given.data, wanted, RQ_HMAC_LEN);
}

/* --- the caller's side ------------------------------------------------------------------------ */

rq_err rq_caller_hello(const rq_caller *c, rq_arena *arena, rq_slice *ret)
{
    Pb__PeerHelloRequest m = PB__PEER_HELLO_REQUEST__INIT;
    m.from = rq__wire_put_server(arena, c->from);
    m.to = rq__wire_put_server(arena, c->to);
    m.nonce = rq__wire_binary(rq_slice_of(c->nonce, RQ_NONCE_LEN));
    if (m.from == NULL || m.to == NULL) return RQ_E_NO_MEMORY;
    return rq__wire_pack(arena, &m.base, ret);
}

static rq_err malformed(rq_error *why)
{
    return rq_fail(why, RQ_E_ACCESS_DENIED, "the other server's greeting is malformed");
}

rq_err rq_caller_prove(rq_caller *c, rq_slice answer, rq_arena *arena, rq_slice *ret, rq_error *why)
{
    const void *p;
    Pb__PeerProveRequest m = PB__PEER_PROVE_REQUEST__INIT;
    uint8_t proof[RQ_HMAC_LEN];
    rq_err rc = rq__wire_unpack(&pb__peer_hello_response__descriptor, answer, arena, &p, why);
    if (rc == RQ_E_DO_NOT_RETRY) return malformed(why);
    RQ_TRY(rc);
    const Pb__PeerHelloResponse *r = p;
    if (r->nonce.len != RQ_NONCE_LEN) return malformed(why);
    memcpy(c->theirs, r->nonce.data, RQ_NONCE_LEN);
    prove_of_caller(c, "caller", proof);
    m.proof = rq__wire_binary(rq_slice_of(proof, sizeof proof));
    return rq__wire_pack(arena, &m.base, ret);
}

rq_err rq_caller_check(const rq_caller *c, rq_slice answer, rq_error *why)
{
    rq_arena a = {0};
    const void *p;
    uint8_t wanted[RQ_HMAC_LEN];
    prove_of_caller(c, "called", wanted);
    rq_err rc = rq__wire_unpack(&pb__peer_prove_response__descriptor, answer, &a, &p, why);
    if (rc == RQ_E_DO_NOT_RETRY) rc = malformed(why);
    if (rc == RQ_OK && !is_proof(((const Pb__PeerProveResponse *)p)->proof, wanted))
        rc =
            rq_fail(why, RQ_E_ACCESS_DENIED, "%s does not have this cluster's secret", c->to->text);
    rq_arena_clear(&a);
    return rc;
}

/* --- the called side -------------------------------------------------------------------------- */

static rq_err refuse(rq_called *c, rq_err rc)
{
    if (rc != RQ_OK && rc != RQ_E_NO_MEMORY) c->state = RQ_CALLED_REFUSED;
    return rc;
}

static rq_err find_self(rq_called *c, const rq_server_name *const *self, size_t count,
                        const rq_server_name *to, rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(self[i]->text, to->text) == 0) c->to = self[i];
    if (c->to != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "the connection was intended for server %.300s; this server is %s", to->text,
                   count == 0 ? "none" : self[0]->text);
}

static rq_err take_hello(rq_called *c, const rq_server_name *const *self, size_t self_count,
                         rq_slice hello, rq_arena *arena, rq_error *why)
{
    const void *p;
    const rq_server_name *from, *to;
    RQ_TRY(rq__wire_unpack(&pb__peer_hello_request__descriptor, hello, arena, &p, why));
    const Pb__PeerHelloRequest *m = p;
    RQ_TRY(rq__wire_take_server(m->from, arena, &from, why));
    RQ_TRY(rq__wire_take_server(m->to, arena, &to, why));
    if (m->nonce.len != RQ_NONCE_LEN)
        return rq_fail(why, RQ_E_ACCESS_DENIED, "malformed greeting: its nonce has %zu bytes",
                       m->nonce.len);
    RQ_TRY(find_self(c, self, self_count, to, why));
    memcpy(c->theirs, m->nonce.data, RQ_NONCE_LEN);
    c->from = rq_server_name_new(from);
    return c->from == NULL ? rq_no_memory(why) : RQ_OK;
}

rq_err rq_called_hello(rq_called *c, const rq_server_name *const *self, size_t self_count,
                       const uint8_t nonce[RQ_NONCE_LEN], rq_slice hello, rq_arena *arena,
                       rq_slice *ret, rq_error *why)
{
    Pb__PeerHelloResponse m = PB__PEER_HELLO_RESPONSE__INIT;
    if (c->state != RQ_CALLED_NEW)
        return refuse(c, rq_fail(why, RQ_E_ACCESS_DENIED, "a second greeting on one connection"));
    rq_err rc = refuse(c, take_hello(c, self, self_count, hello, arena, why));
    if (rc != RQ_OK) return rc;
    memcpy(c->nonce, nonce, RQ_NONCE_LEN);
    c->state = RQ_CALLED_CHALLENGED;
    m.nonce = rq__wire_binary(rq_slice_of(c->nonce, RQ_NONCE_LEN));
    return rq__wire_pack(arena, &m.base, ret);
}

static rq_err take_proof(const rq_called *c, const rq_secret *secret, rq_slice proof,
                         rq_arena *arena, rq_error *why)
{
    const void *p;
    uint8_t wanted[RQ_HMAC_LEN];
    if (c->state != RQ_CALLED_CHALLENGED)
        return rq_fail(why, RQ_E_ACCESS_DENIED,
                       "a proof of the cluster's secret without a greeting before it");
    RQ_TRY(rq__wire_unpack(&pb__peer_prove_request__descriptor, proof, arena, &p, why));
    prove_of_called(c, secret, "caller", wanted);
    if (is_proof(((const Pb__PeerProveRequest *)p)->proof, wanted)) return RQ_OK;
    return rq_fail(why, RQ_E_ACCESS_DENIED, "%.300s does not have this cluster's secret",
                   c->from->text);
}

rq_err rq_called_prove(rq_called *c, const rq_secret *secret, rq_slice proof, rq_arena *arena,
                       rq_slice *ret, rq_error *why)
{
    Pb__PeerProveResponse m = PB__PEER_PROVE_RESPONSE__INIT;
    uint8_t own[RQ_HMAC_LEN];
    rq_err rc = refuse(c, take_proof(c, secret, proof, arena, why));
    if (rc != RQ_OK) return rc;
    prove_of_called(c, secret, "called", own);
    m.proof = rq__wire_binary(rq_slice_of(own, sizeof own));
    RQ_TRY(rq__wire_pack(arena, &m.base, ret));
    c->state = RQ_CALLED_PROVEN;
    return RQ_OK;
}

void rq_called_clear(rq_called *c)
{
    rq_server_name_unref(c->from);
    *c = (rq_called){.state = RQ_CALLED_REFUSED};
}
