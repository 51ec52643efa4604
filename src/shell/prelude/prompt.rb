# SPDX-License-Identifier: Apache-2.0
# Features of the prompt that HBase's shell lacks: commands that begin with a backslash, other forms of output, completion.

module Prompt
  # name => [arguments, what it does, in lines of 80 columns]
  META = {
    'x' => ['', 'wide rows: one line for each cell, switched on and off'],
    'o' => ['FORM', 'how rows are printed: hbase, table (aligned columns), json, csv', 'or tsv; \o alone tells it'],
    'as' => ['KIND', 'how values are shown: text, hex, int, long, float, double,', 'time, json, protobuf or geohash; \as alone: as HBase shows them'],
    'export' => ['FILE', 'the next scan or get goes into the file: .csv, .tsv or .json'],
    'watch' => ['S COMMAND', 'runs it every S seconds, until Ctrl-C'],
    'progress' => ['TABLE', 'how far its compactions are, until they end'],
    'timing' => ['', 'the time of every statement, switched on and off'],
    'pager' => ['', 'a pager ($PAGER, else less) for more than a screen, on and off'],
    '?' => ['', 'this list'],
    'q' => ['', 'ends the shell']
  }
  # Lines with aligned columns: as wide as the first lines need; a later, longer text makes its column wider.
  class Columns
    HEADER = %w[ROW COLUMN TIMESTAMP VALUE]
    LOOKS_AT = 500

    def initialize
      @held = []
      @widths = HEADER.map { |h| h.length }
      @begun = false
    end

    # What can be printed now.
    def add(lines)
      @held += lines
      @held.length < LOOKS_AT ? '' : rest
    end

    def rest
      return '' if @held.empty?
      @held.each { |l| l.each_with_index { |t, i| @widths[i] = t.length if t.length > @widths[i] } }
      lines = @held
      @held = []
      head = @begun ? '' : Shell.paint('1', line(HEADER)) + "\n"
      @begun = true
      head + lines.map { |l| line(l) + "\n" }.join('')
    end

    def line(texts)
      "#{texts[0...-1].each_with_index.map { |t, i| t.ljust(@widths[i]) }.join('  ')}  #{texts[-1]}"
    end
  end

  # A file that gets its name when all of it is written: until then, and after a failure, the name has what it had before. A pipe
  # or a device has no draft.
  class Draft
    # Yields a draft, and gives it its name.
    def self.write(path)
      draft = nil
      begin
        draft = new(path)
        yield draft
        draft.settle
      rescue SystemCallError => e
        raise IOError, "#{path} cannot be written: #{Shell.error_text(e.errno)}"
      ensure
        draft.drop unless draft.nil?
      end
    end

    # Raises if the file cannot be written.
    def self.check(path)
      write(path) { return } unless special?(path)
    end

    def self.special?(path)
      File.exist?(path) && !File.file?(path) && !File.directory?(path)
    end

    def initialize(path)
      @path = File.symlink?(path) ? File.realpath(path) : path
      is_new = !File.exist?(@path)
      File.open(@path, File::WRONLY).close unless is_new || Draft.special?(@path) # may this user write it?
      @draft = "#{@path}.#{rand(1 << 40).to_s(36)}.draft" unless Draft.special?(@path)
      @file = @draft.nil? ? File.open(@path, 'w') : File.open(@draft, File::WRONLY | File::CREAT | File::EXCL, 0600)
    end

    def write(text)
      written = @file.syswrite(text)
      text = text[written..-1]
      write(text) unless text.empty? # the disk is full, or a file may not be as long: now the system says so
    end

    def settle
      close
      Shell.replace_file(@draft, @path) unless @draft.nil?
      @draft = nil
    end

    def drop
      close
      File.delete(@draft) if !@draft.nil? && File.exist?(@draft)
    end

    def close
      file = @file
      @file = nil
      file.close unless file.nil?
    end
  end

  @as = nil
  class << self
    attr_accessor :as

    def meta(line)
      name, rest = line[1..-1].split(' ', 2)
      rest = rest.to_s.strip
      case name
      when 'x' then toggle_wide
      when 'timing' then puts "Timing is #{(Shell.timing = !Shell.timing) ? 'on' : 'off'}"
      when 'watch' then watch(rest)
      when 'export' then export_to(rest)
      when 'as' then show_as(rest)
      when 'o' then rows_as(rest)
      when 'pager' then puts "The pager is #{(Shell.paging = !Shell.paging) ? 'on' : 'off'}"
      when 'progress' then progress_of(rest)
      when '?', 'h', 'help' then list_meta
      when 'q' then raise ShellExit.new(0)
      else puts "\\#{name}: unknown; \\? lists what there is"
      end
    end

    def list_meta
      META.each do |name, (arguments, *lines)|
        lines.each_with_index { |l, i| puts "#{(i == 0 ? "\\#{name} #{arguments}" : '').ljust(16)} #{l}" }
      end
      puts "\nTab completes names; Ctrl-R searches the history; help 'COMMAND' has examples"
    end

    def toggle_wide
      Shell.rows_as = Shell.rows_as == 'expanded' ? false : 'expanded'
      puts "Wide rows are #{Shell.rows_as ? 'on' : 'off'}"
      choose_table
    end

    # \o alone tells the form.
    def rows_as(kind)
      raise ArgumentError, "\\o #{kind}: hbase, table, json, csv or tsv" unless ['', 'hbase', 'table', 'json', 'csv', 'tsv'].include?(kind)
      Shell.rows_as = kind == 'hbase' ? false : kind unless kind.empty?
      @is_table_by_as = false unless kind.empty?
      tell_forms
    end

    def tell_forms
      rows = Shell.rows_as == 'expanded' ? 'wide' : Shell.rows_as || 'hbase'
      puts "Form of rows: #{rows}; of values: #{Shell.rows_as && @as || 'hbase'}"
    end

    def show_as(kind)
      Shell.need('show')
      raise ArgumentError, "\\as #{kind}: #{Show::KINDS.join(', ')}" unless kind.empty? || Show::KINDS.include?(kind)
      @as = kind.empty? ? nil : kind
      choose_table
      tell_forms
    end

    # HBase's form of rows has no other forms of values: another one takes aligned columns until \as ends it.
    def choose_table
      if @as && !Shell.rows_as
        Shell.rows_as = 'table'
        @is_table_by_as = true
      elsif @as.nil? && @is_table_by_as
        Shell.rows_as = false if Shell.rows_as == 'table'
        @is_table_by_as = false
      end
    end

    def progress_of(table)
      raise ArgumentError, '\progress TABLE' if table.empty?
      table = table[1..-2] if table =~ /\A(['"]).*\1\z/
      Shell.need('tools')
      command = Command.new('compaction_state')
      begun = Shell.monotonic
      loop do
        states = command.compaction_states(table)
        left = states.length - states.count(:NONE)
        break if left == 0
        Shell.progress { "compaction of #{table}: #{left} of #{states.length} regions#{cells_compacted(table)}, #{(Shell.monotonic - begun).to_i} s" }
        Wire.pause(0.25)
      end
      puts "No compaction of #{table} runs"
    rescue Interrupt
      puts 'The compaction goes on'
    end

    # Progress in cells that compactions must read; servers report it periodically.
    def cells_compacted(table)
      total = done = 0
      Master.each_region_load("#{table},") do |_, load|
        total += load[:total_compacting_KVs].to_i
        done += load[:current_compacted_KVs].to_i
      end
      total == 0 ? '' : ", #{done * 100 / total} %"
    end

    def watch(rest)
      seconds, text = rest.split(' ', 2)
      raise ArgumentError, '\watch SECONDS STATEMENT' if text.nil? || seconds.to_f <= 0
      paging = Shell.paging
      Shell.paging = false
      loop do
        puts Time.now.strftime('%H:%M:%S')
        TOP.instance_eval(text)
        Shell.flush
        Wire.pause(seconds.to_f)
      end
    rescue Interrupt
      puts
    ensure
      Shell.paging = paging unless paging.nil?
    end

    def export_to(file)
      kind = file[/\.(csv|tsv|json)\z/, 1]
      raise ArgumentError, '\export FILE.csv, FILE.tsv or FILE.json' if kind.nil?
      Draft.check(file)
      @before = Shell.rows_as if @export.nil?
      @export = [file, kind]
      Shell.rows_as = kind
      puts "The next scan or get is written to #{file}"
    end

    # --- rows in other forms ---

    # row nil: a scan by `args`; otherwise the get of that row.
    def show_rows(out, table, args, row)
      kind = Shell.rows_as
      return write_rows(kind, table, args, row) unless @export.nil?
      count = 0
      Shell.page
      columns = Columns.new
      each_row(table, args, row) do |cells|
        print(kind == 'table' ? columns.add(cells.map { |c| line_of(c) }) : row_text(kind, table, cells, count == 0))
        count += 1
      end
      print columns.rest
      out.footer(count) if %w[expanded table].include?(kind)
      nil
    end

    # Into the file of \export, once: also if that fails or is interrupted.
    def write_rows(kind, table, args, row)
      path = @export[0]
      @export = nil
      Shell.rows_as = @before
      count = 0
      Draft.write(path) do |file|
        each_row(table, args, row) do |cells|
          file.write(row_text(kind, table, cells, count == 0))
          count += 1
        end
      end
      puts "#{count} row(s) in #{path}"
      nil
    end

    def each_row(table, args, row)
      unless row.nil?
        args = args[0] if args[0].is_a?(Hash)
        args = { COLUMNS => [args].flatten.compact } unless args.is_a?(Hash)
        args = args.dup
        table.shown_by(args)
        cells = table.checked { Rows.get(table.name, row.to_s, Wire.encode('Get', table.get_fields(args))) }
        yield cells unless cells.empty?
        return
      end
      options, fields = table.scan_of(args)
      table.checked { Rows.scan(table.name, options, Wire.encode('Scan', fields)) { |cells| yield cells unless cells.empty? } }
    end

    def value_text(v)
      @as.nil? ? Bytes.toStringBinary(v) : Show.value(@as, v)
    end

    def row_text(kind, table, cells, first)
      case kind
      when 'json' then json_row(cells) + "\n"
      when 'csv', 'tsv' then cells_as_lines(kind, cells, first)
      when 'expanded' then wide_row(cells)
      end
    end

    def line_of(c)
      [Bytes.toStringBinary(c[0]), column(c), Shell.local_time(c[3]), value_text(c[5]).to_s]
    end

    def column(c)
      "#{Bytes.toStringBinary(c[1])}:#{Bytes.toStringBinary(c[2])}"
    end

    def wide_row(cells)
      width = cells.map { |c| column(c).length }.max
      "-[ #{Bytes.toStringBinary(cells[0][0])} ]-\n" + cells.map { |c| "#{column(c).ljust(width)} | #{Shell.local_time(c[3]).ljust(23)} | #{value_text(c[5])}\n" }.join('')
    end

    def json_row(cells)
      Shell.need('json')
      list = cells.map { |c| { 'column' => column(c), 'timestamp' => c[3], 'value' => value_text(c[5]) } }
      Json.text({ 'row' => Bytes.toStringBinary(cells[0][0]), 'cells' => list })
    end

    def cells_as_lines(kind, cells, first)
      mark = kind == 'csv' ? ',' : "\t"
      text = first ? %w[row column timestamp value].join(mark) + "\n" : ''
      text + cells.map { |c| [Bytes.toStringBinary(c[0]), column(c), c[3].to_s, value_text(c[5])].map { |v| field(v, mark) }.join(mark) + "\n" }.join('')
    end

    # RFC 4180; a tab in TSV cannot occur, as values are printable.
    def field(v, mark)
      mark == ',' && (v.include?(',') || v.include?('"') || v.include?("\n")) ? "\"#{v.gsub('"', '""')}\"" : v
    end

    # --- completion ---

    # [the words, in order; whether there are others between the last two]
    def complete(before, word)
      @has_gap = false
      list = if word[0] == '\\' then META.keys.map { |k| "\\#{k}" }
             elsif before =~ /\A\s*\\as\s+\z/ then kinds
             elsif before =~ /\A\s*\\o\s+\z/ then %w[hbase table json csv tsv]
             elsif before.strip.empty? || before =~ /[;(]\s*\z/ then Shell.commands.keys + %w[help exit tools]
             elsif before =~ /['"]\z/ then quoted(before, word)
             elsif word =~ /\A[A-Z]/ then HBaseConstants.constants.map { |c| c.to_s }
             elsif before =~ /help\s*\z/ then Shell.commands.keys
             elsif word.empty? && before =~ /[{,]\s*\z/ then OPTIONS[before[/\A\s*(\w+)/, 1]] || []
             else []
             end
      [list.select { |s| s.start_with?(word) }.sort, @has_gap]
    end

    READS = %w[ATTRIBUTES AUTHORIZATIONS CONSISTENCY FILTER FORMATTER FORMATTER_CLASS MAXLENGTH REGION_REPLICA_ID TIMERANGE TIMESTAMP VERSIONS]
    SCANS = %w[ALLOW_PARTIAL_RESULTS ALL_METRICS BATCH CACHE CACHE_BLOCKS COLUMNS ISOLATION_LEVEL LIMIT MAX_RESULT_SIZE METRICS RAW READ_TYPE
               REVERSED ROWPREFIXFILTER STARTROW STOPROW] + READS
    SCHEMA = %w[BLOCKCACHE BLOCKSIZE BLOOMFILTER COMPRESSION CONFIGURATION DATA_BLOCK_ENCODING IN_MEMORY KEEP_DELETED_CELLS MAX_FILESIZE METADATA
                MIN_VERSIONS NAME READONLY REGION_REPLICATION REPLICATION_SCOPE SPLIT_POLICY TTL VERSIONS]
    # What Tab lists where an option may begin, for commands that have many.
    OPTIONS = { 'scan' => SCANS, 'get' => %w[COLUMN] + READS, 'count' => %w[CACHE CACHE_BLOCKS COLUMNS FILTER INTERVAL ROWPREFIXFILTER STARTROW STOPROW],
                'create' => SCHEMA + %w[NUMREGIONS SPLITALGO SPLITS SPLITS_FILE], 'alter' => SCHEMA + %w[METHOD],
                'put' => %w[ATTRIBUTES TTL VISIBILITY] }

    def kinds
      Shell.need('show')
      Show::KINDS
    end

    NAMESPACE_COMMANDS = /\A\s*(drop_namespace|describe_namespace|alter_namespace|list_namespace_tables)\b/
    SNAPSHOT_COMMANDS = /\A\s*(clone_snapshot|restore_snapshot|delete_snapshot)\b/

    # Values of options: what stands behind `OPTION => '`.
    def values_of(option)
      case option
      when 'BLOOMFILTER' then Descriptor::BLOOMS
      when /\ACOMPRESSION/ then Descriptor::ALGORITHMS
      when 'METHOD' then %w[delete table_att table_att_unset table_conf_unset table_remove_coprocessor]
      when 'FILTER' then Command::FILTERS.map { |n| "#{n}(" }
      else VALUES[option]
      end
    end
    VALUES = { 'DATA_BLOCK_ENCODING' => %w[NONE PREFIX DIFF FAST_DIFF ROW_INDEX_V1], 'KEEP_DELETED_CELLS' => %w[TRUE FALSE TTL],
               'DURABILITY' => %w[USE_DEFAULT SKIP_WAL ASYNC_WAL SYNC_WAL FSYNC_WAL], 'IN_MEMORY_COMPACTION' => %w[NONE BASIC EAGER ADAPTIVE],
               'CONSISTENCY' => %w[STRONG TIMELINE], 'ISOLATION_LEVEL' => %w[READ_COMMITTED READ_UNCOMMITTED],
               'READ_TYPE' => %w[DEFAULT STREAM PREAD], 'SPLITALGO' => %w[HexStringSplit DecimalStringSplit UniformSplit] }

    # Inside quotes: tables first, then the columns of the table that the line names.
    def quoted(before, word)
      Shell.need('ddl')
      return Shell.commands.keys + Shell::GROUPS.keys if before =~ /\A\s*help[\s(]+['"]\z/
      return %w[summary simple detailed tasks replication source sink] if before =~ /\A\s*status\b/
      option = before[/\b([A-Z_]+) *=> *['"]\z/, 1]
      values = values_of(option)
      return values unless values.nil?
      return Master.call('ListNamespaces')[:namespaceName] if before =~ NAMESPACE_COMMANDS
      if before =~ SNAPSHOT_COMMANDS
        Shell.need('snapshots')
        return Snapshots.all.map { |s| s[:name] }
      end
      table = before[/\A\s*\w+[\s(]+['"]([^'"]+)['"]/, 1]
      return tables(word) if table.nil?
      families = Descriptor.get(table)[:column_families].map { |f| f[:name] }
      return families if option == 'NAME'
      word.include?(':') ? columns_of(table, word[/\A[^:]*/]) : families.map { |f| "#{f}:" }
    rescue HBaseError
      []
    end

    MOST_TABLES = 200
    # Tables whose names begin with the word: there may be very many. hbase:meta has their states in the order of their names; the
    # first ones and the last one are read.
    def tables(word)
      return ['hbase:meta'] if word.start_with?('hbase:m')
      first = tables_of_meta(word, MOST_TABLES + 1, false)
      return first if first.length <= MOST_TABLES
      @has_gap = true
      first[0, MOST_TABLES] + tables_of_meta(word, 1, true)
    end

    def tables_of_meta(word, most, backwards)
      keys = { name: 'org.apache.hadoop.hbase.filter.KeyOnlyFilter', serialized_filter: Wire.encode('KeyOnlyFilter', { len_as_val: false }) }
      scan = Wire.encode('Scan', { column: [{ family: 'table' }], filter: keys })
      from, to = backwards ? [behind(word), word] : [word, behind(word)]
      found = []
      Rows.scan('hbase:meta', { start: from, stop: to, reversed: backwards, includes_stop: backwards, excludes_start: backwards, caching: most }, scan) do |cells|
        name = cells.empty? ? '' : cells[0][0]
        found << name if name.start_with?(word) && !name.empty? && (word.start_with?('hbase') || !name.start_with?('hbase:'))
        break if found.length >= most
      end
      found
    end

    # The first key that does not begin with the word, behind those that do; '': all do.
    def behind(word)
      word.empty? ? '' : word[0...-1] + (word.getbyte(-1) + 1).chr
    end

    # The columns of a family, as far as the table's first rows have them.
    def columns_of(table, family)
      keys = { name: 'org.apache.hadoop.hbase.filter.KeyOnlyFilter', serialized_filter: Wire.encode('KeyOnlyFilter', { len_as_val: false }) }
      found = {}
      scan = Wire.encode('Scan', { column: [{ family: family }], filter: keys })
      Rows.scan(table, { limit: 20, caching: 20, batch: 100 }, scan) { |cells| cells.each { |c| found["#{c[1]}:#{c[2]}"] = true } }
      found.keys.select { |c| c =~ /\A[\x20-\x7e]+\z/ }
    end
  end
end
