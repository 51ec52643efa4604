# SPDX-License-Identifier: Apache-2.0
# Static methods and constants of java.lang and java.util that scripts use: Long, Integer, System, Thread, Math, Arrays, UUID; methods of String.

module JavaLong
  MAX_VALUE = 9223372036854775807
  MIN_VALUE = -9223372036854775808
  BYTES = 8

  def self.parseLong(text, base = 10)
    JavaInteger.number(text, base, MIN_VALUE, MAX_VALUE)
  end

  def self.valueOf(v)
    v.is_a?(Integer) ? v : parseLong(v)
  end

  def self.toHexString(n)
    n < 0 ? Bytes.toHex(Bytes.big_endian(n, 8)) : n.to_s(16)
  end

  def self.toString(n, base = 10)
    n.to_s(base)
  end
end

module JavaInteger
  MAX_VALUE = 2147483647
  MIN_VALUE = -2147483648
  BYTES = 4

  # Parses text as a number from `least` to `most`, the limits of the Java type.
  def self.number(text, base, least, most)
    n = text =~ /\A[-+]?[0-9a-zA-Z]+\z/ ? in_ruby(text, base) : nil
    # mruby's < is wrong from 2^62 on.
    return n if !n.nil? && (n <=> least) >= 0 && (n <=> most) <= 0
    raise HBaseError.make('java.lang.NumberFormatException', "For input string: \"#{text}\"")
  end

  def self.in_ruby(text, base)
    Integer(text, base)
  rescue ArgumentError, RangeError
    nil
  end

  def self.parseInt(text, base = 10)
    number(text, base, MIN_VALUE, MAX_VALUE)
  end

  def self.valueOf(v)
    v.is_a?(Integer) ? v : parseInt(v)
  end

  def self.toHexString(n)
    n < 0 ? Bytes.toHex(Bytes.big_endian(n, 4)) : n.to_s(16)
  end

  def self.toString(n, base = 10)
    n.to_s(base)
  end
end

module JavaSystem
  def self.currentTimeMillis
    Shell.now_ms
  end

  def self.nanoTime
    (Shell.monotonic * 1000000).to_i * 1000
  end

  def self.getenv(name)
    ENV[name]
  end

  PROPERTIES = { 'java.io.tmpdir' => '/tmp', 'file.separator' => '/', 'line.separator' => "\n", 'path.separator' => ':' }

  def self.getProperty(name, otherwise = nil)
    return ENV['HOME'] if name == 'user.home'
    return ENV['PWD'] if name == 'user.dir'
    return ENV['USER'] if name == 'user.name'
    Shell.configuration[name] || PROPERTIES[name] || otherwise
  end

  def self.exit(code)
    raise ShellExit.new(code)
  end

  def self.out
    $stdout
  end

  def self.err
    $stderr
  end
end

module JavaThread
  def self.sleep(ms)
    Wire.pause(ms / 1000.0)
  end
end

# java.util.Map
class Hash
  def get(key)
    self[key]
  end

  def put(key, value)
    before = self[key]
    self[key] = value
    before
  end

  def containsKey(key)
    key?(key)
  end

  def keySet
    keys
  end

  def entrySet
    map { |pair| JavaEntry.new(*pair) }
  end
end

class JavaEntry
  include JavaNames
  attr_reader :key, :value
  alias getKey key
  alias getValue value

  def initialize(key, value)
    @key = key
    @value = value
  end
end

module JavaArrays
  def self.asList(*list)
    list.length == 1 && list[0].is_a?(Array) ? list[0] : list
  end

  def self.toString(list)
    list = list.bytes.map { |b| b < 128 ? b : b - 256 } if list.is_a?(String)
    "[#{list.join(', ')}]"
  end
end

module JavaUUID
  def self.randomUUID
    h = SecureRandom.hex(16)
    h[12] = '4'
    h[16] = '89ab'[h[16].to_i(16) & 3]
    [h[0, 8], h[8, 4], h[12, 4], h[16, 4], h[20, 12]].join('-')
  end
end

# java.lang.Math, where Ruby's Math differs.
module JavaMath
  def self.max(a, b)
    a > b ? a : b
  end

  def self.min(a, b)
    a < b ? a : b
  end

  def self.abs(n)
    n.abs
  end

  def self.floor(n)
    n.floor.to_f
  end

  def self.ceil(n)
    n.ceil.to_f
  end

  def self.round(n)
    (n + 0.5).floor
  end

  def self.pow(a, b)
    a.to_f**b
  end

  def self.random
    rand
  end

  def self.sqrt(n)
    Math.sqrt(n)
  end

  def self.log(n)
    Math.log(n)
  end
end

# Methods of java.lang.String that are no other names of Ruby's; a string of Java is one of Ruby.
class String
  def startsWith(text)
    start_with?(text)
  end

  def endsWith(text)
    end_with?(text)
  end

  def equals(other)
    self == other
  end

  def equalsIgnoreCase(other)
    downcase == other.downcase
  end

  def isEmpty
    empty?
  end

  def contains(text)
    include?(text)
  end

  def substring(from, to = length)
    self[from...to]
  end

  def indexOf(text)
    index(text) || -1
  end

  def toUpperCase
    upcase
  end

  def toLowerCase
    downcase
  end

  def trim
    strip
  end

  def compareTo(other)
    self <=> other
  end
end
