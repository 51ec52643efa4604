/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's calls from untrusted bytes, executed: shared by service_fuzz.c and admin_fuzz.c.
 *
 *     calls    method (index modulo their number; bit 7: see below), be16 length of the message, be16
 *              length of the cell block, message, cell block; missing bytes at the end are left out
 *
 * Names that are known only at run time are inserted into messages here: a region whose value is
 * one byte is the region with that index (from 128 on: of MOB files), a RegionInfo with an id below
 * 64 likewise, and a scanner id below 64 is that of the n-th scanner opened in this session. A
 * changed message is encoded again, in protobuf-c's order of fields. With bit 7 of the method it is
 * sent unchanged, so that decoders see other orders, repeated fields, and unknown fields.
 *
 * Each answer is decoded as a client would do, and its cell block must be valid. Every call must
 * have an answer when nothing is left to do. */
#ifndef RQ_FUZZ_SESSION_H
#define RQ_FUZZ_SESSION_H

#include "../tests/unit/service/service_world.h"

void session_run(service_world *w, service_kind kind, unsigned hello, rq_slice calls);

#endif
