# SPDX-License-Identifier: Apache-2.0
# nil where a command wants a name: Java's own errors.
create 'keep', 'f'
describe nil
exists nil
disable nil
drop nil
enable nil
is_enabled nil
is_disabled nil
truncate nil
truncate_preserve nil
alter nil, 'f'
alter nil, {NAME => 'f', VERSIONS => 3}
alter_async nil, 'f'
alter_status nil
create nil, 'f'
create 'nilf', nil
get_table nil
locate_region nil, 'a'
list_regions nil
clone_table_schema nil, 'x'
clone_table_schema 'keep', nil
describe_namespace nil
create_namespace nil
alter_namespace nil, {METHOD => 'set', 'a' => 'b'}
drop_namespace nil
list_namespace_tables nil
flush nil
compact nil
major_compact nil
split nil
get_splits nil
snapshot nil, 's1'
snapshot 'keep', nil
clone_snapshot nil, 'y'
restore_snapshot nil
delete_snapshot nil
get nil, 'r'
put nil, 'r', 'f:q', 'v'
scan nil
count nil
delete nil, 'r', 'f:q'
deleteall nil, 'r'
incr nil, 'r', 'f:q'
append nil, 'r', 'f:q', 'v'
get_counter nil, 'r', 'f:q'
assign nil
unassign nil
move nil
regioninfo nil
close_region nil
merge_region nil, nil
compaction_state nil
list_snapshots nil
list_table_snapshots nil
enable_all nil
disable_all nil
drop_all nil
add_peer nil, CLUSTER_KEY => 'h:2181:/hbase'
remove_peer nil
enable_peer nil
disable_peer nil
get_peer_config nil
show_peer_tableCFs nil
grant nil, 'R'
change_sft nil, 'FILE'
normalize nil
disable 'keep'
drop 'keep'
exit
