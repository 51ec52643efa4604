# SPDX-License-Identifier: Apache-2.0
# HBase's Java classes of requests, for scripts: Put, Delete, Increment, Append, Get, Scan. A byte[] is a String.

Shell.need('java_enum')
Shell.need('bytes')

module JavaClient
  Durability = JavaEnum.of('org.apache.hadoop.hbase.client.Durability', %w[USE_DEFAULT SKIP_WAL ASYNC_WAL SYNC_WAL FSYNC_WAL])
  Consistency = JavaEnum.of('org.apache.hadoop.hbase.client.Consistency', %w[STRONG TIMELINE])
  IsolationLevel = JavaEnum.of('org.apache.hadoop.hbase.client.IsolationLevel', %w[READ_COMMITTED READ_UNCOMMITTED])

  # The base of these classes. The error for a method that the shell lacks has the method's name and HBase's name of the class.
  class Part
    include JavaNames
    extend JavaStatics
    PACKAGE = 'org.apache.hadoop.hbase.client'

    def self.java_name
      "#{self::PACKAGE}.#{name.split('::')[-1]}"
    end

    def self.inspect
      Failures.java_class(java_name)
    end

    def self.to_s
      inspect
    end

    def method_missing(name, *args, &block)
      found = JavaNames.forms(name).find { |n| n != name.to_s && respond_to?(n.to_sym) }
      raise NoMethodError, "the shell's #{self.class.java_name} has no method #{name}" if found.nil?
      __send__(found.to_sym, *args, &block)
    end

    # A byte[] of an argument.
    def bytes(v)
      return v if v.is_a?(String)
      return v.map { |b| b & 255 }.pack('C*') if v.is_a?(Array)
      raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to class [B"
    end

    def time(v)
      raise TypeError, "cannot convert instance of class #{Failures.jruby_class(v)} to long" unless v.is_a?(Integer)
      Names.illegal("Timestamp cannot be negative. ts=#{v}") if (v <=> 0) < 0
      v
    end
  end

  # What requests share: attributes and a row.
  class Operation < Part
    attr_reader :row, :attributes
    alias getRow row

    def initialize(row)
      @row = row.nil? ? nil : bytes(row)
      @attributes = {}
      Names.illegal('Row length is 0') if @row == '' && !is_a?(Scan)
    end

    def setAttribute(name, value)
      value.nil? ? @attributes.delete(name) : @attributes[name.to_s] = bytes(value)
      self
    end

    def getAttribute(name)
      @attributes[name]
    end

    def setId(id)
      setAttribute('_operation.attributes.id', id)
    end

    def attribute_list
      @attributes.map { |k, v| { name: k, value: v } }
    end

    # Of a Get, Scan, Increment or Append.
    def setTimeRange(from, to)
      Names.illegal('maxStamp is smaller than minStamp') if (time(to) <=> time(from)) < 0
      @time_range = TimeRange.new(from, to)
      self
    end

    def getTimeRange
      @time_range || TimeRange.new(0, HConstants::LATEST_TIMESTAMP)
    end
  end

  class TimeRange < Part
    PACKAGE = 'org.apache.hadoop.hbase.io'
    attr_reader :from, :to
    alias getMin from
    alias getMax to

    def initialize(from, to)
      @from = from
      @to = to
    end

    def wire
      { from: @from, to: @to }
    end

    def toString
      "maxStamp=#{@to}, minStamp=#{@from}"
    end
    alias to_s toString
  end

  class Mutation < Operation
    attr_reader :cells

    def initialize(row, timestamp = nil)
      super(row)
      @cells = []
      @timestamp = timestamp.nil? ? nil : time(timestamp)
    end

    def setDurability(d)
      @durability = d.is_a?(JavaEnum) ? d : Durability.valueOf(d.to_s)
      self
    end

    def getDurability
      @durability || Durability::USE_DEFAULT
    end

    def setWriteToWAL(on)
      setDurability(on ? Durability::USE_DEFAULT : Durability::SKIP_WAL)
    end

    def setTTL(ms)
      setAttribute('_ttl', Bytes.big_endian(ms, 8))
    end

    def setCellVisibility(v)
      setAttribute('VISIBILITY', Wire.encode('CellVisibility', { expression: v.to_s }))
    end

    def isEmpty
      @cells.empty?
    end
    alias empty? isEmpty

    def size
      @cells.length
    end

    def numFamilies
      @cells.map { |c| c[0] }.uniq.length
    end

    def hasFamilies
      !@cells.empty?
    end

    def getTimestamp
      @timestamp || HConstants::LATEST_TIMESTAMP
    end
    alias getTimeStamp getTimestamp

    # (family, qualifier, value) or (family, qualifier, timestamp, value); a nil qualifier is empty.
    def add_value(type, family, qualifier, *rest)
      raise ArgumentError, "wrong number of arguments (given #{rest.length + 2}, expected 3 or 4)" unless [1, 2].include?(rest.length)
      at = rest.length == 2 ? time(rest[0]) : @timestamp
      @cells << [bytes(family), qualifier.nil? ? '' : bytes(qualifier), at, type, bytes(rest[-1])]
      self
    end

    def more
      fields = { attribute: attribute_list }
      fields[:durability] = @durability.name.to_sym unless @durability.nil?
      fields[:time_range] = @time_range.wire unless @time_range.nil?
      fields == { attribute: [] } ? '' : Wire.encode('MutationProto', fields)
    end

    def send_to(table)
      table.mutate(self.class::KIND, @row, @cells, more)
    end
  end

  class Put < Mutation
    KIND = 2

    def addColumn(*args)
      add_value(Hbase::Table::PUT, *args)
    end

    # Before HBase 2 the same; or a cell.
    def add(*args)
      return addColumn(*args) unless args.length == 1
      c = args[0]
      add_value(Hbase::Table::PUT, c.getFamily, c.getQualifier, c.getTimestamp, c.getValue)
    end
    alias addImmutable addColumn

    # (family, qualifier), with a timestamp, a value, or both.
    def has(family, qualifier, *rest)
      at = rest[0].is_a?(Integer) ? rest.shift : nil
      @cells.any? do |c|
        c[0] == family && c[1] == qualifier && (at.nil? || at.eql?(c[2] || HConstants::LATEST_TIMESTAMP)) &&
          (rest.empty? || c[4] == rest[0])
      end
    end

    def send_to(table)
      Names.illegal('No columns to insert') if @cells.empty?
      super
    end
  end

  class Delete < Mutation
    KIND = 3

    def mark(kind, family, qualifier, timestamp)
      @cells << [bytes(family), qualifier.nil? ? '' : bytes(qualifier), timestamp.nil? ? @timestamp : time(timestamp), Hbase::Table::DELETE[kind], '']
      self
    end

    def addColumn(family, qualifier, timestamp = nil)
      mark(:one, family, qualifier, timestamp)
    end
    alias deleteColumn addColumn

    def addColumns(family, qualifier, timestamp = nil)
      mark(:column, family, qualifier, timestamp)
    end
    alias deleteColumns addColumns

    def addFamily(family, timestamp = nil)
      mark(:family, family, nil, timestamp)
    end
    alias deleteFamily addFamily

    def addFamilyVersion(family, timestamp)
      mark(:version, family, nil, timestamp)
    end

    # Without columns: the whole row.
    def send_to(table)
      cells = @cells.empty? ? table.markers(nil, @timestamp, true) : @cells
      table.mutate(KIND, @row, cells, more)
    end
  end

  class Increment < Mutation
    KIND = 1

    def addColumn(family, qualifier, amount)
      @cells << [bytes(family), bytes(qualifier), nil, Hbase::Table::PUT, Bytes.big_endian(amount, 8)]
      self
    end
  end

  class Append < Mutation
    KIND = 0

    def addColumn(family, qualifier, value)
      add_value(Hbase::Table::PUT, family, qualifier, value)
    end
    alias add addColumn
  end

  # Gets and scans.
  class Query < Operation
    def initialize(row)
      super
      @columns = []
      @fields = {}
    end

    def addFamily(family)
      @columns.reject! { |c| c[:family] == bytes(family) }
      @columns << { family: bytes(family), qualifier: [] }
      self
    end

    def addColumn(family, qualifier)
      entry = @columns.find { |c| c[:family] == bytes(family) }
      @columns << (entry = { family: bytes(family), qualifier: [] }) if entry.nil?
      entry[:qualifier] << (qualifier.nil? ? '' : bytes(qualifier))
      self
    end

    def numFamilies
      @columns.length
    end

    def hasFamilies
      !@columns.empty?
    end

    def setTimestamp(ms)
      setTimeRange(ms, ms + 1)
    end
    alias setTimeStamp setTimestamp

    def readVersions(count)
      Names.illegal('maxVersions must be positive') unless count > 0
      @fields[:max_versions] = count
      self
    end

    def readAllVersions
      readVersions(HConstants::ALL_VERSIONS)
    end

    def setMaxVersions(count = HConstants::ALL_VERSIONS)
      readVersions(count)
    end

    def getMaxVersions
      @fields[:max_versions] || 1
    end

    def setFilter(filter)
      unless filter.nil? || filter.respond_to?(:wire)
        raise TypeError, "cannot convert instance of class #{Failures.jruby_class(filter)} to class org.apache.hadoop.hbase.filter.Filter"
      end
      @filter = filter
      self
    end

    def getFilter
      @filter
    end

    def hasFilter
      !@filter.nil?
    end

    def setCacheBlocks(on)
      @fields[:cache_blocks] = on ? nil : false
      self
    end

    def getCacheBlocks
      @fields[:cache_blocks].nil?
    end

    def setMaxResultsPerColumnFamily(count)
      @fields[:store_limit] = count
      self
    end

    def setRowOffsetPerColumnFamily(count)
      @fields[:store_offset] = count
      self
    end

    def setConsistency(c)
      @fields[:consistency] = c.name.to_sym
      self
    end

    def setIsolationLevel(level)
      setAttribute('_isolationlevel_', level.ordinal == 0 ? "\x00" : "\x01")
    end

    def setAuthorizations(a)
      setAttribute('AUTHORIZATIONS', Wire.encode('Authorizations', { label: a.respond_to?(:getLabels) ? a.getLabels : [a].flatten }))
    end

    def fields
      f = @fields.dup
      f[:column] = @columns
      f[:attribute] = attribute_list
      f[:time_range] = @time_range.wire unless @time_range.nil?
      f[:filter] = @filter.wire unless @filter.nil?
      f
    end
  end

  class Get < Query
    def setCheckExistenceOnly(on)
      @fields[:existence_only] = on
      self
    end

    def isCheckExistenceOnly
      @fields[:existence_only] == true
    end

    def message(existence_only = isCheckExistenceOnly)
      Wire.encode('Get', fields.merge(existence_only: existence_only))
    end
  end

  class Scan < Query
    attr_reader :options

    def initialize(start = '', stop = nil)
      super(nil)
      @options = { start: '' }
      return withStartRow(start.getRow).withStopRow(start.getRow, true) if start.is_a?(Get)
      withStartRow(start)
      return if stop.nil?
      stop.respond_to?(:wire) ? setFilter(stop) : withStopRow(stop)
    end

    def withStartRow(row, inclusive = true)
      @options[:start] = bytes(row)
      @options[:excludes_start] = !inclusive
      self
    end
    alias setStartRow withStartRow

    def withStopRow(row, inclusive = false)
      @options[:stop] = bytes(row)
      @options[:includes_stop] = inclusive
      @fields[:include_stop_row] = inclusive
      self
    end
    alias setStopRow withStopRow

    def getStartRow
      @options[:start]
    end

    def getStopRow
      @options[:stop] || ''
    end

    def includeStartRow
      !@options[:excludes_start]
    end

    def includeStopRow
      @options[:includes_stop] == true
    end

    def setRowPrefixFilter(prefix)
      @options.merge!(Hbase::Table.prefix_range(bytes(prefix)))
      self
    end
    alias setStartStopRowForPrefixScan setRowPrefixFilter

    def setReversed(on)
      @options[:reversed] = on
      self
    end

    def isReversed
      @options[:reversed] == true
    end

    def setCaching(rows)
      @options[:caching] = rows if rows > 0
      self
    end

    def setBatch(cells)
      @options[:batch] = cells if cells > 0
      self
    end

    def setLimit(rows)
      @options[:limit] = rows if rows > 0
      self
    end

    { Caching: :caching, Batch: :batch, Limit: :limit }.each do |name, key|
      define_method("get#{name}".to_sym) { @options[key] || -1 }
    end

    def setOneRowLimit
      setLimit(1)
    end

    def setMaxResultSize(size)
      @fields[:max_result_size] = size if size > 0
      self
    end

    def getMaxResultSize
      @fields[:max_result_size] || -1
    end

    def setRaw(on)
      setAttribute('_raw_', on ? "\xff" : nil)
    end

    def isRaw
      !getAttribute('_raw_').nil?
    end

    # A hint to HBase's client about how to read; the rows are the same.
    def setSmall(_on)
      self
    end
    alias setAsyncPrefetch setSmall
    alias setScanMetricsEnabled setSmall
    alias setLoadColumnFamiliesOnDemand setSmall

    def message
      Wire.encode('Scan', fields)
    end
  end
end
