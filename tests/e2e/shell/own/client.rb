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
import org.apache.hadoop.hbase.client.Append
import org.apache.hadoop.hbase.client.Durability
import org.apache.hadoop.hbase.util.Bytes
conf = HBaseConfiguration.create
def b(text)
  text.to_java_bytes
end
conf.setInt('hbase.client.retries.number', 2)
conf.get('hbase.client.retries.number')
HBaseConfiguration.create.get('hbase.client.retries.number')
connection = ConnectionFactory.createConnection(conf); nil
admin = connection.getAdmin; nil
name = TableName.valueOf('meals'); nil
family = Bytes.toBytes('f'); nil
puts admin.tableExists(name)
builder = TableDescriptorBuilder.newBuilder(name); nil
builder.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(3).setBlocksize(32768).build); nil
builder.setColumnFamily(ColumnFamilyDescriptorBuilder.of('g')); nil
admin.createTable(builder.build)
puts admin.listTableNames.map { |t| t.getNameAsString }.inspect
puts admin.getDescriptor(name).getColumnFamily(family).getBlocksize
meals = connection.getTable(name); nil
(1..5).each { |i| meals.put(Put.new(Bytes.toBytes("r#{i}")).addColumn(family, Bytes.toBytes('q'), 100 + i, Bytes.toBytes("v#{i}"))) }
meals.put([Put.new(b('r1'), 200).addColumn(b('f'), b('q'), b('newer')).setDurability(Durability::SKIP_WAL), Put.new(b('r2')).addColumn(b('g'), nil, 7, Bytes.toBytes(12))])
one = meals.get(Get.new(b('r1')).setMaxVersions); nil
puts one
puts one.size, one.is_empty, Bytes.toString(one.value), one.getValue(b('f'), b('none')).inspect, one.containsColumn(b('f'), b('q'))
one.rawCells.each { |c| puts "#{Bytes.toString(CellUtil.cloneQualifier(c))} #{c.timestamp} #{Bytes.toString(c.getValueArray, c.getValueOffset, c.getValueLength)}" }; nil
puts Bytes.toLong(meals.get(Get.new(b('r2')).addFamily(b('g'))).value)
puts meals.get(Get.new(b('r1')).setTimeStamp(101))
puts meals.get(Get.new(b('nothing'))), meals.exists(Get.new(b('nothing'))), meals.get(Get.new(b('nothing'))).row.inspect
puts meals.get([Get.new(b('r3')), Get.new(b('r4'))]).map { |r| Bytes.toString(r.value) }.join(' ')
wanted = Scan.new.withStartRow(b('r2')).withStopRow(b('r4'), true); nil
wanted.setCaching(1); nil
meals.getScanner(wanted).each { |r| puts Bytes.toString(r.getRow) }; nil
scanner = meals.getScanner(wanted); nil
while (r = scanner.next)
  puts Bytes.toString(r.row)
end
rows = meals.getScanner(family).iterator; nil
puts Bytes.toString(rows.next.row) while rows.has_next
both = org.apache.hadoop.hbase.filter.FilterList.new(org.apache.hadoop.hbase.filter.PrefixFilter.new(b('r'))); nil
meals.getScanner(Scan.new.setFilter(both).setReversed(true).setLimit(2)).map { |r| Bytes.toString(r.getRow) }
meals.getScanner(Scan.new.withStartRow(b('r2'), false)).next(2).map { |r| Bytes.toString(r.row) }
meals.getScanner(Scan.new.setRowPrefixFilter(b('r5'))).map { |r| Bytes.toString(r.row) }
meals.delete(Delete.new(b('r5')))
meals.delete(Delete.new(b('r1')).addColumn(b('f'), b('q')))
meals.exists([Get.new(b('r5')), Get.new(b('r1'))]).to_a.inspect
meals.incrementColumnValue(b('c'), family, b('n'), 5)
meals.incrementColumnValue(b('c'), family, b('n'), 5)
Bytes.toString(meals.append(Append.new(b('r1')).add(b('f'), b('q'), b('+'))).value)
home = Put.new(b('Home')).addColumn(b('f'), b('author'), b('jimbo')); nil
meals.put(home)
get 'meals', 'Home'
def told
  yield
rescue StandardError => e
  puts e.message
end
told { Put.new(b('')) }
told { meals.put(Put.new(b('empty'))) }
told { home.addColumn(b('f'), b('q'), -1, b('v')) }
told { admin.createTable(builder.build) }
admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of('late'))
admin.getDescriptor(name).getColumnFamilyNames.map { |f| Bytes.toString(f) }.sort.join(' ')
admin.isTableEnabled(name)
admin.disableTable(name)
admin.isTableDisabled(name)
admin.deleteTable(name)
told { admin.deleteTable(name) }
puts admin.tableExists(name)
connection.close
connection.closed?
