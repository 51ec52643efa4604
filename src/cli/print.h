/* SPDX-License-Identifier: Apache-2.0 */
/* Printing for the tools, to standard output: bytes as text, a cell's key in the form of HBase's
 * tools, and members of JSON objects. */
#ifndef RQ_CLI_PRINT_H
#define RQ_CLI_PRINT_H

#include "cell/cell.h"

/* Non-text bytes as \xNN. */
void rq__print_bytes(rq_slice s);
/* Prints the bytes as a JSON string; non-text bytes as \xNN. */
void rq__print_json_bytes(rq_slice s);
/* `before` is the text before the member: "{" or ",". */
void rq__print_json_number(const char *before, const char *name, int64_t v);
void rq__print_json_text(const char *before, const char *name, rq_slice v);

/* row/family:qualifier/timestamp/type, like HBase's HFilePrettyPrinter. */
void rq__print_key(const rq_cell *c);

#endif
