# SPDX-License-Identifier: Apache-2.0
# Ruby's patterns on Regexp#search (regexp.c), and the methods of String that take patterns.

class MatchData
  attr_reader :regexp, :string

  def initialize(regexp, string, at)
    @regexp = regexp
    @string = string
    @at = at
  end

  def begin(n)
    @at[2 * n]
  end

  def end(n)
    @at[2 * n + 1]
  end

  def [](n)
    unless n.is_a?(Integer)
      pair = @regexp.group_names.find { |name, _| name == n.to_s }
      raise IndexError, "undefined group name reference: #{n}" if pair.nil?
      n = pair[1]
    end
    from = @at[2 * n]
    from.nil? ? nil : @string[from, @at[2 * n + 1] - from]
  end

  def to_a
    (0...@at.length / 2).map { |n| self[n] }
  end

  def captures
    to_a[1..-1]
  end

  def names
    @regexp.group_names.map { |name, _| name }
  end

  def to_s
    self[0]
  end

  def pre_match
    @string[0, @at[0]]
  end

  def post_match
    @string[@at[1]..-1]
  end

  def length
    to_a.length
  end
  alias size length

  def values_at(*list)
    to_a.values_at(*list)
  end

  def offset(n)
    [self.begin(n), self.end(n)]
  end

  def named_captures
    regexp.group_names.sort_by { |_, number| number }.inject({}) { |h, (name, _)| h.merge(name => self[name]) }
  end

  def inspect
    names = regexp.group_names.inject({}) { |h, (name, number)| h.merge(number => name) }
    groups = captures.each_with_index.map { |v, i| " #{names[i + 1] || i + 1}:#{v.inspect}" }
    "#<MatchData #{self[0].inspect}#{groups.join('')}>"
  end
end

class Regexp
  IGNORECASE = 1
  EXTENDED = 2
  MULTILINE = 4

  class << self
    alias compile new

    def escape(text)
      out = ''
      text.each_char { |c| out << ('.*?+^$|\\()[]{}-/'.include?(c) ? "\\#{c}" : c) }
      out
    end
    alias quote escape
  end

  attr_reader :source, :options

  def match(text, from = 0)
    at = text.nil? ? nil : search(text.to_s, from)
    m = at.nil? ? nil : MatchData.new(self, text.to_s, at)
    Regexp.remember(m, m.nil? ? [] : m.to_a)
    block_given? && m ? yield(m) : m
  end

  def match?(text)
    !text.nil? && !search(text.to_s, 0).nil?
  end

  def =~(text)
    m = match(text)
    m.nil? ? nil : m.begin(0)
  end

  def ===(text)
    (text.is_a?(String) || text.is_a?(Symbol)) && !match(text.to_s).nil?
  end

  # Its flags go with it into another pattern.
  def to_s
    on = flags
    off = 'mix'.delete(on)
    "(?#{on}#{off.empty? ? '' : "-#{off}"}:#{@source})"
  end

  def inspect
    "/#{@source}/#{flags}"
  end

  def flags
    { 'm' => MULTILINE, 'i' => IGNORECASE, 'x' => EXTENDED }.select { |_, bit| @options & bit != 0 }.keys.join('')
  end

  def casefold?
    @options & IGNORECASE != 0
  end

  def ==(other)
    other.is_a?(Regexp) && other.inspect == inspect
  end

  # The whole text, as Java's Matcher.matches.
  def whole?(text)
    at = search(text, 0)
    !at.nil? && at[0] == 0 && at[1] == text.length
  end
end

# Behind the last byte of a pattern whose class of characters has no end; nil: there is none, or it is quoted.
def Shell.unclosed_class(text)
  return nil if text.include?('\\Q')
  depth = at = 0
  begun = -1
  while at < text.length
    c = text[at]
    at += 1 if c == '\\'
    if c == '['
      depth += 1
      begun = at + (text[at + 1] == '^' ? 2 : 1)
    elsif c == ']' && depth > 0 && at != begun
      depth -= 1
    end
    at += 1
  end
  depth > 0 ? text.length : nil
end

# Java's Pattern.compile fails before anything is asked of a server.
def Shell.check_pattern(text)
  at = Shell.unclosed_class(Arguments.pattern(text))
  raise ArgumentError, "Unclosed character class near index #{at - 1}\n#{text}\n#{' ' * (at - 1)}^" unless at.nil?
end

# HBase's patterns are Java's, and match whole names.
def Shell.java_pattern(text)
  check_pattern(text)
  Regexp.new("\\A(?:#{text})\\z")
end

class String
  alias plain_sub sub
  alias plain_gsub gsub
  alias plain_split split
  alias plain_index []
  alias plain_slice! slice!

  def =~(pattern)
    pattern =~ self
  end

  def match(pattern, from = 0)
    pattern = Regexp.new(pattern) if pattern.is_a?(String)
    pattern.match(self, from)
  end

  def match?(pattern)
    pattern = Regexp.new(pattern) if pattern.is_a?(String)
    pattern.match?(self)
  end

  def [](at, *rest)
    return plain_index(at, *rest) unless at.is_a?(Regexp)
    m = at.match(self)
    m.nil? ? nil : m[rest[0] || 0]
  end
  alias slice []

  def scan(pattern)
    pattern = Regexp.new(Regexp.escape(pattern)) if pattern.is_a?(String)
    list = []
    each_match(pattern) { |m| list << (m.captures.empty? ? m[0] : m.captures) }
    return list unless block_given?
    list.each { |s| yield s }
    self
  end

  def sub(pattern, *rest, &block)
    return plain_sub(pattern, *rest, &block) unless pattern.is_a?(Regexp)
    m = pattern.match(self)
    m.nil? ? dup : m.pre_match + Shell.replacement(m, rest, block) + m.post_match
  end

  def gsub(pattern, *rest, &block)
    return plain_gsub(pattern, *rest, &block) unless pattern.is_a?(Regexp)
    out = ''
    last = 0
    each_match(pattern) do |m|
      out << plain_index(last, m.begin(0) - last) << Shell.replacement(m, rest, block)
      last = m.end(0)
    end
    out << plain_index(last..-1)
  end

  def gsub!(*list, &block)
    text = gsub(*list, &block)
    text == self ? nil : replace(text)
  end

  def sub!(*list, &block)
    text = sub(*list, &block)
    text == self ? nil : replace(text)
  end

  def split(pattern = nil, limit = 0)
    return plain_split(pattern, limit) unless pattern.is_a?(Regexp)
    list = []
    last = 0
    each_match(pattern) do |m|
      next if m.end(0) == 0
      list << plain_index(last, m.begin(0) - last)
      last = m.end(0)
      break if limit > 0 && list.length == limit - 1
    end
    list << plain_index(last..-1)
    list.pop while limit == 0 && !list.empty? && list[-1].empty?
    list
  end

  def each_match(pattern)
    from = 0
    while from <= length && (m = pattern.match(self, from))
      yield m
      from = m.end(0) > m.begin(0) ? m.end(0) : m.end(0) + 1
    end
  end

  def to_java_bytes
    self
  end

  def encode(*)
    self
  end
  alias force_encoding encode
  alias unicode_normalize encode

  def casecmp(other)
    downcase <=> other.downcase
  end unless method_defined?(:casecmp)
end

def Shell.replacement(m, rest, block)
  return block.call(m[0]).to_s if block
  return rest[0][m[0]].to_s if rest[0].is_a?(Hash)
  rest[0].plain_gsub('\\\\') { '\\' }.tap { |t| (0..9).each { |n| t.replace(t.plain_gsub("\\#{n}") { m[n].to_s }) } }
end
