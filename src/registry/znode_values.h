/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of HBase's znodes, for the standalone server, which answers ZooKeeper's protocol itself
 * (znodes.c), and for a member of a cluster, which writes them into ZooKeeper (zk_member.c). HBASE:
 * ZNodePaths, RecoverableZooKeeper.appendMetaData: a value is 0xFF, be32 length and bytes of the
 * writer's id, "PBUF", and a protobuf message.
 *
 * `writer` is the id: the ServerName of the process that writes. Values are in the arena.
 */
#ifndef RQ_REGISTRY_ZNODE_VALUES_H
#define RQ_REGISTRY_ZNODE_VALUES_H

#include "base/arena.h"
#include "catalog/catalog.h"

RQ_NODISCARD rq_err rq__znode_cluster_id(const char *writer, const char *cluster_id,
                                         rq_arena *arena, rq_slice *ret);
/* The value of master and backup-masters/NAME. */
RQ_NODISCARD rq_err rq__znode_master(const char *writer, const rq_server_name *master,
                                     uint16_t info_port, rq_arena *arena, rq_slice *ret);
/* The value of meta-region-server. */
RQ_NODISCARD rq_err rq_znode_meta(const char *writer, const rq_server_name *server, rq_arena *arena,
                                  rq_slice *ret);
RQ_NODISCARD rq_err rq__znode_running(const char *writer, int64_t start_ms, rq_arena *arena,
                                      rq_slice *ret);
/* The value of rs/NAME; info_port 0: none. */
RQ_NODISCARD rq_err rq__znode_server(const char *writer, uint16_t info_port, rq_arena *arena,
                                     rq_slice *ret);
RQ_NODISCARD rq_err rq_znode_table(const char *writer, rq_table_state state, rq_arena *arena,
                                   rq_slice *ret);
RQ_NODISCARD rq_err rq_znode_namespace(const char *writer, const rq_namespace *ns, rq_arena *arena,
                                       rq_slice *ret);
/* The value for a message that is already serialized. */
RQ_NODISCARD rq_err rq__znode_bytes(const char *writer, rq_slice message, rq_arena *arena,
                                    rq_slice *ret);

/* Reads values that other processes wrote, with or without header. RQ_E_MALFORMED: the value has
 * another form. */
RQ_NODISCARD rq_err rq__znode_read_cluster_id(rq_slice value, rq_arena *arena, const char **ret,
                                              rq_error *why);
/* Reads the value of master or backup-masters/NAME; ret->text is set. */
RQ_NODISCARD rq_err rq__znode_read_master(rq_slice value, rq_arena *arena, rq_server_name *ret,
                                          rq_error *why);

#endif
