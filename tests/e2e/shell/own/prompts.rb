# SPDX-License-Identifier: Apache-2.0
# Statements of several lines, with irb's prompts; values and strings.
puts 1
list
# comment

if true
  puts 2
end
def foo(x)
  x + 1
end
foo 3
h = { 'a' => 1,
      'b' => 2 }
[1,2].map { |x|
  x * 2
}
%w[a b].each do |t|
  puts t
end
begin
  raise 'x'
rescue => e
  puts e.message
end
x = <<-T
hello
T
puts "a" \
  "b"
5.times { |i| print i }
puts
Time.at(0).utc.to_s
"abc" =~ /b(.)/
$1
"a-b".gsub(/-/, '+')
"%05d" % 3
list.each { |t| puts t }
y = list
