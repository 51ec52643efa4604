# Arguments of the wrong type, and Ruby that a script seldom has.
create 't', 'f'
put 't', 'r', 'f:q', 'v', 1
put 't', 'r', 'f:q', 'v', 2**63
put 't', 'r', 'f:q', 'v', 1, 2
put 't', 'r', 'f:q', 'v', 1, {TTL => 'x'}
put 't', 'r', 'f:q', 'v', {TTL => '1000'}
get 't', 'r', {COLUMN => 'f:q', VERSIONS => 'a'}
get 't', 'r', {TIMERANGE => [5]}
get 't', 'r', {TIMERANGE => [nil, 5]}
get 't', 'r', {TIMESTAMP => -5}
get 't', 'r', {TIMESTAMP => 'x'}
get 't', 'r', {FILTER => 5}
scan 't', {TIMERANGE => [5]}
scan 't', {STARTROW => 5}
scan 't', {STOPROW => 5}
scan 't', {REVERSED => 'x', LIMIT => 2}
scan 't', {REVERSED => nil}
scan 't', {FILTER => 5}
get_splits 'nope'
=begin
it's a comment (
=end
x = 5
=begin text
=ending
=end of it
puts x
y = <<~A + 'z'
  it's 18446744073709551616
A
18446744073709551616
/ab+c/i
puts /a/i, /a/mix, /a/
r = /b/i
/a#{r}c/ =~ 'aBc'
/a#{r}c/ =~ 'ABc'
/(?m:a.b)/ =~ "a\nb"
/a.b/ =~ "a\nb"
/[(?m)]/ =~ 'm'
case 'aBc' when /A#{r}C/i then puts 'yes' end
puts defined?(x), defined?(puts), defined?(String), defined?(@a).inspect, defined?(nope).inspect
exit
