# SPDX-License-Identifier: Apache-2.0
# Commands as people type them: errors with their texts, values behind =>, tables, snapshots, peers, regions.
create 't1', 'f'
put 't1', 'r', 'f:a', 'x'
create_namespace 'shellns'
create_namespace 'shellns'
get 'nope', 'r'
put 't1', 'r', 'nofam:a', 'x'
put 't1'
scan 't1', {FILTER => 'NoSuch()'}
drop 't1'
scan 't1', {COLUMNS => 5}
incr 't1', 'r', 'f:a'
put = 5
x = [1,{'a'=>:b, c: 1.5}]
locate_region 't1', 'a'
whoami
describe 't1'
describe_namespace 'default'
version
list_procedures
get_splits 't1'
balancer
undefined_thing
1 +
 2
show_filters
snapshot 't1', 's1'
list_snapshots
list_peers
snapshot 't1', 's1'
list_snapshots
list_table_snapshots 't1'
list_peers
list_peers
get_peer_config '1'
list_peer_configs
show_peer_tableCFs '1'
set_peer_bandwidth '1', 1000
remove_peer '7'
clear_block_cache 't1'
compaction_state 't1'
compaction_switch true
list_labels
list_security_capabilities
user_permission
grant 'u', 'RW'
list_locks
get_slowlog_responses '*'
get_balancer_decisions
list_quota_snapshots
list_snapshot_sizes
list_liveservers
list_replicated_tables
enable_table_replication 't1'
list_replicated_tables
t = get_table 't1'
t.put 'a', 'f:x', 1
t.scan
t.get 'a'
t
clone_snapshot 's1', 't9'
delete_snapshot 's1'
delete_snapshot 's1'
flush 'nope'
split 't1'
normalize
regioninfo 'x'
assign 'x'
move 'x'
truncate_region 'x'
# the next names no server
wal_roll 'x'
update_config 'x'
update_all_config
trace
rit
get_counter 't1', 'r', 'f:zz'
count 't1'
create 't', {NAME=>'f', TTL => 'x'}
create 't', {NAME=>'f', FOO => 'x'}
create 'tt', {NAME=>'f', 'FOO' => 'x'}, {'BAR' => 1}
scan 'hbase:meta', {LIMIT => 2}
put 't1', 'r', 'f:i', "\x00\x00\x00\x05"
get 't1', 'r', 'f:i:toInt'
get 't1', 'r', {COLUMN => 'f:i', FORMATTER => 'toInt'}
get 't1', 'r', 'f:i:toLong'
get 't1', 'r', {COLUMN => 'f:i', TIMERANGE => [5, 2]}
Time.now
/a/
:sym
nil
"é"
{NAME => 'x'}
create 'opts', {NAME => 'a', VERSIONS => 3, METADATA => {'k' => 'v'}, CONFIGURATION => {'c' => '1'}, IS_MOB => true, MOB_THRESHOLD => 1000}, MAX_FILESIZE => '1 GB', CONFIGURATION => {'x' => 'y'}
describe 'opts'
alter 'opts', {NAME => 'a', DATA_BLOCK_ENCODING => 'FAST_DIFF', TTL => 3661}
describe 'opts'
alter 'opts', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'
alter 'opts', METHOD => 'nonsense'
alter 'opts', 'coprocessor' => '|org.example.Missing|1001|'
create 'hex', 'f', {NUMREGIONS => 4, SPLITALGO => 'HexStringSplit'}
get_splits 'hex'
create 'uni', 'f', {NUMREGIONS => 3, SPLITALGO => 'UniformSplit'}
get_splits 'uni'
create 'dup', 'f', SPLITS => ['a', 'a']
put 't1', 'bin', 'f:b', "\x00\xff\n\"\\", 1700000000123
get 't1', 'bin'
scan 't1', {MAXLENGTH => 29, STARTROW => 'bin', LIMIT => 1}
scan 't1', {ROWPREFIXFILTER => 'b', FORMATTER => 'toString'}
scan 't1', {STARTROW => 'b', STOPROW => 'c', REVERSED => false, CACHE => 1, BATCH => 1}
deleteall 't1', 'bin'
get 't1', 'bin'
put 't1', 'ttl', 'f:a', 'x', {TTL => 100000}
get 't1', 'ttl', {COLUMN => 'f:a', VERSIONS => 1}
put 't1', '', 'f:a', 'x'
put 't1', 'r', 'f:a', 'x', -5
append 't1', 'ttl', 'f:a', 'y'
count 't1', INTERVAL => 1
count 't1', 'x' => 1
delete 't1', 'ttl', 'f:a'
disable 't1'
put 't1', 'r', 'f:a', 'x'
scan 't1'
snapshot 't1', 'bad name'
is_enabled 'nope'
drop_namespace 'nope'
list_namespace_tables 'nope'
create_namespace 'a.b'
list 'h.*'
exists 'hex'
alter_status 'hex'
set_quota TYPE => THROTTLE, USER => 'u', LIMIT => 'x'
set_quota LIMIT => 1
list_snapshots 'x.*'
normalizer_enabled
splitormerge_switch 'X', true
decommission_regionservers 'nohost'
clear_compaction_queues '127.0.0.1,1,1', 'middle'
move 'x', 'y'
merge_region 'x'
list '['
list nil
list_namespace 'a[b'
list_namespace nil
list_snapshots '['
disable_all '['
