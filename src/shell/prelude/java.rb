# SPDX-License-Identifier: Apache-2.0
# The little of Java that scripts use: Bytes, Time.

module Bytes
  CONVERTERS = %w[toString toStringBinary toInt toLong toShort toFloat toDouble toBoolean toBigDecimal toHex len]

  # Java: bytes that are no UTF-8 become U+FFFD.
  def self.toString(bytes)
    out = ''
    rest = bytes
    until rest.empty?
      good = rest[LETTERS]
      out << good << (good.length < rest.length ? "\xef\xbf\xbd" : '')
      rest = rest[good.length + 1..-1].to_s
    end
    out
  end
  LETTERS = /\A([\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*/

  def self.toBytes(value)
    case value
    when Integer then big_endian(value, 8)
    when Float then real_bytes(value, 8)
    when true then "\xff"
    when false then "\x00"
    else value.to_s
    end
  end

  def self.to_bytes(value)
    toBytes(value)
  end

  def self.number(bytes, length)
    if bytes.length < length
      raise HBaseError.make('java.lang.IllegalArgumentException',
                            "offset (0) + length (#{length}) exceed the capacity of the array: #{bytes.length}")
    end
    signed(bytes[0, length])
  end

  def self.toInt(bytes)
    number(bytes, 4)
  end

  def self.toLong(bytes)
    number(bytes, 8)
  end

  # As Bytes.toLong with offset and length.
  def self.counter(bytes)
    raise HBaseError.make('java.lang.IllegalArgumentException', "Wrong length: #{bytes.length}, expected 8") if bytes.length != 8
    signed(bytes)
  end

  def self.toShort(bytes)
    number(bytes, 2)
  end

  def self.toFloat(bytes)
    Shell.java_float(real(bytes[0, 4]))
  end

  def self.toDouble(bytes)
    Shell.java_float(real(bytes[0, 8]))
  end

  def self.toBoolean(bytes)
    raise HBaseError.make('java.lang.IllegalArgumentException', "Array has wrong size: #{bytes.length}") if bytes.length != 1
    bytes.getbyte(0) != 0
  end

  def self.toHex(bytes)
    bytes.bytes.map { |b| format('%02x', b) }.join('')
  end

  def self.len(bytes)
    bytes.length
  end
end

# Java's Double.toString for the usual sizes.
def Shell.java_float(v)
  return v.to_s if v.nan? || v.infinite?
  text = v.to_s
  text.include?('.') || text.include?('e') ? text : text + '.0'
end

class Time
  def strftime(form)
    Shell.strftime(form, to_i, utc?)
  end

  def iso8601
    Shell.strftime('%Y-%m-%dT%H:%M:%S', to_i, utc?) + (utc? ? 'Z' : zone_text(':'))
  end

  def to_s
    Shell.strftime('%Y-%m-%d %H:%M:%S ', to_i, utc?) + (utc? ? 'UTC' : zone_text(''))
  end
  alias inspect to_s

  def zone_text(mark)
    z = Shell.strftime('%z', to_i, false)
    z[0, 3] + mark + z[3, 2]
  end
end

# org.apache.hadoop.hbase.util.Bytes and what else scripts name by its package.
class JavaPackage
  KNOWN = {
    'org.apache.hadoop.hbase.util.Bytes' => Bytes,
    'java.lang.String' => String
  }

  def initialize(name)
    @name = name
  end

  def method_missing(name, *args)
    full = "#{@name}.#{name}"
    return KNOWN[full] if KNOWN[full]
    raise NameError, "the shell has no Java: #{full}" unless args.empty? && name.to_s[0, 1] == name.to_s[0, 1].downcase
    JavaPackage.new(full)
  end

  def respond_to_missing?(*)
    true
  end
end

self.define_singleton_method(:org) { JavaPackage.new('org') }
self.define_singleton_method(:java) { JavaPackage.new('java') }
