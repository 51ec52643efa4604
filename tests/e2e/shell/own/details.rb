# SPDX-License-Identifier: Apache-2.0
# Which attributes describe calls metadata, arguments that are nil, variables with the names of commands, floats, what a Java
# object that a command returned is asked, a cluster without quotas.
create 'd1', 'a', 'b', 'MAX_FILESIZE' => 12345678, OWNER => '987', PRIORITY => '77', FLUSH_POLICY => 'org.apache.hadoop.hbase.regionserver.FlushAllLargeStoresPolicy', REGION_MEMSTORE_REPLICATION => 'TRUE', SPLIT_POLICY => 'org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy', COMPACTION_ENABLED => 'false', SPLIT_ENABLED => false, MERGE_ENABLED => false
describe 'd1'
create 'd2', {NAME => 'f', IN_MEMORY_COMPACTION => 'BASIC', CACHE_DATA_ON_WRITE => true, PREFETCH_BLOCKS_ON_OPEN => true, EVICT_BLOCKS_ON_CLOSE => true, STORAGE_POLICY => 'HOT', NEW_VERSION_BEHAVIOR => true, IS_MOB => true, MOB_THRESHOLD => 100}, NORMALIZATION_ENABLED => true, NORMALIZER_TARGET_REGION_COUNT => 5, DURABILITY => 'SKIP_WAL', READONLY => false
describe 'd2'
put 'd1', 'r', nil, 'v'
put 'd1', 'r', 5, 'v'
put 'd1', nil, 'a:q', 'v'
get 'd1', nil
get 'd1', ''
incr 'd1', 'r', 'a:n', 'x'
append 'd1', 'r', nil, 'x'
list = 10
list 'd.*'
scan = 5; kept = 6
scan 'd1'
kept
[1].each { |i| puts i + kept }
l = locate_region 'd1', 'a'
l.getRegion.getRegionNameAsString[0, 4]
l.getRegionInfo().getStartKey.length
l.getServerName.getHostname
l.getHostname
l.getPort > 0
t = get_table 'd1'
t.is_meta_table?
get_table('hbase:meta').is_meta_table?
list_quotas
list_quota_snapshots
list_snapshot_sizes
puts 0.1, 1e100, 1e16, 1.0 / 3, 100.0, 1e-5, 12345.678
[0.5, 2e300, -0.0]
"#{2.0**70}"
exit
