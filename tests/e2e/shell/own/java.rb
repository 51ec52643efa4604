# SPDX-License-Identifier: Apache-2.0
# Java's classes as scripts of guides and blogs use them: filters and comparators as objects, Bytes, java.lang, converters of values.
require 'java'
import org.apache.hadoop.hbase.filter.CompareFilter
import org.apache.hadoop.hbase.filter.SingleColumnValueFilter
import org.apache.hadoop.hbase.filter.SubstringComparator
import org.apache.hadoop.hbase.filter.BinaryComparator
import org.apache.hadoop.hbase.filter.RegexStringComparator
import org.apache.hadoop.hbase.filter.RowFilter
import org.apache.hadoop.hbase.filter.FilterList
java_import org.apache.hadoop.hbase.filter.PrefixFilter
java_import 'org.apache.hadoop.hbase.filter.PageFilter'
import org.apache.hadoop.hbase.util.Bytes
create 'food', 'd', 'n'
put 'food', '100-egg', 'd:name', 'Egg', 1000
put 'food', '100-egg', 'n:kcal', '155', 1001
put 'food', '110-salad', 'd:name', 'Chef salad', 1002
put 'food', '110-salad', 'n:kcal', '67', 1003
put 'food', '110-salad', 'n:salt', '0.6', 1004
put 'food', '200-bread', 'd:name', 'Bread', 1005
put 'food', '200-bread', 'n:fibre', '2.7', 1006
scan 'food', {FILTER => SingleColumnValueFilter.new(Bytes.toBytes('d'), Bytes.toBytes('name'), CompareFilter::CompareOp.valueOf('EQUAL'), BinaryComparator.new(Bytes.toBytes('Egg')))}
scan 'food', {STARTROW => '1', STOPROW => '2', FILTER => SingleColumnValueFilter.new(Bytes.toBytes('d'), Bytes.toBytes('name'), CompareFilter::CompareOp.valueOf('EQUAL'), SubstringComparator.new('chef'))}
scan 'food', {FILTER => SingleColumnValueFilter.new(Bytes.toBytes('n'), Bytes.toBytes('salt'), CompareFilter::CompareOp.valueOf('GREATER'), Bytes.toBytes('0'))}
f = SingleColumnValueFilter.new(Bytes.toBytes('n'), Bytes.toBytes('salt'), org.apache.hadoop.hbase.CompareOperator::EQUAL, Bytes.toBytes('0.6'))
f.setFilterIfMissing(true)
f.to_s
scan 'food', FILTER => f
f.filter_if_missing = false
f.getFilterIfMissing
scan 'food', FILTER => f, LIMIT => 1
scan 'food', {FILTER => RowFilter.new(CompareFilter::CompareOp.valueOf('EQUAL'), RegexStringComparator.new('^[12]00'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.RowFilter.new(CompareFilter::CompareOp.valueOf('EQUAL'), SubstringComparator.new('salad'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ColumnPaginationFilter.new(1, 1)}
scan 'food', {FILTER => PrefixFilter.new(Bytes.toBytes('11')), COLUMNS => 'n'}
scan 'food', {FILTER => PageFilter.new(1)}
both = FilterList.new(FilterList::Operator::MUST_PASS_ONE)
both.addFilter(PrefixFilter.new('10'.to_java_bytes))
both.addFilter(PrefixFilter.new('20'.to_java_bytes))
both.to_s
scan 'food', {FILTER => both, COLUMNS => 'd'}
scan 'food', {FILTER => FilterList.new([PrefixFilter.new('1'.to_java_bytes), org.apache.hadoop.hbase.filter.KeyOnlyFilter.new])}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.FilterList.new(PrefixFilter.new('1'.to_java_bytes), org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter.new)}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ValueFilter.new(CompareFilter::CompareOp::LESS, org.apache.hadoop.hbase.filter.BinaryPrefixComparator.new(Bytes.toBytes('2')))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.QualifierFilter.new(org.apache.hadoop.hbase.CompareOperator.valueOf('NOT_EQUAL'), BinaryComparator.new(Bytes.toBytes('name')))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.FamilyFilter.new(CompareFilter::CompareOp.valueOf('EQUAL'), BinaryComparator.new(Bytes.toBytes('d')))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ColumnRangeFilter.new(Bytes.toBytes('f'), true, Bytes.toBytes('l'), false)}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.MultipleColumnPrefixFilter.new([Bytes.toBytes('fi'), Bytes.toBytes('sa')].to_java('[B'.to_sym))} rescue puts 'no array of byte[]'
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ColumnPrefixFilter.new(Bytes.toBytes('na'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.TimestampsFilter.new([1000, 1006])}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.SkipFilter.new(org.apache.hadoop.hbase.filter.ValueFilter.new(CompareFilter::CompareOp::NOT_EQUAL, BinaryComparator.new(Bytes.toBytes('67'))))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.WhileMatchFilter.new(RowFilter.new(CompareFilter::CompareOp::NOT_EQUAL, BinaryComparator.new(Bytes.toBytes('110-salad'))))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.InclusiveStopFilter.new(Bytes.toBytes('100-egg'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.DependentColumnFilter.new(Bytes.toBytes('d'), Bytes.toBytes('name'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ColumnValueFilter.new(Bytes.toBytes('n'), Bytes.toBytes('kcal'), org.apache.hadoop.hbase.CompareOperator::EQUAL, Bytes.toBytes('67'))}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.ParseFilter.new.parseFilterString("PrefixFilter('20')")}
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.SingleColumnValueExcludeFilter.new(Bytes.toBytes('n'), Bytes.toBytes('kcal'), CompareFilter::CompareOp::EQUAL, org.apache.hadoop.hbase.filter.BitComparator.new(Bytes.toBytes('000'), org.apache.hadoop.hbase.filter.BitComparator::BitwiseOp::AND)), COLUMNS => 'n'}
pair = org.apache.hadoop.hbase.util.Pair.new(Bytes.toBytes('?00-'), [1, 0, 0, 0].to_java(:byte))
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.FuzzyRowFilter.new([pair]), COLUMNS => 'd'}
range = org.apache.hadoop.hbase.filter.MultiRowRangeFilter::RowRange.new(Bytes.toBytes('1'), true, Bytes.toBytes('11'), false)
scan 'food', {FILTER => org.apache.hadoop.hbase.filter.MultiRowRangeFilter.new([range]), COLUMNS => 'd'}
get 'food', '110-salad', {FILTER => org.apache.hadoop.hbase.filter.ColumnPrefixFilter.new(Bytes.toBytes('s'))}
count 'food', FILTER => PrefixFilter.new(Bytes.toBytes('1'))
PrefixFilter.new(Bytes.toBytes('a')).to_s
RowFilter.new(CompareFilter::CompareOp::LESS, BinaryComparator.new(Bytes.toBytes("\x00b"))).toString
CompareFilter::CompareOp.valueOf('EQUAL').to_s
CompareFilter::CompareOp.values.length
begin; CompareFilter::CompareOp.valueOf('EQUALS'); rescue => e; puts e.message; end
PrefixFilter
put 'food', 'types', 'n:i', [258].pack('N')
put 'food', 'types', 'n:l', [1234567890123456789].pack('Q>')
put 'food', 'types', 'n:s', [-2].pack('s>')
put 'food', 'types', 'n:f', [1.5].pack('g')
put 'food', 'types', 'n:d', [0.1].pack('G')
put 'food', 'types', 'n:t', 'text'
put 'food', 'types', 'n:bd', "\x00\x00\x00\x02\x30\x39"
put 'food', 'types', 'n:nbd', "\x00\x00\x00\x02\xcf\xc7"
put 'food', 'types', 'n:b', "\xff"
put 'food', 'types', 'n:v', "\x8e\x03\xe8"
get 'food', 'types', {COLUMN => ['n:i:toInt', 'n:l:toLong', 'n:s:toShort', 'n:f:toFloat', 'n:d:toDouble', 'n:t:toString', 'n:bd:toBigDecimal', 'n:nbd:toBigDecimal', 'n:b:toBoolean', 'n:v:bytesToVint']}
get 'food', 'types', {COLUMN => ['n:i:toHex', 'n:l:len', 'n:s:hashCode', 'n:t:mapKey', 'n:f:copy', 'n:b:unsignedCopyAndIncrement']}
get 'food', 'types', {COLUMN => ['n:t:to_string', 'n:i:to_int']}
get 'food', 'types', {COLUMN => ['n:t:c(org.apache.hadoop.hbase.util.MD5Hash).getMD5AsHex', 'n:i:c(java.util.Arrays).toString', 'n:l:c(Bytes).toLong']}
get 'food', 'types', 'n:t:nosuch'
scan 'food', {FORMATTER => 'toHex', STARTROW => 'types', COLUMNS => 'n:t'}
scan 'food', {FORMATTER_CLASS => 'org.apache.hadoop.hbase.util.Bytes', FORMATTER => 'toString', STARTROW => 'types', COLUMNS => 'n:t'}
Bytes.toStringBinary([1, 200, 65].pack('C*').to_java_bytes)
Bytes.toLong([5].pack('Q>').to_java_bytes)
Bytes.toString(Bytes.add(Bytes.toBytes('a'), Bytes.toBytes('b')))
Bytes.compareTo(Bytes.toBytes('a'), Bytes.toBytes('b'))
Bytes.startsWith(Bytes.toBytes('abc'), Bytes.toBytes('ab'))
Bytes.toString(Bytes.head(Bytes.toBytes('abc'), 2))
Bytes.toString(Bytes.tail(Bytes.toBytes('abc'), 2))
Bytes.toStringBinary(Bytes.padTail(Bytes.toBytes('abc'), 2))
Bytes.toStringBinary(Bytes.padHead(Bytes.toBytes('abc'), 2))
Bytes.split(Bytes.toBytes('a'), Bytes.toBytes('z'), 3).map { |b| Bytes.toStringBinary(b) }
Bytes.split(Bytes.toBytes('a'), Bytes.toBytes('b'), 3).map { |b| Bytes.toStringBinary(b) }
Bytes.split(Bytes.toBytes('row-00'), Bytes.toBytes('row-99'), true, 2).map { |b| Bytes.toStringBinary(b) }
Bytes.toStringBinary(Bytes.incrementBytes(Bytes.toBytes(5), 7))
Bytes.toStringBinary(Bytes.toBytes(1.5))
Bytes.toStringBinary(Bytes.toBytes(true))
Bytes.toStringBinary(Bytes.toBytesBinary("\\x01a"))
Bytes.toStringBinary(Bytes.vintToBytes(1000))
Bytes.toStringBinary(Bytes.vintToBytes(-1000))
Bytes.bytesToVint(Bytes.vintToBytes(-123456789))
Bytes.toStringBinary(Bytes.fromHex('0aff'))
Bytes.toHex(Bytes.toBytes('az'))
Bytes.hashCode(Bytes.toBytes('a longer text'))
Bytes.indexOf(Bytes.toBytes('az'), Bytes.toBytes('z'))
Bytes.toStringBinary(Bytes.multiple(Bytes.toBytes('az'), 2))
Bytes.equals(Bytes.toBytes('a'), Bytes.toBytes('a'))
Bytes.to_string(Bytes.to_bytes('snake'))
Bytes::SIZEOF_LONG
Bytes
org.apache.hadoop.hbase.util.MD5Hash.getMD5AsHex(Bytes.toBytes('abc'))
org.apache.hadoop.hbase.TableName.valueOf('ns:t').getNameAsString
org.apache.hadoop.hbase.TableName.valueOf('ns', 't').qualifier_as_string
org.apache.hadoop.hbase.HConstants::LATEST_TIMESTAMP
java.lang.Long::MAX_VALUE
java.lang.Integer::MAX_VALUE
java.lang.Long.parseLong('1234567890123456789')
java.lang.Integer.parseInt('12')
java.lang.Integer.toHexString(255)
java.lang.Math.max(1, 2)
java.lang.System.currentTimeMillis > 1700000000000
java.lang.String.format('%05d', 12)
java.lang.Thread.sleep(1)
java.math.BigDecimal.new('1.50').to_s
java.util.UUID.randomUUID.to_s.length
Java::OrgApacheHadoopHbaseUtil::Bytes.toString(Bytes.toBytes('x'))
Java::JavaLang::Long::MIN_VALUE
disable 'food'
drop 'food'
exit
