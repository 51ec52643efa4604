# SPDX-License-Identifier: Apache-2.0
# A scan's metrics, replicas of regions, the tasks of servers.
create 't', {NAME => 'f', VERSIONS => 3}, {REGION_REPLICATION => 2}
put 't', 'a', 'f:1', 'v1', 1
put 't', 'b', 'f:1', 'v2', 2
put 't', 'c', 'f:1', 'v2', 2
scan 't', {ALL_METRICS => true}
scan 't', {METRICS => ['RPC_CALLS', 'ROWS_SCANNED', 'NOSUCH']}
scan 't', {METRICS => []}
scan 't', {METRICS => 'ROWS_SCANNED'}
scan 't', {ALL_METRICS => false}
scan 't', {ALL_METRICS => true, CACHE => 1}
scan 't', {ALL_METRICS => true, LIMIT => 1}
scan 't', {ALL_METRICS => true, COLUMNS => 'f:none'}
count 't', ALL_METRICS => true
get 't', 'a', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}
get 't', 'a', {REGION_REPLICA_ID => 1}
get 't', 'a', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 0}
scan 't', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}
scan 't', {REGION_REPLICA_ID => 1}
scan 't', {CONSISTENCY => 'TIMELINE'}
count 't', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 1}
processlist
processlist 'all'
processlist 'handler'
processlist 'rpc'
processlist 'operation', '127.0.0.1'
processlist 'all', 'nosuchhost'
processlist 'nosuchfilter'
create 'n', 'f', SPLITS => ['b', 'm', 'x']
put 'n', 'a', 'f:1', 'v1', 1
put 'n', 'c', 'f:1', 'v1', 1
put 'n', 'y', 'f:1', 'v1', 1
scan 'n', {ALL_METRICS => true}
scan 'n', {ALL_METRICS => true, REVERSED => true, FILTER => "PrefixFilter('c')"}
scan 'n', {STARTROW => 'b', STOPROW => 'm', METRICS => ['REGIONS_SCANNED', 'RPC_CALLS']}
scan 'nosuch', {ALL_METRICS => true}
exit
