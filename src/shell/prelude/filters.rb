# SPDX-License-Identifier: Apache-2.0
# HBase's filters as objects, which scripts pass as FILTER instead of the filter language: PrefixFilter.new(Bytes.toBytes('a')).
# Each knows its message; a byte[] is a String. Comparators: comparators.rb.

Shell.need('comparators')

module JavaFilters
  # --- filters ---

  class FilterBase < JavaFilterPart
    def wire
      { name: java_name, serialized_filter: toByteArray }
    end

    def to_s
      text_of
    end

    def toString
      to_s
    end

    def operator_of(v)
      return v if v.is_a?(JavaEnum)
      raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to class #{PACKAGE.sub('.filter', '')}.CompareOperator"
    end

    def comparator_of(v)
      return v if v.is_a?(ByteArrayComparable)
      BinaryComparator.new(v)
    end
  end
  Filter = FilterBase

  # Of the filter language.
  class ParsedFilter < FilterBase
    def initialize(text)
      @name, @bytes = Rows.filter(text)
    end

    def wire
      { name: @name, serialized_filter: @bytes }
    end
  end

  class ParseFilter < JavaFilterPart
    def parseFilterString(text)
      ParsedFilter.new(text)
    end
  end

  class FilterList < FilterBase
    Operator = JavaEnum.of('org.apache.hadoop.hbase.filter.FilterList$Operator', %w[MUST_PASS_ALL MUST_PASS_ONE])
    attr_reader :filters
    alias getFilters filters

    def initialize(*args)
      @operator = args[0].is_a?(JavaEnum) ? args.shift : Operator::MUST_PASS_ALL
      @filters = args.flatten
    end

    def addFilter(*list)
      @filters += list.flatten
      nil
    end

    def fields
      { operator: @operator.name.to_sym, filters: @filters.map { |f| f.wire } }
    end

    def to_s
      "FilterList #{@operator == Operator::MUST_PASS_ALL ? 'AND' : 'OR'} (#{@filters.length}/#{@filters.length}): [#{@filters.join(', ')}]"
    end
  end

  class SkipFilter < FilterBase
    def initialize(filter)
      @filter = filter
    end

    def fields
      { filter: @filter.wire }
    end

    def to_s
      text_of(@filter)
    end
  end

  class WhileMatchFilter < SkipFilter; end

  class CompareFilter < FilterBase
    CompareOp = JavaEnum.of('org.apache.hadoop.hbase.filter.CompareFilter$CompareOp', OPERATORS)

    def initialize(operator, comparator)
      @operator = operator_of(operator)
      @comparator = comparator_of(comparator)
    end

    def compare
      { compare_op: @operator.name.to_sym, comparator: @comparator.nil? ? nil : @comparator.wire }
    end

    def fields
      { compare_filter: compare }
    end

    def to_s
      "#{self.class.simple} (#{@operator}, #{Bytes.toStringBinary(@comparator.value)})"
    end
  end

  class RowFilter < CompareFilter; end
  class FamilyFilter < CompareFilter; end
  class QualifierFilter < CompareFilter; end
  class ValueFilter < CompareFilter; end

  class DependentColumnFilter < CompareFilter
    def initialize(family, qualifier, drop = false, operator = CompareOperator::NO_OP, comparator = nil)
      @operator = operator
      @comparator = comparator
      @column = { column_family: bytes_of(family), column_qualifier: bytes_of(qualifier), drop_dependent_column: drop }
    end

    def fields
      @column.merge(compare_filter: compare)
    end

    def to_s
      text_of
    end
  end

  class SingleColumnValueFilter < FilterBase
    def initialize(family, qualifier, operator, comparator, missing = false, latest = true)
      @family = bytes_of(family)
      @qualifier = bytes_of(qualifier)
      @operator = operator_of(operator)
      @comparator = comparator_of(comparator)
      @missing = missing
      @latest = latest
    end

    def setFilterIfMissing(on)
      @missing = on
      nil
    end

    def getFilterIfMissing
      @missing
    end

    def setLatestVersionOnly(on)
      @latest = on
      nil
    end

    def getLatestVersionOnly
      @latest
    end

    def column_fields
      { column_family: @family, column_qualifier: @qualifier, compare_op: @operator.name.to_sym, comparator: @comparator.wire,
        filter_if_missing: @missing, latest_version_only: @latest }
    end
    alias fields column_fields

    def to_s
      "#{self.class.simple} (#{[@family, @qualifier].map { |b| Bytes.toStringBinary(b) }.join(', ')}, #{@operator}, #{Bytes.toStringBinary(@comparator.value)})"
    end
  end

  class SingleColumnValueExcludeFilter < SingleColumnValueFilter
    def fields
      { single_column_value_filter: column_fields }
    end
  end

  class ColumnValueFilter < SingleColumnValueFilter
    def fields
      { family: @family, qualifier: @qualifier, compare_op: @operator.name.to_sym, comparator: @comparator.wire }
    end
  end

  # Filters with one argument, which is one field of the message.
  class OneValueFilter < FilterBase
    def initialize(v)
      @v = v
    end

    def to_s
      text_of(@v.is_a?(String) ? Bytes.toStringBinary(@v) : @v)
    end
  end

  class OneBytesFilter < OneValueFilter
    def initialize(v)
      super(bytes_of(v))
    end
  end

  class PrefixFilter < OneBytesFilter
    def fields
      { prefix: @v }
    end
  end

  class ColumnPrefixFilter < PrefixFilter; end

  class InclusiveStopFilter < OneBytesFilter
    def fields
      { stop_row_key: @v }
    end
  end

  class PageFilter < OneValueFilter
    def initialize(size)
      raise HBaseError.make('java.lang.IllegalArgumentException', "must be positive #{size}") if size < 0
      super
    end

    def fields
      { page_size: @v }
    end
  end

  class ColumnCountGetFilter < OneValueFilter
    def initialize(limit)
      raise HBaseError.make('java.lang.IllegalArgumentException', "limit be positive #{limit}") if limit < 0
      super
    end

    def fields
      { limit: @v }
    end
  end

  class RandomRowFilter < OneValueFilter
    def fields
      { chance: @v.to_f }
    end
  end

  class KeyOnlyFilter < OneValueFilter
    def initialize(length_as_value = false)
      super
    end

    def fields
      { len_as_val: @v }
    end

    def to_s
      text_of
    end
  end

  class FirstKeyOnlyFilter < FilterBase; end
  class FilterAllFilter < FilterBase; end

  class FirstKeyValueMatchingQualifiersFilter < FilterBase
    def initialize(qualifiers)
      @qualifiers = qualifiers.to_a.map { |q| bytes_of(q) }.uniq.sort
    end

    def fields
      { qualifiers: @qualifiers }
    end
  end

  class MultipleColumnPrefixFilter < FilterBase
    def initialize(prefixes)
      @prefixes = prefixes.to_a.map { |p| bytes_of(p) }.uniq.sort
    end

    def fields
      { sorted_prefixes: @prefixes }
    end

    def to_s
      shown = @prefixes[0, 5].map { |p| Bytes.toStringBinary(p) }.join(', ')
      "MultipleColumnPrefixFilter (#{[5, @prefixes.length].min}/#{@prefixes.length}): [#{shown}]"
    end
  end

  class ColumnPaginationFilter < FilterBase
    def initialize(limit, offset)
      @limit = limit
      @offset = offset
    end

    def fields
      @offset.is_a?(Integer) ? { limit: @limit, offset: @offset } : { limit: @limit, column_offset: bytes_of(@offset) }
    end

    def to_s
      "ColumnPaginationFilter (#{@limit}, #{@offset.is_a?(Integer) ? @offset : Bytes.toStringBinary(@offset)})"
    end
  end

  class ColumnRangeFilter < FilterBase
    def initialize(from, from_included, to, to_included)
      @from = from.nil? ? nil : bytes_of(from)
      @to = to.nil? ? nil : bytes_of(to)
      @included = [from_included, to_included]
    end

    def fields
      { min_column: @from, min_column_inclusive: @included[0], max_column: @to, max_column_inclusive: @included[1] }
    end

    def to_s
      from, to = [@from, @to].map { |b| b.nil? ? '' : Bytes.toStringBinary(b) }
      "ColumnRangeFilter #{@included[0] ? '[' : '('}#{from}, #{to}#{@included[1] ? ']' : ')'}"
    end
  end

  class TimestampsFilter < FilterBase
    def initialize(times, can_hint = false)
      @times = times.to_a.uniq.sort
      @can_hint = can_hint
    end

    def fields
      { timestamps: @times, can_hint: @can_hint }
    end

    def to_s
      "TimestampsFilter (#{[5, @times.length].min}/#{@times.length}): [#{@times[0, 5].join(', ')}], canHint: [#{@can_hint}]"
    end
  end

  class FuzzyRowFilter < FilterBase
    # HBase: a mask's 0 (this byte) is sent as -1, 1 (any byte) as 2; ignored bytes are 0.
    def initialize(pairs)
      @pairs = pairs.to_a.map do |p|
        key, mask = p.is_a?(Array) ? p : [p.getFirst, p.getSecond]
        key = bytes_of(key).bytes
        mask = bytes_of(mask).bytes
        if key.length != mask.length
          raise HBaseError.make('java.lang.IllegalArgumentException', "Fuzzy pair lengths do not match: (#{key.length}, #{mask.length})")
        end
        { first: key.each_with_index.map { |b, i| mask[i] == 0 ? b : 0 }.pack('C*'),
          second: mask.map { |b| b == 0 ? 255 : 2 }.pack('C*') }
      end
    end

    def fields
      { fuzzy_keys_data: @pairs, is_mask_v2: true }
    end
  end

  class MultiRowRangeFilter < FilterBase
    class RowRange < JavaFilterPart
      attr_reader :message

      def initialize(start, start_included, stop, stop_included)
        @message = { start_row: bytes_of(start), start_row_inclusive: start_included,
                     stop_row: bytes_of(stop), stop_row_inclusive: stop_included }
      end
    end

    def initialize(ranges)
      @ranges = ranges.to_a.map { |r| r.is_a?(RowRange) ? r.message : prefix_of(bytes_of(r)) }
      raise HBaseError.make('java.lang.IllegalArgumentException', 'No ranges found or all row ranges are invalid.') if @ranges.empty?
      @ranges = @ranges.sort_by { |r| r[:start_row] }
    end

    def prefix_of(prefix)
      { start_row: prefix, start_row_inclusive: true, stop_row: Bytes.after_prefix(prefix), stop_row_inclusive: false }
    end

    def fields
      { row_range_list: @ranges }
    end
  end

  # The class by its name behind the package; nil: there is none.
  def self.named(name)
    const_defined?(name) && name != 'OPERATORS' ? const_get(name) : nil
  end
end
