# SPDX-License-Identifier: Apache-2.0
# Wrong arguments to every command. `wrong` calls a command with the same lists of arguments for all commands; lists that a command
# accepts, or that would change the server, are left out by their number. `fails` calls it with the arguments given.
LONG = 'x' * 300
LISTS = [[], [nil], [5], [-1], [''], ['nope'], ['bad name!'], ['nope:t'], [LONG], [:nope], [[]], [{}], [{'X' => 1}], ['nope', nil], ['nope', 5], ['nope', {'X' => 1}], ['nope', 'x'], ['nope', ''], ['nope', 'x', 'y'], ['nope', -1, {'X' => 1}, nil], ['t', 'a', 'b', 'c', 'd', 'e', 'f', 'g']]
def called(name, list)
  puts "-- #{name} #{list.inspect.sub(LONG, 'LONG')}"
  send(name, *list)
  nil
end

def wrong(name, *left_out)
  LISTS.each_with_index { |list, i| called(name, list) unless left_out.include?(i) }
  nil
end

def fails(name, *lists)
  lists.each { |list| called(name, list) }
  nil
end
create 't', 'f'
create_namespace 'ns'
put 't', 'r', 'f:q', 'v'
# general
wrong :status, 0
fails :version, [5], ['nope', 'x']
fails :table_help, [5], ['nope', 'x']
fails :whoami, [5], ['nope', 'x']
wrong :processlist, 0
# tables
wrong :alter
wrong :create, 14, 15, 16, 18
wrong :describe
wrong :disable
wrong :disable_all
wrong :is_disabled
wrong :drop
wrong :drop_all
wrong :enable
wrong :enable_all
wrong :is_enabled
wrong :exists
wrong :list, 0
fails :show_filters, [5], ['nope', 'x']
wrong :alter_status
wrong :alter_async
wrong :get_table
wrong :locate_region
wrong :list_regions
wrong :clone_table_schema
fails :list_enabled_tables, [5], ['nope', 'x']
fails :list_disabled_tables, [5], ['nope', 'x']
fails :create, ['t', 'f'], ['u', ''], ['u', 'a:b'], ['u', {NAME => 'f', VERSIONS => 0}], ['u', {NAME => 'f', VERSIONS => 'x'}], ['u', {NAME => 'f', TTL => -1}], ['u', {NAME => 'f', DATA_BLOCK_ENCODING => 'x'}], ['u', {NAME => 'f', MIN_VERSIONS => -1}], ['u', {NAME => 'f', REPLICATION_SCOPE => 9}], ['u', {NAME => 'f'}, {SPLITS => 5}], ['u', 'f', {NUMREGIONS => -1, SPLITALGO => 'UniformSplit'}], ['u', 'f', {NUMREGIONS => 5}], ['u', 'f', {SPLITS_FILE => '/nonexistent'}], ['u', {}], ['u', {'X' => 1}], ['nope:u', 'f']
fails :alter, ['t', 'a:b'], ['t', {NAME => 'f', VERSIONS => 0}], ['t', {NAME => 'f', METHOD => 'x'}], ['t', {METHOD => 'delete'}], ['t', {NAME => 'g', METHOD => 'delete'}], ['t', {METHOD => 'table_att_unset'}], ['t', {METHOD => 'table_att_unset', NAME => 'X'}], ['t', {MAX_FILESIZE => 'x'}]
wrong :change_sft, 16, 17, 18
wrong :change_sft_all
# namespaces
wrong :create_namespace, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19
wrong :drop_namespace, 4
wrong :alter_namespace, 4
wrong :describe_namespace, 4
wrong :list_namespace, 0
fails :list_namespace, ['ef'], ['^n'], ['s$']
wrong :list_namespace_tables
# rows
wrong :count
wrong :delete
wrong :deleteall
wrong :get
wrong :get_counter
wrong :incr
wrong :put
wrong :scan
wrong :truncate
wrong :truncate_preserve
wrong :append
wrong :get_splits
fails :put, ['t', 'r', 'nofam:q', 'v'], ['t', '', 'f:q', 'v'], ['t', 'r', 'f:q', nil], ['t', 'r', 'f:q', 'v', -1], ['t', 'r', 'f:q', 'v', 'x'], ['t', LONG * 120, 'f:q', 'v']
fails :get, ['t', ''], ['t', 'r', 'nofam:q'], ['t', 'r', 5], ['t', 'r', {'X' => 1}], ['t', 'r', {COLUMN => 5}], ['t', 'r', {VERSIONS => -1}], ['t', 'r', {TIMERANGE => [5, 1]}], ['t', 'r', {FILTER => 'x'}]
fails :scan, ['t', {'X' => 1}], ['t', {LIMIT => 'x'}], ['t', {COLUMNS => 'nofam'}], ['t', {STARTROW => nil}], ['t', {TIMERANGE => [1]}], ['t', {FILTER => '('}], ['t', 'x'], ['t', {VERSIONS => 0}]
fails :delete, ['t', '', 'f:q'], ['t', 'r', 'nofam:q'], ['t', 'r', ''], ['t', 'r', 'f:q', 'x'], ['t', 'r', 'f:q', -5]
sleep 0.002; fails :deleteall, ['t', ''], ['t', 'r', 'nofam'], ['t', 'r', 5] # the delete marker hides later cells of its millisecond
fails :incr, ['t', '', 'f:n'], ['t', 'r', 'nofam:n'], ['t', 'r', 'f:n', 'x'], ['t', 'r', 'f:q']
fails :append, ['t', '', 'f:n', 'v'], ['t', 'r', 'nofam:n', 'v'], ['t', 'r', 'f:n', 5]
fails :get_counter, ['t', '', 'f:n'], ['t', 'r', 'nofam:n'], ['t', 'r', 'f:q']
fails :count, ['t', -1], ['t', {INTERVAL => 'x'}], ['t', {CACHE => -1}], ['t', {'X' => 1}]
# tools
wrong :assign
wrong :balancer, 0
wrong :balance_switch
fails :balancer_enabled, [5], ['nope', 'x']
wrong :normalize, 0
wrong :normalizer_switch
fails :normalizer_enabled, [5], ['nope', 'x']
fails :is_in_maintenance_mode, [5], ['nope', 'x']
wrong :clear_slowlog_responses, 0, 1
wrong :close_region
wrong :compact
wrong :compaction_switch, 0, 14, 15, 19
wrong :flush
fails :flush_master_store, [5], ['nope', 'x']
wrong :get_balancer_decisions, 0
wrong :get_balancer_rejections, 0
wrong :get_slowlog_responses
wrong :get_largelog_responses
wrong :major_compact
wrong :move
wrong :split
wrong :merge_region, 16, 17, 18, 20
wrong :unassign
fails :zk_dump, [5], ['nope', 'x']
wrong :wal_roll
fails :hbck_chore_run, [5], ['nope', 'x']
fails :catalogjanitor_run, [5], ['nope', 'x']
wrong :catalogjanitor_switch
fails :catalogjanitor_enabled, [5], ['nope', 'x']
fails :cleaner_chore_run, [5], ['nope', 'x']
wrong :cleaner_chore_switch
fails :cleaner_chore_enabled, [5], ['nope', 'x']
wrong :compact_rs
wrong :compaction_state
wrong :trace, 0
wrong :snapshot_cleanup_switch
fails :snapshot_cleanup_enabled, [5], ['nope', 'x']
wrong :splitormerge_switch
wrong :splitormerge_enabled
wrong :clear_compaction_queues
fails :list_deadservers, [5], ['nope', 'x']
fails :list_liveservers, [5], ['nope', 'x']
fails :list_unknownservers, [5], ['nope', 'x']
wrong :clear_deadservers, 0
wrong :clear_block_cache
fails :stop_master, [5], ['nope', 'x']
wrong :stop_regionserver
wrong :regioninfo, 4, 5, 6, 7, 8
fails :rit, [5], ['nope', 'x']
fails :list_decommissioned_regionservers, [5], ['nope', 'x']
wrong :decommission_regionservers, 0
wrong :recommission_regionserver
wrong :truncate_region
# replication
wrong :add_peer
wrong :remove_peer
fails :list_peers, [5], ['nope', 'x']
wrong :enable_peer
wrong :disable_peer
wrong :set_peer_replicate_all
wrong :set_peer_serial
wrong :set_peer_namespaces
wrong :append_peer_namespaces
wrong :remove_peer_namespaces
wrong :set_peer_exclude_namespaces
wrong :append_peer_exclude_namespaces
wrong :remove_peer_exclude_namespaces
wrong :show_peer_tableCFs
wrong :set_peer_tableCFs
wrong :set_peer_exclude_tableCFs
wrong :append_peer_exclude_tableCFs
wrong :remove_peer_exclude_tableCFs
wrong :set_peer_bandwidth
wrong :list_replicated_tables, 0
wrong :append_peer_tableCFs
wrong :remove_peer_tableCFs
wrong :enable_table_replication
wrong :disable_table_replication
wrong :get_peer_config
fails :list_peer_configs, [5], ['nope', 'x']
wrong :update_peer_config
fails :peer_modification_enabled, [5], ['nope', 'x']
wrong :peer_modification_switch
# snapshots
wrong :snapshot
fails :snapshot, ['t', 's', {TTL => 'x'}], ['t', 's', {TTL => -5}], ['t', '.s'], ['t', 's:s'], ['t', 's', 's']
wrong :clone_snapshot
wrong :restore_snapshot
wrong :delete_snapshot, 7
wrong :delete_all_snapshot
wrong :delete_table_snapshots
wrong :list_snapshots, 0
wrong :list_table_snapshots
# configuration
wrong :update_config
fails :update_all_config, [5], ['nope', 'x']
# quotas
wrong :set_quota
fails :set_quota, [{TYPE => THROTTLE}], [{TYPE => THROTTLE, USER => 'u'}], [{TYPE => 'x', USER => 'u', LIMIT => '1G'}], [{TYPE => THROTTLE, USER => 'u', LIMIT => '-1req/sec'}], [{TYPE => THROTTLE, USER => 'u', LIMIT => '1req/x'}], [{TYPE => THROTTLE, LIMIT => '1req/sec'}], [{TYPE => SPACE, TABLE => 't', LIMIT => 'x'}], [{TYPE => SPACE, TABLE => 't', LIMIT => '1G'}], [{TYPE => SPACE, TABLE => 't', LIMIT => '1G', POLICY => 'x'}], [{TYPE => SPACE, USER => 'u', LIMIT => '1G', POLICY => NO_WRITES}]
wrong :list_quotas, 0
wrong :list_quota_snapshots, 0
wrong :list_snapshot_sizes, 0
fails :enable_rpc_throttle, [5], ['nope', 'x']
fails :disable_rpc_throttle, [5], ['nope', 'x']
fails :enable_exceed_throttle_quota, [5], ['nope', 'x']
fails :disable_exceed_throttle_quota, [5], ['nope', 'x']
# security
fails :list_security_capabilities, [5], ['nope', 'x']
wrong :grant
wrong :revoke
wrong :user_permission
# procedures
fails :list_procedures, [5], ['nope', 'x']
fails :list_locks, [5], ['nope', 'x']
# labels
wrong :add_labels
wrong :list_labels, 0
wrong :set_auths
wrong :get_auths
wrong :clear_auths
wrong :set_visibility
exit
