/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's calls from untrusted bytes, executed: what service_fuzz.c and admin_fuzz.c share.
 *
 *   calls    method (index modulo their number; bit 7: see below), be16 length of the message, be16
 *            length of the cell block, message, cell block; what is missing at the end is left out
 *
 * Some names are only known at run time and are put into messages here: a region whose value is one
 * byte is that one of the tables' regions (from 128 on: of their MOB files), a RegionInfo with an
 * id below 64 likewise, and a scanner id below 64 is that of the n-th scanner this session opened.
 * A message that is changed so is encoded anew, in protobuf-c's order; with bit 7 of the method it
 * goes out as it came, so that decoders see other orders, fields twice, and fields that they do not
 * know.
 *
 * Each answer is decoded as a client would, and its cell block has to be one. Every call must have
 * an answer when nothing is left to do.
 */
#ifndef RQ_FUZZ_SESSION_H
#define RQ_FUZZ_SESSION_H

#include "../tests/unit/service/service_world.h"

void session_run(service_world *w, service_kind kind, unsigned hello, rq_slice calls);

#endif
