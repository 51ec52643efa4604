# SPDX-License-Identifier: Apache-2.0
# Sizes and limits of tables, which the server measures from time to time: the script waits until it has.
def fails(name, *lists)
  lists.each do |list|
    puts "-- #{name} #{list.inspect}"
    send(name, *list)
  end
  nil
end
connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(org.apache.hadoop.hbase.HBaseConfiguration.create); nil
admin = connection.getAdmin; nil
quotas = connection.getTable(org.apache.hadoop.hbase.TableName.valueOf('hbase:quota')); nil
def b(text)
  text.to_java_bytes
end
SERVER = admin.getClusterStatus.getServers.first.getServerName; nil
# The master's last measurement of a table, as it is in hbase:quota.
def text(bytes)
  bytes.nil? ? nil : org.apache.hadoop.hbase.util.Bytes.toStringBinary(bytes)
end
measured = lambda { |table| text(quotas.get(org.apache.hadoop.hbase.client.Get.new(b("t.#{table}"))).getValue(b('u'), b('p'))) }; nil
list_quota_snapshots
list_quota_snapshots({REGIONSERVER => SERVER})
list_quotas
create_namespace 'ns'
create 't', 'f'
create 'ns:v', 'f'
put 't', 'r', 'f:q', 'v'
flush 't'
put 'ns:v', 'r', 'f:q', 'v'
flush 'ns:v'
set_quota TYPE => SPACE, TABLE => 't', LIMIT => '1G', POLICY => NO_WRITES
set_quota TYPE => SPACE, NAMESPACE => 'ns', LIMIT => 2147483648, POLICY => NO_INSERTS
list_quotas
sleep 0.05 while measured.call('t').nil? || measured.call('ns:v').nil?; nil
list_quota_snapshots
list_quota_snapshots({TABLE => 't'})
list_quota_snapshots({TABLE => 'v'})
list_quota_snapshots({TABLE => 'ns:v'})
list_quota_snapshots({NAMESPACE => 'ns'})
list_quota_snapshots({NAMESPACE => 'ns', TABLE => 'v'})
list_quota_snapshots({NAMESPACE => 'default', TABLE => 'v'})
list_quota_snapshots({NAMESPACE => 'none'})
list_quota_snapshots({TABLE => 'none'})
list_quota_snapshots({'X' => 1})
list_quota_table_sizes
list_quota_table_sizes 5
list_quota_table_sizes({TABLE => 't'})
fails :list_quota_table_sizes, ['x', 'y']
fails :list_quota_snapshots, [nil], [{REGIONSERVER => 'nowhere'}], [{REGIONSERVER => 5}], [{TABLE => 5}], [{}, {}]
before = measured.call('t'); nil
set_quota TYPE => SPACE, TABLE => 't', LIMIT => '1', POLICY => NO_WRITES_COMPACTIONS
sleep 0.05 while measured.call('t') == before; nil
list_quota_snapshots({TABLE => 't'})
one = connection.getTable(org.apache.hadoop.hbase.TableName.valueOf('t')); nil
begin
  loop { one.put(org.apache.hadoop.hbase.client.Put.new(b('r')).addColumn(b('f'), b('q'), b('v'))); sleep 0.05 }
rescue java.io.IOException => e
  puts e.message.include?('Puts are disallowed due to a space quota.')
end
put 't', 'r', 'f:q', 'v'
list_quota_snapshots({REGIONSERVER => SERVER, TABLE => 't'})
list_quota_snapshots({REGIONSERVER => SERVER, TABLE => 't', NAMESPACE => 'ns'})
set_quota TYPE => SPACE, TABLE => 't', LIMIT => NONE
set_quota TYPE => SPACE, NAMESPACE => 'ns', LIMIT => NONE
list_quotas
set_quota TYPE => SPACE, TABLE => 'none', LIMIT => '1G', POLICY => NO_WRITES
set_quota TYPE => SPACE, NAMESPACE => 'none', LIMIT => '1G', POLICY => NO_WRITES
set_quota TYPE => SPACE, TABLE => 't', NAMESPACE => 'ns', LIMIT => '1G', POLICY => NO_WRITES
set_quota TYPE => SPACE, TABLE => 't', LIMIT => '0', POLICY => NO_WRITES
set_quota TYPE => SPACE, TABLE => 't', LIMIT => -1, POLICY => NO_WRITES
set_quota TYPE => SPACE, TABLE => 't', LIMIT => '9999P', POLICY => DISABLE
set_quota TYPE => SPACE, TABLE => 't', LIMIT => NONE
set_quota TYPE => SPACE, TABLE => 'none', LIMIT => NONE
list_quotas
list_snapshot_sizes
exit
