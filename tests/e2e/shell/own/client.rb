# SPDX-License-Identifier: Apache-2.0
# HBase's client classes as scripts of guides and repositories use them: connections, tables, Put … Scan, Result, Admin and descriptors.
require 'java'
java_import org.apache.hadoop.hbase.HBaseConfiguration
java_import org.apache.hadoop.hbase.TableName
java_import org.apache.hadoop.hbase.CellUtil
java_import org.apache.hadoop.hbase.client.ConnectionFactory
java_import org.apache.hadoop.hbase.client.TableDescriptorBuilder
java_import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder
import 'org.apache.hadoop.hbase.client.Get'
import org.apache.hadoop.hbase.client.Put
import org.apache.hadoop.hbase.client.Scan
import org.apache.hadoop.hbase.client.Delete
import org.apache.hadoop.hbase.client.HTable
import org.apache.hadoop.hbase.client.Append
import org.apache.hadoop.hbase.client.Durability
import org.apache.hadoop.hbase.util.Bytes
conf = HBaseConfiguration.create
conf.setInt('hbase.client.retries.number', 2)
conf.get('hbase.client.retries.number')
HBaseConfiguration.create.get('hbase.client.retries.number')
connection = ConnectionFactory.createConnection(conf); nil
admin = connection.getAdmin; nil
name = TableName.valueOf('meals'); nil
family = Bytes.toBytes('f')
puts admin.tableExists(name)
builder = TableDescriptorBuilder.newBuilder(name); nil
builder.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(3).setBlocksize(32768).build); nil
builder.setColumnFamily(ColumnFamilyDescriptorBuilder.of('g')); nil
admin.createTable(builder.build)
puts admin.listTableNames.map { |t| t.getNameAsString }.inspect
puts admin.getDescriptor(name)
meals = connection.getTable(name); nil
(1..5).each { |i| meals.put(Put.new(Bytes.toBytes("r#{i}")).addColumn(family, Bytes.toBytes('q'), 100 + i, Bytes.toBytes("v#{i}"))) }
meals.put([Put.new('r1', 200).addColumn('f', 'q', 'newer').setDurability(Durability::SKIP_WAL), Put.new('r2').addColumn('g', nil, 7, Bytes.toBytes(12))])
one = meals.get(Get.new('r1'.to_java_bytes).setMaxVersions); nil
puts one
puts one.size, one.is_empty, Bytes.toString(one.value), one.getValue('f', 'none').inspect, one.containsColumn('f', 'q')
one.rawCells.each { |c| puts "#{Bytes.toString(CellUtil.cloneQualifier(c))} #{c.timestamp} #{Bytes.toString(c.getValueArray, c.getValueOffset, c.getValueLength)}" }; nil
puts Bytes.toLong(meals.get(Get.new('r2').addFamily('g')).value)
puts meals.get(Get.new('r1').setTimeStamp(101))
puts meals.get(Get.new('nothing')), meals.exists(Get.new('nothing')), meals.get(Get.new('nothing')).row.inspect
puts meals.get([Get.new('r3'), Get.new('r4')]).map { |r| Bytes.toString(r.value) }.join(' ')
wanted = Scan.new.withStartRow('r2'.to_java_bytes).withStopRow('r4'.to_java_bytes, true); nil
wanted.setCaching(1); nil
meals.getScanner(wanted).each { |r| puts Bytes.toString(r.getRow) }; nil
scanner = meals.getScanner(wanted); nil
while (r = scanner.next)
  puts Bytes.toString(r.row)
end
rows = meals.getScanner(family).iterator; nil
puts rows.next.row while rows.has_next
both = org.apache.hadoop.hbase.filter.FilterList.new(org.apache.hadoop.hbase.filter.PrefixFilter.new('r'.to_java_bytes)); nil
meals.getScanner(Scan.new.setFilter(both).setReversed(true).setLimit(2)).map { |r| r.getRow }
meals.getScanner(Scan.new.withStartRow('r2', false)).next(2).map { |r| r.row }
meals.getScanner(Scan.new.setRowPrefixFilter('r5')).map { |r| r.row }
meals.delete(Delete.new('r5'.to_java_bytes))
meals.delete(Delete.new('r1').addColumn('f', 'q'))
meals.exists([Get.new('r5'), Get.new('r1')])
meals.incrementColumnValue('c'.to_java_bytes, family, 'n'.to_java_bytes, 5)
meals.incrementColumnValue('c'.to_java_bytes, family, 'n'.to_java_bytes, 5)
Bytes.toString(meals.append(Append.new('r1').add('f', 'q', '+')).value)
old = HTable.new(@hbase.configuration, 'meals'); nil
home = Put.new(*['Home'].map { |a| a.to_java_bytes }); nil
home.add(*%w[f author jimbo].map { |a| a.to_s.to_java_bytes }); nil
old.put(home)
old.flushCommits
get 'meals', 'Home'
def told
  yield
rescue StandardError => e
  puts e.message
end
told { Put.new('') }
told { old.put(Put.new('empty')) }
told { home.addColumn('f', 'q', -1, 'v') }
told { admin.createTable(builder.build) }
admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of('late'))
admin.getDescriptor(name).getColumnFamilyNames.inspect
admin.isTableEnabled(name)
admin.disableTable(name)
admin.isTableDisabled(name)
admin.deleteTable(name)
told { admin.deleteTable(name) }
puts admin.tableExists(name)
connection.close
connection.closed?
