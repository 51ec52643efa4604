# SPDX-License-Identifier: Apache-2.0
# Integers of more than 64 bits, which mruby lacks: split keys (2**64 / regions), hashes as numbers, 2**63 - 1. An operation whose
# result does not fit returns a Big; an addition or subtraction whose result fits again returns an Integer.
# Parts are 28 bits, the smallest first. mruby's <, > and == are wrong for Integers from 2^62 on; <=> and eql? are right.

class Big
  include Comparable
  BITS = 28
  BASE = 1 << BITS
  MASK = BASE - 1
  WORD_MIN = -9223372036854775808
  WORD_MAX = 9223372036854775807

  attr_reader :negative, :parts

  def self.of(v)
    return v if v.is_a?(Big)
    raise TypeError, "#{v.class} can't be coerced into Integer" unless v.is_a?(Integer)
    return new(true, [0, 0, 1 << 7]) if v.eql?(WORD_MIN)
    parts = []
    n = v.abs
    while n > 0
      parts << (n & MASK)
      n >>= BITS
    end
    new((v <=> 0) < 0, parts)
  end

  def self.parse(text, base)
    n = new(false, [])
    text.downcase.each_char do |c|
      next if c == '_'
      n = n.times_small(base, c =~ /[0-9]/ ? c.to_i : c.ord - 87)
    end
    n
  end

  def initialize(negative, parts)
    parts.pop while parts[-1] == 0
    @negative = negative && !parts.empty?
    @parts = parts
  end

  def fits?
    return true if @parts.length <= 2
    self >= Big.of(WORD_MIN) && self <= Big.of(WORD_MAX)
  end

  # An Integer, if it fits.
  def normal
    return self unless fits?
    n = 0
    @parts.reverse.each { |p| n = @negative ? (n << BITS) - p : n << BITS | p }
    n
  end

  # The 64 bits that a word has of it.
  def wrapped
    low = self & 0xffffffffffff
    high = (self >> 48) & 0xffff
    ((high & 0x7fff) << 48 | low) + (high > 0x7fff ? WORD_MIN : 0)
  end

  def times_small(n, plus)
    carry = plus
    list = @parts.map do |p|
      carry += p * n
      part = carry & MASK
      carry >>= BITS
      part
    end
    while carry > 0
      list << (carry & MASK)
      carry >>= BITS
    end
    Big.new(@negative, list)
  end

  # --- comparing ---

  def <=>(other)
    return to_f <=> other if other.is_a?(Float)
    return nil unless other.is_a?(Integer) || other.is_a?(Big)
    other = Big.of(other)
    return @negative ? -1 : 1 if @negative != other.negative
    @negative ? other.magnitude(self) : magnitude(other)
  end

  def ==(other)
    (self <=> other) == 0
  end
  alias eql? ==

  def magnitude(other)
    return @parts.length <=> other.parts.length if @parts.length != other.parts.length
    @parts.reverse <=> other.parts.reverse
  end

  def hash
    to_s.hash
  end

  # --- computing ---

  def +(other)
    return to_f + other if other.is_a?(Float)
    other = Big.of(other)
    sum(other).normal
  end

  def -(other)
    return to_f - other if other.is_a?(Float)
    sum(-Big.of(other)).normal
  end

  def sum(other)
    return Big.new(@negative, sum_parts(other.parts)) if @negative == other.negative
    return Big.new(@negative, difference_parts(other.parts)) if magnitude(other) >= 0
    Big.new(other.negative, other.difference_parts(@parts))
  end

  def sum_parts(others)
    carry = 0
    list = Array.new([@parts.length, others.length].max) do |i|
      carry += (@parts[i] || 0) + (others[i] || 0)
      part = carry & MASK
      carry >>= BITS
      part
    end
    carry > 0 ? list << carry : list
  end

  # The other is not larger.
  def difference_parts(others)
    borrow = 0
    @parts.each_with_index.map do |p, i|
      d = p - (others[i] || 0) - borrow
      borrow = d < 0 ? 1 : 0
      d & MASK
    end
  end

  def -@
    Big.new(!@negative, @parts.dup)
  end

  def abs
    Big.new(false, @parts.dup)
  end

  def *(other)
    return to_f * other if other.is_a?(Float)
    other = Big.of(other)
    list = Array.new(@parts.length + other.parts.length, 0)
    @parts.each_with_index do |a, i|
      carry = 0
      other.parts.each_with_index do |b, k|
        carry += a * b + list[i + k]
        list[i + k] = carry & MASK
        carry >>= BITS
      end
      list[i + other.parts.length] += carry
    end
    Big.new(@negative != other.negative, list)
  end

  # Towards minus infinity, as Ruby.
  def divmod(other)
    other = Big.of(other)
    raise ZeroDivisionError, 'divided by 0' if other.parts.empty?
    quotient, rest = abs.divide(other.abs)
    return [quotient, @negative ? -rest : rest] if @negative == other.negative
    return [-quotient, other.negative ? -rest : rest] if rest.parts.empty?
    [(-quotient).sum(Big.of(-1)), other.sum(other.negative ? rest : -rest)]
  end

  def divide(other)
    return divide_small(other.parts[0]) if other.parts.length == 1
    quotient = Big.new(false, [])
    rest = Big.new(false, [])
    to_s(2).each_char do |bit|
      rest = rest.times_small(2, bit.to_i)
      fits = rest.magnitude(other) >= 0
      rest = rest.sum(-other) if fits
      quotient = quotient.times_small(2, fits ? 1 : 0)
    end
    [quotient, rest]
  end

  def divide_small(n)
    rest = 0
    list = @parts.reverse.map do |p|
      rest = rest << BITS | p
      part = rest.div(n)
      rest %= n
      part
    end
    [Big.new(false, list.reverse), Big.new(false, [rest])]
  end

  def /(other)
    return to_f / other if other.is_a?(Float)
    divmod(other)[0]
  end
  alias div /

  def %(other)
    divmod(other)[1].normal
  end
  alias modulo %

  def fdiv(other)
    to_f / other.to_f
  end

  def **(n)
    n.times.inject(Big.of(1)) { |v, _| v * self }
  end
  alias pow **

  # --- bits, of two's complement ---

  def <<(n)
    return self >> -n if n < 0
    Big.new(@negative, [0] * n.div(BITS) + @parts).times_small(1 << n % BITS, 0)
  end

  def >>(n)
    return self << -n if n < 0
    divmod(Big.of(1) << n)[0].normal
  end

  def bits_with(other)
    other = Big.of(other)
    length = [@parts.length, other.parts.length].max + 1
    a = complement(length)
    b = other.complement(length)
    list = Array.new(length) { |i| yield(a[i], b[i]) }
    return Big.new(false, list).normal if list[-1] < BASE / 2
    -Big.new(false, list.map { |p| ~p & MASK }).sum(Big.of(1)).normal
  end

  def complement(length)
    list = @parts + [0] * (length - @parts.length)
    return list unless @negative
    carry = 1
    list.map do |p|
      carry += ~p & MASK
      part = carry & MASK
      carry >>= BITS
      part
    end
  end

  def &(other)
    bits_with(other) { |a, b| a & b }
  end

  def |(other)
    bits_with(other) { |a, b| a | b }
  end

  def ^(other)
    bits_with(other) { |a, b| a ^ b }
  end

  def [](bit)
    (self >> bit) & 1
  end

  def bit_length
    (@negative ? sum(Big.of(1)) : self).abs.to_s(2).sub(/\A0+/, '').length
  end

  # Java's BigInteger.toByteArray.
  def to_two_complement
    count = bit_length.div(8) + 1
    text = (@negative ? (Big.of(1) << 8 * count).sum(self) : self).to_s(16)
    Bytes.fromHex(text.rjust(2 * count, '0'))
  end

  # --- other forms ---

  def to_s(base = 10)
    return '0' if @parts.empty?
    digits = []
    rest = abs
    until rest.parts.empty?
      rest, digit = rest.divide_small(base)
      digits << (digit.parts[0] || 0).to_s(base)
    end
    (@negative ? '-' : '') + digits.reverse.join('')
  end
  alias inspect to_s

  def to_f
    @parts.reverse.inject(0.0) { |v, p| v * BASE + p } * (@negative ? -1 : 1)
  end

  def to_i
    self
  end
  alias floor to_i
  alias ceil to_i

  # C wants a word.
  def to_int
    n = normal
    raise RangeError, "bignum too big to convert into `long'" if n.equal?(self)
    n
  end

  # Converts Bigs that fit to Integers, in a command's arguments.
  def self.normalize(v)
    case v
    when Big then v.normal
    when Array then v.map { |e| normalize(e) }
    when Hash then v.keys.each { |k| v[k] = normalize(v[k]) } && v
    else v
    end
  end

  def class
    Integer
  end

  def is_a?(type)
    type == Integer || type == Numeric || super
  end
  alias kind_of? is_a?

  def integer?
    true
  end

  def zero?
    @parts.empty?
  end

  def even?
    (self & 1) == 0
  end

  def odd?
    !even?
  end

  def coerce(other)
    [Big.of(other), self]
  end
end

# Integer's operators call these methods only if the other is no Integer or Float.
class Integer
  %i[+ - * / % <=> < <= > >= & | ^ divmod].each do |operator|
    in_word = instance_method(operator)
    define_method(operator) do |other|
      other.is_a?(Big) ? Big.of(self).__send__(operator, other) : in_word.bind(self).call(other)
    end
  end
end

class Float
  %i[+ - * / <=> < <= > >=].each do |operator|
    of_float = instance_method(operator)
    define_method(operator) do |other|
      of_float.bind(self).call(other.is_a?(Big) ? other.to_f : other)
    end
  end
end

class Array
  alias pack_words pack

  def pack(form)
    return pack_words(form) unless any? { |v| v.is_a?(Big) }
    map { |v| v.is_a?(Big) ? v.wrapped : v }.pack_words(form)
  end
end

# C's format takes machine words only: a Big is formatted as text first.
module Kernel
  alias format_words format
  BIG_BASES = { 'd' => 10, 'i' => 10, 'u' => 10, 'x' => 16, 'X' => 16, 'o' => 8, 'b' => 2 }

  def format(form, *list)
    return format_words(form, *list) unless list.any? { |v| v.is_a?(Big) }
    at = -1
    form = form.gsub(/%([-+ #]*)(0?)(\d*)(?:\.\d+)?([a-zA-Z%])/) do |directive|
      next directive if $4 == '%'
      at += 1
      next directive unless list[at].is_a?(Big) && BIG_BASES.key?($4)
      text = list[at].to_s(BIG_BASES[$4])
      text = text.upcase if $4 == 'X'
      list[at] = $2 == '0' ? text.rjust($3.to_i, '0') : text
      "%#{$1.delete('+ #')}#{$2 == '0' ? '' : $3}s"
    end
    format_words(form, *list)
  end
  alias sprintf format
end

class String
  def %(list)
    format(self, *list)
  end
end
