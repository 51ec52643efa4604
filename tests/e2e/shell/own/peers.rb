# SPDX-License-Identifier: Apache-2.0
# Peers of replication and what is changed of them; they are a second cluster.
create 't', {NAME => 'f', REPLICATION_SCOPE => 1}
create 'u', 'f', 'g'
add_peer '1', CLUSTER_KEY => 'PEER:/hbase', STATE => 'DISABLED'
add_peer '1', CLUSTER_KEY => 'PEER:/hbase'
add_peer '2', CLUSTER_KEY => 'PEER:/hbase', TABLE_CFS => {'t' => ['f']}, STATE => 'DISABLED', CONFIG => {'k' => 'v'}
add_peer '3'
add_peer '3', 5
list_peers
get_peer_config '2'
set_peer_bandwidth '1', 1000
show_peer_tableCFs '2'
append_peer_tableCFs '2', {'u' => ['f']}
append_peer_tableCFs '2', {'u' => ['g']}
show_peer_tableCFs '2'
remove_peer_tableCFs '2', {'u' => []}
remove_peer_tableCFs '2', {'u' => ['f']}
set_peer_tableCFs '2', {'t' => [], 'u' => ['g']}
set_peer_exclude_namespaces '1', ['x']
append_peer_exclude_namespaces '1', ['default']
remove_peer_exclude_namespaces '1', ['x']
set_peer_exclude_tableCFs '1', {'u' => []}
append_peer_exclude_tableCFs '1', {'t' => ['f']}
remove_peer_exclude_tableCFs '1', {'u' => []}
list_peers
set_peer_replicate_all '2', true
set_peer_replicate_all '1', false
set_peer_exclude_namespaces '1', []
set_peer_exclude_tableCFs '1', {}
set_peer_replicate_all '1', false
set_peer_namespaces '1', ['default']
append_peer_namespaces '1', ['hbase']
remove_peer_namespaces '1', ['hbase']
update_peer_config '1', {CONFIG => {'a' => 'b'}}
list_peers
enable_peer '2'
disable_peer '2'
list_replicated_tables
list_replicated_tables 'u.*'
disable_table_replication 't'
disable_table_replication 'none'
enable_table_replication 'none'
enable_table_replication 'u'
list_replicated_tables 'u'
alter 'u', {NAME => 'f', VERSIONS => 3}
enable_table_replication 'u'
disable_table_replication 'u'
list_replicated_tables 'u'
peer_modification_enabled
peer_modification_switch false
peer_modification_enabled
peer_modification_switch true
remove_peer '1'
remove_peer '2'
list_peers
exit
