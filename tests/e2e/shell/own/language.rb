# SPDX-License-Identifier: Apache-2.0
# Ruby that scripts write around their commands.
m = /a(b)(c)/.match('xabcd')
puts m.size, m.length, m.captures.inspect, m.pre_match, m.post_match, m.begin(0), m.to_a.inspect, m[1], m.end(1), m.offset(0).inspect, m.values_at(1,2).inspect
'abc' =~ /b/; puts $~[0]
puts "a,b;c".split(/[,;]/).inspect, "hello world".scan(/o/).length, "x".rjust(3,'.'), "%05d" % 3, "abc".tr('a-b','x'), "a-b".gsub('-','+'), "Hello".swapcase, "abc"[0..1], "abc"[-1], "a b c".split.map(&:upcase).join('|')
puts [3,1,2].sort.inspect, [1,2,3].each_slice(2).to_a.inspect, [1,2,3].inject(:+), (1..3).to_a.inspect, [1,[2,[3]]].flatten.inspect, [1,2,2].uniq.inspect, [1,2,3].each_with_index.map { |a,i| a*i }.inspect, %w[a b].zip([1,2]).inspect, [1,nil].compact.inspect, [1,2,3].partition(&:odd?).inspect, [1,2,3,4].group_by { |x| x % 2 }.inspect
puts Time.at(0).utc.strftime('%Y-%m-%d %H:%M:%S'), Time.now.to_i > 0, (Time.now - 5).class
h = {'a'=>1, :b=>2}; h.each { |k,v| puts "#{k}=#{v}" }; puts h.map { |k,v| v }.inspect, h.key?('a'), h.to_a.inspect, h.sort_by { |k,v| -v }.inspect, h.select { |k,v| v > 1 }.inspect
5.downto(3) { |i| print i, ' ' }; 1.step(5,2) { |i| print i, ' ' }; puts
i = 0; while i < 3; i += 1; next if i == 2; puts i; end
until i == 0 do i -= 1 end
puts i
x = case 5 when 1..3 then 'low' when 4..6 then 'mid' else 'high' end
puts x
def foo(a, b = 2, *c, k: 3, &blk); [a,b,c,k].inspect; end
puts foo(1), foo(1,5,6,k: 7)
printf("%s %d\n", 'a', 3)
puts <<-EOS
  heredoc #{x}
EOS
begin; raise ArgumentError, 'bad'; rescue TypeError, ArgumentError => e; puts e.message; ensure; puts 'ens'; end
puts [1,2,3].include?(2), 10.fdiv(4), 7.divmod(3).inspect, 255.to_s(16), 'ff'.hex, '12abc'.to_i, 'abc'.bytes.inspect, "a\x00b".length, 'abc'.unpack('C*').inspect, [1,2].pack('C*').inspect
puts 'é'.inspect, "caf\u00e9"
puts rand(10) < 10, Random.rand < 1
s = 'abc'; s << 'def'; puts s.sub(/(b)/) { $1.upcase }, s.start_with?('ab'), s.each_char.to_a.length, s.center(10,'*'), s.succ, s * 2, s.index('d'), s.slice(1,2), s.insert(1,'Z'), s.delete('Z'), s.squeeze, s.count('a')
puts :a.to_proc.call('x') rescue puts 'nope'
puts [1,2,3].sum, [1,2,3].min, [1,2,3].max_by { |v| -v }, [[1,2],[3,4]].to_h.inspect, [1,2,3].each_cons(2).to_a.inspect
puts nil.to_a.inspect, nil.to_s.empty?, Integer('12'), Float('1.5'), String(5), Array(nil).inspect
catch(:done) { throw :done }; puts 'caught'
a, (b, *c), d = 1, [2, 3, 4], 5; puts [a,b,c,d].inspect
puts [1, 2, 3].to_s + 'x', "#{[1, nil, :a, 'b', 1.5, {a: 1}]}"
$g = 5; puts $g
puts "abc".hash == "abc".hash, 5.between?(1,10), 5.clamp(1,3), -5.abs, 3.7.truncate, 10.pow(3), 10.gcd(4)
puts "abc" <=> "abd", "abc".eql?("abc"), "abc".equal?("abc")
puts [1,2,3].first, [1,2,3].last(2).inspect, [1,2,3].take_while { |v| v < 3 }.inspect, [3,1].sort { |p,q| q <=> p }.inspect, [1,2,3].reverse.inspect, [1,2,3].rotate.inspect, [1,2,3].each_with_object([]) { |v,m| m << v }.inspect, [1,2,3,4].find { |v| v > 2 }, [1,2,3].reduce(1) { |p,q| p*q }, [1,2,3].any? { |v| v > 2 }, [1,2,3].all?(Integer), [1,2,3].none?, [0,1].cycle.first(3).inspect, [1,2,3].sample.class, ['b','a'].sort!.inspect, [[2,'b'],[1,'a']].sort.inspect
puts ENV['HOME'].nil?, ENV.fetch('NO_SUCH_NAME', 'otherwise'), File.exist?('/etc/passwd'), File.basename('/a/b.rb')
puts 1_000_000, 0x1f, 0b11, 0o17, 1e3.to_i
puts 12.digits.inspect, 12.lcm(18), 5.bit_length, 3.pow(5, 7), 7.pred, 4.integer?, 2.5.integer?, 3.ord
puts [1, 2.5].sum, (1..10).step(3).to_a.inspect, [1, 2, 4, 5].slice_when { |p, q| q != p + 1 }.to_a.inspect, [1, 2, 4].chunk_while { |p, q| q == p + 1 }.to_a.inspect, %w[a b].grep_v(/a/).inspect
puts 'abc'.ascii_only?, 'é'.ascii_only?, :abc[1], :a.succ.inspect, [3, 1].sort_by! { |v| v }.inspect, 'abc'.public_send(:upcase), {a: 1}.assoc(:a).inspect
'né' + "\xff"
/(?<year>\d+)-(?<month>\d+)/.match('on 2026-11')
/(?<year>\d+)-(?<month>\d+)/.match('on 2026-11').named_captures
exit
