# SPDX-License-Identifier: Apache-2.0
# What Java's classes in the shell share: enums, and static methods by the names that JRuby gives them.

# Of a class: value_of for valueOf.
module JavaStatics
  def method_missing(name, *args, &block)
    camel = JavaNames.camel(name)
    return __send__(camel.to_sym, *args, &block) if camel != name.to_s && respond_to?(camel.to_sym)
    super
  end
end

# A value of a Java enum; its class has the values as constants, valueOf and values.
class JavaEnum
  include JavaNames
  attr_reader :name, :ordinal

  def self.of(java_name, names)
    Class.new(self) do
      define_singleton_method(:java_name) { java_name }
      define_singleton_method(:inspect) { Failures.java_class(java_name) }
      list = names.each_with_index.map { |n, i| new(n, i) }
      list.each { |v| const_set(v.name, v) }
      define_singleton_method(:values) { list }
    end
  end

  def self.valueOf(name)
    found = values.find { |v| v.name == name.to_s }
    return found unless found.nil?
    raise HBaseError.make('java.lang.IllegalArgumentException', "No enum constant #{java_name.gsub('$', '.')}.#{name}")
  end

  def self.value_of(name)
    valueOf(name)
  end

  def initialize(name, ordinal)
    @name = name
    @ordinal = ordinal
  end

  def to_s
    @name
  end
  alias toString to_s

  def <=>(other)
    @ordinal <=> other.ordinal
  end
end
