# SPDX-License-Identifier: Apache-2.0
"""Typical scripts in `rorqual shell`: @hbase and @shell, Java's classes without an import, loads of regions, parts of
Ruby's libraries. own_shell.py runs the tests; the expected output is that of HBase's Ruby."""
import re

from shell_world import script


def told(text, *arguments):
    """The output lines that begin with '=', without this character: scripts print them by `say`."""
    said = script("def say(v) puts '=' + v.to_s end\n" + text, *arguments)
    return [line[1:] for line in said.stdout.splitlines() if re.match(r"=(?!>)", line)], said


def expect(text, wanted):
    got, said = told(text)
    got = [re.sub(r"Took [0-9.]+ seconds", "Took T", line) for line in got]
    return None if got == wanted else f"{got}\n{wanted}\n{said.stdout[-3000:]} {said.stderr[-1000:]}"


def the_shells_objects(_):
    return expect("""
say @hbase.admin.exists?('m')
@shell.command('create', 'm', 'f')
a = @shell.admin
say [a.exists?('m'), a.enabled?('m'), a.list.inspect, a.list('x.*').inspect].join(' ')
a.flush 'm'
say a.instance_variable_get('@admin').getTableDescriptor(TableName.valueOf('m')).getNameAsString
say @hbase.admin.instance_eval { @admin.get_compaction_state(TableName.valueOf('m')).to_string }
say a.getCompactionState('m')
say a.getRegionServers.length
say a.getServerName(a.getRegionServers[0].getHostname).getPort == a.getRegionServers[0].getPort
say a.getServerName('nowhere').nil?
a.disable 'm'
say a.disabled?('m')
begin; @hbase.admin.enable('none'); rescue ArgumentError => e; say e.message; end
a.enable 'm'
begin; a.drop 'm'; rescue ArgumentError => e; say e.message; end
a.disable 'm'; a.drop 'm'
say a.exists?('m')
say [@shell.interactive?, @shell.debug].join(' ')
begin; @hbase.admin(nil); rescue ArgumentError => e; say e.message; end
begin; @hbase.nothing; rescue NoMethodError => e; say e.message.sub(/0x[0-9a-f]+/, 'ID'); end
begin; @shell.nothing; rescue NoMethodError => e; say e.message.sub(/0x[0-9a-f]+/, 'ID'); end
begin; @shell.command('nothing'); rescue NoMethodError => e; say e.message; end
say @hbase.instance_variable_get('@connection').getAdmin.tableExists(TableName.valueOf('m'))
create_namespace 'ours' unless @shell.admin.list_namespace.include?('ours')
create 'ours:t', 'f'
say [a.list_namespace('our.*').inspect, a.list_namespace_tables('ours').inspect].join(' ')
java = a.instance_variable_get('@admin')
say java.getNamespaceDescriptor('ours').getName
begin; java.getNamespaceDescriptor('none'); rescue org.apache.hadoop.hbase.NamespaceNotFoundException => e; say e.message; end
say java.getRegionServers.map { |s| [java.getRegionMetrics(s, TableName.valueOf('ours:t')).length, java.getRegionMetrics(s).length > 1].join(' ') }.inspect
""", ["false", 'true true ["m"] []', "m", "NONE", "NONE", "1", "true", "true", "true", "Table none does not exist.", "Table m is enabled. Disable it first.",
      "false", "false false", "wrong number of arguments (given 1, expected 0)",
      "undefined method `nothing' for #<Hbase::Hbase:ID>", "undefined method `nothing' for #<Shell::Shell:ID>", "undefined method `new' for nil:NilClass", "false", '["ours"] ["t"]',
      "ours", "org.apache.hadoop.hbase.NamespaceNotFoundException: none", '["1 true"]'])


def what_is_behind_a_table(_):
    return expect(r"""
create 't', 'f'
t = @hbase.table('t', @shell)
t._put_internal('1', 'f:a', 'x', 5)
t._put_internal('2', 'f:a', "y\x00")
say t._get_internal('1').inspect
say t._get_internal('9').inspect
say t._get_internal('1') { |column, cell| say "#{column} #{cell}" }.inspect
say t._scan_internal('COLUMNS' => 'f:a').map { |row, cells| "#{row} #{cells.keys[0]} #{cells.values[0].split('=')[-1]}" }.inspect
say t._scan_internal('ROWPREFIXFILTER' => '2') { |row, cell| say "#{row} #{cell[/column=[^,]*/]}" }.inspect
n = []
say t._count_internal(1) { |count, row| n << "#{count} #{row}" }
say n.inspect
say [t._incr_internal('c', 'f:n', 3), t._incr_internal('c', 'f:n'), t._get_counter_internal('c', 'f:n'), t._get_counter_internal('0', 'f:n').inspect].join(' ')
say t._append_internal('1', 'f:a', '!')
t._delete_internal('c', 'f:n'); t._deleteall_internal('1')
say [t._count_internal, t._get_splits_internal.inspect, t.table.exists(org.apache.hadoop.hbase.client.Get.new(Bytes.toBytes('2')))].join(' ')
class Hbase::Table
  def wipe!(prefix)
    _scan_internal('ROWPREFIXFILTER' => prefix) { |row, _| _deleteall_internal(row) }
  end
end
@shell.hbase_table('t').wipe!('2')
say t._count_internal
class Hbase::Table
  def wipe_by_java!
    rows = @table.getScanner(org.apache.hadoop.hbase.client.Scan.new).iterator
    @table.delete(org.apache.hadoop.hbase.client.Delete.new(rows.next.getRow)) while rows.hasNext
  end
end
t.wipe_by_java!
say t._count_internal
begin; t.nothing; rescue NoMethodError => e; say e.message.include?("`nothing' for Hbase::Table - t") || e.message; end
""", ['{"f:a"=>"timestamp=1970-01-01T00:00:00.005, value=x"}', "nil", "f:a timestamp=1970-01-01T00:00:00.005, value=x", "[1, false]",
      '["1 f:a x", "2 f:a y\\\\x00"]', "2 column=f:a", "[1, false]", "2", '["1 1", "2 2"]', "3 4 4 nil", "x!", "2 [] true", "1", "0", "true"])


def classes_of_java(_):
    """Classes that HBase's shell imports itself; a variable that contains a Java object and is called like a
    command."""
    return expect("""
create 'j', 'f', SPLITS => ['m']
say [HBaseConfiguration, TableName, ConnectionFactory, ServerName, Pair].map { |c| c.inspect.split('::')[-1] }.join(' ')
class Foreign; def name; TableName.valueOf('a').getNameAsString; end; end
say Foreign.new.name
connection = ConnectionFactory.createConnection(HBaseConfiguration.create)
put = org.apache.hadoop.hbase.client.Put.new(Bytes.toBytes('r'))
put.addColumn(Bytes.toBytes('f'), Bytes.toBytes('q'), Bytes.toBytes('v'))
connection.getTable(TableName.valueOf('j')).put(put)
get = org.apache.hadoop.hbase.client.Get.new(Bytes.toBytes('r'))
say Bytes.toString(connection.getTable(TableName.valueOf('j')).get(get).getValue(Bytes.toBytes('f'), Bytes.toBytes('q')))
locator = connection.getRegionLocator(TableName.valueOf('j'))
say locator.getAllRegionLocations.map { |l| "#{Bytes.toString(l.getRegionInfo.getStartKey)}-#{Bytes.toString(l.getRegion.getEndKey)}" }.join(' ')
say [Bytes.toString(locator.getRegionLocation(Bytes.toBytes('m')).getRegion.getStartKey), locator.getStartKeys.length, locator.getStartEndKeys.getSecond.map { |k| Bytes.toString(k) }.inspect, locator.getName].join(' ')
begin; connection.getRegionLocator(TableName.valueOf('none')).getRegionLocation(Bytes.toBytes('a')); rescue org.apache.hadoop.hbase.TableNotFoundException => e; say e.message; end
cluster = connection.getAdmin.getClusterStatus
location = locator.getRegionLocation(Bytes.toBytes('r'))
load = cluster.getLoad(location.getServerName)
region = load.getRegionsLoad.get(location.getRegion.getRegionName)
say [region.getNameAsString == location.getRegion.getRegionNameAsString, region.getStorefileSizeMB, region.writeRequestsCount, region.getStores].join(' ')
cluster.servers.each { |s| cluster.getLoad(s).regions_load.each { |name, r| say r.nameAsString.split(',')[0] if Bytes.toString(name).start_with?('j,m') } }
metrics = cluster.getLiveServerMetrics
metrics.each { |s, m| say [m.getServerName == s, m.getRegionMetrics.size == cluster.getLoad(s).getLoad, m.getUsedHeapSize.get(org.apache.hadoop.hbase.Size::Unit::MEGABYTE) == cluster.getLoad(s).getUsedHeapMB].join(' ') }
unit = org.apache.hadoop.hbase.Size::Unit
size = org.apache.hadoop.hbase.Size.new(3, unit::KILOBYTE)
say [size.get, size.getLongValue, size.get(unit::BYTE), size.toString, size.getUnit, org.apache.hadoop.hbase.Size.new(1536, unit::BYTE).get(unit::KILOBYTE)].join(' ')
begin; [1].nothing; rescue NoMethodError => e; say e.message; end
begin; ('x' * 70).nothing; rescue NoMethodError => e; say e.message.sub(/0x[0-9a-f]+/, 'ID'); end
say cluster.getLoad(ServerName.valueOf('a,1,2')).inspect
map = java.util.HashMap.new
map.put('a', 1)
say [map.put('a', 2), map.get('a'), map.containsKey('b'), map.entrySet.map { |e| "#{e.getKey}#{e.value}" }, map.keySet.to_a].join(' ')
""", ["HBaseConfiguration TableName ConnectionFactory ServerName Pair", "a", "v",
      "-m m-", 'm 2 ["m", ""] j', "none", "true 0 1 1", "j", "true true true", "3.0 3 3072.0 3.0KB KILOBYTE 1.5",
      "undefined method `nothing' for [1]:Array", "undefined method `nothing' for #<String:ID>", "nil", "1 2 false a2 a"])


def parts_of_libraries(_):
    return expect("""
require 'stringio'; require 'logger'; require 'ostruct'; require 'benchmark'
out = StringIO.new
$stdout = out
puts 'kept', ['a', ['b']]
print 1, 2; printf('%03d', 7)
list
$stdout = STDOUT
say out.string.sub(/0x[0-9a-f]+/, 'ID').inspect
log = StringIO.new
l = Logger.new(log)
l.level = Logger::WARN
l.info('no'); l.warn('yes'); l.error { 'block' }; l.unknown(ArgumentError.new('bad'))
say log.string.gsub(/[0-9-]+T[0-9:.]+ #[0-9]+/, 'AT').inspect
begin; l.level = 'loud'; rescue ArgumentError => e; say e.message; end
say [l.info?, l.fatal?, Logger.new(nil).warn('x')].join(' ')
text = StringIO.new("one\\ntwo\\nend")
say [text.gets, text.read(2), text.gets, text.lineno, text.eof?, text.gets, text.gets.inspect, text.read, text.read(1).inspect].inspect
text.rewind
say text.map { |line| line.chomp }.inspect
o = OpenStruct.new('a' => 1)
o.b = 2
say [o.a, o.b, o[:b], o.c.inspect, o.to_h.inspect, o.respond_to?(:a)].join(' ')
say Benchmark.measure { 1 }.real >= 0
""", ['"=> #<StringIO:ID>\\nhbase:006:0> puts \'kept\', [\'a\', [\'b\']]\\nkept\\na\\nb\\nhbase:007:0> print 1, 2; printf(\'%03d\', 7)\\n12007hbase:008:0> list\\n'
                'TABLE\\n0 row(s)\\nTook T\\n=> []\\nhbase:009:0> $stdout = STDOUT\\n"', '"W, [AT]  WARN -- : yes\\nE, [AT] ERROR -- : block\\nA, [AT]   ANY -- : bad (ArgumentError)\\n\\n"',
      "invalid log level: loud", "false true true", '["one\\n", "tw", "o\\n", 2, false, "end", "nil", "", "nil"]', '["one", "two", "end"]',
      "1 2 2 nil {:a=>1, :b=>2} true", "true"])


def what_hbase_does_otherwise(_):
    """Differences from HBase's shell: only classes that scripts use; text as bytes; command names that remain commands; a module
    that is reopened."""
    return expect("""
begin; RegionSplitter.new; rescue NameError => e; say e.message; end
begin; YAML.load('x'); rescue NameError => e; say e.message; end
create 'j', 'f'
list = 5
say list.inspect
put 'j', 'r', 'f:q', 'v'
connection = ConnectionFactory.createConnection(HBaseConfiguration.create)
say connection.getTable(TableName.valueOf('j')).get(org.apache.hadoop.hbase.client.Get.new('r')).getValue('f', 'q')
say connection.getRegionLocator(TableName.valueOf('j')).getRegionLocation('a').getRegion.getStartKey.inspect
say connection.getAdmin.tableExists('j')
connection.getAdmin.getClusterStatus.getLiveServerMetrics.each { |s, m| say [m.getLoad > 0, m.getUsedHeapMB >= 0].join(' ') }
module Hbase
  class Table
    def double_count!; 2 * _count_internal; end
  end
end
say @shell.hbase_table('j').double_count!
""", ["the shell has no Java: org.apache.hadoop.hbase.util.RegionSplitter", "the shell has no YAML of Ruby's libraries", '["j"]', "v", '""', "true", "true true", "2"])


# HBase's own shell passes these, too.
OF_HBASE = (the_shells_objects, what_is_behind_a_table, classes_of_java, parts_of_libraries)
TESTS = (*OF_HBASE, what_hbase_does_otherwise)
