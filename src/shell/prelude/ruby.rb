# SPDX-License-Identifier: Apache-2.0
# Methods of Ruby's own classes that scripts call and mruby lacks.

class Object
  # Ruby's text names the object; a single name at the top level may be a variable.
  def method_missing(name, *args, &block)
    return __send__(name, *args, &block) if Shell.need_method(name) && respond_to?(name)
    if equal?(TOP)
      main = "#<HBaseReceiver:0x#{(object_id & 0xffffffff).to_s(16)}>"
      raise NameError.new("undefined local variable or method `#{name}' for #{main}", name) if args.empty?
      raise NoMethodError.new("undefined method `#{name}' for #{main}", name)
    end
    raise NoMethodError.new("undefined method `#{name}' for #{Shell.named(self)}", name)
  end

  def public_send(name, *args, &block)
    respond_to?(name) ? __send__(name, *args, &block) : method_missing(name, *args)
  end

  def display
    $stdout.print(self)
  end

  def inspect
    list = instance_variables
    return to_s if list.empty?
    "#<#{self.class}:0x#{(object_id & 0xffffffff).to_s(16)} #{list.map { |v| "#{v}=#{instance_variable_get(v).inspect}" }.join(', ')}>"
  end
end

# An object of which nothing is told.
def Shell.unnamed(object)
  "#<#{object.class.to_s}:0x#{(object.object_id & 0xffffffff).to_s(16)}>" # interpolation alone would not call to_s
end

# An object as Ruby's errors name it: what inspect says, if that is short.
def Shell.named(object)
  text = object.inspect
  text = Shell.unnamed(object) if text.bytesize > 65
  text[0] == '#' ? text : "#{text}:#{object.class}"
end

# `defined?` as rewritten by rewrite.c: nil, or the kind of the name; the block evaluates the expression.
def Shell.defined(text)
  return 'local-variable' if %w[true false nil self].include?(text)
  return 'method' if text =~ /\A[a-z_]\w*[?!]?\z/ && TOP.respond_to?(text.to_sym)
  value = yield
  return text[0, 2] == '@@' ? 'class variable' : 'instance-variable' if text[0] == '@' && !value.nil?
  return 'global-variable' if text[0] == '$' && !value.nil?
  return nil if '@$'.include?(text[0].to_s) && !text.empty?
  return 'local-variable' if text =~ /\A[a-z_]\w*\z/
  text =~ /\A[A-Z]/ ? 'constant' : 'expression'
rescue NameError
  nil
end

class Thrown < Exception
  attr_reader :tag, :value

  def initialize(tag, value)
    @tag = tag
    @value = value
    super("uncaught throw #{tag.inspect}")
  end
end

module Kernel
  alias integer_of Integer
  alias random_of rand

  def Integer(v, *rest)
    options = rest[-1].is_a?(Hash) ? rest.pop : {}
    integer_of(v, *rest)
  rescue ArgumentError, RangeError => e
    return nil if options[:exception] == false
    return Shell.big(v, 10) if e.is_a?(RangeError) && v =~ /\A\d+\z/
    raise ArgumentError, "invalid value for Integer(): #{v.inspect}" if v.is_a?(String)
    raise e
  end

  def rand(limit = 0)
    limit.is_a?(Range) ? limit.first + random_of(limit.last - limit.first + (limit.exclude_end? ? 0 : 1)) : random_of(limit)
  end

  def catch(tag = Object.new)
    yield tag
  rescue Thrown => e
    raise e unless e.tag.equal?(tag)
    e.value
  end

  def throw(tag, value = nil)
    raise Thrown.new(tag, value)
  end
end

# Numbers of more than 64 bits: big.rb, which is loaded when one arises.
class Integer
  # mruby's own compares addresses from 2^62 on.
  def !=(other)
    !__send__(:==, other)
  end

  alias power_in_word **
  alias shift_in_word <<

  def **(other)
    power_in_word(other)
  rescue RangeError
    Shell.big(self)**other
  end

  def <<(other)
    shift_in_word(other)
  rescue RangeError
    Shell.big(self) << other
  end

  def even?
    self & 1 == 0
  end

  def odd?
    self & 1 == 1
  end

  def pred
    self - 1
  end

  def integer?
    true
  end

  def fdiv(other)
    to_f / other
  end

  def pow(exponent, modulus = nil)
    return self**exponent if modulus.nil?
    exponent.abs.to_s(2).each_char.inject(1) { |v, bit| v * v % modulus * (bit == '1' ? self : 1) % modulus }
  end

  def gcd(other)
    a = abs
    b = other.abs
    a, b = b, a % b while b > 0
    a
  end

  def lcm(other)
    self == 0 || other == 0 ? 0 : (self / gcd(other) * other).abs
  end

  def digits(base = 10)
    return [self] if self < base
    list = []
    n = self
    while n > 0
      list << n % base
      n /= base
    end
    list
  end

  def bit_length
    n = self < 0 ? ~self : self
    n == 0 ? 0 : n.to_s(2).length
  end

  def ord
    self
  end
end

# Classes of preludes that are loaded when a script, or another prelude, names one of them.
module Shell
  LIBRARY = %w[Base64 Benchmark CSV Date DateTime Digest JSON Mutex OpenStruct Process Queue SecureRandom Set Thread]
  PRELUDE_OF = { 'Descriptor' => 'descriptor', 'HConstants' => 'java', 'JavaNames' => 'java', 'JavaPackage' => 'java',
                 'JavaBigDecimal' => 'bytes', 'OptionParser' => 'optparse', 'OptParse' => 'optparse', 'JavaUUID' => 'java' }
  LIBRARY.each { |name| PRELUDE_OF[name] = %w[Date DateTime].include?(name) ? 'date' : 'stdlib' }
  %w[StringIO Logger].each { |name| PRELUDE_OF[name] = 'text_io' }
  # Of Ruby's libraries that `require` accepts, because many scripts name them and use little of them.
  LACKING = %w[BigDecimal ERB Etc FileUtils Forwardable Matrix Monitor Net Observable Open3 PP Pathname Prime RbConfig Readline Shellwords
               SimpleDelegator Singleton StringScanner TSort Tempfile Timeout URI YAML Zlib]
  # Java's classes that HBase's shell has imported for itself, and so for scripts.
  IMPORTED = { 'Pattern' => 'java.util.regex', 'Arrays' => 'java.util', 'Pair' => 'org.apache.hadoop.hbase.util',
               'RegionSplitter' => 'org.apache.hadoop.hbase.util', 'ServerName' => 'org.apache.hadoop.hbase',
               'TableName' => 'org.apache.hadoop.hbase', 'HBaseConfiguration' => 'org.apache.hadoop.hbase',
               'ColumnFamilyDescriptorBuilder' => 'org.apache.hadoop.hbase.client',
               'ConnectionFactory' => 'org.apache.hadoop.hbase.client', 'RegionReplicaUtil' => 'org.apache.hadoop.hbase.client',
               'TimeUnit' => 'java.util.concurrent' }
  METHODS_OF = { to_json: 'stdlib', to_set: 'stdlib', to_date: 'date', parse: 'date', iso8601: 'date', xmlschema: 'date', strptime: 'date' }

  # Loads the prelude that has the method; false: there is none, or it is loaded.
  def self.need_method(name)
    prelude = METHODS_OF[name]
    !prelude.nil? && !@loaded[prelude] && (need(prelude) || true)
  end

  def self.imported(name)
    need('java')
    type = JavaPackage.named("#{IMPORTED[name.to_s]}.#{name}")
    Object.const_set(name, type) unless Object.const_defined?(name)
    type
  end
end

class Module
  def const_missing(name)
    return Shell.imported(name) if Shell::IMPORTED.key?(name.to_s)
    prelude = Object.const_defined?(name) ? nil : Shell::PRELUDE_OF[name.to_s]
    raise NameError.new("the shell has no #{name} of Ruby's libraries", name) if prelude.nil? && Shell::LACKING.include?(name.to_s)
    raise NameError.new("uninitialized constant #{self == Object ? 'HBaseReceiver' : self}::#{name}", name) if prelude.nil?
    Shell.need(prelude)
    Object.const_get(name)
  end
end

# All but what is in C: bytes.rb.
def Bytes.method_missing(name, *list, &block)
  Shell.need('bytes')
  __send__(name, *list, &block)
end

def Bytes.const_missing(name)
  Shell.need('bytes')
  const_get(name)
end

def Bytes.inspect
  'Java::OrgApacheHadoopHbaseUtil::Bytes'
end

# Java's packages: java.rb.
module Kernel
  def org
    Shell.need('java')
    JavaPackage.new('org')
  end

  def java
    Shell.need('java')
    JavaPackage.new('java')
  end

  def com
    Shell.need('java')
    JavaPackage.new('com')
  end

  def import(*classes)
    Shell.need('java')
    import(*classes)
  end

  def java_import(*classes)
    Shell.need('java')
    import(*classes)
  end

  def to_java(type = nil)
    type == :byte && is_a?(Array) ? map { |b| b & 255 }.pack('C*') : self
  end
end

# Java's Double.toString for the usual sizes.
def Shell.java_float(v)
  return v.to_s if v.nan? || v.infinite?
  text = v.to_s
  text.include?('.') || text.include?('e') ? text : text + '.0'
end

# Java::JavaLang::Long
module Java
  def self.const_missing(name)
    Shell.need('java')
    const_missing(name)
  end
end

# The instance variables of the top-level object that scripts read: @shell, and @hbase. Most of their methods are in objects.rb.
class ShellObject
  attr_reader :hbase

  def self.to_s
    'Shell::Shell'
  end

  def inspect
    Shell.unnamed(self)
  end

  def initialize
    @hbase = HBaseObject.new
  end

  def method_missing(name, *args, &block)
    Shell.need('objects')
    __send__(name, *args, &block)
  end
end

class HBaseObject
  def self.to_s
    'Hbase::Hbase'
  end

  def inspect
    Shell.unnamed(self)
  end

  # Scripts take the connection from HBase's object.
  def instance_variable_get(name)
    return super unless name.to_s == '@connection'
    Shell.need('client')
    JavaClient::Connection.new
  end

  def configuration
    Shell.need('java')
    @configuration ||= ShellConfiguration.new
  end

  def method_missing(name, *args, &block)
    Shell.need('objects')
    __send__(name, *args, &block)
  end
end

def Shell.big(v, base = nil)
  Shell.need('big')
  base.nil? ? Big.of(v) : Big.parse(v, base)
end

class Float
  def integer?
    false
  end

  def fdiv(other)
    self / other
  end
end

module Enumerable
  def sum(start = 0)
    each { |v| start += block_given? ? yield(v) : v }
    start
  end

  def grep_v(pattern)
    list = reject { |v| pattern === v }
    block_given? ? list.map { |v| yield v } : list
  end

  # Parts of the list; a part ends where the block is true for an element and its successor.
  # [[the block's value, consecutive elements with it], …]
  def chunk
    parts = []
    each do |v|
      key = yield(v)
      parts.empty? || parts[-1][0] != key ? parts << [key, [v]] : parts[-1][1] << v
    end
    parts.each
  end

  def slice_when
    parts = []
    each do |v|
      parts.empty? || yield(parts[-1][-1], v) ? parts << [v] : parts[-1] << v
    end
    parts.each
  end

  def chunk_while
    slice_when { |a, b| !yield(a, b) }
  end
end

class Array
  alias times_of *

  def *(other)
    other.is_a?(String) ? join(other) : times_of(other)
  end

  def sort_by!(&block)
    replace(sort_by(&block))
  end

  def to_ary
    self
  end
end

class Hash
  def fetch(key, *otherwise)
    return self[key] if key?(key)
    return yield(key) if block_given?
    raise KeyError, "key not found: #{key.inspect}" if otherwise.empty?
    otherwise[0]
  end

  def to_hash
    self
  end

  def assoc(key)
    key?(key) ? [key, self[key]] : nil
  end
end

class Range
  alias each_of each

  # mruby's method returns only the first byte of a text.
  def each(&block)
    return to_enum(:each) unless block
    numbers = self.begin.class == Integer && self.end.class == Integer
    numbers ? self.begin.upto(exclude_end? ? self.end - 1 : self.end, &block) : each_of(&block)
    self
  end

  def step(by = 1)
    return to_enum(:step, by) unless block_given?
    raise ArgumentError, by == 0 ? "step can't be 0" : "step can't be negative" if by <= 0
    v = first
    while exclude_end? ? v < last : v <= last
      yield v
      v += by
    end
    self
  end
end

class String
  alias bytes_in_text inspect
  alias word_of_text to_i

  def to_i(base = 10)
    word_of_text(base)
  rescue RangeError
    digits = base == 16 ? /\A\s*([-+]?)(?:0x)?([0-9a-f_]+)/i : /\A\s*([-+]?)([0-9a-z_]+)/i
    m = digits.match(self)
    number = Shell.big(m[2], base)
    m[1] == '-' ? (-number).normal : number.normal
  end

  def hex
    to_i(16)
  end

  # mruby writes each byte of a letter.
  def inspect
    Shell.readable(bytes_in_text)
  end

  alias begins_with start_with?

  def start_with?(*list)
    list.any? { |v| v.is_a?(Regexp) ? v =~ self && $~.begin(0) == 0 : begins_with(v) }
  end

  def encoding
    Encoding::UTF_8
  end

  def force_encoding(*)
    self
  end

  def encode(*)
    self
  end

  def valid_encoding?
    Bytes.toString(self) == self
  end

  def unicode_normalize(*)
    self
  end

  # Strings are bytes.
  def b
    dup
  end

  def +@
    frozen? ? dup : self
  end

  def -@
    freeze
  end

  def ascii_only?
    bytes.all? { |v| v < 128 }
  end
end

class Symbol
  def [](*at)
    to_s[*at]
  end

  def succ
    to_s.succ.to_sym
  end

  def match(pattern)
    to_s.match(pattern)
  end

  def id2name
    to_s
  end
end

class Time
  def utc_offset
    l = self.utc? ? self : Time.gm(year, month, day, hour, min, sec)
    l.to_i - to_i
  end
  alias gmt_offset utc_offset

  def nsec
    usec * 1000
  end
end

module Encoding
  UTF_8 = 'UTF-8'
  ASCII_8BIT = BINARY = 'ASCII-8BIT'
end

class Time
  # C's fields, and Ruby's %L, %3N, %-d, %:z, %P. C's %s takes every time for a local one.
  def strftime(form)
    form = form.gsub(/%(?:%|([0-9]?)N|L|:z|P|Z|s|-[demHIMSjly])/) { |f| own_field(f, $1) } if form =~ /%([0-9]?N|L|:z|P|Z|s|-)/
    Shell.strftime(form, to_i, utc?)
  end

  def own_field(field, digits)
    case field[-1]
    when '%' then '%%'
    when 's' then to_i.to_s
    when 'N' then nsec.to_s.rjust(9, '0')[0, digits.to_s.empty? ? 9 : digits.to_i]
    when 'L' then (usec / 1000).to_s.rjust(3, '0')
    when 'z' then utc? ? '+00:00' : zone_text(':')
    when 'Z' then utc? ? 'UTC' : Shell.strftime('%Z', to_i, false)
    when 'P' then Shell.strftime('%p', to_i, utc?).downcase
    else Shell.strftime("%#{field[-1]}", to_i, utc?).sub(/\A[ 0](?=.)/, '').sub(/\A0(?=\d)/, '')
    end
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

class String
  # java.lang.String
  def self.valueOf(v)
    v.to_s
  end

  def self.format(form, *list)
    Kernel.format(form, *list)
  end

  def to_java_bytes
    self
  end

  def self.from_java_bytes(bytes)
    bytes
  end

  def to_java_string
    self
  end
  alias getBytes to_java_bytes
end

class Exception
  def inspect
    message.to_s.empty? ? self.class.to_s : "#<#{self.class}: #{message}>"
  end

  def full_message(*)
    "#{message} (#{self.class})"
  end
end

# The process's environment, which a script reads.
class Environment
  def [](name)
    Shell.environment(name)
  end

  def []=(name, value)
    Shell.set_environment(name, value)
  end

  def fetch(name, *otherwise)
    v = self[name]
    return v unless v.nil?
    return yield(name) if block_given?
    raise KeyError, "key not found: #{name.inspect}" if otherwise.empty?
    otherwise[0]
  end

  def key?(name)
    !self[name].nil?
  end
  alias has_key? key?
  alias include? key?
end
ENV = Environment.new

# source_location and inspect of blocks and methods with full line numbers: mruby itself keeps 16 bits (places.c).
module Places
  # [file, line]
  def self.whole(place)
    return place if place.nil?
    file, _, line = Shell.place("#{place[0]}:#{place[1]}").rpartition(':')
    [file, line.to_i]
  end
end

class Proc
  alias location_in_16_bits source_location
  alias text_in_16_bits inspect

  def source_location
    Places.whole(location_in_16_bits)
  end

  def inspect
    Shell.place(text_in_16_bits)
  end
  alias to_s inspect
end

class Method
  alias location_in_16_bits source_location

  def source_location
    Places.whole(location_in_16_bits)
  end
end

class File
  def self.absolute_path(path, folder = '.')
    path.start_with?('~') ? expand_path("./#{path}", folder) : expand_path(path, folder)
  end
end
