/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's calls from untrusted bytes, executed: shared by service_fuzz.c and admin_fuzz.c.
 *
 *     calls    method (index modulo their number; bit 7: see below), be16 length of the message, be16
 *              length of the cell block, message, cell block; missing bytes at the end are left out
 *
 * Names that are known only at run time are inserted into messages: a region whose value is one
 * byte becomes the region with that index (from 128 on: of MOB files); so does a RegionInfo with an
 * id below 64; a scanner id n below 64 becomes the id of the n-th scanner opened in this session. A
 * changed message is encoded again, in protobuf-c's order of fields. With bit 7 of the method it is
 * sent unchanged, so that decoders see other orders, repeated fields, and unknown fields.
 *
 * Each response is decoded as a client would do, and its cell block must be valid. When no work is
 * left, every call must have a response. */
#ifndef RQ_FUZZ_SESSION_H
#define RQ_FUZZ_SESSION_H

#include "../tests/unit/service/service_world.h"

void session_run(service_world *w, service_kind kind, unsigned hello, rq_slice calls);

#endif
