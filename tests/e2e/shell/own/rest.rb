# SPDX-License-Identifier: Apache-2.0
# Commands that the other scripts call only with wrong arguments: here they succeed.
conf = org.apache.hadoop.hbase.HBaseConfiguration.create; nil
servers = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(conf).getAdmin.getClusterStatus.getServers; nil
SERVER = servers.map { |s| "#{s.getHostname},#{s.getPort},#{s.getStartcode}" }.first; nil
create 't', 'f'
create 'u', 'f'
put 't', 'r', 'f:q', 'v'
disable 'u'
list_enabled_tables
list_disabled_tables
enable 'u'
# switches: each command answers what the switch was before
balancer_enabled
balance_switch false
balancer_enabled
balance_switch true
normalizer_enabled
normalizer_switch false
normalizer_enabled
normalizer_switch true
catalogjanitor_enabled
catalogjanitor_switch false
catalogjanitor_enabled
catalogjanitor_switch true
cleaner_chore_enabled
cleaner_chore_switch false
cleaner_chore_enabled
cleaner_chore_switch true
snapshot_cleanup_enabled
snapshot_cleanup_switch false
snapshot_cleanup_enabled
snapshot_cleanup_switch true
rpc_throttle_enabled
disable_rpc_throttle
rpc_throttle_enabled
enable_rpc_throttle
splitormerge_switch 'SPLIT', false
splitormerge_enabled 'SPLIT'
splitormerge_switch 'SPLIT', true
compaction_switch false
compaction_switch true
is_in_maintenance_mode
# chores, logs
catalogjanitor_run
cleaner_chore_run
hbck_chore_run
flush_master_store
clear_slowlog_responses
clear_slowlog_responses [SERVER]
get_slowlog_responses '*'
get_largelog_responses '*'
get_largelog_responses [SERVER], {'LIMIT' => 5}
get_balancer_rejections
get_balancer_rejections LIMIT => 3
# servers
list_unknownservers
list_deadservers
compact_rs SERVER
compact_rs SERVER, true
clear_compaction_queues SERVER
clear_compaction_queues SERVER, 'long'
update_config SERVER
recommission_regionserver SERVER
wal_roll SERVER
hlog_roll SERVER
flush SERVER
scan 't'
exit
