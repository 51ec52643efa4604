# SPDX-License-Identifier: Apache-2.0
# Whole scripts, as operators and tutorials write them: loops over tables, pre-split tables, retries, reports, classes, files, threads.
def gen_splits(start_key, end_key, num_regions)
  results = []
  range = end_key - start_key
  incr = (range / num_regions).floor
  for i in 1..num_regions - 1
    results.push([i * incr + start_key].pack("N"))
  end
  return results
end
splits = gen_splits(1, 2000000, 10)
create 'test_splits', 'f', SPLITS => splits
get_splits('test_splits').size
create 'web',
  {NAME => 'page', VERSIONS => 1, COMPRESSION => 'NONE'},
  {NAME => 'log', VERSIONS => 3, TTL => 2592000}
describe 'web'
for i in '0'..'2' do
  for j in 'a'..'b' do
    put 'web', "row-#{i}#{j}", "page:#{j}", "value #{i}#{j}"
  end
end
1.upto(3) do |i|
  put 'web', 'log-%03d' % i, 'log:level', i.odd? ? 'WARN' : 'INFO';
  put 'web', 'log-%03d' % i, 'log:size', (i * 100).to_s;
end
scan 'web', {
  COLUMNS => ['log:level', 'log:size'],
  FILTER => "PrefixFilter('log-')",
  LIMIT => 2
}
scan 'web', { COLUMNS => 'page:a', FILTER => "SingleColumnValueFilter('page', 'a', =, 'substring:1a')" }
count 'web', INTERVAL => 4
# a trailing comment
(disable 'old'; drop 'old') if list.include?('old')
create 'old', 'f' unless exists 'old'
if is_enabled('old')
  disable 'old'
end
puts "old is #{is_disabled('old') ? 'disabled' : 'enabled'}"
enable 'old'
class TableReport
  attr_reader :name, :rows
  def initialize(name, rows)
    @name, @rows = name, rows
  end
  include Comparable
  def <=>(other)
    rows <=> other.rows
  end
  def to_s
    format('%-12s %4d rows', name, rows)
  end
end
reports = list('(old|web)').map { |n| TableReport.new(n, count(n)) }; nil
puts '=' * 24, reports.sort.reverse
puts reports.max.name
Entry = Struct.new(:key, :value); nil
entries = %w[a=1 b=2 c=3].map { |s| Entry.new(*s.split('=')) }; nil
entries.each { |e| put 'old', e.key, 'f:v', e.value }; nil
t = get_table 'old'
t.scan
t.get 'a'
t.incr 'n', 'f:c', 41
t.incr 'n', 'f:c'
t.get_counter 'n', 'f:c'
t.append 'a', 'f:v', '0'
t.delete 'b', 'f:v'
t.deleteall 'c'
t.count
begin
  5.times do |attempt|
    raise RuntimeError, "attempt #{attempt}" if attempt < 2
    puts "ready after #{attempt} attempts"
    break
  end
rescue => e
  puts "failed: #{e.message}"
ensure
  puts 'checked'
end
attempts = 0
begin
  attempts += 1
  raise IOError, 'busy' unless attempts > 2
  puts "#{attempts} attempts"
rescue IOError => e
  puts e.message
  retry if attempts < 5
  raise
end
result = begin Integer('42x') rescue 0 end
puts result
path = "/tmp/rorqual-script.csv"
File.open(path, 'w') { |f| 3.times { |i| f.puts "k#{i},v#{i}" } }
File.open(path).each_line { |line| k, v = line.chomp.split(','); put 'old', k, 'f:v', v }; nil
File.foreach(path) { |line| print line }
puts File.readlines(path).map(&:strip).inspect, File.basename(path, '.csv'), Dir.glob(path).length
File.delete(path)
begin
  File.read('/no/such/file')
rescue => e
  puts e.class, e.message
end
scan 'old', {STARTROW => 'k', STOPROW => 'l'}
threads = (1..3).map { |i| Thread.new { put 'old', "thread-#{i}", 'f:v', i } }; threads.each(&:join).length
lock = Mutex.new; nil
lock.synchronize { count 'old' }
stats = Hash.new(0)
%w[WARN INFO WARN].each { |l| stats[l] += 1 }
stats.sort_by { |k, v| -v }.each { |k, v| puts "#{k.ljust(6)}#{'*' * v} #{v}" }
ops = {
  'put' => ->(k) { put 'old', k, 'f:v', 'lambda' },
  'get' => lambda { |k| get 'old', k },
}; nil
%w[put get].each { |o| ops[o].call('via') }
case stats['WARN']
when 0 then puts 'none'
when 1..3 then puts 'few'
else puts 'many'
end
puts <<~REPORT
  tables: #{list.length}
    indented
REPORT
$verbose = true
puts 'verbose' if $verbose
MAX_ROWS = 2
scan 'old', LIMIT => MAX_ROWS
text = 'a:1;b:2'.split(';').map { |p| p.split(':') }.to_h
puts text.map { |k, v| "#{k}=#{v}" }.join('&'), text.to_a.flatten.inspect
puts "%-10s|%5.2f|%05d|%x" % ['left', 3.14159, 42, 255]
puts Time.at(0).utc.strftime('%F %T'), Time.utc(2026, 1, 31).strftime('%d/%b/%Y:%H')
i = 0
loop do
  i += 1
  next if i == 2
  break if i > 3
  print i, ' '
end
puts
i -= 1 while i > 0
puts i
puts [3, 1, 2].sort { |a, b| b <=> a }.join(' '), (1..10).each_slice(4).map(&:sum).inspect, %w[x y].each_with_index.map { |v, n| "#{n}#{v}" }.join
a, *rest = [1, 2, 3]
puts rest.inspect, [a, nil, 5].compact.sum
puts [1, 2, 3, 4].each_with_object([]) { |v, m| m << v if v.even? }.inspect, (1..3).inject(:*), [[1, :a], [2, :b]].to_h.inspect
puts 'row-0042'[/\d+/].to_i, 'user@host'.tr('@', '-'), 'CamelCase'.gsub(/([A-Z])/) { "_#{$1.downcase}" }, 'deadbeef' =~ /\A\h+\z/
puts nil.to_a.inspect, (nil || 'default'), [nil, 1].first.inspect, nil&.length.inspect
snapshot 'old', 'old-snap'
list_snapshots.length
clone_snapshot 'old-snap', 'old-copy'
count 'old-copy'
delete_snapshot 'old-snap'
list('old.*').each { |n| disable n; drop n }
['web', 'test_splits'].each do |n|
  disable n
  drop n
end
at_exit { puts 'the end' }; nil
exit
