# SPDX-License-Identifier: Apache-2.0
# Uses of scripts in HBase's reference guide: files of commands, table variables, lists of names, dates of logs, the shell's
# configuration, computed split keys; and in operators' scripts: regions of each table, rows by prefix, retries, servers.
create 'orders', 'd', 'm'
list 'orders'
put 'orders', 'o-001', 'd:sum', '17'
put 'orders', 'o-002', 'd:sum', '42'
put 'orders', 'o-003', 'm:note', 'late'
scan 'orders'
get 'orders', 'o-001'
disable 'orders'
enable 'orders'
t = get_table 'orders'
t.put 'o-004', 'd:sum', '5'
t.count
t.scan LIMIT => 1
t.get 'o-004', 'd:sum'
names = list('ord.*')
names.each { |n| puts "#{n} has #{count(n, CACHE => 1000)} rows" }
import java.text.SimpleDateFormat
import java.text.ParsePosition
SimpleDateFormat.new("yy/MM/dd HH:mm:ss").parse("21/03/04 05:06:07", ParsePosition.new(0)).getTime()
java.util.Date.new(1614834367000).toString()
@shell.hbase.configuration.get("hbase.rpc.timeout")
@shell.hbase.configuration.setInt("hbase.rpc.timeout", 61010)
@shell.hbase.configuration.get("hbase.rpc.timeout")
@shell.hbase.configuration.get("no.such.setting")
def splits_of_numbers(from, to, regions)
  step = ((to - from) / regions).floor
  (1...regions).map { |i| [from + i * step].pack('N') }
end
points = splits_of_numbers(1, 2_000_000, 5)
create 'numbers', 'f', SPLITS => points
get_splits 'numbers'
create 'hex', 'f', { NUMREGIONS => 4, SPLITALGO => 'HexStringSplit' }
list('(hex|numbers)').map { |n| get_splits(n).length + 1 }
def per_table
  list.inject({}) { |h, n| h[n] = get_splits(n).length + 1; h }
end
per_table.sort.each { |n, c| puts format('%-10s %3d', n, c) }
%w[a b c].each_with_index { |k, i| put 'numbers', "#{k}-#{i}", 'f:v', i.to_s }
deleteall 'numbers', { ROWPREFIXFILTER => 'b-' }
scan 'numbers', { COLUMNS => 'f:v', FILTER => "PrefixFilter('c')" }
tries = 0
begin
  tries += 1
  raise IOError, 'not yet' if tries < 3
  puts "done after #{tries}"
rescue IOError
  retry
end
begin
  get 'nothing', 'r'
rescue => e
  puts 'not reached, a command prints its error'
end
list_liveservers
was = balance_switch false
balance_switch was
list_decommissioned_regionservers
text = <<~TEXT
  rows: #{count 'orders'}
TEXT
puts text
File.open("/tmp/rorqual-guide-#{$$}", 'w') { |f| f.puts 'k1', 'k2' }
File.readlines("/tmp/rorqual-guide-#{$$}").each { |k| put 'orders', k.chomp, 'd:sum', '1' }
File.delete("/tmp/rorqual-guide-#{$$}")
count 'orders'
i = 0
while i < 2 do incr 'orders', 'total', 'm:n', i + 1; i += 1 end
get_counter 'orders', 'total', 'm:n'
h = { :a => 1, 'b' => [2, 3] }
h.each_pair { |k, v| puts "#{k}=#{v.inspect}" }
[3, 1, 2].sort.reverse.join('-')
'%05.1f|%x|%s' % [3.14159, 255, nil]
"row-#{'7'.rjust(4, '0')}".sub('row', 'key').upcase
Time.at(0).utc.strftime('%Y-%m-%d')
list.map { |n| disable n; drop n }
exit 3
