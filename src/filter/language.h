/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's filter language: "PrefixFilter ('a') AND (KeyOnlyFilter() OR SKIP PageFilter(5))", as
 * used by the Thrift and REST gateways and the shell. It is compiled to the message a client would
 * send, so that filters enter the engine in one way only.
 */
#ifndef RQ_FILTER_LANGUAGE_H
#define RQ_FILTER_LANGUAGE_H

#include "base/arena.h"

/* Compiles `text` to the class name and protobuf bytes for rq_filter_parse or a Scan message,
 * both in the arena. RQ_E_ILLEGAL_ARGUMENT with HBase's text. HBASE:
 * ParseFilter.parseFilterString. */
RQ_NODISCARD
rq_err rq_filter_language_compile(rq_slice text, rq_arena *arena, rq_slice *ret_java_class_name,
                                  rq_slice *ret_serialized, rq_error *why);

#endif
