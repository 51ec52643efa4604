# SPDX-License-Identifier: Apache-2.0
# The commands by group: their titles in help, and the prelude in which they are.

module Shell
  # group => [title, prelude, commands, note]
  GROUPS = {
    'general' => ['GENERAL HBASE SHELL COMMANDS', 'general', %w[status version table_help whoami processlist]],
    'ddl' => ['TABLES MANAGEMENT COMMANDS', 'ddl',
              %w[alter create describe disable disable_all is_disabled drop drop_all enable enable_all is_enabled exists list
                 show_filters alter_status alter_async get_table locate_region list_regions clone_table_schema
                 list_enabled_tables list_disabled_tables]],
    'namespace' => ['NAMESPACE MANAGEMENT COMMANDS', 'namespace',
                    %w[create_namespace drop_namespace alter_namespace describe_namespace list_namespace
                       list_namespace_tables]],
    'dml' => ['DATA MANIPULATION COMMANDS', 'dml',
              %w[count delete deleteall get get_counter incr put scan truncate truncate_preserve append get_splits]],
    'tools' => ['HBASE SURGERY TOOLS', 'tools',
                %w[assign balancer balance_switch balancer_enabled normalize normalizer_switch normalizer_enabled
                   is_in_maintenance_mode clear_slowlog_responses close_region compact compaction_switch flush
                   flush_master_store get_balancer_decisions get_balancer_rejections get_slowlog_responses
                   get_largelog_responses major_compact move split merge_region unassign zk_dump wal_roll hbck_chore_run
                   catalogjanitor_run catalogjanitor_switch catalogjanitor_enabled cleaner_chore_run cleaner_chore_switch
                   cleaner_chore_enabled compact_rs compaction_state trace snapshot_cleanup_switch snapshot_cleanup_enabled
                   splitormerge_switch splitormerge_enabled clear_compaction_queues list_deadservers list_liveservers
                   list_unknownservers clear_deadservers clear_block_cache stop_master stop_regionserver regioninfo rit
                   list_decommissioned_regionservers decommission_regionservers recommission_regionserver truncate_region],
                "WARNING: Above commands are for 'experts'-only as misuse can damage an install"],
    'replication' => ['CLUSTER REPLICATION TOOLS', 'replication',
                      %w[add_peer remove_peer list_peers enable_peer disable_peer set_peer_replicate_all set_peer_serial
                         set_peer_namespaces append_peer_namespaces remove_peer_namespaces set_peer_exclude_namespaces
                         append_peer_exclude_namespaces remove_peer_exclude_namespaces show_peer_tableCFs set_peer_tableCFs
                         set_peer_exclude_tableCFs append_peer_exclude_tableCFs remove_peer_exclude_tableCFs
                         set_peer_bandwidth list_replicated_tables append_peer_tableCFs remove_peer_tableCFs
                         enable_table_replication disable_table_replication get_peer_config list_peer_configs
                         update_peer_config peer_modification_enabled peer_modification_switch]],
    'snapshots' => ['CLUSTER SNAPSHOT TOOLS', 'snapshots',
                    %w[snapshot clone_snapshot restore_snapshot delete_snapshot delete_all_snapshot delete_table_snapshots
                       list_snapshots list_table_snapshots]],
    'configuration' => ['ONLINE CONFIGURATION TOOLS', 'tools', %w[update_config update_all_config update_rsgroup_config]],
    'quotas' => ['CLUSTER QUOTAS TOOLS', 'quotas',
                 %w[set_quota list_quotas list_quota_table_sizes list_quota_snapshots list_snapshot_sizes enable_rpc_throttle
                    disable_rpc_throttle rpc_throttle_enabled enable_exceed_throttle_quota disable_exceed_throttle_quota]],
    'security' => ['SECURITY TOOLS', 'security', %w[list_security_capabilities grant revoke user_permission],
                   'NOTE: Above commands are only applicable if running with the AccessController coprocessor'],
    'procedures' => ['PROCEDURES & LOCKS MANAGEMENT', 'logs', %w[list_procedures list_locks]],
    'visibility labels' => ['VISIBILITY LABEL TOOLS', 'security',
                            %w[add_labels list_labels set_auths get_auths clear_auths set_visibility],
                            'NOTE: Above commands are only applicable if running with the VisibilityController coprocessor'],
    'rsgroup' => ['RSGroups', 'rsgroup',
                  %w[list_rsgroups get_rsgroup add_rsgroup remove_rsgroup balance_rsgroup move_servers_rsgroup
                     move_tables_rsgroup move_namespaces_rsgroup move_servers_tables_rsgroup move_servers_namespaces_rsgroup
                     get_server_rsgroup get_table_rsgroup remove_servers_rsgroup rename_rsgroup alter_rsgroup_config
                     show_rsgroup_config get_namespace_rsgroup],
                  "NOTE: The rsgroup Coprocessor Endpoint must be enabled on the Master else commands fail with:\n" \
                  '  UnknownProtocolException: No registered Master Coprocessor Endpoint found for RSGroupAdminService'],
    'storefiletracker' => ['StoreFileTracker', 'ddl', %w[change_sft change_sft_all]]
  }
  ALIASES = { 'desc' => 'describe', 'hlog_roll' => 'wal_roll' }
end
