/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of the binary. Each has a file and a line in commands.def; it gets the arguments
 * after its name and returns the process's exit code. */
#ifndef RQ_CLI_CLI_H
#define RQ_CLI_CLI_H

int rq__cmd_server(int argc, char **argv);
int rq__cmd_ping(int argc, char **argv);
int rq__cmd_status(int argc, char **argv);
int rq__cmd_cluster(int argc, char **argv);
int rq__cmd_tables(int argc, char **argv);
int rq__cmd_top(int argc, char **argv);
int rq__cmd_hfile(int argc, char **argv);
int rq__cmd_wal(int argc, char **argv);
int rq__cmd_fsck(int argc, char **argv);
int rq__cmd_backup(int argc, char **argv);
int rq__cmd_recover(int argc, char **argv);
int rq__cmd_restore(int argc, char **argv);
int rq__cmd_settings(int argc, char **argv);
int rq__cmd_key(int argc, char **argv);
int rq__cmd_design(int argc, char **argv);
int rq__cmd_export(int argc, char **argv);
int rq__cmd_import(int argc, char **argv);
int rq__cmd_copytable(int argc, char **argv);
int rq__cmd_rowcount(int argc, char **argv);
int rq__cmd_cellcount(int argc, char **argv);
int rq__cmd_verify(int argc, char **argv);
int rq__cmd_bulkload(int argc, char **argv);
int rq__cmd_canary(int argc, char **argv);
int rq__cmd_split(int argc, char **argv);
int rq__cmd_bench(int argc, char **argv);
int rq__cmd_shell(int argc, char **argv);

#endif
