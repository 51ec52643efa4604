# SPDX-License-Identifier: Apache-2.0
# Runs test cases that are written for HBase's shell (Test::Unit, `command`, `admin`) in ours: enough of Test::Unit and of
# HBase's test helpers. shell_ruby_tests.py evaluates a file of tests behind it and calls RubyTests.run.

class AssertionFailed < StandardError; end

module Assertions
  def flunk(text = 'flunked')
    raise AssertionFailed, text.to_s
  end

  def assert(v, text = nil)
    flunk(text || 'not true') unless v
  end

  def assert_not(v, *)
    flunk("#{v.inspect} is true") if v
  end
  alias assert_false assert_not

  def assert_true(v, *)
    assert(v)
  end

  def assert_equal(a, b, *)
    flunk("#{b.inspect} instead of #{a.inspect}") unless a == b
  end

  def assert_not_equal(a, b, *)
    flunk("both are #{a.inspect}") if a == b
  end

  def assert_nil(v, *)
    flunk("#{v.inspect} is not nil") unless v.nil?
  end

  def assert_not_nil(v, *)
    flunk('nil') if v.nil?
  end

  def assert_empty(v, *)
    flunk("#{v.inspect} is not empty") unless v.empty?
  end

  def assert_match(pattern, text, *)
    flunk("#{text.inspect} does not match #{pattern.inspect}") unless text =~ pattern
  end

  def assert_no_match(pattern, text, *)
    flunk("#{text.inspect} matches #{pattern.inspect}") if text =~ pattern
  end

  def assert_kind_of(type, v, *)
    flunk("#{v.inspect} is no #{type}") unless v.is_a?(type)
  end
  alias assert_instance_of assert_kind_of

  def assert_respond_to(v, name, *)
    flunk("#{v.inspect} has no #{name}") unless v.respond_to?(name)
  end

  def assert_block(text = nil)
    flunk(text || 'the block is false') unless yield
  end

  def assert_raise(*types)
    begin
      yield
    rescue AssertionFailed => e
      raise e
    rescue StandardError => e
      types = types.select { |t| t.is_a?(Class) }
      flunk("#{e.class}: #{e.message} instead of #{types.inspect}") unless types.empty? || types.any? { |t| e.is_a?(t) }
      return e
    end
    flunk('nothing was raised')
  end

  def assert_nothing_raised(*)
    yield
  end

  def assert_raise_message_contains(message, &block)
    assert_match(Regexp.new(message), assert_raise(&block).message)
  end

  def omit(*)
    raise AssertionFailed, 'left out'
  end
end

module Test
  module Unit
    class TestCase
      include Assertions

      def self.cases
        @cases ||= []
      end

      def self.all
        @all ||= []
      end

      def self.inherited(c)
        TestCase.all << c
      end

      def self.define_test(name, &block)
        cases << name
        define_method("test_#{name}".to_sym, &block)
      end

      def setup
      end

      def teardown
      end
    end
  end
end

class CapturedOutput < ShellOutput
  attr_reader :string

  def initialize
    @string = ''
  end

  def print(*list)
    list.each { |v| @string << v.to_s }
    nil
  end

  def puts(*list)
    @string << "\n" if list.empty?
    list.flatten.each { |v| @string << (v.to_s[-1] == "\n" ? v.to_s : "#{v}\n") }
    nil
  end

  def printf(form, *list)
    print(format(form, *list))
  end
  alias << print
  alias write print
end

# A server whose name HBase's tests read.
class NameOfServer
  def initialize(sn)
    @sn = sn
  end

  def toString
    Names.server(@sn)
  end
  alias getServerName toString
  alias to_s toString

  def getHostname
    @sn[:host_name]
  end

  def getPort
    @sn[:port]
  end
end

# A command under another name: the methods of HBase's classes that tests call, as far as a command does the same.
class CommandsAsObject
  NAMES = { exists?: 'exists', enabled?: 'is_enabled', disabled?: 'is_disabled' }

  def method_missing(name, *args)
    name = NAMES[name] || name.to_s
    return RubyTests.output_of(name, args) if name == 'describe' || name == 'zk_dump'
    raise NameError, "HBase's class has #{name}, the shell no such command" unless Shell.commands.key?(name)
    # only the command asks, not HBase's class
    RubyTests.answering('y') { RubyTests.command(name, args) }
  end

  def list_liveservers
    Servers.live.map { |sn| NameOfServer.new(sn) }
  end

  def getServerNames(list, all)
    Servers.named(list, all).map { |sn| NameOfServer.new(sn) }
  end

  def limit_space(args)
    raise ArgumentError, 'Argument should be a Hash' unless args.is_a?(Hash)
    RubyTests.command('set_quota', [args.merge(TYPE => SPACE)])
  end

  def remove_space_limit(args)
    raise ArgumentError, 'Argument should be a Hash' unless args.is_a?(Hash)
    RubyTests.command('set_quota', [args.merge(TYPE => SPACE, LIMIT => NONE)])
  end

  def respond_to_missing?(*)
    true
  end
end

module Hbase
  module TestHelpers
    def setup_hbase
      @shell = ::Shell::Shell.new(nil, false)
    end

    def replication_status(format, type)
      RubyTests.command('status', [format, type])
    end

    def shutdown
    end

    def command(name, *args)
      RubyTests.command(name.to_s, args)
    end

    def table(name)
      ::Hbase::Table.new(name)
    end

    def admin
      @admin ||= CommandsAsObject.new
    end
    %w[security_admin visibility_admin quotas_admin replication_admin taskmonitor].each { |n| define_method(n.to_sym) { admin } }

    def create_test_table(name)
      command(:create, name, { 'NAME' => 'x', 'VERSIONS' => 5 }, 'y') unless command(:exists, name)
      command(:enable, name) unless command(:is_enabled, name)
    end

    def create_test_table_with_splits(name, splits)
      command(:create, name, 'f1', splits) unless command(:exists, name)
    end
    alias create_test_table_with_splits_file create_test_table_with_splits

    def create_test_table_with_region_replicas(name, count, splits)
      command(:create, name, 'f1', { REGION_REPLICATION => count }, splits) unless command(:exists, name)
    end

    def drop_test_table(name)
      return unless command(:exists, name)
      command(:disable, name) if command(:is_enabled, name)
      command(:drop, name)
    end

    def drop_test_snapshot
      Shell.need('snapshots')
      Snapshots.all.each { |s| command(:delete_snapshot, s[:name]) }
    end

    def capture_stdout
      old = $stdout
      $stdout = CapturedOutput.new
      yield
      $stdout.string
    ensure
      $stdout = old
    end
  end
end
# The cluster of HBase's tests and the shell's object, which are mostly only passed on.
class TestCluster
  def getConfiguration
    self
  end

  def getConnection
    org.apache.hadoop.hbase.client.ConnectionFactory.createConnection
  end
end
$TEST_CLUSTER = TestCluster.new
java_import org.apache.hadoop.hbase.TableName # other test files import it in the same process

module Hbase
  class Hbase
    def initialize(*)
    end

    def shutdown
    end
  end
end

module Shell
  class Shell
    include ::Hbase::TestHelpers
    attr_accessor :interactive

    def initialize(_hbase = nil, interactive = true)
      @interactive = interactive
    end

    # A failure is raised as an exception, or printed at a prompt.
    def command(name, *args)
      RubyTests.command(name.to_s, args)
    rescue StandardError => e
      raise e unless @interactive
      ::Shell.tell(e, name.to_s)
    end

    def print_banner
      ::Shell.banner(nil)
    end
  end
end

# The methods of the table class that HBase's tests call.
module Hbase
  class Table
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
      text = RubyTests.output_of('get_counter', [self, row, column])
      text =~ /COUNTER VALUE = (-?\d+)/ ? text[/-?\d+/].to_i : nil
    end

    def _get_splits_internal
      splits
    end

    def _count_internal(interval = 1000, scan = nil, blocks = false, &block)
      block ||= proc {}
      count_rows(interval, scan || scan_of({}), blocks) { |n, row| block.call(n, Bytes.toStringBinary(row)) }
    end

    def _hash_to_scan(args)
      scan_of(args)
    end

    def _get_internal(row, *args)
      found = {}
      count = get_row(row, args) { |column, value| block_given? ? yield(column, value) : found[column] = value }
      return nil if count.nil?
      block_given? ? [count, Rows.stale] : found
    end

    def _scan_internal(args = {}, scan = nil)
      raise ArgumentError, 'Args should be a Hash' unless args.is_a?(Hash)
      found = {}
      show = shown_by(args)
      count = scan_rows(scan || scan_of(args), show) do |row, column, value|
        block_given? ? yield(row, "column=#{column}, #{value}") : (found[row] ||= {})[column] = value
      end
      block_given? ? [count, Rows.stale] : found
    end
  end
end

module Shell
  class << self
    alias asked_answer answer

    def answer
      RubyTests.answer || asked_answer
    end
  end
end

HBaseConstants.const_set(:QUOTA_TABLE_NAME, 'hbase:quota')
HBaseQuotasConstants = HBaseConstants unless Object.const_defined?(:HBaseQuotasConstants)

module RubyTests
  # Waits eight hours for the sizes of snapshots, which HBase's master computes.
  LEFT_OUT = ['can view size of snapshots']

  # The answer to questions that commands ask on standard input.
  def self.answering(text)
    @answer = text
    yield
  ensure
    @answer = nil
  end

  def self.answer
    @answer
  end

  # As with -n: a failure raises an exception.
  def self.command(name, args)
    Shell.need(Shell.commands[name])
    Shell.run(name, args)
  end

  def self.output_of(name, args)
    old = $stdout
    $stdout = CapturedOutput.new
    command(name, args)
    $stdout.string
  ensure
    $stdout = old
  end

  def self.quietly
    old = $stdout
    $stdout = CapturedOutput.new
    yield
  ensure
    $stdout = old
  end

  # Prints one line with the result of each test.
  def self.run
    Test::Unit::TestCase.all.each do |c|
      c.cases.each do |name|
        wrong = nil
        quietly do
          begin
            raise AssertionFailed, 'left out' if LEFT_OUT.include?(name)
            t = c.new
            t.setup
            t.__send__("test_#{name}".to_sym)
          rescue StandardError, ScriptError => e
            wrong = "#{e.class}: #{e.message.to_s.split("\n")[0].to_s[0, 160]}"
          end
          begin
            t.teardown unless t.nil?
          rescue StandardError
            nil
          end
        end
        puts "TEST #{wrong.nil? ? 'pass' : 'fail'}\t#{c}\t#{name}\t#{wrong}"
      end
    end
  end
end
