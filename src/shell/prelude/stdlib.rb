# SPDX-License-Identifier: Apache-2.0
# The parts of Ruby's libraries that scripts use around commands: Set, JSON, Base64, Digest, SecureRandom, CSV, threads,
# Benchmark. Loaded when a script names one.

Shell.need('json')

class Set
  include Enumerable

  def self.[](*list)
    new(list)
  end

  def initialize(list = [], &block)
    @hash = {}
    list = list.map(&block) if block
    list.each { |v| @hash[v] = true }
  end

  def add(v)
    @hash[v] = true
    self
  end
  alias << add

  def add?(v)
    include?(v) ? nil : add(v)
  end

  def delete(v)
    @hash.delete(v)
    self
  end

  def merge(*lists)
    lists.each { |l| l.each { |v| add(v) } }
    self
  end

  def each(&block)
    return to_enum(:each) unless block
    @hash.keys.each(&block)
    self
  end

  def include?(v)
    @hash.key?(v)
  end
  alias member? include?
  alias === include?

  def length
    @hash.length
  end
  alias size length
  alias count length

  def empty?
    @hash.empty?
  end

  def to_a
    @hash.keys
  end

  def to_set
    self
  end

  def |(other)
    Set.new(to_a + other.to_a)
  end
  alias + |
  alias union |

  def &(other)
    Set.new(to_a.select { |v| other.include?(v) })
  end
  alias intersection &

  def -(other)
    Set.new(to_a.reject { |v| other.include?(v) })
  end
  alias difference -

  def subset?(other)
    all? { |v| other.include?(v) }
  end

  def superset?(other)
    other.all? { |v| include?(v) }
  end

  def ==(other)
    other.is_a?(Set) && length == other.length && subset?(other)
  end

  def inspect
    "#<Set: {#{to_a.map { |v| v.inspect }.join(', ')}}>"
  end
  alias to_s inspect
end

module Enumerable
  def to_set
    Set.new(to_a)
  end
end

module JSON
  class ParserError < StandardError; end

  def self.parse(text, options = {})
    v = Json.parse(text.to_s)
    options[:symbolize_names] ? symbols(v) : v
  rescue ArgumentError => e
    raise ParserError, e.message
  end

  def self.symbols(v)
    case v
    when Hash then v.inject({}) { |h, (k, e)| h[k.to_sym] = symbols(e); h }
    when Array then v.map { |e| symbols(e) }
    else v
    end
  end

  def self.generate(v, *)
    Json.text(v)
  end

  def self.dump(v)
    Json.text(v)
  end

  def self.pretty_generate(v, indent = '')
    deeper = indent + '  '
    case v
    when Hash
      v.empty? ? '{}' : "{\n" + v.map { |k, e| "#{deeper}#{Json.quote(k.to_s)}: #{pretty_generate(e, deeper)}" }.join(",\n") + "\n#{indent}}"
    when Array
      v.empty? ? '[]' : "[\n" + v.map { |e| "#{deeper}#{pretty_generate(e, deeper)}" }.join(",\n") + "\n#{indent}]"
    else Json.text(v)
    end
  end
end

module Base64
  DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

  def self.strict_encode64(text)
    [text].pack('m0')
  end

  def self.encode64(text)
    [text].pack('m')
  end

  def self.decode64(text)
    text.unpack('m')[0]
  end

  def self.strict_decode64(text)
    raise ArgumentError, 'invalid base64' unless text.length % 4 == 0 && text =~ /\A[A-Za-z0-9+\/]*={0,2}\z/
    decode64(text)
  end

  def self.urlsafe_encode64(text)
    strict_encode64(text).tr('+/', '-_')
  end

  def self.urlsafe_decode64(text)
    decode64(text.tr('-_', '+/'))
  end
end

module Digest
  %w[MD5 SHA1 SHA256].each do |name|
    method = name.downcase.to_sym
    m = Module.new
    m.define_singleton_method(:hexdigest) { |text| Bytes.__send__(method, text.to_s) }
    m.define_singleton_method(:digest) { |text| Bytes.fromHex(Bytes.__send__(method, text.to_s)) }
    m.define_singleton_method(:base64digest) { |text| Base64.strict_encode64(Bytes.fromHex(Bytes.__send__(method, text.to_s))) }
    const_set(name.to_sym, m)
  end
  SHA2 = SHA256
end

module SecureRandom
  def self.random_bytes(n = 16)
    File.open('/dev/urandom', 'rb') { |f| f.read(n) }
  end
  class << self
    alias bytes random_bytes
  end

  def self.hex(n = 16)
    Bytes.toHex(random_bytes(n))
  end

  def self.uuid
    JavaUUID.randomUUID
  end

  def self.random_number(n = 1)
    n.is_a?(Integer) && n > 1 ? (Bytes.signed(random_bytes(8)) & 0x7fffffffffffffff) % n : rand
  end
end

class CSV
  # Fields of a line; quotes as RFC 4180.
  def self.parse_line(line, options = {})
    sep = options[:col_sep] || ','
    fields = []
    rest = line.chomp
    return nil if rest.empty?
    loop do
      if rest[0] == '"'
        m = /\A"((?:[^"]|"")*)"/.match(rest)
        raise ArgumentError, 'Unclosed quoted field' if m.nil?
        fields << m[1].gsub('""', '"')
        rest = rest[m[0].length..-1].to_s
      else
        at = rest.index(sep) || rest.length
        fields << (at == 0 ? nil : rest[0, at])
        rest = rest[at..-1].to_s
      end
      break if rest.empty?
      rest = rest[sep.length..-1].to_s
      fields << nil if rest.empty?
      break if rest.empty?
    end
    fields
  end

  def self.parse(text, options = {})
    text.split("\n").map { |l| parse_line(l, options) }.compact
  end

  def self.foreach(path, options = {}, &block)
    read(path, options).each(&block)
  end

  def self.read(path, options = {})
    parse(File.read(path), options)
  end

  def self.generate_line(fields, options = {})
    fields.map { |f| f.to_s =~ /[",\n]/ ? "\"#{f.to_s.gsub('"', '""')}\"" : f.to_s }.join(options[:col_sep] || ',') + "\n"
  end
end

module Benchmark
  def self.realtime
    begun = Shell.monotonic
    yield
    Shell.monotonic - begun
  end

  # Seconds by the clock. The processor's time is not measured.
  class Tms
    attr_reader :real

    def initialize(real)
      @real = real
    end
  end

  def self.measure(_label = '', &block)
    Tms.new(realtime(&block))
  end
end

# A hash whose keys are methods.
class OpenStruct
  def initialize(values = nil)
    @table = {}
    values.each { |k, v| @table[k.to_sym] = v } unless values.nil?
  end

  def [](name)
    @table[name.to_sym]
  end

  def []=(name, value)
    @table[name.to_sym] = value
  end

  def to_h
    @table.dup
  end

  def respond_to_missing?(name, *)
    @table.key?(name.to_s.chomp('=').to_sym)
  end

  def method_missing(name, *args)
    text = name.to_s
    text[-1] == '=' ? self[text.chomp('=')] = args[0] : @table[name]
  end

  def inspect
    "#<OpenStruct#{@table.map { |k, v| " #{k}=#{v.inspect}" }.join(',')}>"
  end
  alias to_s inspect
end

class Object
  def to_json(*)
    Json.text(self)
  end
end

# A thread runs to its end when it is created, so there is nothing to wait for.
class Thread
  attr_reader :value

  def self.new(*list, &block)
    t = allocate
    t.run(list, block)
    t
  end

  class << self
    alias start new
    alias fork new
  end

  def self.current
    @current ||= allocate
  end

  def self.abort_on_exception=(on)
    on
  end

  def run(list, block)
    @value = block.call(*list)
  rescue StandardError => e
    @failure = e
  end

  # A failure reaches who waits.
  def join(*)
    e = @failure
    @failure = nil
    raise e unless e.nil?
    self
  end

  def value
    join
    @value
  end

  def alive?
    false
  end

  def [](name)
    (@own ||= {})[name.to_sym]
  end

  def []=(name, v)
    (@own ||= {})[name.to_sym] = v
  end
end

class Mutex
  def synchronize
    yield
  end

  def lock
    self
  end
  alias unlock lock
end

class Queue
  def initialize
    @list = []
  end

  def push(v)
    @list.push(v)
    self
  end
  alias << push
  alias enq push

  def pop(without_waiting = false)
    raise ThreadError, without_waiting ? 'queue empty' : 'no thread will fill the queue' if @list.empty?
    @list.shift
  end
  alias shift pop
  alias deq pop

  def empty?
    @list.empty?
  end

  def length
    @list.length
  end
  alias size length

  def close
    self
  end
end
class ThreadError < StandardError; end

module Process
  CLOCK_REALTIME = 0
  CLOCK_MONOTONIC = 1

  def self.pid
    $$
  end

  def self.clock_gettime(clock, unit = :float_second)
    seconds = clock == CLOCK_REALTIME ? Shell.now_ms / 1000.0 : Shell.monotonic
    case unit
    when :millisecond then (seconds * 1000).to_i
    when :microsecond then (seconds * 1000000).to_i
    when :second then seconds.to_i
    else seconds
    end
  end
end
