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
# java.util.Date, as far as scripts print and compare times.
class JavaDate
  def self.inspect
    'Java::JavaUtil::Date'
  end

  def initialize(ms = (Time.now.to_f * 1000).to_i)
    @ms = ms.to_i
  end

  def getTime
    @ms
  end
  alias time getTime

  def toString
    Shell.strftime('%a %b %d %H:%M:%S %Z %Y', @ms.div(1000), false)
  end
  alias to_s toString

  def inspect
    "#<Java::JavaUtil::Date: #{toString}>"
  end
end

class JavaParsePosition
  attr_accessor :index

  def self.inspect
    'Java::JavaText::ParsePosition'
  end

  def initialize(index)
    @index = index
  end
end

# Patterns of numbers and of months' and days' names in English: yyyy-MM-dd'T'HH:mm:ss,SSS.
class JavaDateFormat
  FIELDS = { 'y' => '%Y', 'M' => '%m', 'd' => '%d', 'H' => '%H', 'm' => '%M', 's' => '%S', 'E' => '%a', 'z' => '%Z', 'Z' => '%z' }
  MONTHS = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec]

  def self.inspect
    'Java::JavaText::SimpleDateFormat'
  end

  # Runs of a letter are fields; text in quotes and other signs stand for themselves.
  def initialize(pattern)
    @parts = []
    until pattern.empty?
      @parts << (pattern[/\A'[^']*'/] || pattern[/\A([A-Za-z])\1*/] || pattern[0, 1])
      pattern = pattern[@parts[-1].length..-1].to_s
    end
    wrong = @parts.find { |p| p =~ /\A[A-Za-z]/ && !FIELDS.key?(p[0]) && p[0] != 'S' }
    raise HBaseError.make('java.lang.IllegalArgumentException', "Illegal pattern character '#{wrong[0]}'") unless wrong.nil?
  end

  # nil with a position, an error without one, if the text is another.
  def parse(text, position = nil)
    at = position.nil? ? 0 : position.index
    found = {}
    @parts.each do |part|
      length = match(part, text[at..-1].to_s, found)
      if length.nil?
        return nil unless position.nil?
        raise HBaseError.make('java.text.ParseException', "Unparseable date: \"#{text}\"")
      end
      at += length
    end
    position.index = at unless position.nil?
    JavaDate.new(Time.local(found['y'] || 1970, found['M'] || 1, found['d'] || 1, found['H'] || 0, found['m'] || 0, found['s'] || 0).to_i * 1000 + (found['S'] || 0))
  end

  # How much of the text the part takes; nil: it does not match.
  def match(part, text, found)
    return literal(part, text) unless part =~ /\A[A-Za-z]/
    return month(text, found) if part[0] == 'M' && part.length > 2
    digits = text[/\A\d+/].to_s
    digits = digits[0, part.length] if part.length > 1
    return nil if digits.empty?
    found[part[0]] = part[0] == 'y' && part.length == 2 ? century(digits.to_i) : digits.to_i
    digits.length
  end

  def literal(part, text)
    part = part[1..-2] if part[0] == "'"
    text.start_with?(part) ? part.length : nil
  end

  def month(text, found)
    n = MONTHS.index(text[0, 3])
    found['M'] = n + 1 unless n.nil?
    n.nil? ? nil : 3
  end

  # Java: within 80 years before and 20 years after today.
  def century(year)
    now = Time.now.year
    year += now.div(100) * 100
    return year - 100 if year > now + 20
    year <= now - 80 ? year + 100 : year
  end

  def format(date)
    ms = date.getTime
    @parts.map do |part|
      next part[1..-2] if part[0] == "'"
      next part unless part =~ /\A[A-Za-z]/
      next Kernel.format("%0#{part.length}d", ms % 1000) if part[0] == 'S'
      form = part[0] == 'y' && part.length == 2 ? '%y' : part[0] == 'M' && part.length > 2 ? '%b' : FIELDS[part[0]]
      Shell.strftime(form, ms.div(1000), false)
    end.join('')
  end
end

class JavaPackage
  KNOWN = {
    'org.apache.hadoop.hbase.util.Bytes' => Bytes,
    'java.lang.String' => String,
    'java.util.Date' => JavaDate,
    'java.text.SimpleDateFormat' => JavaDateFormat,
    'java.text.ParsePosition' => JavaParsePosition
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

  def self.named(text)
    KNOWN[text] || raise(NameError, "the shell has no Java: #{text}")
  end

  def respond_to_missing?(*)
    true
  end
end

# `import java.util.Date`: the class under its own name.
module Kernel
  # In methods of a script's classes, too.
  def org
    JavaPackage.new('org')
  end

  def java
    JavaPackage.new('java')
  end

  def import(*classes)
    classes.flatten.each do |c|
      c = JavaPackage.named(c) if c.is_a?(String)
      name = JavaPackage::KNOWN.key(c)
      raise NameError, "the shell has no Java: #{c.inspect}" if name.nil?
      Object.const_set(name.split('.')[-1], c) unless Object.const_defined?(name.split('.')[-1])
    end
  end
  alias java_import import
end

# `@shell.hbase.configuration`: what -D set, and what scripts ask most. As in HBase's shell, a changed value does not reach
# a connection that is open.
class ShellConfiguration
  DEFAULTS = { 'hbase.rpc.timeout' => '60000', 'hbase.client.operation.timeout' => '1200000', 'hbase.client.retries.number' => '15',
               'hbase.client.pause' => '100', 'hbase.client.scanner.caching' => '2147483647',
               'hbase.client.scanner.timeout.period' => '60000', 'zookeeper.znode.parent' => '/hbase' }

  def get(name, otherwise = nil)
    return Wire.registry if name == 'hbase.zookeeper.quorum' && !Shell.configuration.key?(name)
    Shell.configuration[name] || DEFAULTS[name] || otherwise
  end

  def set(name, value)
    Shell.configuration[name.to_s] = value.to_s
    nil
  end
  alias setInt set
  alias setLong set
  alias setBoolean set

  def getInt(name, otherwise)
    get(name, otherwise).to_i
  end
  alias getLong getInt

  def getBoolean(name, otherwise)
    get(name, otherwise).to_s == 'true'
  end
end

class ShellObject
  def hbase
    self
  end

  def configuration
    @configuration ||= ShellConfiguration.new
  end
end
TOP.instance_variable_set('@shell', ShellObject.new)

