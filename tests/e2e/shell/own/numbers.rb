# SPDX-License-Identifier: Apache-2.0
# Integers up to 64 bits arrive exactly; longer ones are computed with: split keys, hashes as numbers.
create 'num', {NAME => 'f', VERSIONS => 5}
put 'num', 'r', 'f:ts', 'ns', 1700000000123456789
put 'num', 'r', 'f:ts', 'max', 9223372036854775806
get 'num', 'r', {COLUMN => 'f:ts', VERSIONS => 3}
get 'num', 'r', {COLUMN => 'f:ts', TIMERANGE => [1700000000123456789, 1700000000123456790]}
get 'num', 'r', {COLUMN => 'f:ts', TIMESTAMP => 1700000000123456788}
scan 'num', TIMERANGE => [0, 9223372036854775807]
scan 'num', TIMERANGE => [0, 2**63 - 1], VERSIONS => 5
scan 'num', TIMERANGE => [1700000000123456789, 9223372036854775806]
delete 'num', 'r', 'f:ts', 1700000000123456789
get 'num', 'r', {COLUMN => 'f:ts', VERSIONS => 3}
incr 'num', 'c', 'f:n', 9007199254740993
incr 'num', 'c', 'f:n', 1
get_counter 'num', 'c', 'f:n'
incr 'num', 'c', 'f:n', -9223372036854775807
incr 'num', 'd', 'f:n', 9223372036854775807
get_counter 'num', 'd', 'f:n'
scan 'num', {STARTROW => 'd', COLUMNS => 'f:n:toLong'}
put 'num', 'e', 'f:l', [1234567890123456789].pack('Q>')
put 'num', 'e', 'f:m', Bytes.toBytes(-1234567890123456789)
put 'num', 'e', 'f:t', 2**70
get 'num', 'e', {COLUMNS => ['f:l:toLong', 'f:m:toLong', 'f:t']}
Time.at(1700000000).to_i * 1000000000 + 123456789
2**63 - 1
-(2**63)
1700000000123456790 <=> 1700000000123456789
[1700000000123456790, 9223372036854775806, 1700000000123456789].sort
[1700000000123456789, 1700000000123456790].max
9223372036854775808
9223372036854775808 - 1
18_446_744_073_709_551_616 % 10
0xffffffffffffffff
'ffffffffffffffff'.to_i(16)
'18446744073709551616'.to_i
'9f86d081884c7d659a2feaa0c55ad015'.hex % 16
(1...8).map { |i| '%016x' % (2**64 / 8 * i) }
(1...4).map { |i| (2**64 / 4 * i).to_s(16).rjust(16, '0') }
(1...4).map { |i| [2**64 / 4 * i].pack('Q>').unpack('H*')[0] }
(2**128 - 1) / 3
-(2**100) / 7
(2**100).divmod(-12345678901234567890)
(2**100).to_s(36)
5 - 2**64
3 * 2**64
2**64 > 5
5 < 2**64
[2**65, 2**64].sort
(2**64).class
(2**64 + 255) & 0xff
2**64 >> 60
1 << 64
"#{2**70}"
10**20
(10**20).to_s.length
format('%d and %s', 2**65, 2**66)
puts '18446744073709551616' # 18446744073709551616
create 'spl', 'f', SPLITS => (1...4).map { |i| '%016x' % (2**64 / 4 * i) }
get_splits 'spl'
begin
  raise IOError, 'first'
rescue IOError
  begin
    raise
  rescue => again
    puts again.message, $!.message, "#{$!.class}"
  end
end
puts defined?(nothing_there).inspect, defined?(String), defined?(puts), defined?(@x).inspect, defined?(again) ? 'yes' : 'no'
puts 'guarded' unless defined?(NoSuchConstant)
require 'set'
require 'json'
require 'digest'
require 'base64'
Digest::MD5.hexdigest('abc')
Digest::SHA1.hexdigest('abc')
Digest::SHA256.hexdigest('abc')[0, 8]
Base64.strict_encode64('abc')
Base64.decode64('YWJj')
JSON.generate({'a' => [1, nil, 'x', 2.5, true], 'b' => {}})
JSON.parse('{"a": [1, 2.5, "x", null, true]}')
JSON.parse('{"a": 1}', symbolize_names: true)
puts JSON.pretty_generate({'a' => [1, 2], 'b' => 'c'})
{'a' => 1}.to_json
s = Set.new([1, 2, 2])
s.include?(2)
(s | [3]).to_a
Time.parse('2026-01-02 03:04:05 UTC').to_i
Time.iso8601('2026-01-02T03:04:05Z').to_i
Time.parse('2026-01-02T03:04:05+02:00').to_i
require 'date'
Date.parse('2026-01-31').to_s
(Date.parse('2026-01-31') >> 1).to_s
(Date.parse('2026-01-02') + 30).strftime('%Y%m%d')
(Date.new(2026, 3, 1) - Date.new(2026, 2, 1)).to_i
(Date.new(2026, 2, 27)..Date.new(2026, 3, 1)).map { |d| d.strftime('%m-%d') }
DateTime.parse('2026-01-02T03:04:05Z').strftime('%s')
Time.at(1767312000, 123000).utc.strftime('%L %3N %-d %P')
Time.strptime('2026-01-02 03:04', '%Y-%m-%d %H:%M').min
require 'csv'
CSV.parse_line('a,b,"c ""d"", e",,f')
['num', 'spl'].each { |n| disable n; drop n }
exit
