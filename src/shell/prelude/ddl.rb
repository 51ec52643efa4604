# SPDX-License-Identifier: Apache-2.0
# Definitions of tables.

module Tables
  def self.exists?(name)
    !Master.call('GetTableDescriptors', { table_names: [Names.table(name)], include_sys_tables: true })[:table_schema].empty?
  end

  def self.must_exist(name)
    raise ArgumentError, "Table #{name} does not exist." unless exists?(name)
  end

  def self.state(name)
    return :ENABLED if name == 'hbase:meta'
    Master.call('GetTableState', { table_name: Names.table(name) })[:table_state][:state]
  end

  def self.enabled?(name)
    state(name) == :ENABLED
  end

  def self.disabled?(name)
    state(name) == :DISABLED
  end

  # HBase matches the pattern against the name without "default:".
  def self.names(pattern)
    list = Master.call('GetTableNames', { regex: pattern.to_s, include_sys_tables: false })[:table_names]
    list.map! { |t| Names.text(t) } # there may be very many
    others, plain = list.partition { |n| n.include?(':') }
    plain.sort + others.sort
  end

  def self.disable(name)
    must_exist(name)
    return if disabled?(name)
    Master.call('DisableTable', { table_name: Names.table(name) })
    nil
  end

  def self.enable(name)
    must_exist(name)
    return if enabled?(name)
    Master.call('EnableTable', { table_name: Names.table(name) })
    nil
  end
end

class Command
  def exists(table)
    found = Tables.exists?(table.to_s)
    out.row(["Table #{table} #{found ? 'does exist' : 'does not exist'}"])
    found
  end

  def list(regex = '.*')
    out.header(['TABLE'])
    Shell.check_pattern(regex)
    names = Tables.names(regex)
    names.each { |n| out.row([n]) }
    out.footer(names.length)
    names
  end

  def by_state(enabled)
    out.header(['TABLE'])
    names = Master.call('ListTableNamesByState', { is_enabled: enabled })[:table_names].map { |t| Names.text(t) }
    names.each { |n| out.row([n]) }
    out.footer(names.length)
    names
  end

  def list_enabled_tables
    by_state(true)
  end

  def list_disabled_tables
    by_state(false)
  end

  def get_table(table, *_args)
    table(table)
  end

  def is_enabled(table)
    enabled = Tables.enabled?(table)
    out.row([enabled.to_s])
    enabled
  end

  def is_disabled(table)
    disabled = Tables.disabled?(table)
    out.row([disabled.to_s])
    disabled
  end

  def enable(table)
    Tables.enable(table)
  end

  def disable(table)
    Tables.disable(table)
  end

  def drop(table)
    Tables.must_exist(table)
    raise ArgumentError, "Table #{table} is enabled. Disable it first." if Tables.enabled?(table)
    Shell.confirm("Drop #{table}: its rows and definition are lost")
    Master.call('DeleteTable', { table_name: Names.table(table) })
    nil
  end

  # Runs `method` on each table that the pattern matches, after one question for all, and prints how
  # many succeeded.
  def each_matching(regex, what, done, method)
    Shell.check_pattern(regex)
    names = Tables.names(regex)
    names.each { |n| out.row([n]) }
    if names.empty?
      puts "No tables matched the regex #{regex}"
      return
    end
    puts "\n#{what} the above #{names.length} tables (y/n)?"
    return unless Shell.answer =~ /y.*/i
    failed = names.select do |n|
      begin
        Master.call(method, { table_name: Names.table(n) })
        false
      rescue HBaseError => e
        puts "table:#{n}, error:#{e.to_java_string}"
        puts if method == 'DeleteTable'
        true
      end
    end
    puts "#{names.length - failed.length} tables successfully #{done}"
    puts "#{failed.length} tables not #{done} due to an exception: #{failed.join(',')}" unless failed.empty?
  end

  def enable_all(regex)
    each_matching(regex, 'Enable', 'enabled', 'EnableTable')
  end

  def disable_all(regex)
    each_matching(regex, 'Disable', 'disabled', 'DisableTable')
  end

  def drop_all(regex)
    each_matching(regex, 'Drop', 'dropped', 'DeleteTable')
  end

  # --- create, alter ---

  def create(table, *args)
    raise ArgumentError, 'Table name must be of type String' unless table.is_a?(String)
    schema = { table_name: Names.table(table), attributes: [], configuration: [], column_families: [] }
    splits = nil
    args.flatten.compact.each do |arg|
      unless arg.is_a?(String) || arg.is_a?(Hash)
        raise ArgumentError, "#{arg.class} of #{arg.inspect} is not of Hash or String type"
      end
      arg = arg.dup
      if arg.is_a?(String) || arg.key?(NAME)
        add_family(schema, Descriptor.family_of(arg, schema))
        next
      end
      if arg.key?(METHOD) && arg.delete(METHOD) != 'table_att'
        raise ArgumentError, 'table_att is currently the only supported method'
      end
      splits = splits_of(arg, schema) || splits
      Descriptor.update_table(schema, arg)
      arg.each_key { |k| puts "An argument ignored (unknown or overridden): #{k}" }
    end
    raise ArgumentError, 'Table must have at least one column family' if schema[:column_families].empty?
    create_table(schema, splits)
    end_now
    puts "Created table #{table}"
    table(table)
  end

  def add_family(schema, family)
    old = Descriptor.family(schema, family[:name])
    puts "Family '#{family[:name]}' already exists, the old one will be replaced" if old
    schema[:column_families].reject! { |f| f[:name] == family[:name] }
    schema[:column_families] << family
  end

  # HBase: Admin.createTable checks split keys.
  def create_table(schema, splits)
    unless splits.nil?
      splits = splits.sort
      Names.illegal('Empty split key must not be passed in the split keys.') if splits.include?('')
      splits.each_cons(2) do |a, b|
        Names.illegal("All split keys must be unique, found duplicate: #{Bytes.toStringBinary(a)}, #{Bytes.toStringBinary(b)}") if a == b
      end
    end
    schema[:column_families] = schema[:column_families].sort_by { |f| f[:name] }
    Master.call('CreateTable', { table_schema: schema, split_keys: splits || [] })
  end

  def splits_of(arg, schema)
    if arg.key?(SPLITS_FILE)
      file = arg.delete(SPLITS_FILE)
      raise ArgumentError, "Splits file #{file} doesn't exist" unless File.exist?(file)
      arg[SPLITS] = File.read(file).split("\n")
      Descriptor.set(schema, SPLITS_FILE, file)
    end
    raise NoMethodError, "undefined method `each' for #{arg[SPLITS].inspect}:#{arg[SPLITS].class}" unless arg[SPLITS].nil? || arg[SPLITS].respond_to?(:each)
    return arg.delete(SPLITS).map { |s| Bytes.toBytesBinary(s.to_s) } if arg.key?(SPLITS)
    return nil unless arg.key?(NUMREGIONS) || arg.key?(SPLITALGO)
    raise ArgumentError, 'Number of regions must be specified' unless arg.key?(NUMREGIONS)
    raise ArgumentError, 'Split algorithm must be specified' unless arg.key?(SPLITALGO)
    raise ArgumentError, 'Number of regions must be greater than 1' unless arg[NUMREGIONS] > 1
    algorithm_splits(arg.delete(NUMREGIONS), arg.delete(SPLITALGO))
  end

  # HBase: RegionSplitter.
  def algorithm_splits(count, name)
    case name.to_s.split('.')[-1].split('$')[-1]
    when 'HexStringSplit' then even_splits(count, 0xffffffff).map { |n| format('%08x', n) }
    when 'DecimalStringSplit' then even_splits(count, 99_999_999).map { |n| format('%08d', n) }
    when 'UniformSplit' then (1...count).map { |i| uniform(i, count) }
    else raise HBaseError.make('java.io.IOException', "Class #{name} not found")
    end
  end

  def even_splits(count, last)
    size = (last + 1) / count
    (1...count).map { |i| size * i }
  end

  # HBase: Bytes.split of the range of eight bytes 0 to FF…: 2^64 * i / count, rounded down.
  def uniform(i, count)
    high = (1 << 32) * i / count
    rest = (1 << 32) * i % count
    low = (rest << 32) / count
    Bytes.big_endian(high, 4) + Bytes.big_endian(low, 4)
  end

  def alter(table, *args)
    alter_table(table, true, args)
  end

  def alter_async(table, *args)
    alter_table(table, false, args)
  end

  def alter_table(name, wait, args)
    raise ArgumentError, 'Table name must be of type String' unless name.is_a?(String)
    raise ArgumentError, "Can't find a table: #{name}" unless Tables.exists?(name)
    raise ArgumentError, 'There should be at least one argument but the table name' if args.empty?
    schema = Descriptor.get(name)
    reopen = true
    args.each do |arg|
      arg = arg.is_a?(String) ? { NAME => arg } : arg.dup
      arg = { METHOD => 'delete', NAME => arg['delete'] } if arg['delete']
      if arg.key?(REOPEN_REGIONS)
        text = arg.delete(REOPEN_REGIONS).to_s.downcase
        raise ArgumentError, "Invalid 'REOPEN_REGIONS' for non-boolean value." unless %w[true false].include?(text)
        reopen = text == 'true'
      end
      alter_by(schema, arg)
    end
    modify(name, schema, reopen, wait)
    nil
  end

  def alter_by(schema, arg)
    method = arg.delete(METHOD)
    if method.nil? && arg.key?(NAME)
      family = Descriptor.family_of(arg, schema)
      schema[:column_families] = (schema[:column_families].reject { |f| f[:name] == family[:name] } + [family]).sort_by { |f| f[:name] }
      return
    end
    name = arg.delete(NAME)
    if method.nil? || method == 'table_att'
      Descriptor.update_table(schema, arg)
      arg.keys.select { |k| k.to_s =~ /coprocessor/i }.each { |k| add_coprocessor(schema, arg.delete(k).to_s.strip) }
    else
      alter_method(schema, method, name, arg)
    end
    arg.each_key { |k| puts "Unknown argument ignored: #{k}" }
  end

  def alter_method(schema, method, name, arg)
    case method
    when 'delete'
      raise ArgumentError, 'NAME parameter missing for delete method' if name.nil?
      schema[:column_families].reject! { |f| f[:name] == name }
    when 'table_att_unset' then unset(schema, name, 'table_att_unset', 'attribute')
    when 'table_conf_unset' then unset(schema, name, 'table_conf_unset', 'configuration')
    when 'table_remove_coprocessor'
      classes = arg.delete(CLASSNAME)
      raise ArgumentError, 'CLASSNAME parameter missing for table_remove_coprocessor method' if classes.nil?
      [classes].flatten.each { |c| schema[:attributes].reject! { |a| a[:first] =~ /\Acoprocessor\$\d+\z/i && a[:second].split('|')[1].to_s.strip == c } }
    else raise ArgumentError, "Unknown method: #{method}"
    end
  end

  def unset(schema, names, method, what)
    raise ArgumentError, "NAME parameter missing for #{method} method" if names.nil?
    [names].flatten.each do |k|
      raise ArgumentError, "Could not find #{what}: #{k}" unless Descriptor.values(schema).key?(k)
      Descriptor.set(schema, k, nil)
    end
  end

  def add_coprocessor(schema, spec)
    used = schema[:attributes].map { |a| a[:first][/\Acoprocessor\$(\d+)\z/i, 1].to_i }
    Descriptor.set(schema, "coprocessor$#{(used + [0]).max + 1}", spec)
  end

  def modify(name, schema, reopen, wait)
    if !reopen
      puts "WARNING: You are using REOPEN_REGIONS => 'false' to modify a table, which will
          result in inconsistencies in the configuration of online regions and other risks. If you
          encounter any issues, use the original 'alter' command to make the modification again!"
    end
    id = Master.call('ModifyTable', { table_name: Names.table(name), table_schema: schema, reopen_regions: reopen }, false)[:proc_id]
    puts 'Updating all regions with the new schema...' if wait && reopen
    Master.follow(id) if wait && !id.nil?
    alter_progress(name) if wait && reopen
  end

  def alter_status(table)
    raise ArgumentError, 'Table name must be of type String' unless table.is_a?(String)
    raise ArgumentError, "Can't find a table: #{table}" unless Tables.exists?(table)
    alter_progress(table)
  end

  # HBase polls once a second; here no pause follows the last poll.
  def alter_progress(name)
    wanted = Names.table(name)
    loop do
      s = Master.status(:TABLE_TO_REGIONS_COUNT)[:table_region_states_count].find { |t| t[:table_name][:namespace] == wanted[:namespace] && t[:table_name][:qualifier] == wanted[:qualifier] }
      n = s.nil? ? nil : s[:region_states_count]
      if n.nil? || n[:total_regions] == 0
        puts 'All regions updated.'
      else
        puts "#{n[:total_regions] - n[:regions_in_transition] - n[:closed_regions]}/#{n[:total_regions]} regions updated."
      end
      break if n.nil? || n[:regions_in_transition] == 0
      Wire.pause(1)
    end
    puts 'Done.'
  end

  # --- description ---

  def describe(table)
    name = table
    Tables.must_exist(name)
    schema = Descriptor.get(name)
    out.header(["Table #{name} is #{Tables.enabled?(name) ? 'ENABLED' : 'DISABLED'}"])
    out.row([name + Descriptor.table_text(schema)], true)
    out.header(['COLUMN FAMILIES DESCRIPTION'])
    schema[:column_families].each do |f|
      out.row([Descriptor.family_text(f)], true)
      puts
    end
    out.footer
    if Tables.exists?('hbase:quota')
      return if name == 'hbase:meta'
      puts
      out.header(%w[QUOTAS])
      Shell.need('quotas')
      out.footer(Quotas.list(TABLE => name) { |_, quota| out.row([quota]) })
    else
      puts 'Quota is disabled'
    end
    nil
  end

  # In the order of HBase's map.
  FILTERS = %w[DependentColumnFilter KeyOnlyFilter ColumnCountGetFilter SingleColumnValueFilter PrefixFilter
               SingleColumnValueExcludeFilter FirstKeyOnlyFilter ColumnRangeFilter ColumnValueFilter TimestampsFilter FamilyFilter
               QualifierFilter ColumnPrefixFilter RowFilter MultipleColumnPrefixFilter InclusiveStopFilter PageFilter ValueFilter
               ColumnPaginationFilter]

  def show_filters
    FILTERS.each { |f| out.row([f]) }
    JavaList.new('JavaUtil::HashMap::KeySet', FILTERS)
  end

  def locate_region(table, row_key)
    Names.null('Cannot invoke "String.length()" because "in" is null') if row_key.nil?
    key = Bytes.toBytesBinary(Arguments.string(row_key))
    r = Meta.region_of_row(Names.text(Names.table(table)), key)
    raise HBaseError.make('org.apache.hadoop.hbase.TableNotFoundException', table) if r.nil?
    out.header(%w[HOST REGION])
    out.row([r.server, Region.describe(r.info)])
    out.footer(1)
    RegionLocation.new(r)
  end

  def clone_table_schema(table_name, new_table_name, preserve_splits = true)
    Names.table(table_name)
    Names.table(new_table_name)
    raise TypeError, "cannot convert instance of class #{Failures.jruby_class(preserve_splits)} to boolean" unless [nil, true, false].include?(preserve_splits)
    schema = Descriptor.get(table_name)
    raise HBaseError.make('org.apache.hadoop.hbase.TableExistsException', new_table_name) if Tables.exists?(new_table_name)
    keys = preserve_splits ? Meta.split_keys(table_name) : []
    schema[:table_name] = Names.table(new_table_name)
    Master.call('CreateTable', { table_schema: schema, split_keys: keys })
    nil
  end

  # --- regions ---

  REGION_COLUMNS = { 'SERVER_NAME' => 12, 'REGION_NAME' => 12, 'START_KEY' => 10, 'END_KEY' => 10, 'SIZE' => 5, 'REQ' => 5, 'LOCALITY' => 10 }
  REGION_COLUMNS_TEXT = 'Possible values are SERVER_NAME, REGION_NAME, START_KEY, END_KEY, SIZE, REQ, LOCALITY.'

  def list_regions(table_name, options = nil, cols = nil)
    options = options.nil? ? {} : { SERVER_NAME => options } unless options.is_a?(Hash)
    raise "Table #{table_name} must be enabled." unless Tables.enabled?(table_name)
    widths = region_columns(cols)
    threshold = locality_threshold(options)
    table = Names.text(Names.table(table_name))
    rows = region_rows(table, options[SERVER_NAME], region_loads(table), threshold, widths)
    end_now
    print widths.map { |c, w| " #{c.rjust(w)} |" }.join('') + "\n"
    print widths.map { |_, w| " #{'-' * w} |" }.join('') + "\n"
    sizes = widths.values
    rows.each { |r| print r.each_with_index.map { |text, i| " #{text.rjust(sizes[i])} |" }.join('') + "\n" }
    print " #{rows.length} rows\n"
  end

  # Loads of the table's regions: server name => { region name => [megabytes, requests, locality] }. This table may have 100,000
  # regions, and others as many, so three numbers are kept of a region of this table.
  def region_loads(table)
    loads = Hash.new { |h, server| h[server] = {} }
    Master.each_region_load("#{table},") do |sn, load|
      loads[Names.server(sn)][load[:region_specifier][:value]] =
        [load[:storefile_size_MB].to_i, load[:read_requests_count].to_i + load[:write_requests_count].to_i, load[:data_locality].to_f]
    end
    loads
  end

  def region_columns(cols)
    return REGION_COLUMNS.dup if cols.nil?
    raise "#{cols} must be an array of strings. #{REGION_COLUMNS_TEXT}" unless cols.is_a?(Array)
    cols.inject({}) do |h, c|
      raise "#{c} is not a valid column. #{REGION_COLUMNS_TEXT}" unless REGION_COLUMNS.key?(c.upcase)
      h[c.upcase] = REGION_COLUMNS[c.upcase]
      h
    end
  end

  def locality_threshold(options)
    return 1.0 unless options.key?(LOCALITY_THRESHOLD)
    v = options[LOCALITY_THRESHOLD]
    raise "#{LOCALITY_THRESHOLD} must be a float value" unless v.is_a?(Float)
    raise "#{LOCALITY_THRESHOLD} must be between 0 and 1.0, inclusive" if v < 0 || v > 1.0
    v
  end

  # Of each region the columns of `widths`, which get as wide as the longest text. HBase prints which regions have no load when it
  # has all regions.
  def region_rows(table, server, loads, threshold, widths)
    rows = []
    unknown = []
    Meta.each_region(table) do |r|
      raise 'Some regions might be splitting or merging or transitioning due to other reasons' if r.server.nil?
      next unless server.nil? || r.server_name.start_with?(server)
      l = loads[r.server_name].delete(r.name)
      unknown << r.name_text.strip if l.nil?
      next if !l.nil? && l[2] > threshold
      rows << widths.keys.map { |c| region_column(c, r, l) }
      widths.keys.each_with_index { |c, i| widths[c] = rows[-1][i].length if rows[-1][i].length > widths[c] }
    end
    unknown.each { |name| puts "Can not find all details for region: #{name} , it may be disabled or in transition\n" }
    rows
  end

  def region_column(column, region, load)
    case column
    when 'SERVER_NAME' then region.server_name
    when 'REGION_NAME' then region.name_text.strip
    when 'START_KEY' then Bytes.toStringBinary(region.info[:start_key]).strip
    when 'END_KEY' then Bytes.toStringBinary(region.info[:end_key]).strip
    when 'SIZE' then load.nil? ? '' : load[0].to_s
    when 'REQ' then load.nil? ? '' : load[1].to_s
    when 'LOCALITY' then load.nil? ? '' : Shell.java_float(load[2])
    end
  end

  # --- store file tracker ---

  def change_sft(*args)
    raise ArgumentError, 'Argument length should be two or three.' unless [2, 3].include?(args.length)
    fields = { table_Name: Names.table(args[0]), dst_sft: Names.not_null(Arguments.string(args[-1])) }
    if args.length == 2
      Master.call('ModifyTableStoreFileTracker', fields)
    else
      Master.call('ModifyColumnStoreFileTracker', fields.merge(family: Arguments.bytes(args[1])))
    end
    nil
  end

  def change_sft_all(*args)
    raise ArgumentError, 'Argument length should be two.' unless args.length == 2
    names = Tables.names(args[0])
    names.each { |n| out.row([n]) }
    if names.empty?
      puts "No tables matched the regex #{args[0]}"
      return
    end
    puts "\nChange the above #{names.length} tables's sft (y/n)?"
    return unless Shell.answer =~ /y.*/i
    names.each { |n| change_sft(n, args[1]) }
  end
end
Shell.need('dml')
