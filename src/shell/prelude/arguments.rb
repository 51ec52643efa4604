# SPDX-License-Identifier: Apache-2.0
# Arguments of the wrong type: what JRuby says when a command passes them to Java.

module Arguments
  TABLE_NAMES = ['java.lang.String', 'byte[]', 'java.nio.ByteBuffer']
  BOOLEANS = ['boolean', 'java.lang.String']

  def self.classes(values)
    values.map { |v| v == :bytes ? 'org.jruby.java.proxies.ArrayJavaProxy' : Failures.jruby_class(v) }.join(',')
  end

  # The class has no constructor for the values; :bytes is for an array of bytes.
  def self.refuse_new(values, type)
    raise TypeError, "no constructor for arguments (#{classes(values)}) on Java::#{type}"
  end

  # No overload of the method takes the values. `overloads` is empty if there is only one.
  def self.refuse(method, values, type, overloads = [])
    text = "no method '#{method}' for arguments (#{classes(values)}) on Java::#{type}"
    text += "\n  available overloads:#{overloads.map { |o| "\n    (#{o})" }.join('')}" unless overloads.empty?
    raise TypeError, text
  end

  # For a value of which HBase's shell calls `each`.
  def self.listed(v)
    raise NoMethodError, "undefined method `each' for #{v.nil? ? 'nil:NilClass' : "#{v.inspect}:#{v.class}"}" unless v.respond_to?(:each)
    v
  end

  # For a parameter that is a String in Java.
  def self.string(v)
    case v
    when nil, String then v
    when Symbol then v.to_s
    when Numeric then raise TypeError, "could not coerce #{v.class} to class java.lang.String"
    else raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to class java.lang.String"
    end
  end

  def self.long(v)
    raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to long" unless v.is_a?(Numeric)
    v
  end

  # java.lang.Boolean.valueOf; nil is false.
  def self.boolean(v)
    refuse('valueOf', [v], 'JavaLang::Boolean', BOOLEANS) unless [nil, true, false].include?(v) || v.is_a?(String)
    v.to_s.downcase == 'true'
  end

  # java.util.regex.Pattern.compile
  def self.pattern(v)
    Names.null('Cannot invoke "String.isEmpty()" because "this.pattern" is null') if v.nil?
    refuse('compile', [v], 'JavaUtilRegex::Pattern') unless v.is_a?(String)
    v
  end

  # For a value whose bytes are taken.
  def self.bytes(v)
    return v if v.is_a?(String)
    raise NoMethodError, "undefined method `to_java_bytes' for #{v.nil? ? 'nil:NilClass' : "#{v.inspect}:#{v.class}\nDid you mean?  to_java"}"
  end

  def self.table_name(v)
    refuse('valueOf', [v], 'OrgApacheHadoopHbase::TableName', TABLE_NAMES) unless v.is_a?(String)
    v
  end

  def self.server_name(v)
    Names.null('Cannot invoke "String.indexOf(String)" because "serverName" is null') if v.nil?
    refuse('valueOf', [v], 'OrgApacheHadoopHbase::ServerName') unless v.is_a?(String)
  end
end
