# SPDX-License-Identifier: Apache-2.0
# HBase's Bytes: its methods for scripts and for values, `cf:q:toInt`. A byte[] is a String. bytes.c has the methods written in C.

module Bytes
  # The methods that a column may name to convert its values (cf:q:toInt); also in snake case (to_int), as JRuby allows.
  CONVERTERS = %w[toArray toString toStringBinary toBytesBinary toBytes toBoolean toLong toFloat toDouble toInt toShort toBigDecimal
                  readAsInt readAsVLong readVLong vintToBytes bytesToVint compareTo equals startsWith hashCode mapKey add head tail
                  padHead padTail split incrementBytes copy unsignedCopyAndIncrement isSorted indexOf contains createMaxByteArray
                  multiple toHex fromHex len toByteArrays toBinaryByteArrays name]
  # What these take is no byte[].
  NOT_OF_BYTES = { 'toBytes' => 'java.lang.String', 'toBytesBinary' => 'java.lang.String', 'fromHex' => 'java.lang.String', 'toArray' => 'java.util.List' }
  SIZEOF_BOOLEAN = SIZEOF_BYTE = 1
  SIZEOF_CHAR = SIZEOF_SHORT = 2
  SIZEOF_INT = SIZEOF_FLOAT = 4
  SIZEOF_LONG = SIZEOF_DOUBLE = 8
  LETTERS = /\A([\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*/

  class << self
    def converter?(name)
      CONVERTERS.include?(JavaNames.camel(name))
    end

    def inspect
      'Java::OrgApacheHadoopHbaseUtil::Bytes'
    end
    alias to_s inspect
    alias name inspect

    def const_missing(name)
      Object.const_get(name)
    end

    def method_missing(name, *args)
      camel = JavaNames.camel(name)
      return __send__(camel.to_sym, *args) if camel != name.to_s && respond_to?(camel.to_sym)
      super
    end

    # Java: bytes that are not UTF-8 become U+FFFD. With a separator: two texts joined by it.
    def toString(bytes, at = 0, length = nil)
      return nil if bytes.nil?
      return "#{toString(bytes)}#{at}#{toString(length)}" if at.is_a?(String)
      out = ''
      rest = length.nil? ? bytes[at..-1].to_s : bytes[at, length].to_s
      until rest.empty?
        good = rest[LETTERS]
        out << good << (good.length < rest.length ? "\xef\xbf\xbd" : '')
        rest = rest[good.length + 1..-1].to_s
      end
      out
    end

    def toBytes(value)
      case value
      when Integer then big_endian(value, 8)
      when Float then real_bytes(value, 8)
      when true then "\xff"
      when false then "\x00"
      when JavaBigDecimal then value.bytes
      else value.to_s
      end
    end

    # --- numbers ---

    def refuse(text)
      raise HBaseError.make('java.lang.IllegalArgumentException', text)
    end

    def number(bytes, length, at = 0, given = length)
      refuse("Wrong length: #{given}, expected #{length}") if given != length
      refuse("offset (#{at}) + length (#{length}) exceed the capacity of the array: #{bytes.length}") if at + length > bytes.length
      signed(bytes[at, length])
    end

    def toInt(bytes, at = 0, length = 4)
      number(bytes, 4, at, length)
    end

    def toLong(bytes, at = 0, length = 8)
      number(bytes, 8, at, length)
    end

    def toShort(bytes, at = 0, length = 2)
      number(bytes, 2, at, length)
    end

    # Bytes.toLong with offset and length.
    def counter(bytes)
      refuse("Wrong length: #{bytes.length}, expected 8") if bytes.length != 8
      signed(bytes)
    end

    def toFloat(bytes, at = 0)
      number(bytes, 4, at)
      Shell.java_float(real(bytes[at, 4]))
    end

    def toDouble(bytes, at = 0)
      number(bytes, 8, at)
      Shell.java_float(real(bytes[at, 8]))
    end

    def toBoolean(bytes)
      refuse("Array has wrong size: #{bytes.length}") if bytes.length != 1
      bytes.getbyte(0) != 0
    end

    # nil: too short.
    def toBigDecimal(bytes, at = 0, length = bytes.length)
      return nil if length < SIZEOF_INT + 1 || at + length > bytes.length
      JavaBigDecimal.read(bytes[at, length])
    end

    def readAsInt(bytes, at, length)
      refuse("offset (#{at}) + length (#{length}) exceed the capacity of the array: #{bytes.length}") if at + length > bytes.length
      bytes[at, length].bytes.inject(0) { |n, b| n << 8 | b }
    end

    # Hadoop's numbers of variable length: one byte, or a byte that says how many follow and whether they are negative.
    def vintToBytes(n)
      return big_endian(n, 1) if n >= -112 && n <= 127
      magnitude = n < 0 ? ~n : n
      length = (magnitude.bit_length + 7).div(8)
      big_endian((n < 0 ? -120 : -112) - length, 1) + big_endian(magnitude, length)
    end

    def readAsVLong(bytes, at)
      first = signed(bytes[at, 1])
      return first if first >= -112
      length = first < -120 ? -120 - first : -112 - first
      magnitude = readAsInt(bytes, at + 1, length)
      first < -120 ? ~magnitude : magnitude
    end
    alias readVLong readAsVLong

    def bytesToVint(bytes)
      readAsVLong(bytes, 0)
    end

    # --- comparing ---

    # Java: the difference of the first bytes that differ, otherwise of the lengths.
    def compareTo(a, b)
      shorter = [a.length, b.length].min
      shorter.times { |i| return a.getbyte(i) - b.getbyte(i) if a.getbyte(i) != b.getbyte(i) }
      a.length - b.length
    end

    def equals(a, b)
      a == b
    end

    def startsWith(bytes, prefix)
      bytes.start_with?(prefix)
    end

    # Java's hash, an int: 31 × the previous value, plus the next byte, which is signed.
    def hashCode(bytes, length = bytes.length)
      n = bytes[0, length].bytes.inject(1) { |h, b| (31 * h + (b < 128 ? b : b - 256)) & 0xffffffff }
      n < 0x80000000 ? n : n - 0x100000000
    end
    alias mapKey hashCode

    def isSorted(list)
      list.each_cons(2).all? { |a, b| (a <=> b) <= 0 }
    end

    def indexOf(bytes, target)
      bytes.index(target.is_a?(Integer) ? big_endian(target, 1) : target) || -1
    end

    def contains(bytes, target)
      indexOf(bytes, target) >= 0
    end

    # --- parts ---

    def add(*list)
      list.flatten.join('')
    end

    # nil: it is not so long.
    def head(bytes, length)
      length > bytes.length ? nil : bytes[0, length]
    end

    def tail(bytes, length)
      length > bytes.length ? nil : bytes[bytes.length - length, length]
    end

    def padHead(bytes, count)
      "\x00" * count + bytes
    end

    def padTail(bytes, count)
      bytes + "\x00" * count
    end

    def copy(bytes, at = 0, length = bytes.length)
      bytes[at, length]
    end

    def multiple(bytes, times)
      bytes * times
    end

    def len(bytes)
      bytes.nil? ? 0 : bytes.length
    end

    def createMaxByteArray(length)
      "\xff" * length
    end

    # The next larger string of the same length; if all bytes are 255, one byte longer.
    def unsignedCopyAndIncrement(bytes)
      list = bytes.bytes
      at = list.length - 1
      while at >= 0 && list[at] == 255
        list[at] = 0
        at -= 1
      end
      return "\x01" + list.pack('C*') if at < 0
      list[at] += 1
      list.pack('C*')
    end

    # A signed number in the given number of bytes, or in 8.
    def incrementBytes(bytes, amount)
      refuse("Increment Bytes - value too big: #{bytes.length}") if bytes.length > 8
      big_endian((bytes.empty? ? 0 : signed(bytes)) + amount, 8)
    end

    # The smallest key above all keys that begin with the prefix; empty if there is none.
    def after_prefix(prefix)
      list = prefix.bytes
      list.pop while list[-1] == 255
      list[-1] += 1 unless list.empty?
      list.pack('C*')
    end

    # [from, … num keys at equal distances …, to]; nil: the range is too small.
    def split(from, to, inclusive, num = nil)
      inclusive, num = false, inclusive if num.nil?
      Shell.need('big')
      length = [from.length, to.length].max
      low = Big.parse(toHex(padTail(from, length - from.length)), 16)
      high = Big.parse(toHex(padTail(to, length - to.length)), 16)
      refuse("b <= a") if high <= low
      refuse('num cannot be < 0') if num < 0
      span = high - low + (inclusive ? 1 : 0)
      if span / (num + 1) < 1 # bytes behind make room
        return split(from + "\x00" * [length + 1 - from.length, 0].max, to + "\x00" * [length + 1 - to.length, 0].max, inclusive, num)
      end
      step = span / (num + 1)
      [from] + (1..num).map { |i| fromHex((low + step * i).to_s(16).rjust(length * 2, '0')) } + [to]
    end

    # --- text ---

    def toHex(bytes, at = 0, length = bytes.length)
      bytes[at, length].bytes.map { |b| format('%02x', b) }.join('')
    end

    def fromHex(text)
      refuse("length: #{text.length} is not even") if text.length.odd?
      text.scan(/../).map { |pair| pair.to_i(16) }.pack('C*')
    end

    def toByteArrays(list)
      [list].flatten.map { |v| v.to_s }
    end
    alias toArray toByteArrays

    def toBinaryByteArrays(list)
      list.map { |v| toBytesBinary(v) }
    end

    # --- writing into existing bytes; each returns the position behind the bytes written ---

    def putBytes(to, at, from, from_at, length)
      to[at, length] = from[from_at, length]
      at + length
    end

    def putInt(to, at, n)
      putBytes(to, at, big_endian(n, 4), 0, 4)
    end

    def putLong(to, at, n)
      putBytes(to, at, big_endian(n, 8), 0, 8)
    end

    def putShort(to, at, n)
      putBytes(to, at, big_endian(n, 2), 0, 2)
    end

    def putByte(to, at, n)
      putBytes(to, at, big_endian(n, 1), 0, 1)
    end
  end
end

# The part of java.math.BigDecimal that Bytes and comparators need: an unscaled number, and the number of its digits behind the point.
class JavaBigDecimal
  attr_reader :unscaled, :scale

  def self.inspect
    'Java::JavaMath::BigDecimal'
  end

  def self.of(v)
    v.is_a?(JavaBigDecimal) ? v : new(v.to_s)
  end

  # HBase: four bytes of scale, then two's complement.
  def self.read(bytes)
    Shell.need('big')
    number = Big.parse(Bytes.toHex(bytes[4..-1]), 16)
    number -= Big.of(1) << 8 * (bytes.length - 4) if bytes.getbyte(4) > 127
    allocate.set(number, Bytes.signed(bytes[0, 4]))
  end

  def initialize(text)
    Shell.need('big')
    m = /\A([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\z/.match(text.to_s)
    raise HBaseError.make('java.lang.NumberFormatException', "no number: #{text}") if m.nil? || (m[2].to_s + m[3].to_s).empty?
    number = Big.parse(m[2].to_s + m[3].to_s, 10)
    set(m[1] == '-' ? -number : number, m[3].to_s.length - m[4].to_i)
  end

  def set(unscaled, scale)
    @unscaled = unscaled
    @scale = scale
    self
  end

  def bytes
    Bytes.big_endian(@scale, 4) + @unscaled.to_two_complement
  end

  # Java: without an exponent if the scale is not negative and the number is at least 0.000001.
  def to_s
    digits = @unscaled.abs.to_s
    sign = @unscaled < 0 ? '-' : ''
    return sign + digits if @scale == 0
    exponent = digits.length - 1 - @scale
    if @scale > 0 && exponent >= -6
      digits = digits.rjust(@scale + 1, '0')
      return "#{sign}#{digits[0...-@scale]}.#{digits[-@scale..-1]}"
    end
    "#{sign}#{digits[0]}#{digits.length > 1 ? '.' + digits[1..-1] : ''}E#{exponent >= 0 ? '+' : ''}#{exponent}"
  end
  alias toString to_s
  alias toPlainString to_s

  def inspect
    "#<Java::JavaMath::BigDecimal:0x#{(object_id & 0xffffffff).to_s(16)}>"
  end

  def to_f
    to_s.to_f
  end
end
