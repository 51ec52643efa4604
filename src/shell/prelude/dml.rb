# SPDX-License-Identifier: Apache-2.0
# Rows: put, get, scan, count, delete, increment, append; truncate.

class Command
  def put(table, row, column, value, timestamp = nil, args = {})
    t = table(table)
    begin_now
    t.put_cell(row, column, value, timestamp, args)
  end

  def get(table, row, *args)
    t = table(table)
    begin_now
    return Prompt.show_rows(out, t, args, row) if Shell.rows_as
    out.header(%w[COLUMN CELL])
    count = t.get_row(row, args) { |column, value| out.row([column, value]) }
    out.footer(count, !count.nil? && Rows.stale)
  end

  def scan(table, args = {})
    t = table(table)
    return Prompt.show_rows(out, t, args, nil) if Shell.rows_as
    out.header(['ROW', 'COLUMN+CELL'])
    raise TypeError, 'no implicit conversion of String into Integer' if args.is_a?(Array)
    raise NoMethodError, "undefined method `any?' for #{args.inspect}:#{args.class}" unless args.is_a?(Hash)
    args = args.dup
    scan = t.scan_of(args)
    show = t.shown_by(args)
    begin_now
    count = t.scan_rows(scan, show) { |row, column, value| out.row([row, "column=#{column}, #{value}"]) }
    stale = Rows.stale
    end_now
    out.footer(count, stale)
    out.metrics(Rows.metrics, args[METRICS]) if scan[0][:metrics]
    nil
  end

  def count(table, params = {})
    t = table(table)
    params = { 'INTERVAL' => params } if params.is_a?(Integer)
    raise NoMethodError, "undefined method `include?' for nil:NilClass" if params.nil?
    raise TypeError, "no implicit conversion of #{params.class} into Hash" unless params.is_a?(Hash)
    params = { 'INTERVAL' => 1000, 'CACHE_BLOCKS' => false }.merge(params)
    blocks = params['CACHE_BLOCKS']
    if blocks.is_a?(String)
      unless %w[true false].include?(blocks.downcase)
        raise ArgumentError, "Expected CACHE_BLOCKS value to be a boolean or the string 'true' or 'false'"
      end
      blocks = params['CACHE_BLOCKS'] = blocks.downcase == 'true'
    end
    scan = t.scan_of(params)
    begin_now
    out.header
    n = t.count_rows(params['INTERVAL'].to_i, scan, blocks) do |count, row|
      out.row(["Current count: #{count}, row: #{Bytes.toStringBinary(row)}"])
    end
    out.footer(n)
    n
  end

  def delete(table, row, column, timestamp = Hbase::Table::LATEST, args = {})
    t = table(table)
    begin_now
    t.check_timestamp_of_delete(timestamp)
    t.delete_row(row, column, timestamp, args, false)
  end

  def deleteall(table, row, column = nil, timestamp = Hbase::Table::LATEST, args = {})
    t = table(table)
    begin_now
    t.check_timestamp_of_delete(timestamp)
    t.delete_row(row, column, timestamp, args, true)
  end

  def incr(table, row, column, value = nil, args = {})
    show_counter(table(table).increment(row, column, value, args))
  end

  def get_counter(table, row, column)
    show_counter(table(table).counter(row, column))
  end

  def show_counter(n)
    puts n.nil? ? 'No counter found at specified coordinates' : "COUNTER VALUE = #{n}"
  end

  def append(table_name, row, column, value, args = {})
    t = table(table_name)
    begin_now
    v = t.append_to(row, column, value, args)
    puts "CURRENT VALUE = #{v}" unless v.nil?
  end

  def get_splits(table)
    list = table(table).splits
    puts "Total number of splits = #{list.length + 1}"
    puts list unless list.empty?
    list
  end

  def truncate(table)
    truncate_table(table, false)
  end

  def truncate_preserve(table)
    truncate_table(table, true)
  end

  def truncate_table(name, preserve)
    puts "Truncating '#{name}' table (it may take a while):"
    Shell.confirm("Truncate #{name}: all its rows are lost")
    if Tables.enabled?(name)
      puts 'Disabling table...'
      Tables.disable(name)
    end
    puts 'Truncating table...'
    Master.call('truncateTable', { tableName: Names.table(name), preserveSplits: preserve })
    nil
  end
end

Shell.need('ddl')

class << Shell
  # The form in which rows are shown: 'json', 'csv', 'tsv', 'expanded'; nil: as in HBase's shell.
  def rows_as
    if @rows_as.nil?
      as = option('as')
      @rows_as = as == 'hbase' ? false : as
      need('prompt') if @rows_as
    end
    @rows_as
  end
  attr_writer :rows_as

  # Asks at a prompt before a command that cannot be undone.
  def confirm(what)
    return if !option('typed') || option('yes')
    print "#{what}. Go on (y/n)? "
    raise NotConfirmed, 'not done' unless read_line.to_s =~ /\Ay/i
  end
end
