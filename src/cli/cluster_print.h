/* SPDX-License-Identifier: Apache-2.0 */
/* What `rorqual status` and `rorqual cluster status` print alike of a running cluster: lines of text, and members of a JSON
 * object, on standard output. rq__cluster_json_name prints the opening brace and the first members; every other
 * function prints a comma before its members. */
#ifndef RQ_CLI_CLUSTER_PRINT_H
#define RQ_CLI_CLUSTER_PRINT_H

#include "cli/cluster.h"

/* "3 d 4 h", "5 min" … */
void rq__cluster_print_age(int64_t ms);
/* "host:port" */
void rq__cluster_print_address(const rq_server_name *s);
/* "2 regions, 1.0M in 3 files" */
void rq__cluster_print_load(const rq__cluster_row *r);
/* The cluster's id and versions, without the end of the line. */
void rq__cluster_print_name(const rq_cluster_status *s);
/* Two lines for each server. */
void rq__cluster_print_servers(const rq__cluster *c, int64_t now_ms);
/* Prints a line for each region in transition. */
void rq__cluster_print_transitions(const rq_cluster_status *s, int64_t now_ms);

/* Members cluster, version, rorqualVersion. */
void rq__cluster_json_name(const rq_cluster_status *s);
/* Members regions, files, fileBytes. */
void rq__cluster_json_load(const rq__cluster_row *r);
/* Member servers, an array. */
void rq__cluster_json_servers(const rq__cluster *c);
/* Member notOpen, an array of regions in transition. */
void rq__cluster_json_transitions(const rq_cluster_status *s);

#endif
