# SPDX-License-Identifier: Apache-2.0
# What scripts call on @shell and @hbase, the objects of HBase's shell, and on a table beside the commands: without the commands'
# output. Loaded when a script calls one of these methods.

%w[ddl dml names tools snapshots namespace].each { |name| Shell.need(name) }

class ShellObject
  def admin
    @admin ||= hbase.admin
  end

  def hbase_table(name)
    hbase.table(name, self)
  end

  def command(name, *args)
    raise NoMethodError, "undefined method `new' for nil:NilClass" unless Shell.commands.key?(name.to_s)
    Shell.run(name.to_s, args, false)
  end

  def interactive
    Shell.interactive
  end
  alias interactive? interactive

  def debug
    Shell.debug
  end

  def debug=(value)
    Shell.debug = value
  end

  def help_command(name)
    Shell.help(name.to_s)
  end
  alias help_group help_command

  remove_method :method_missing
end

class HBaseObject
  def admin
    Hbase::Admin.new
  end

  # shell: HBase's tables print through it.
  def table(name, _shell)
    Hbase::Table.new(name)
  end

  remove_method :method_missing
end

module Hbase
  # HBase's class of the same name, as far as scripts use it. Its `@admin` is Java's, which scripts take from it.
  class Admin
    # Commands that print nothing.
    %w[flush compact major_compact split move assign unassign snapshot clone_snapshot restore_snapshot delete_snapshot create_namespace
       drop_namespace].each do |name|
      define_method(name.to_sym) { |*args| Command.new(name).__send__(name, *args) }
    end

    %w[enable disable exists? enabled? disabled?].each do |name|
      define_method(name.to_sym) { |table| Tables.__send__(name, table) }
    end

    def initialize
      Shell.need('client')
      @admin = JavaClient::HBaseAdmin.new
    end

    def list(regex = '.*')
      Shell.check_pattern(regex)
      Tables.names(regex)
    end

    def list_namespace(regex = '.*')
      @admin.listNamespaces.select { |name| Shell.java_pattern(regex).match?(name) }
    end

    def list_namespace_tables(namespace)
      @admin.listTableNamesByNamespace(namespace).map { |t| t.getQualifierAsString }
    end

    def tableExists(name)
      Tables.must_exist(name)
    end

    def drop(name)
      Tables.must_exist(name)
      raise ArgumentError, "Table #{name} is enabled. Disable it first." if Tables.enabled?(name)
      @admin.deleteTable(name)
    end

    def describe(name)
      described(name).toString
    end

    def get_column_families(name)
      described(name).getColumnFamilies
    end

    def getCompactionState(name)
      @admin.getCompactionState(name).name
    end

    def getClusterStatus
      @admin.getClusterStatus
    end

    def getRegionServers
      getClusterStatus.getServers
    end

    # A server by its full name, or by "host,port" or "host" the first that lives; nil: none.
    def getServerName(text)
      Shell.need('operator')
      found = Servers.named([text], false)[0]
      found.nil? ? nil : JavaOperator::ServerName.new(found)
    end

    def list_snapshot(regex = '.*')
      @admin.listSnapshots(regex)
    end

    def close
      nil
    end

    private

    def described(name)
      Tables.must_exist(name)
      @admin.getDescriptor(name)
    end
  end

  # HBase's methods behind the commands of a table object. Those that read yield each cell, or return what they have read.
  class Table
    def table
      Shell.need('client')
      JavaClient::HTable.new(@name)
    end

    def _put_internal(row, column, value, timestamp = nil, args = {})
      put_cell(row, column, value, timestamp, args)
    end

    def _delete_internal(row, column, timestamp = LATEST, args = {}, all = false)
      delete_row(row, column, timestamp, args, all)
    end

    def _deleteall_internal(row, column = nil, timestamp = LATEST, args = {}, all = true)
      delete_row(row, column, timestamp, args, all)
    end

    def _incr_internal(row, column, value = nil, args = {})
      increment(row, column, value, args)
    end

    def _append_internal(row, column, value, args = {})
      append_to(row, column, value, args)
    end

    def _get_counter_internal(row, column)
      counter(row, column)
    end

    def _get_splits_internal
      splits
    end

    # Yields the number and the key of every interval-th row.
    def _count_internal(interval = 1000, _scan = nil, cache_blocks = false)
      count_rows(interval, scan_of({}), cache_blocks) { |n, key| yield n, Bytes.toStringBinary(key) if block_given? }
    end

    def _get_internal(row, *args)
      cells = {}
      count = get_row(row, args) { |column, text| block_given? ? yield(column, text) : cells[column] = text }
      return nil if count.nil?
      block_given? ? [count, Rows.stale] : cells
    end

    def _scan_internal(args = {}, _scan = nil)
      args = args.dup
      scan = scan_of(args)
      rows = {}
      count = scan_rows(scan, shown_by(args)) do |key, column, text|
        block_given? ? yield(key, "column=#{column}, #{text}") : (rows[key] ||= {})[column] = text
      end
      block_given? ? [count, Rows.stale] : rows
    end

    remove_method :method_missing
  end
end
