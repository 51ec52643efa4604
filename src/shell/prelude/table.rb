# SPDX-License-Identifier: Apache-2.0
# A table object: rows by the options of the shell's commands.

module Hbase
  # The Java object of a table: scripts that add methods to Table take it. Its prelude is loaded when it is used.
  class JavaTable
    def initialize(name)
      @name = name
    end

    def method_missing(name, *args, &block)
      Shell.need('client')
      JavaClient::HTable.new(@name).__send__(name, *args, &block)
    end
  end

  class Table
    attr_reader :name

    LATEST = 9223372036854775807
    PUT = 4
    DELETE = { one: 8, version: 10, column: 12, family: 14 }

    def initialize(name)
      t = Names.table(name)
      @name = Names.text(t)
      @converters = {}
      @table = JavaTable.new(@name)
      @epoch = Shell.configuration['hbase.shell.timestamp.format.epoch'] == 'true'
    end

    def to_s
      "Hbase::Table - #{@name}"
    end
    alias inspect to_s

    # Commands whose first argument is a table, and those that take its name.
    %w[put get scan count delete deleteall incr append get_counter get_splits].each do |c|
      define_method(c.to_sym) { |*args| Shell.run_quietly(c, [self] + args) }
    end
    %w[enable disable flush drop describe snapshot].each do |c|
      define_method(c.to_sym) { |*args| Shell.run_quietly(c, [@name] + args) }
    end

    def help(command = nil)
      Shell.help(command || 'table_help')
    end

    def close
    end

    # HBase's methods behind these: objects.rb.
    def method_missing(name, *args, &block)
      Shell.need('objects')
      __send__(name, *args, &block)
    end

    def get_all_columns
      Descriptor.get(@name)[:column_families].map { |f| "#{f[:name]}:" }
    end

    # --- operations ---

    def is_meta_table?
      @name == 'hbase:meta'
    end

    def parse_column_name(column)
      column_of(column)
    end

    def column_of(column)
      text = Arguments.bytes(column)
      at = text.index(':')
      at.nil? ? [text, nil] : [text[0, at], text[at + 1..-1]]
    end

    def attributes_of(args)
      list = []
      a = args[ATTRIBUTES]
      unless a.nil?
        raise ArgumentError, 'Attributes must be a Hash type' unless a.is_a?(Hash)
        a.each { |k, v| list << { name: k.to_s, value: v.nil? ? nil : v.to_s } }
      end
      list << { name: 'VISIBILITY', value: Wire.encode('CellVisibility', { expression: args[VISIBILITY].to_s }) } if args[VISIBILITY]
      list << { name: '_ttl', value: Bytes.big_endian(java_long(args[TTL]), 8) } if args[TTL]
      list
    end

    # A number for a parameter that is a long in Java.
    def java_long(v)
      Arguments.long(v).to_i.to_int
    end

    def authorizations(list)
      raise ArgumentError, 'Authorizations must be a Array type' unless list.is_a?(Array)
      { name: 'AUTHORIZATIONS', value: Wire.encode('Authorizations', { label: list.flatten.compact.map { |l| l.to_s } }) }
    end

    def more_of(args)
      list = attributes_of(args)
      list.empty? ? '' : Wire.encode('MutationProto', { attribute: list })
    end

    # The server's error for a table whose regions cannot be found. Behind a server that is silent, the master is not asked.
    def checked
      yield
    rescue HBaseError => e
      raise e if @name == 'hbase:meta' || %w[NoSuchColumnFamilyException DoNotRetryIOException CallTimeoutException].any? { |c| e.is?(c) }
      state = begin
        Master.call('GetTableState', { table_name: Names.table(@name) })[:table_state][:state]
      rescue HBaseError => f
        raise f if f.is?('TableNotFoundException')
        raise e
      end
      raise HBaseError.make('org.apache.hadoop.hbase.TableNotEnabledException', @name) if state == :DISABLED
      raise e
    end

    # HBase's client refuses an empty row.
    def checked_row(row)
      Names.illegal('Row length is 0') if row.to_s.empty?
      row.to_s
    end

    def mutate(kind, row, cells, more)
      checked { Rows.mutate(@name, kind, row.to_s, cells, more) }
    end

    def put_cell(row, column, value, timestamp, args)
      raise NoMethodError, "undefined method `any?' for #{args.inspect}:#{args.class}" unless args.respond_to?(:any?)
      args = args.merge(timestamp) if timestamp.is_a?(Hash)
      timestamp = nil if timestamp.is_a?(Hash)
      family, qualifier = column_of(column)
      unless timestamp.nil? || timestamp.is_a?(Numeric)
        raise TypeError, "no method 'addColumn' for arguments (org.jruby.java.proxies.ArrayJavaProxy,org.jruby.java.proxies.ArrayJavaProxy," \
                         "#{Failures.jruby_class(timestamp)},org.jruby.java.proxies.ArrayJavaProxy) on Java::OrgApacheHadoopHbaseClient::Put\n" \
                         "  available overloads:\n    (byte[],byte[],long,byte[])\n    (byte[],java.nio.ByteBuffer,long,java.nio.ByteBuffer)"
      end
      timestamp = java_long(timestamp) unless timestamp.nil?
      if !timestamp.nil? && (timestamp <=> 0) < 0
        Names.illegal("Timestamp cannot be negative. ts=#{timestamp}")
      end
      mutate(2, checked_row(row), [[family, qualifier || '', timestamp, PUT, value.to_s]], more_of(args))
      nil
    end

    def check_timestamp_of_delete(timestamp)
      return if timestamp.is_a?(Hash)
      Arguments.refuse_new([:bytes, timestamp], 'OrgApacheHadoopHbaseClient::Delete') unless timestamp.is_a?(Numeric)
      Names.illegal("Timestamp cannot be negative. ts=#{timestamp}") if (timestamp <=> 0) < 0
    end

    # The cells of a delete; they are the same for every row.
    def markers(column, timestamp, all)
      timestamp = nil if timestamp.is_a?(Hash) || timestamp.eql?(LATEST)
      cells = []
      unless column.nil? || column == ''
        family, qualifier = column_of(column)
        type = qualifier.nil? ? (all ? :family : :version) : (all ? :column : :one)
        cells << [family, qualifier || '', timestamp, DELETE[type], '']
      end
      if cells.empty?
        cells = Descriptor.get(@name)[:column_families].map { |f| [f[:name], '', timestamp, DELETE[:family], ''] }
      end
      cells
    end

    def delete_row(row, column, timestamp, args, all)
      if @name == 'hbase:meta'
        raise ArgumentError, 'deleteall with ROWPREFIXFILTER in hbase:meta is not allowed.' if row.is_a?(Hash) && row.key?('ROWPREFIXFILTER')
        raise ArgumentError, 'Row Not Found' if Rows.get(@name, row.to_s, '').empty?
      end
      more = more_of(timestamp.is_a?(Hash) ? { VISIBILITY => timestamp.values.find { |v| v.is_a?(String) } } : args)
      if row.is_a?(Hash)
        Arguments.bytes(row['ROWPREFIXFILTER'])
        delete_prefix(row, markers(column, timestamp, all), more)
      else
        mutate(3, checked_row(row), markers(column, timestamp, all), more)
      end
      nil
    end

    # Deletes in batches of CACHE rows while the scan continues.
    def delete_prefix(args, cells, more)
      keys = []
      first = { name: 'org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter', serialized_filter: '' }
      checked do
        Rows.scan(@name, prefix_range(args['ROWPREFIXFILTER']), Wire.encode('Scan', { filter: first })) do |found|
          keys << found[0][0]
          next if keys.length < (args['CACHE'] || 100)
          Rows.mutate_all(@name, 3, keys, cells, more)
          keys = []
        end
        Rows.mutate_all(@name, 3, keys, cells, more) unless keys.empty?
      end
    end

    def prefix_range(prefix)
      Table.prefix_range(prefix)
    end

    # The rows that begin with it.
    def self.prefix_range(prefix)
      bytes = prefix.bytes
      bytes.pop while !bytes.empty? && bytes[-1] == 255
      return { start: prefix } if bytes.empty?
      bytes[-1] += 1
      { start: prefix, stop: bytes.pack('C*') }
    end

    def increment(row, column, value, args)
      value = 1 if value.is_a?(Hash) || value.nil?
      raise TypeError, "cannot convert instance of class org.jruby.Ruby#{value.class} to long" unless value.is_a?(Numeric)
      row = checked_row(row)
      family, qualifier = column_of(column)
      cells = mutate(1, row, [[family, qualifier || '', nil, PUT, Bytes.big_endian(value, 8)]], more_of(args))
      cells.empty? ? nil : Bytes.counter(cells[0][5])
    end

    # nil: there is none.
    def counter(row, column)
      row = checked_row(row)
      family, qualifier = column_of(column)
      cells = checked { Rows.get(@name, row, Wire.encode('Get', { column: [{ family: family, qualifier: [qualifier || ''] }] })) }
      cells.empty? ? nil : Bytes.counter(cells[0][5])
    end

    def append_to(row, column, value, args)
      row = checked_row(row)
      family, qualifier = column_of(column)
      cells = mutate(0, row, [[family, qualifier || '', nil, PUT, value.to_s]], more_of(args))
      cells.empty? ? nil : Bytes.toStringBinary(cells[0][5])
    end

    # --- reading ---

    def query_columns(columns)
      list = []
      columns.each do |c|
        family, qualifier = parse_column(c.to_s)
        entry = list.find { |e| e[:family] == family }
        list << (entry = { family: family, qualifier: [] }) if entry.nil?
        entry[:qualifier] = qualifier.nil? ? [] : entry[:qualifier] + [qualifier]
      end
      list
    end

    # "cf:q:toInt", "cf:q:c(Class).method": the converter is remembered.
    def parse_column(column)
      family, qualifier = column_of(column)
      unless qualifier.nil?
        at = qualifier.rindex(':')
        unless at.nil?
          suffix = qualifier[at + 1..-1]
          if suffix =~ /\Ac\(.+\)\..+/ || Bytes.converter?(suffix)
            qualifier = qualifier[0, at]
            @converters["#{family}:#{qualifier}"] = suffix
          end
        end
      end
      [family, qualifier]
    end

    # request: Get or Scan, for JRuby's error.
    def filter_of(filter, request = 'Scan')
      return nil if filter.nil?
      return filter.wire if filter.respond_to?(:wire)
      unless filter.is_a?(String)
        raise TypeError, "no method 'setFilter' for arguments (#{Failures.jruby_class(filter)}) on Java::OrgApacheHadoopHbaseClient::#{request}\n" \
                         "  available overloads:\n    (org.apache.hadoop.hbase.filter.Filter)\n    (org.apache.hadoop.hbase.filter.Filter)"
      end
      name, bytes = Rows.filter(filter)
      { name: name, serialized_filter: bytes }
    end

    def time_of(args)
      range = args[TIMERANGE]
      return time_range(range) if range
      ts = args[TIMESTAMP]
      return nil if ts.nil?
      from = ts.to_i
      Names.illegal("Timestamp cannot be negative. minStamp:#{from}, maxStamp:#{from + 1}") if (from <=> 0) < 0
      { from: from, to: from + 1 }
    end

    # HBase: TimeRange.check; nil is 0 for JRuby.
    def time_range(range)
      raise TypeError, "TIMERANGE is an array of two times: #{range.inspect}" unless range.is_a?(Array)
      from, to = (0..1).map { |i| range[i].nil? ? 0 : java_long(range[i]) }
      order = to <=> from # mruby's < is wrong for Integers from 2^62 on
      Names.illegal("Timestamp cannot be negative. minStamp:#{from}, maxStamp:#{to}") if (from <=> 0) < 0 || (to <=> 0) < 0
      Names.illegal('maxStamp is smaller than minStamp') if order < 0
      { from: from, to: to }
    end

    def constant(klass, list, v)
      Descriptor.choice(v, list, klass).to_sym
    end

    def get_row(row, args)
      args = args[0] if args[0].is_a?(Hash)
      args = { COLUMNS => [args].flatten.compact } if args.is_a?(Array) || args.is_a?(String)
      raise ArgumentError, "Failed parse of #{args.inspect}, #{args.class}" unless args.is_a?(Hash)
      args = args.dup
      @converters.clear
      show = shown_by(args)
      replica = replica_of(args)
      fields = get_fields(args)
      Names.illegal('Row length is 0') if row.to_s.empty?
      cells = checked { Rows.get(@name, row.to_s, Wire.encode('Get', fields), fields[:consistency] == :TIMELINE ? replica : 0) }
      return nil if cells.empty?
      cells.each { |c| yield(*show_cell(c, show)) }
      1
    end

    # HBase: a get asks a replica with CONSISTENCY => 'TIMELINE' only.
    def replica_of(args)
      id = args[REGION_REPLICA_ID] || 0
      raise TypeError, "cannot convert instance of class org.jruby.Ruby#{id.class} to int" unless id.is_a?(Integer)
      return 0 if id == -1 # Java: any
      raise ArgumentError, "#{REGION_REPLICA_ID} #{id}: 0 to 65535" unless id >= 0 && id <= 65535
      id
    end

    def get_fields(args)
      filter = args.delete(FILTER)
      consistency = args.delete(CONSISTENCY)
      args.delete(REGION_REPLICA_ID)
      fields = {}
      unless args.empty?
        columns = args[COLUMN] || args[COLUMNS]
        columns = [columns] if columns.is_a?(String)
        unless columns.nil? || columns.is_a?(Array)
          raise ArgumentError, "Failed parse column argument type #{args.inspect}, #{args.class}"
        end
        if columns.nil? && !(args[ATTRIBUTES] || args[AUTHORIZATIONS] || args[TIMESTAMP] || args[TIMERANGE])
          raise ArgumentError, "Failed parse of #{args.inspect}, #{args.class}"
        end
        fields[:column] = query_columns(columns || [])
        versions = args[VERSIONS] || 1
        raise TypeError, "no method 'setMaxVersions' for arguments (#{Failures.jruby_class(versions)}) on Java::OrgApacheHadoopHbaseClient::Get" unless versions.is_a?(Integer)
        fields[:max_versions] = versions
        fields[:time_range] = time_of(args)
        fields[:attribute] = attributes_of(args)
        fields[:attribute] += [authorizations(args[AUTHORIZATIONS])] if args[AUTHORIZATIONS]
      end
      fields[:filter] = filter_of(filter, 'Get')
      fields[:consistency] = constant('org.apache.hadoop.hbase.client.Consistency', %w[STRONG TIMELINE], consistency) if consistency
      fields
    end

    def shown_by(args)
      { max: args.delete(MAXLENGTH) || -1, converter: args.delete(FORMATTER),
        class: args.delete(FORMATTER_CLASS) }
    end

    # [options of Rows.scan, fields of Scan]; `show` from shown_by.
    def scan_of(args)
      options = {}
      fields = {}
      return [options, fields] if args.empty?
      columns = args['COLUMNS'] || args['COLUMN'] || []
      columns = [columns] if columns.is_a?(String)
      raise ArgumentError, 'COLUMNS must be specified as a String or an Array' unless columns.is_a?(Array)
      options[:start] = row_of(args['STARTROW']) || ''
      options[:stop] = row_of(args['STOPROW'])
      options.merge!(prefix_range(args['ROWPREFIXFILTER'])) if args['ROWPREFIXFILTER']
      @converters.clear
      fields[:column] = query_columns(columns)
      fields[:filter] = filter_of(args['FILTER'])
      fields[:time_range] = time_of(args)
      fields[:cache_blocks] = args['CACHE_BLOCKS'].nil? ? nil : (args['CACHE_BLOCKS'] ? nil : false)
      options[:reversed] = args['REVERSED'] || false
      unless options[:reversed] == true || options[:reversed] == false
        raise TypeError, "cannot convert instance of class #{Failures.jruby_class(options[:reversed])} to boolean"
      end
      options[:replica] = replica_of(args)
      options[:metrics] = args[ALL_METRICS] || !args[METRICS].nil?
      options[:caching] = args['CACHE'] if positive?(args['CACHE'])
      options[:limit] = args['LIMIT'] if positive?(args['LIMIT'])
      fields[:max_versions] = args['VERSIONS'] if (args['VERSIONS'] || 1) > 1
      fields[:attribute] = attributes_of(args)
      fields[:attribute] += [{ name: '_raw_', value: "\xff" }] if args['RAW']
      fields[:attribute] += [authorizations(args[AUTHORIZATIONS])] if args[AUTHORIZATIONS]
      isolation = args[ISOLATION_LEVEL]
      unless isolation.nil?
        level = constant('org.apache.hadoop.hbase.client.IsolationLevel', %w[READ_COMMITTED READ_UNCOMMITTED], isolation)
        fields[:attribute] += [{ name: '_isolationlevel_', value: level == :READ_COMMITTED ? "\x00" : "\x01" }]
      end
      fields[:consistency] = constant('org.apache.hadoop.hbase.client.Consistency', %w[STRONG TIMELINE], args[CONSISTENCY]) if args[CONSISTENCY]
      fields[:readType] = constant('org.apache.hadoop.hbase.client.Scan.ReadType', %w[DEFAULT STREAM PREAD], args[READ_TYPE]) if args[READ_TYPE]
      options[:batch] = args[BATCH] if positive?(args[BATCH])
      fields[:max_result_size] = args[MAX_RESULT_SIZE] if positive?(args[MAX_RESULT_SIZE])
      [options, fields]
    end

    def row_of(v)
      Arguments.bytes(v) unless v.nil?
      v
    end

    def positive?(v)
      return false if v.nil?
      raise ArgumentError, "comparison of #{v.class} with 0 failed" unless v.is_a?(Numeric)
      v > 0
    end

    def scan_rows(scan, show)
      options, fields = scan
      checked do
        Rows.scan(@name, options, Wire.encode('Scan', fields)) do |cells|
          next if cells.empty?
          key = convert_bytes(cells[0][0], nil, show[:converter])
          cells.each do |c|
            column, value = show_cell(c, show)
            yield(key, column, value)
          end
        end
      end
    end

    def count_rows(interval, scan, cache_blocks, &block)
      options, fields = scan
      keys = { name: 'org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter', serialized_filter: '' }
      none = { name: 'org.apache.hadoop.hbase.filter.KeyOnlyFilter', serialized_filter: Wire.encode('KeyOnlyFilter', { len_as_val: false }) }
      list = [fields[:filter], keys, none].compact
      fields[:filter] = { name: 'org.apache.hadoop.hbase.filter.FilterList',
                          serialized_filter: Wire.encode('FilterList', { operator: :MUST_PASS_ALL, filters: list }) }
      fields[:cache_blocks] = cache_blocks ? nil : false
      checked { Rows.count(@name, options, Wire.encode('Scan', fields), interval, &block) }
    end

    def time_text(ms)
      @epoch ? ms.to_s : Shell.local_time(ms)
    end

    # [column, "timestamp=…, value=…"] of a cell.
    def show_cell(c, show)
      column = "#{c[1]}:#{c[2]}"
      value = cell_text(column, c, show)
      value = value[0, show[:max]] if show[:max] != -1
      family = convert_bytes(c[1], show[:class], show[:converter])
      qualifier = convert_bytes(c[2], show[:class], show[:converter])
      ["#{family}:#{qualifier}", value]
    end

    def cell_text(column, c, show)
      if @name == 'hbase:meta'
        if %w[info:regioninfo info:splitA info:splitB].include?(column) || column.start_with?('info:merge')
          i = Region.parse_info(c[5])
          return "timestamp=#{time_text(c[3])}, value=#{i.nil? ? '' : Region.describe(i)}"
        end
        if column == 'info:serverstartcode'
          return "timestamp=#{time_text(c[3])}, value=#{c[5].empty? ? '' : Bytes.toLong(c[5])}"
        end
      end
      return "timestamp=#{time_text(c[3])}, type=#{TYPES[c[4]] || c[4]}" if TYPES.key?(c[4])
      "timestamp=#{time_text(c[3])}, value=#{convert(column, c[5], show)}"
    end
    TYPES = { 8 => 'Delete', 10 => 'DeleteFamilyVersion', 12 => 'DeleteColumn', 14 => 'DeleteFamily' }

    def convert(column, value, show)
      klass = nil
      converter = show[:converter]
      own = @converters[column]
      unless own.nil?
        m = /c\((.+)\)\.(.+)/.match(own)
        converter = m.nil? ? own : m[2]
        klass = m.nil? ? nil : m[1]
      end
      convert_bytes(value, klass, converter)
    end

    # `klass` names a class of Java or of the script, because HBase evaluates the name as Ruby.
    def convert_bytes(bytes, klass, converter)
      return Bytes.toStringBinary(bytes) if converter.nil? && klass.nil?
      Shell.need('bytes')
      converter ||= 'toStringBinary'
      type = klass.nil? ? Bytes : class_named(klass)
      name = [converter, JavaNames.camel(converter)].find { |n| type.respond_to?(n.to_sym) }
      raise NameError, "undefined method `#{converter}' for class `#<Class:0x#{(type.object_id & 0xffffffff).to_s(16)}>'" if name.nil?
      raise TypeError, "failed to coerce [B to #{Bytes::NOT_OF_BYTES[name]}" if type == Bytes && Bytes::NOT_OF_BYTES.key?(name)
      type.__send__(name.to_sym, bytes)
    end

    def class_named(text)
      return JavaPackage.named(text) if text =~ /\A(org|java|com)\./
      text.split('::').inject(Object) { |home, name| home.const_get(name.to_sym) }
    end

    def splits
      checked do
        # HBASE: of no table there are no regions, either.
        Meta.split_keys(@name).map { |k| Bytes.toStringBinary(k) }
      end
    end
  end
end

# For a table object: no empty line follows, because its methods are not exported commands.
def Shell.run_quietly(name, args)
  run(name, args, false)
end
