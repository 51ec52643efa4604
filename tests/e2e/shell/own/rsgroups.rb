# SPDX-License-Identifier: Apache-2.0
# Groups of region servers, on a cluster with one server, with right and with wrong arguments.
def fails(name, *lists)
  lists.each do |list|
    puts "-- #{name} #{list.inspect}"
    send(name, *list)
  end
  nil
end
conf = org.apache.hadoop.hbase.HBaseConfiguration.create; nil
servers = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(conf).getAdmin.getClusterStatus.getServers; nil
HERE = servers.map { |s| "#{s.getHostname}:#{s.getPort}" }.first
create_namespace 'ns'
create_namespace 'empty'
create 't', 'f'
create 'u', 'f'
create 'ns:v', 'f'
create 'ns:a', 'f'
list_rsgroups
list_rsgroups 'd.*'
list_rsgroups 'ault'
list_rsgroups 'none'
list_rsgroups /DEF/i
get_rsgroup 'default'
fails :list_rsgroups, [nil], [5], ['a', 'b']
fails :get_rsgroup, [], [nil], [5], ['none'], [''], [:none], ['default', 'none']
add_rsgroup 'g'
fails :add_rsgroup, [], [nil], [5], [''], ['g'], ['default'], ['g-h'], ['g h'], ['a', 'b']
add_rsgroup 'zz'
add_rsgroup 'f'
list_rsgroups '.*'
list_rsgroups '^.$'
get_rsgroup 'g'
rename_rsgroup 'g', 'h'
fails :rename_rsgroup, [], ['h'], ['none', 'x'], ['default', 'x'], ['h', 'default'], ['h', 'zz'], ['h', 'h'], ['h', 'b d'], ['b d', 'h'], ['h', ''], ['h', nil], [nil, 'h'], [5, 'h']
fails :remove_rsgroup, [], [nil], [5], [''], ['none'], ['default'], ['g', 'h']
remove_rsgroup 'zz'
remove_rsgroup 'f'
list_rsgroups
# servers
get_server_rsgroup HERE
fails :get_server_rsgroup, [], [nil], [5], [''], ['nowhere'], ['nowhere:1'], ['nowhere:x'], ['nowhere:65536'], ['nowhere:-1'], ['nowhere:2147483648'], ['nowhere:99999999999999999999'], ['nowhere:+1'], ['nowhere:'], ['nowhere,1'], ['a:b:1'], ['[::2]'], ['[::2]:x'], [HERE, HERE]
fails :move_servers_rsgroup, [], ['h'], ['h', nil], ['h', []], ['h', 5], ['h', [5]], ['h', ['nowhere']], ['h', ['nowhere:1']], ['none', [HERE]], ['default', [HERE]], ['h', [HERE]], [nil, [HERE]], ['', [HERE]]
fails :remove_servers_rsgroup, [], [nil], [[]], [[HERE]], [HERE], [['nowhere:1']], [['nowhere']], [5]
# tables
get_table_rsgroup 't'
get_table_rsgroup 'ns:v'
get_table_rsgroup 'hbase:meta'
fails :get_table_rsgroup, [], [nil], [5], [''], ['none'], ['none:t'], ['bad name!'], ['t', 'u']
fails :move_tables_rsgroup, [], ['h'], ['h', nil], ['h', []], ['h', ['none']], ['h', ['bad name!']], ['none', ['t']], ['default', ['t']], ['h', ['t']], ['h', 't'], [nil, ['t']]
fails :move_servers_tables_rsgroup, [], ['h', [HERE]], ['h', nil, ['t']], ['h', [HERE], nil], ['h', [], ['t']], ['h', [HERE], []], ['none', [HERE], ['t']], ['default', [HERE], ['t']], ['h', [HERE], ['t']], ['h', ['nowhere:1'], ['t']]
# namespaces
get_namespace_rsgroup 'ns'
fails :get_namespace_rsgroup, [], [nil], [5], ['none'], ['ns', 'ns']
fails :move_namespaces_rsgroup, [], ['h'], ['h', nil], ['h', ['none']], ['none', ['ns']], ['h', ['ns']], ['h', 'ns']
fails :move_servers_namespaces_rsgroup, [], ['h', [HERE]], ['h', nil, ['ns']], ['h', [HERE], nil], ['h', [HERE], ['none']], ['none', [HERE], ['ns']], ['default', [HERE], ['ns']], ['h', [HERE], ['ns']], ['h', [HERE], ['empty']]
get_namespace_rsgroup 'ns'
# balancer
balance_rsgroup 'default'
balance_rsgroup 'default', 'dry_run'
balance_rsgroup 'default', 'force'
fails :balance_rsgroup, [], [nil], [5], ['none'], ['none', 'dry_run'], ['h'], ['default', 'x'], ['default', 5], ['default', nil], ['default', 'force', 'dry_run', 'force']
# configuration
show_rsgroup_config 'h'
alter_rsgroup_config 'h', {METHOD => 'set', 'k' => 'v', 'a' => 5}
alter_rsgroup_config 'h', {METHOD => 'set', 'k' => 'w', 'b c' => ''}
show_rsgroup_config 'h'
alter_rsgroup_config 'h', {METHOD => 'unset', NAME => 'k'}
alter_rsgroup_config 'h', {METHOD => 'unset', NAME => 'none'}
show_rsgroup_config 'h'
alter_rsgroup_config 'h', [{METHOD => 'unset', NAME => 'a'}, {METHOD => 'set', 'one' => '1'}]
show_rsgroup_config 'h'
fails :alter_rsgroup_config, [], ['h'], [nil, {METHOD => 'set'}], [5, {METHOD => 'set'}], ['none', {METHOD => 'set', 'k' => 'v'}], ['h', nil], ['h', 5], ['h', 'x'], ['h', {}], ['h', {METHOD => 'x'}], ['h', {METHOD => 'set'}], ['h', {METHOD => 'set', 'k' => nil}], ['h', {METHOD => 'unset'}], ['default', {METHOD => 'set', 'd' => 'e'}]
show_rsgroup_config 'h'
show_rsgroup_config 'default'
fails :show_rsgroup_config, [], [nil], ['none'], [5], ['h', 'h']
fails :update_rsgroup_config, [], [nil], ['none'], ['h'], ['default']
alter_rsgroup_config 'default', {METHOD => 'unset', NAME => 'd'}
remove_rsgroup 'h'
list_rsgroups
exit
