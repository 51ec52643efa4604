# SPDX-License-Identifier: Apache-2.0
# A session of the official HBase shell. Each section prints its name, then what its commands print; tests/e2e/shell.py
# compares section by section with session.expected, which a real HBase 2.6.1 gave. Names are fixed: widths depend on them.

def section(name)
  puts "## #{name}"
  begin
    yield
  rescue Exception => e
    puts "ERROR: #{e.message.lines.first}"
  end
end

# Leftovers of an earlier session.
%w[shell_one shell_two shell_split shell_alter shell_clone shell_regions shellns:t].each do |t|
  begin
    disable t if is_enabled t
    drop t
  rescue Exception
  end
end
begin
  drop_namespace 'shellns'
rescue Exception
end

section('version') { version }
section('create_namespace') { create_namespace 'shellns', { 'creator' => 'me', 'purpose' => 'a test' } }
section('create_namespace again') { create_namespace 'shellns' }
section('create_namespace, illegal') { create_namespace 'shell.ns' }
section('describe_namespace') { describe_namespace 'shellns' }
section('describe_namespace, unknown') { describe_namespace 'shellnone' }
section('alter_namespace, set') { alter_namespace 'shellns', { METHOD => 'set', 'purpose' => 'another', 'more' => '1' } }
section('alter_namespace, unset') { alter_namespace 'shellns', { METHOD => 'unset', NAME => 'more' } }
section('describe_namespace after alter') { describe_namespace 'shellns' }
section('list_namespace') { list_namespace 'shell.*' }
section('list_namespace_tables, none') { list_namespace_tables 'shellns' }

section('create') { create 'shell_one', 'cf' }
section('create again') { create 'shell_one', 'cf' }
section('create without family') { create 'shell_bad' }
section('create with a bad option') { create 'shell_bad', { NAME => 'cf', VERSIONS => 0, TTL => 0 } }
section('create, illegal name') { create 'shell bad', 'cf' }
section('create in an unknown namespace') { create 'shellnone:t', 'cf' }
section('create with options') do
  create 'shell_two', { NAME => 'a', VERSIONS => 5, BLOCKCACHE => false, COMPRESSION => 'GZ' },
         { NAME => 'b', TTL => 86_400, BLOOMFILTER => 'NONE', IN_MEMORY => true, MIN_VERSIONS => 0, BLOCKSIZE => 8192 }
end
section('create with splits') { create 'shell_split', 'cf', SPLITS => %w[g n t] }
section('create in a namespace') { create 'shellns:t', 'cf' }
section('list_namespace_tables') { list_namespace_tables 'shellns' }
section('list') { list 'shell_.*' }
section('list of a namespace') { list 'shellns:.*' }
section('exists') { exists 'shell_one' }
section('exists, no') { exists 'shell_none' }
section('describe') { describe 'shell_one' }
section('desc with options') { desc 'shell_two' }
section('describe, unknown') { describe 'shell_none' }
section('is_enabled') { puts is_enabled('shell_one') }
section('is_disabled') { puts is_disabled('shell_one') }
section('get_splits') { puts get_splits('shell_split').inspect }

section('put') { put 'shell_one', 'r1', 'cf:a', 'value1' }
section('put with a timestamp') { put 'shell_one', 'r1', 'cf:b', 'value2', 17 }
section('put more') do
  put 'shell_one', 'r2', 'cf:a', 'value3', 5
  put 'shell_one', 'r3', 'cf:', 'empty qualifier', 5
  put 'shell_one', "r\x00bin", 'cf:a', "\x01\xff", 5
end
section('put, unknown family') { put 'shell_one', 'r1', 'none:a', 'x' }
section('put, unknown table') { put 'shell_none', 'r1', 'cf:a', 'x' }
section('put, too few arguments') { put 'shell_one', 'r1' }
section('get') { get 'shell_one', 'r1' }
section('get of a family') { get 'shell_one', 'r1', 'cf' }
section('get of a column') { get 'shell_one', 'r1', 'cf:b' }
section('get of several columns') { get 'shell_one', 'r1', 'cf:a', 'cf:b' }
section('get of a list of columns') { get 'shell_one', 'r1', ['cf:a', 'cf:b'] }
section('get, nothing') { get 'shell_one', 'none' }
section('get, unknown family') { get 'shell_one', 'r1', 'none:a' }
section('get, unknown table') { get 'shell_none', 'r1' }
section('get at a timestamp') { get 'shell_one', 'r1', { COLUMN => 'cf:b', TIMESTAMP => 17 } }
section('get within a time range') { get 'shell_one', 'r1', { COLUMN => 'cf:b', TIMERANGE => [0, 17] } }
section('get with a filter') { get 'shell_one', 'r1', { FILTER => "ValueFilter(=, 'binary:value2')" } }
section('put versions') { (1..7).each { |i| put 'shell_two', 'v', 'a:q', "value#{i}", i } }
section('get versions') { get 'shell_two', 'v', { COLUMN => 'a:q', VERSIONS => 3 } }
section('get more versions than are kept') { get 'shell_two', 'v', { COLUMN => 'a:q', VERSIONS => 10 } }
section('get converted') { get 'shell_two', 'v', 'a:q:toString' }

section('scan') { scan 'shell_one' }
section('scan versions') { scan 'shell_two', { VERSIONS => 10 } }
section('scan columns') { scan 'shell_one', { COLUMNS => ['cf:b'] } }
section('scan a converted column') { scan 'shell_one', { COLUMNS => ['cf:b:toString'] } }
section('scan with a limit') { scan 'shell_one', { LIMIT => 1 } }
section('scan a range') { scan 'shell_one', { STARTROW => 'r2', STOPROW => 'r3' } }
section('scan a prefix') { scan 'shell_one', { ROWPREFIXFILTER => 'r3' } }
section('scan reversed') { scan 'shell_one', { REVERSED => true, COLUMNS => 'cf:a', STARTROW => 'r2', STOPROW => 'r1' } }
section('scan a time range') { scan 'shell_one', { TIMERANGE => [5, 6] } }
section('scan, unknown table') { scan 'shell_none' }
section('scan, unknown family') { scan 'shell_one', { COLUMNS => 'none' } }
section('scan by PrefixFilter') { scan 'shell_one', { FILTER => "PrefixFilter('r2')" } }
section('scan by RowFilter') { scan 'shell_one', { FILTER => "RowFilter(=, 'substring:3')" } }
section('scan by a combination') { scan 'shell_one', { FILTER => "PrefixFilter('r') AND KeyOnlyFilter()", LIMIT => 2 } }
section('scan by ValueFilter') { scan 'shell_one', { FILTER => "ValueFilter(=, 'regexstring:value[23]')" } }
section('scan by QualifierFilter') { scan 'shell_one', { FILTER => "QualifierFilter(>=, 'binary:b')" } }
section('scan by PageFilter') { scan 'shell_one', { FILTER => 'PageFilter(1)' } }
section('scan by SingleColumnValueFilter') { scan 'shell_one', { FILTER => "SingleColumnValueFilter('cf', 'a', =, 'binary:value3', true, true)" } }
section('scan by no filter') { scan 'shell_one', { FILTER => 'NoSuchFilter()' } }

section('count') { puts count('shell_one') }
section('count with an interval') { puts count('shell_one', INTERVAL => 2) }
section('count a range') { puts count('shell_one', STARTROW => 'r2', STOPROW => 'r3') }
section('count by a filter') { puts count('shell_one', FILTER => "PrefixFilter('r2')") }
section('count, unknown table') { count 'shell_none' }
section('incr') { incr 'shell_one', 'counter', 'cf:n' }
section('incr by 10') { incr 'shell_one', 'counter', 'cf:n', 10 }
section('get_counter') { get_counter 'shell_one', 'counter', 'cf:n' }
section('incr of a text') { incr 'shell_one', 'r2', 'cf:a' }
section('append') { append 'shell_one', 'r2', 'cf:a', '-and more' }
section('a table object') do
  t = get_table 'shell_one'
  t.put 'object', 'cf:a', 'by object', 9
  t.get 'object'
  t.scan({ STARTROW => 'object', LIMIT => 1 })
end

section('delete a version') { delete 'shell_two', 'v', 'a:q', 6 }
section('after it') { get 'shell_two', 'v', { COLUMN => 'a:q', VERSIONS => 10 } }
section('scan raw') { scan 'shell_two', { RAW => true, VERSIONS => 10 } }
section('deleteall a column') { deleteall 'shell_two', 'v', 'a:q', 4 }
section('after deleteall') { get 'shell_two', 'v', { COLUMN => 'a:q', VERSIONS => 10 } }
section('deleteall a row') { deleteall 'shell_one', 'object' }
section('deleteall a prefix') { deleteall 'shell_one', { ROWPREFIXFILTER => 'r3', 'CACHE' => 100 } }
section('after both') { scan 'shell_one', { COLUMNS => 'cf:a' } }
section('delete, unknown table') { delete 'shell_none', 'r', 'cf:a' }

section('flush') { flush 'shell_one' }
section('flush, unknown table') { flush 'shell_none' }
section('compact') { compact 'shell_one' }
section('major_compact') { major_compact 'shell_one' }
section('scan after them') { scan 'shell_one', { COLUMNS => 'cf:a' } }

section('alter a family') { alter 'shell_one', { NAME => 'cf', VERSIONS => 3 } }
section('alter: a new family') { alter 'shell_one', { NAME => 'new', COMPRESSION => 'SNAPPY' } }
section('alter: delete a family') { alter 'shell_one', 'delete' => 'new' }
section('alter: the last family') { alter 'shell_one', 'delete' => 'cf' }
section('alter: the table') { alter 'shell_one', MAX_FILESIZE => '134217728' }
section('alter: metadata') { alter 'shell_one', METADATA => { 'note' => 'text' } }
section('alter: configuration') { alter 'shell_one', CONFIGURATION => { 'hbase.hregion.majorcompaction' => '0' } }
section('describe after alter') { describe 'shell_one' }
section('alter, unknown table') { alter 'shell_none', NAME => 'cf', VERSIONS => 2 }
section('alter_status') { alter_status 'shell_one' }

section('drop while enabled') { drop 'shell_one' }
section('enable while enabled') { enable 'shell_one' }
section('disable') { disable 'shell_one' }
section('disable again') { disable 'shell_one' }
section('get while disabled') { get 'shell_one', 'r1' }
section('is_disabled now') { puts is_disabled('shell_one') }
section('enable') { enable 'shell_one' }
section('disable, unknown table') { disable 'shell_none' }
section('enable, unknown table') { enable 'shell_none' }
section('drop, unknown table') { drop 'shell_none' }

section('put over the regions') { %w[a h p z].each { |r| put 'shell_split', r, 'cf:q', r, 1 } }
section('clone_table_schema') do
  clone_table_schema 'shell_split', 'shell_clone'
  puts get_splits('shell_clone').inspect
end
section('truncate_preserve') do
  truncate_preserve 'shell_split'
  puts get_splits('shell_split').inspect
end
section('truncate') do
  put 'shell_split', 'a', 'cf:q', 'x', 1
  truncate 'shell_split'
  scan 'shell_split'
  puts get_splits('shell_split').inspect
end
section('truncate, unknown table') { truncate 'shell_none' }

def encoded_names(table)
  if Object.const_defined?(:Meta) # rorqual shell has no Java
    return Meta.regions(table).map { |r| r.encoded }
  end
  conf = org.apache.hadoop.hbase.HBaseConfiguration.create
  connection = org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(conf)
  connection.getAdmin.getRegions(org.apache.hadoop.hbase.TableName.valueOf(table)).map { |r| r.getEncodedName }
ensure
  connection.close if connection
end

# The shell's split does not wait until it is done.
def splits_become(table, count)
  6000.times do
    break if encoded_names(table).length == count + 1
    sleep 0.1
  end
  get_splits table
end

section('regions to split') do
  create 'shell_regions', 'cf', SPLITS => %w[t]
  %w[a h p z].each { |r| put 'shell_regions', r, 'cf:q', r, 1 }
end
section('split') do
  split 'shell_regions', 'j'
  splits_become 'shell_regions', 2
end
section('scan after split') { scan 'shell_regions' }
section('split at a start key') { split 'shell_regions', 'j' }
section('split, unknown table') { split 'shell_none', 'j' }
section('merge_region, twice the same') { merge_region(*([encoded_names('shell_regions').last] * 2)) }
section('merge_region, unknown') { merge_region encoded_names('shell_regions').last, '00112233445566778899aabbccddeeff' }
section('splitormerge_switch') do
  splitormerge_switch 'SPLIT', false
  splitormerge_enabled 'SPLIT'
  splitormerge_switch 'SPLIT', true
  splitormerge_enabled 'MERGE'
end
section('merge_region') do
  truncate_preserve 'shell_regions'
  %w[a h p z].each { |r| put 'shell_regions', r, 'cf:q', r, 1 }
  names = encoded_names('shell_regions')
  merge_region names[0], names[1]
  get_splits 'shell_regions'
end
section('scan after merge') { scan 'shell_regions' }
section('drop after them') do
  disable 'shell_regions'
  drop 'shell_regions'
end

section('drop_namespace, not empty') { drop_namespace 'shellns' }
section('drop a table of a namespace') do
  disable 'shellns:t'
  drop 'shellns:t'
end
section('drop_namespace') { drop_namespace 'shellns' }
section('drop_namespace, unknown') { drop_namespace 'shellns' }
section('drop') do
  %w[shell_one shell_two shell_split shell_clone].each do |t|
    disable t
    drop t
  end
end
section('list at the end') { list 'shell_.*' }
section('status') { status }
puts '## end'
