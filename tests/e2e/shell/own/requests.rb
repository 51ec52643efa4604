# SPDX-License-Identifier: Apache-2.0
# HBase's client classes: what requests, results, scanners and descriptors answer; the errors of a family's calls; requests of
# hundreds of cells.
java_import org.apache.hadoop.hbase.HBaseConfiguration
java_import org.apache.hadoop.hbase.TableName
java_import org.apache.hadoop.hbase.client.ConnectionFactory
java_import org.apache.hadoop.hbase.client.TableDescriptorBuilder
java_import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder
java_import org.apache.hadoop.hbase.client.Get
java_import org.apache.hadoop.hbase.client.Put
java_import org.apache.hadoop.hbase.client.Scan
java_import org.apache.hadoop.hbase.client.Delete
java_import org.apache.hadoop.hbase.client.Increment
java_import org.apache.hadoop.hbase.client.Append
java_import org.apache.hadoop.hbase.util.Bytes
def b(text)
  text.to_java_bytes
end
def told
  yield
rescue StandardError => e
  puts e.message.lines.first
end
conf = HBaseConfiguration.create; nil
conf.setIfUnset('a.b', '1')
conf.setIfUnset('a.b', '2')
conf.get('a.b')
conf.setIfUnset('hbase.client.retries.number', '99')
conf.get('hbase.client.retries.number') == '99'
conf.setInt('n', 7)
conf.getInt('n', 1)
conf.getInt('none', 1)
conf.getLong('n', 1)
conf.getBoolean('none', true)
conf.setBoolean('yes', true)
conf.getBoolean('yes', false)
connection = ConnectionFactory.createConnection(HBaseConfiguration.create); nil
admin = connection.getAdmin; nil
name = TableName.valueOf('dishes'); nil
one = ColumnFamilyDescriptorBuilder.newBuilder(b('f')).setMaxVersions(3).setTimeToLive(86400).setInMemory(true).build; nil
one.getMaxVersions
one.getMinVersions
one.getTimeToLive
one.getBlocksize
one.isInMemory
one.isBlockCacheEnabled
one.getScope
one.isMobEnabled
one.getMobThreshold
puts one.getBloomFilterType, one.getCompressionType, one.getDataBlockEncoding, one.getKeepDeletedCells
one.getNameAsString
two = ColumnFamilyDescriptorBuilder.newBuilder(one).setMaxVersions(5).build; nil
one.getMaxVersions
two.getMaxVersions
two.isInMemory
t1 = TableDescriptorBuilder.newBuilder(name).setColumnFamily(one).setMaxFileSize(1 << 30).build; nil
t2 = TableDescriptorBuilder.newBuilder(t1).setColumnFamily(ColumnFamilyDescriptorBuilder.of('g')).setReadOnly(true).build; nil
t1.getColumnFamilyCount
t2.getColumnFamilyCount
t1.isReadOnly
t2.isReadOnly
t1.getMaxFileSize
t2.getMaxFileSize
t1.getMemStoreFlushSize
t1.getRegionReplication
t1.getPriority
t1.isCompactionEnabled
t1.isSplitEnabled
puts t1.getDurability
admin.createTable(t1)
admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of('h'))
told { admin.addColumnFamily(name, ColumnFamilyDescriptorBuilder.of('h')) }
told { admin.modifyColumnFamily(name, ColumnFamilyDescriptorBuilder.of('none')) }
admin.modifyColumnFamily(name, ColumnFamilyDescriptorBuilder.newBuilder(b('h')).setMaxVersions(4).build)
admin.getDescriptor(name).getColumnFamily(b('h')).getMaxVersions
told { admin.deleteColumnFamily(name, b('none')) }
admin.deleteColumnFamily(name, b('h'))
told { admin.deleteColumnFamily(name, b('f')) }
told { admin.addColumnFamily(TableName.valueOf('nowhere'), ColumnFamilyDescriptorBuilder.of('h')) }
admin.getDescriptor(name).getColumnFamilyCount
dishes = connection.getTable(name); nil
wide = Put.new(b('wide')); nil
(1..300).each { |i| wide.addColumn(b('f'), b("q#{i}"), b("v#{i}")) }
wide.size
dishes.put(wide)
dishes.get(Get.new(b('wide'))).size
gone = Delete.new(b('wide')); nil
(1..200).each { |i| gone.addColumns(b('f'), b("q#{i}")) }
dishes.delete(gone)
dishes.get(Get.new(b('wide'))).size
more = Increment.new(b('sums')); nil
(1..100).each { |i| more.addColumn(b('f'), b("n#{i}"), i) }
dishes.increment(more).size
dishes.put(Put.new(b('e')).addColumn(b('f'), b('empty'), b('')).addColumn(b('f'), b('full'), b('x')))
e = dishes.get(Get.new(b('e'))); nil
e.containsColumn(b('f'), b('empty'))
e.containsNonEmptyColumn(b('f'), b('empty'))
e.containsEmptyColumn(b('f'), b('empty'))
e.containsNonEmptyColumn(b('f'), b('full'))
e.containsEmptyColumn(b('f'), b('full'))
e.containsEmptyColumn(b('f'), b('none'))
dishes.exists(Get.new(b('e')))
dishes.exists(Get.new(b('e')).addColumn(b('f'), b('none')))
check = Get.new(b('e')).setCheckExistenceOnly(true); nil
check.isCheckExistenceOnly
dishes.get(Get.new(b('e'))).getExists.inspect
dishes.get(check).getExists
dishes.get(check).size
dishes.get(Get.new(b('none')).setCheckExistenceOnly(true)).getExists
(1..9).each { |i| dishes.put(Put.new(b("r#{i}")).addColumn(b('f'), b('q'), b("v#{i}"))) }
s = dishes.getScanner(Scan.new.withStartRow(b('r1'))); nil
s.each { |r| puts Bytes.toString(r.getRow); break if Bytes.toString(r.getRow) == 'r3' }
Bytes.toString(s.next.getRow)
s.each { |r| puts Bytes.toString(r.getRow); break if Bytes.toString(r.getRow) == 'r6' }
s.first.nil?
s.map { |r| Bytes.toString(r.getRow) }.join(' ')
s.next.nil?
s.close
l = dishes.getScanner(Scan.new.withStartRow(b('r1')).setLimit(4)); nil
l.each { |r| break }
l.map { |r| Bytes.toString(r.getRow) }.join(' ')
p1 = Put.new(b('p'), 5).addColumn(b('f'), b('q'), b('v')); nil
p1.has(b('f'), b('q'))
p1.has(b('f'), b('q'), 5)
p1.has(b('f'), b('q'), b('v'))
p1.has(b('f'), b('q'), 6, b('v'))
p1.numFamilies
p1.getRow.length
p1.isEmpty
i1 = Increment.new(b('p')).addColumn(b('f'), b('q'), 3); nil
i1.hasFamilies
i1.numFamilies
i1.getTimeRange.toString
Get.new(b('x')).getMaxVersions
Get.new(b('x')).readVersions(4).getMaxVersions
Get.new(b('x')).getTimeRange.getMax
Scan.new.getCaching
Scan.new.setCaching(7).getCaching
Scan.new.getBatch
Scan.new.getLimit
Scan.new.isReversed
Scan.new.setReversed(true).isReversed
Scan.new.getMaxVersions
Scan.new.getCacheBlocks
Scan.new.isRaw
Scan.new.getMaxResultSize
Scan.new.setFilter(nil).hasFilter
Scan.new.addFamily(b('f')).numFamilies
Scan.new.hasFamilies
Scan.new.includeStartRow
Scan.new.includeStopRow
s = dishes.getScanner(Scan.new.withStartRow(b('r1'))); nil
s.next(2).length
Bytes.toString(s.first.getRow)
Bytes.toString(s.find { |r| Bytes.toString(r.getRow) > 'r5' }.getRow)
def key_after(scanner, key)
  scanner.each { |r| return Bytes.toString(r.getRow) if Bytes.toString(r.getRow) > key }
  'none'
end
key_after(s, 'r6')
s.take(1).length
s.iterator.hasNext
s.iterator.next.nil?
s.close
key_after(dishes.getScanner(Scan.new.setCaching(1)), 'r8')
admin.disableTable(name)
admin.deleteTable(name)
families = (1..70).map { |i| "f#{i}" }; nil
create 'many', *families
put 'many', 'r', 'f70:q', 'v'
deleteall 'many', 'r'
get 'many', 'r'
disable 'many'
drop 'many'
