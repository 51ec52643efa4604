# SPDX-License-Identifier: Apache-2.0
# HBase's comparators as objects, and what they share with the filters (filters.rb).

Shell.need('java_enum')

# Base of filters and comparators: a class of HBase's package, and its message.
class JavaFilterPart
  include JavaNames
  PACKAGE = 'org.apache.hadoop.hbase.filter'

  def self.simple
    name.split('::')[-1]
  end

  def self.inspect
    "Java::OrgApacheHadoopHbaseFilter::#{name.split('::')[1..-1].join('::')}"
  end

  def self.to_s
    inspect
  end

  def java_name
    "#{PACKAGE}.#{self.class.simple}"
  end

  def toByteArray
    Wire.encode(self.class.simple, fields)
  end

  def fields
    {}
  end

  # A byte[] of the arguments: text, or a list of bytes.
  def bytes_of(v)
    return v if v.is_a?(String)
    return v.map { |b| b & 255 }.pack('C*') if v.is_a?(Array)
    raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to class [B"
  end

  def text_of(*list)
    list.empty? ? self.class.simple : "#{self.class.simple} #{list.join(' ')}"
  end
end

module JavaFilters
  OPERATORS = %w[LESS LESS_OR_EQUAL EQUAL NOT_EQUAL GREATER_OR_EQUAL GREATER NO_OP]
  CompareOperator = JavaEnum.of('org.apache.hadoop.hbase.CompareOperator', OPERATORS)

  # --- comparators ---

  class ByteArrayComparable < JavaFilterPart
    attr_reader :value
    alias getValue value

    def initialize(value)
      @value = bytes_of(value)
    end

    def fields
      { comparable: { value: @value } }
    end

    def wire
      { name: java_name, serialized_comparator: toByteArray }
    end
  end

  class BinaryComparator < ByteArrayComparable; end
  class BinaryPrefixComparator < ByteArrayComparable; end

  class BinaryComponentComparator < ByteArrayComparable
    def initialize(value, offset)
      super(value)
      @offset = offset
    end

    def fields
      { value: @value, offset: @offset }
    end
  end

  class LongComparator < ByteArrayComparable
    def initialize(number)
      super(Bytes.big_endian(number, 8))
    end
  end

  class BigDecimalComparator < ByteArrayComparable
    def initialize(number)
      super(Bytes.toBytes(JavaBigDecimal.of(number)))
    end
  end

  class BitComparator < ByteArrayComparable
    BitwiseOp = JavaEnum.of('org.apache.hadoop.hbase.filter.BitComparator$BitwiseOp', %w[AND OR XOR])

    def initialize(value, operator)
      super(value)
      @operator = operator
    end

    def fields
      { comparable: { value: @value }, bitwise_op: @operator.name.to_sym }
    end
  end

  class NullComparator < ByteArrayComparable
    def initialize
      super('')
    end

    def fields
      {}
    end
  end

  class SubstringComparator < ByteArrayComparable
    def initialize(text)
      super(text.to_s.downcase)
    end

    def fields
      { substr: @value }
    end
  end

  class RegexStringComparator < ByteArrayComparable
    EngineType = JavaEnum.of('org.apache.hadoop.hbase.filter.RegexStringComparator$EngineType', %w[JAVA JONI])
    DOTALL = 32 # of java.util.regex.Pattern

    def initialize(pattern, *more)
      super(pattern.to_s)
      @flags = more.find { |v| v.is_a?(Integer) } || DOTALL
      @engine = more.find { |v| v.is_a?(JavaEnum) } || EngineType::JAVA
      @charset = 'UTF-8'
    end

    def setCharset(charset)
      @charset = charset.to_s
      nil
    end

    def fields
      { pattern: @value, pattern_flags: @flags, charset: @charset, engine: @engine.name }
    end
  end
end
