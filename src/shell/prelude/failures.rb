# SPDX-License-Identifier: Apache-2.0
# Failures of servers, and their texts in the official shell.

# A failure of a server or of the client, with the Java class that HBase's client throws for it.
class HBaseError < StandardError
  attr_reader :java_class, :retry

  @types = {}
  class << self
    attr_reader :types, :last # JavaException's modules by the names of their classes; the last failure
    attr_writer :last
  end

  def self.make(java_class, text)
    e = new(text)
    e.java(java_class)
    e
  end

  # Called by C, too.
  def java(name)
    @java_class = name
    HBaseError.last = self
    mark
  end

  def mark
    HBaseError.types.each { |name, type| extend(type) if above.include?(name) }
  end

  # The class and those above it, as far as scripts name them.
  def above
    list = [@java_class, 'java.lang.Exception', 'java.lang.Throwable']
    return list << 'java.lang.RuntimeException' if @java_class.to_s.start_with?('java.lang.')
    list << 'org.apache.hadoop.hbase.DoNotRetryIOException' if @retry == false
    list << 'org.apache.hadoop.hbase.ipc.RemoteWithExtrasException' << 'org.apache.hadoop.ipc.RemoteException' # as HBase's client throws some
    list << 'org.apache.hadoop.hbase.HBaseIOException' << 'java.io.IOException'
  end

  def getMessage
    message
  end
  alias getLocalizedMessage getMessage

  def getCause
    nil
  end
  alias cause getCause

  def toString
    to_java_string
  end

  def printStackTrace(*)
    $stderr.puts(to_java_string)
  end

  def is?(simple)
    @java_class.to_s.split('.')[-1] == simple
  end

  # HBase: a remote exception's message is its stack trace, which begins with the class.
  def first_line
    message.to_s.split("\n")[0].to_s
  end

  def bare
    line = first_line
    prefix = "#{@java_class}: "
    line.start_with?(prefix) ? line[prefix.length..-1] : line
  end

  def to_java_string
    message.to_s.empty? ? @java_class.to_s : "#{@java_class}: #{message}"
  end
end

NativeException = HBaseError # as JRuby's scripts call it

# Texts of failures that HBase's shell replaces by its own.
module Failures
  def self.translate(e, name, args)
    return e unless e.is_a?(HBaseError)
    first = args[0].is_a?(Hbase::Table) ? args[0].name : args[0]
    reworded = special(e, name, args) || by_class(e, first)
    reworded.nil? ? e : RuntimeError.new(reworded)
  end

  # HBase: handle_exceptions of single commands.
  def self.special(e, name, args)
    return nil unless name == 'clone_snapshot'
    return "Table already exists: #{args[1]}!" if e.is?('TableExistsException')
    return "Unknown namespace: #{args[1].to_s.split(':')[0]}!" if e.is?('NamespaceNotFoundException')
    nil
  end

  def self.by_class(e, first)
    case e.java_class.to_s.split('.')[-1]
    when 'TableNotFoundException' then "Unknown table #{first}!"
    when 'TableNotEnabledException' then "Table #{first} is disabled!"
    when 'TableNotDisabledException' then "Table #{e.message} should be disabled!"
    when 'UnknownRegionException' then e.message
    when 'MergeRegionException' then e.first_line
    when 'SpaceLimitingException' then e.bare
    when 'NamespaceNotFoundException' then "Unknown namespace #{e.bare}!"
    when 'SnapshotDoesNotExistException' then "Unknown snapshot #{first}!"
    when 'TableExistsException' then "Table already exists: #{e.bare.split(' ').length == 1 ? e.bare : first}!"
    when 'AccessDeniedException' then e.to_java_string.split("\n")[0]
    when 'RpcThrottlingException' then e.bare[0, 1].upcase + e.bare[1..-1].to_s.downcase
    else e.message.include?('UnsupportedOperationException: quota support disabled') ? 'Quota Support disabled. Please enable in configuration.' : nil
    end
  end

  # Behind "ERROR: ".
  def self.text(e)
    e.message.to_s
  end

  def self.class_name(e)
    e.is_a?(HBaseError) ? "Java::#{java_module(e.java_class)}" : e.class.to_s
  end

  # JRuby's name of a Java class: org.apache.hadoop.hbase.X is Java::OrgApacheHadoopHbase::X.
  def self.java_module(name)
    parts = name.to_s.split('.')
    parts[0...-1].map { |s| s[0, 1].upcase + s[1..-1].to_s }.join('') + '::' + parts[-1].to_s
  end

  # org.apache.hadoop.hbase.X$Y: Java::OrgApacheHadoopHbase::X::Y
  def self.java_class(name)
    "Java::#{java_module(name).gsub('$', '::')}"
  end

  # JRuby's class of a Ruby value, as its errors name it.
  def self.jruby_class(v)
    names = { NilClass => 'Nil', Integer => 'Fixnum', TrueClass => 'Boolean.True', FalseClass => 'Boolean.False' }
    "org.jruby.Ruby#{names[v.class] || v.class}"
  end

  # Class and text of the failure in JRuby; `text` is the statement. mruby reports an unknown name as a missing method.
  def self.in_ruby(e, text)
    return [class_name(e), e.message.to_s] unless e.is_a?(NameError)
    name = e.name.to_s
    message = e.message.to_s.gsub(/'([^']*)'/) { "`#{$1}'" }
    called = text =~ Regexp.new("(\\.|\\b)#{Regexp.escape(name)}(\\(|[ \t]+['\":\\w\\[{])")
    if message.start_with?('undefined local variable') && called
      return ['NoMethodError', message.sub('local variable or method', 'method')]
    end
    [e.class.to_s, message]
  end
end
