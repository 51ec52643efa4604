# SPDX-License-Identifier: Apache-2.0
# The part of Java that scripts use: names, packages, exceptions, import.

# Names as JRuby has them: to_int for toInt, name for getName, empty? for isEmpty, name= for setName.
module JavaNames
  def self.camel(name)
    parts = name.to_s.split('_')
    parts[0].to_s + parts[1..-1].to_a.map { |w| w[0, 1].upcase + w[1..-1].to_s }.join('')
  end

  def self.forms(name)
    base = camel(name.to_s.sub(/[?=]\z/, ''))
    tail = base[0, 1].to_s.upcase + base[1..-1].to_s
    name.to_s[-1] == '=' ? ["set#{tail}"] : [base, "get#{tail}", "is#{tail}"]
  end

  def method_missing(name, *args, &block)
    found = JavaNames.forms(name).find { |n| n != name.to_s && respond_to?(n.to_sym) }
    found.nil? ? super : __send__(found.to_sym, *args, &block)
  end

  def inspect
    "#<#{self.class.inspect}:0x#{(object_id & 0xffffffff).to_s(16)}>"
  end

  def java_kind_of?(type)
    is_a?(type)
  end
end

Shell.need('java_time')

Shell.need('java_lang')

class JavaTableName
  include JavaNames

  def self.inspect
    'Java::OrgApacheHadoopHbase::TableName'
  end

  def self.valueOf(namespace, qualifier = nil)
    new(qualifier.nil? ? namespace.to_s : "#{namespace}:#{qualifier}")
  end

  def self.value_of(*list)
    valueOf(*list)
  end

  def initialize(name)
    @table = Names.table(name)
  end

  def getNameAsString
    Names.text(@table)
  end
  alias toString getNameAsString
  alias to_s getNameAsString
  alias getName getNameAsString
  alias toBytes getNameAsString

  def getNamespaceAsString
    @table[:namespace]
  end

  def getQualifierAsString
    @table[:qualifier]
  end
end

module JavaMD5
  def self.getMD5AsHex(bytes, at = 0, length = bytes.length)
    Bytes.md5(bytes[at, length])
  end
end

module HConstants
  LATEST_TIMESTAMP = 9223372036854775807
  OLDEST_TIMESTAMP = -9223372036854775808
  EMPTY_BYTE_ARRAY = EMPTY_START_ROW = EMPTY_END_ROW = LAST_ROW = ''
  META_ROW_DELIMITER = DELIMITER = 44
  ZOOKEEPER_QUORUM = 'hbase.zookeeper.quorum'
  ZOOKEEPER_CLIENT_PORT = 'hbase.zookeeper.property.clientPort'
  ZOOKEEPER_ZNODE_PARENT = 'zookeeper.znode.parent'
  HBASE_DIR = 'hbase.rootdir'
  FOREVER = 2147483647
  ALL_VERSIONS = 2147483647
  DAY_IN_SECONDS = 86400

  def self.inspect
    'Java::OrgApacheHadoopHbase::HConstants'
  end
end

# Two values.
class JavaPair
  include JavaNames
  attr_reader :first, :second
  alias getFirst first
  alias getSecond second

  def self.inspect
    'Java::OrgApacheHadoopHbaseUtil::Pair'
  end

  def initialize(first, second)
    @first = first
    @second = second
  end
end

# A class that the shell lacks: it can be imported; using it raises an error that names it.
class JavaAbsent < Module
  def initialize(name)
    @full = name
  end

  def inspect
    Failures.java_class(@full)
  end
  alias to_s inspect

  def absent
    raise NameError, "the shell has no Java: #{@full}"
  end

  def method_missing(*)
    absent
  end

  def new(*)
    absent
  end

  def const_missing(*)
    absent
  end
end

# A Java exception's class: what a rescue clause of a script names. A failure includes the modules of its class and of those above it; a
# clause may name one only when the failure is there, so the last one is remembered (failures.rb).
class JavaException < JavaAbsent
  NAME = /\.[A-Z]\w*(Exception|Error)\z|\Ajava\.lang\.Throwable\z/

  def self.of(full)
    return nil unless full =~ NAME
    type = new(full)
    type.__send__(:define_method, :java_exception?) { true } # mruby takes modules without methods for one another
    HBaseError.types[full] = type
    HBaseError.last.mark unless HBaseError.last.nil?
    type
  end

  def new(text = '', *)
    HBaseError.make(@full, text.to_s)
  end
end

class JavaPackage
  KNOWN = {
    'org.apache.hadoop.hbase.util.Bytes' => Bytes,
    'org.apache.hadoop.hbase.util.Pair' => JavaPair,
    'org.apache.hadoop.hbase.util.MD5Hash' => JavaMD5,
    'org.apache.hadoop.hbase.HConstants' => HConstants,
    'java.lang.String' => String,
    'java.lang.Long' => JavaLong,
    'java.lang.Integer' => JavaInteger,
    'java.lang.System' => JavaSystem,
    'java.lang.Thread' => JavaThread,
    'java.lang.Math' => JavaMath,
    'java.util.UUID' => JavaUUID,
    'org.apache.hadoop.hbase.TableName' => JavaTableName,
    'java.math.BigDecimal' => JavaBigDecimal,
    'java.util.ArrayList' => Array,
    'java.util.LinkedList' => Array,
    'java.util.HashMap' => Hash,
    'java.util.TreeMap' => Hash,
    'java.util.Arrays' => JavaArrays,
    'java.util.Date' => JavaDate,
    'java.text.SimpleDateFormat' => JavaDateFormat,
    'java.text.ParsePosition' => JavaParsePosition
  }
  # Preludes that have a package's classes, in a module of their own.
  PRELUDES = { 'org.apache.hadoop.hbase.filter' => ['filters', :JavaFilters], 'org.apache.hadoop.hbase.types' => ['ordered', :JavaTypes],
               'org.apache.hadoop.hbase.zookeeper' => ['operator', :JavaOperator],
               'org.apache.hadoop.hbase.client' => ['client', :JavaClient] }
  SINGLE = { 'org.apache.hadoop.hbase.CompareOperator' => ['filters', :JavaFilters],
             'org.apache.hadoop.hbase.util.OrderedBytes' => ['ordered', :JavaTypes],
             'org.apache.hadoop.conf.Configuration' => ['client', :JavaClient],
             'org.apache.hadoop.hbase.client.RegionInfo' => ['operator', :JavaOperator],
             'org.apache.hadoop.hbase.client.RegionLocator' => ['operator', :JavaOperator],
             'org.apache.hadoop.hbase.logging.Log4jUtils' => ['operator', :JavaOperator],
             'org.slf4j.LoggerFactory' => ['operator', :JavaOperator] }
  %w[ServerName ClusterStatus ServerLoad RegionLoad Size HRegionInfo MetaTableAccessor].each { |simple| SINGLE["org.apache.hadoop.hbase.#{simple}"] = ['operator', :JavaOperator] }
  %w[Level Logger LogManager].each { |simple| SINGLE["org.apache.log4j.#{simple}"] = ['operator', :JavaOperator] }
  %w[HBaseConfiguration CellUtil KeyValue Cell HTableDescriptor HColumnDescriptor NamespaceDescriptor].each do |simple|
    SINGLE["org.apache.hadoop.hbase.#{simple}"] = ['client', :JavaClient]
  end

  @names = {} # of classes that were loaded from a prelude

  def self.of_prelude(full)
    package, _, simple = full.rpartition('.')
    prelude, home = SINGLE[full] || PRELUDES[package]
    return nil if prelude.nil?
    Shell.need(prelude)
    home = Object.const_get(home)
    return nil unless home.const_defined?(simple.to_sym)
    @names[full] = home.const_get(simple.to_sym)
  end

  def self.find(full)
    KNOWN[full] || @names[full] || of_prelude(full)
  end

  def self.named(full)
    find(full) || @names[full] = JavaException.of(full) || JavaAbsent.new(full)
  end

  def self.name_of(type)
    KNOWN.key(type) || @names.key(type)
  end

  def initialize(name)
    @name = name
  end

  def method_missing(name, *args)
    text = name.to_s
    full = "#{@name}.#{text}"
    return JavaPackage.named(full) if text[0, 1] != text[0, 1].downcase
    raise NameError, "the shell has no Java: #{full}" unless args.empty?
    JavaPackage.new(full)
  end

  # Kernel has methods of these names.
  %w[Integer Float String Array Hash Rational Complex].each do |simple|
    define_method(simple.to_sym) { JavaPackage.named("#{@name}.#{simple}") }
  end

  def respond_to_missing?(*)
    true
  end
end

# Java::OrgApacheHadoopHbaseUtil::Bytes
module Java
  def self.const_missing(name)
    words = name.to_s.gsub(/[A-Z]/) { |c| ".#{c.downcase}" }[1..-1].to_s
    package = Module.new
    package.define_singleton_method(:const_missing) { |simple| JavaPackage.named("#{words}.#{simple}") }
    # Names that Ruby has too would be found in Ruby.
    %i[Integer String Float Math].each { |n| package.const_set(n, JavaPackage.named("#{words}.#{n}")) } if words == 'java.lang'
    package
  end
end

# `import java.util.Date`: the class under its own name. ruby.rb has these methods until this file is needed.
module Kernel
  # In methods of a script's classes, too.
  def org
    JavaPackage.new('org')
  end

  def java
    JavaPackage.new('java')
  end

  def com
    JavaPackage.new('com')
  end

  def import(*classes)
    classes.flatten.map do |c|
      c = JavaPackage.named(c) if c.is_a?(String)
      name = JavaPackage.name_of(c)
      raise NameError, "the shell has no Java: #{c.inspect}" if name.nil?
      simple = name.split('.')[-1].to_sym
      Object.const_set(simple, c) unless Object.const_defined?(simple)
      c
    end
  end
  alias java_import import
end

# `@shell.hbase.configuration`: the settings of -D, and those that scripts read most. As in HBase's shell, a changed value does not reach
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
