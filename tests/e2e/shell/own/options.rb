# SPDX-License-Identifier: Apache-2.0
# The options of data and table commands, table objects, snapshots, quotas; what is refused and how.
create 'm1', {NAME => 'f', VERSIONS => 5}, {NAME => 'g'}
put 'm1', 'a', 'f:1', 'v1', 1
put 'm1', 'a', 'f:1', 'v2', 2
put 'm1', 'b', 'g:x', 'y', 3
put 'm1', 'c', 'f', 'noqual', 3
scan 'm1', {VERSIONS => 5}
scan 'm1', {COLUMNS => ['f', 'g:x']}
scan 'm1', {COLUMN => 'f:1', TIMESTAMP => 1}
scan 'm1', {TIMERANGE => [1, 2], VERSIONS => 3}
scan 'm1', {REVERSED => true}
scan 'm1', {REVERSED => true, LIMIT => 1}
scan 'm1', {LIMIT => 2, CACHE => 1}
scan 'm1', {FILTER => "KeyOnlyFilter()"}
scan 'm1', {FILTER => "FirstKeyOnlyFilter() AND PrefixFilter('b')"}
scan 'm1', {FILTER => "broken("}
scan 'm1', {FILTER => "ValueFilter(=, 'nocomparator')"}
scan 'm1', {ISOLATION_LEVEL => 'READ_UNCOMMITTED'}
scan 'm1', {ISOLATION_LEVEL => 'X'}
scan 'm1', {READ_TYPE => 'PREAD'}
scan 'm1', {CONSISTENCY => 'TIMELINE'}
scan 'm1', {CONSISTENCY => 'X'}
scan 'm1', {ATTRIBUTES => {'a' => 'b'}}
scan 'm1', {ATTRIBUTES => 5}
scan 'm1', {AUTHORIZATIONS => ['A']}
scan 'm1', {RAW => true}
scan 'm1', {ROWPREFIXFILTER => 'zz'}
scan 'm1', {CACHE_BLOCKS => false}
scan 'm1', {MAX_RESULT_SIZE => 10}
scan 'm1', {ALLOW_PARTIAL_RESULTS => true}
scan 'm1', {BATCH => 1}
scan 'm1', 5
get 'm1', 'a', {COLUMN => 'f:1', VERSIONS => 2}
get 'm1', 'a', {COLUMN => ['f:1', 'g'], TIMESTAMP => 1}
get 'm1', 'a', {TIMERANGE => [1, 3], VERSIONS => 2}
get 'm1', 'a', {VERSIONS => 2}
get 'm1', 'a', {COLUMN => 5}
get 'm1', 'a', {MAXLENGTH => 10, COLUMN => 'f'}
get 'm1', 'a', {CONSISTENCY => 'TIMELINE'}
get 'm1', 'a', {FILTER => "ColumnCountGetFilter(1)"}
get 'm1', 'a', {COLUMN => 'f:1', ATTRIBUTES => {'k' => 'v'}}
get 'm1', 'a', {}
get 'm1', 5
get 'm1', 'a', 'f:1:c(org.apache.hadoop.hbase.util.Bytes).toString'
get 'm1', 'a', 'f:1:nosuch'
put 'm1', 'a', 'f:n', 5
put 'm1', 5, 'f:n', :sym
incr 'm1', 'cnt', 'f:c', 5
incr 'm1', 'cnt', 'f:c', -2
incr 'm1', 'cnt', 'f:c'
get_counter 'm1', 'cnt', 'f:c'
sleep 0.01; get_counter 'm1', 'a', 'f:1'
append 'm1', 'new', 'f:x', 'abc'
delete 'm1', 'a', 'f:1', 2
get 'm1', 'a', {COLUMN => 'f:1', VERSIONS => 5}
delete 'm1', 'a', 'f'
delete 'm1', 'a'
deleteall 'm1', 'b', 'g'
deleteall 'm1', 'a', 'f:1', 1
deleteall 'm1', {ROWPREFIXFILTER => 'c', 'CACHE' => 2}
scan 'm1', {RAW => true, VERSIONS => 10, COLUMNS => 'f:1'}
count 'm1', {INTERVAL => 1, CACHE => 1}
count 'm1', 2
count 'm1', CACHE_BLOCKS => 'maybe'
count 'm1', FILTER => "PrefixFilter('n')"
truncate 'm1'
count 'm1'
truncate_preserve 'm1'
get_splits 'm1'
t = create 'm2', 'f'
t.put 'r', 'f:a', 'b'
t.count
t.get_splits
t.describe
t.incr 'r', 'f:c'
t.append 'r', 'f:a', 'c'
t.delete 'r', 'f:a'
t.disable
t.drop
t.get 'r'
create_namespace 'n1', {'a' => 'b'}
create 'n1:t', 'f'
list_namespace_tables 'n1'
drop_namespace 'n1'
describe_namespace 'n1'
alter_namespace 'n1', {METHOD => 'set', 'c' => 'd'}
alter_namespace 'n1', {METHOD => 'bad'}
describe_namespace 'n1'
disable_all 'n1:.*'
list_disabled_tables
enable_all 'zzz.*'
drop_all 'zzz.*'
locate_region 'm1', 'x'
snapshot 'm1', 'sn1', {TTL => 1000}
list_snapshots 'sn.*'
snapshot 'm1', 'sn1'
snapshot 'none', 'sn2'
clone_snapshot 'sn1', 'm3'
clone_snapshot 'sn1', 'm3'
clone_snapshot 'sn1', 'nons:m3'
clone_snapshot 'none', 'm4'
restore_snapshot 'sn1'
disable 'm1'
restore_snapshot 'sn1'
enable 'm1'
delete_table_snapshots 'zz'
delete_all_snapshot 'zz'
list_table_snapshots 'm1', 'sn.*'
set_quota TYPE => THROTTLE, NAMESPACE => 'n1', LIMIT => '5req/sec'
describe_namespace 'n1'
set_quota TYPE => THROTTLE, TABLE => 'm1', LIMIT => '10K/min'
describe 'm1'
set_quota TYPE => SPACE, TABLE => 'm1', LIMIT => '1G', POLICY => 'BAD'
set_quota TYPE => SPACE, TABLE => 'm1', LIMIT => '1G', POLICY => NO_INSERTS
list_quotas TABLE => 'm1'
list_quotas 'x'
set_quota TYPE => 'X'
alter 'm1', NAME => 'f', METHOD => 'delete'
alter 'm1', NAME => 'g', METHOD => 'delete'
alter 'm1', 'newfam'
alter 'm1', {NAME => 'f', COMPRESSION => 'ZSTD', BLOOMFILTER => 'ROWCOL', IN_MEMORY => 'true'}, {NAME => 'h'}
alter 'm1', MAX_FILESIZE => 100, MEMSTORE_FLUSHSIZE => 1048576, READONLY => false
alter 'm1', METHOD => 'table_conf_unset', NAME => 'zzz'
alter 'm1', METHOD => 'table_att_unset', NAME => 'zzz'
alter 'm1'
alter 'm1', {NAME => 'f', KEEP_DELETED_CELLS => 'x'}
alter 'm1', {NAME => 'f', VERSIONS => 'x'}
alter 'm1', {NAME => 'f', MIN_VERSIONS => 7}
describe 'm1'
create 'bad:', 'f'
create '-x', 'f'
create 'x', 'f:'
create 'x'
create 5
create 'x', 5
create 'x', {VERSIONS => 5}
create 'x', 'f', 'f'
create 'y', 'f', SPLITS => ['b', 'a', "\\x01"]
get_splits 'y'
create 'z', 'f', {NUMREGIONS => 1, SPLITALGO => 'HexStringSplit'}
create 'z', 'f', {NUMREGIONS => 5}
create 'z', 'f', SPLITS_FILE => '/nonexistent'
create 'dec', 'f', {NUMREGIONS => 3, SPLITALGO => 'DecimalStringSplit'}
get_splits 'dec'
exit
