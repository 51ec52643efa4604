# SPDX-License-Identifier: Apache-2.0
# The shell's frame: constants, output, errors, the table of commands. The commands themselves are methods of Command in the
# other files of this folder, each loaded when the first command of its group runs.

Shell.load('regexp')
Shell.load('failures')

# --- output -----------------------------------------------------------------------------------------------------------------

# C's standard output, so that lines of Ruby and of C keep their order.
class ShellOutput
  def print(*list)
    list.each { |v| Shell.print(v.to_s) }
    nil
  end
  alias << print

  def write(*list)
    list.map { |v| Shell.print(v.to_s) || v.to_s.length }.inject(0) { |a, b| a + b }
  end

  def puts(*list)
    return Shell.print("\n") if list.empty?
    list.each do |v|
      if v.is_a?(Array)
        v.each { |e| puts(e) }
      else
        s = v.to_s
        Shell.print(s[-1] == "\n" ? s : s + "\n")
      end
    end
    nil
  end

  def printf(form, *list)
    Shell.print(format(form, *list))
  end

  def flush
    Shell.flush
    self
  end

  def sync=(on)
    on
  end

  def sync
    true
  end

  def tty?
    Shell.width > 0
  end
  alias isatty tty?
end

class File
  def self.readlines(path, *)
    open(path) { |f| f.read.to_s }.lines.to_a
  end
end

class ShellErrors < ShellOutput
  def print(*list)
    list.each { |v| Shell.warn(v.to_s) }
    nil
  end

  def puts(*list)
    list.flatten.each { |v| Shell.warn(v.to_s + "\n") }
    nil
  end

  def write(*list)
    print(*list)
  end
end

STDOUT_OF_SHELL = ShellOutput.new
$stdout = STDOUT_OF_SHELL
$stderr = ShellErrors.new

module Kernel
  def puts(*list)
    $stdout.puts(*list)
  end

  def print(*list)
    $stdout.print(*list)
  end

  def printf(form, *list)
    $stdout.print(format(form, *list))
  end

  def p(*list)
    list.each { |v| $stdout.puts(v.inspect) }
    list.length == 1 ? list[0] : (list.empty? ? nil : list)
  end

  def pp(*list)
    p(*list)
  end

  def warn(*list)
    $stderr.puts(*list)
  end

  def gets(*)
    Shell.read_line
  end

  def sleep(seconds = 3600 * 24 * 365)
    Wire.pause(seconds.to_f)
    seconds.to_i
  end

  def binding
    nil
  end

  def require(*)
    false
  end
  alias require_relative require

  def load(path, *)
    Shell.load_file(File.read(path), path)
    true
  end

  def exit(code = 0)
    code = code == true ? 0 : 1 if code == true || code == false
    raise ShellExit.new(code)
  end
  alias quit exit
  alias exit! exit
end

# --- errors -----------------------------------------------------------------------------------------------------------------

class ShellExit < Exception
  attr_reader :code
  def initialize(code)
    @code = code
    super('exit')
  end
end
SystemExit = ShellExit
class SyntaxError < ScriptError; end unless Object.const_defined?(:SyntaxError)

# What is a Java object in the official shell is printed as one.
class JavaValue
  def initialize(name)
    @name = name
  end

  def inspect
    "#<Java::#{@name}:0x#{(object_id & 0xffffffff).to_s(16)}>"
  end
  alias to_s inspect
end

# A java.util.List that a command returns. Scripts call size, each and the methods of Enumerable.
class JavaList < JavaValue
  include Enumerable

  def initialize(name, items)
    super(name)
    @items = items
  end

  def each(&block)
    @items.each(&block)
    self
  end

  def length
    @items.length
  end
  alias size length

  def get(i)
    @items[i]
  end
  alias [] get

  def empty?
    @items.empty?
  end
  alias isEmpty empty?
end

# --- constants --------------------------------------------------------------------------------------------------------------

module HBaseConstants
end

%w[ALLOW_PARTIAL_RESULTS ALL_METRICS ATTRIBUTES AUTHORIZATIONS BATCH CACHE CACHE_BLOCKS CLASSNAME CLONE_SFT CLUSTER_KEY COLUMN
   COLUMNS CONFIG CONFIGURATION CONSISTENCY DATA ENDPOINT_CLASSNAME FILTER FORMATTER FORMATTER_CLASS INTERVAL IN_MEMORY
   IN_MEMORY_COMPACTION ISOLATION_LEVEL LIMIT LOCALITY_THRESHOLD MAXLENGTH MAX_RESULT_SIZE METADATA METHOD METRICS NAME NAMESPACE
   NAMESPACES NONE NUMREGIONS POLICY RAW READ_TYPE REGEX REGIONSERVER REGION_REPLICATION REGION_REPLICA_ID REPLICATION_SCOPE
   RESTORE_ACL REVERSED ROWPREFIXFILTER SERIAL SERVER_NAME SKIP_FLUSH SPLITALGO SPLITS SPLITS_FILE STARTROW STATE STOPROW TABLE
   TABLE_CFS TABLE_NAME TABLE_NAMES TIMERANGE TIMESTAMP TYPE USER VALUE VERSIONS VISIBILITY REOPEN_REGIONS GLOBAL_BYPASS
   THROTTLE_TYPE THROTTLE REQUEST WRITE READ SCOPE CLUSTER MACHINE SPACE NO_INSERTS NO_WRITES NO_WRITES_COMPACTIONS DISABLE
   READ_NUMBER READ_SIZE WRITE_NUMBER WRITE_SIZE REQUEST_NUMBER REQUEST_SIZE REQUEST_CAPACITY_UNIT WRITE_CAPACITY_UNIT
   READ_CAPACITY_UNIT BLOCKCACHE BLOCKSIZE BLOOMFILTER CACHE_BLOOMS_ON_WRITE CACHE_DATA_IN_L1 CACHE_DATA_ON_WRITE
   CACHE_INDEX_ON_WRITE COMPRESSION COMPRESSION_COMPACT COMPRESSION_COMPACT_MAJOR COMPRESSION_COMPACT_MINOR COMPRESS_TAGS
   DATA_BLOCK_ENCODING DFS_REPLICATION ENCRYPTION ENCRYPTION_KEY EVICT_BLOCKS_ON_CLOSE FOREVER IS_MOB KEEP_DELETED_CELLS LENGTH
   MIN_VERSIONS MOB_COMPACT_PARTITION_POLICY MOB_THRESHOLD NEW_VERSION_BEHAVIOR PREFETCH_BLOCKS_ON_OPEN STORAGE_POLICY TTL
   COMPACTION_ENABLED DURABILITY ERASURE_CODING_POLICY FLUSH_POLICY IS_META IS_ROOT MAX_FILESIZE MEMSTORE_FLUSHSIZE
   MERGE_ENABLED NORMALIZATION_ENABLED NORMALIZER_TARGET_REGION_COUNT NORMALIZER_TARGET_REGION_SIZE
   NORMALIZER_TARGET_REGION_SIZE_MB OWNER PRIORITY READONLY REGION_MEMSTORE_REPLICATION RSGROUP SPLIT_ENABLED
   SPLIT_POLICY].each do |name|
  value = name == 'FOREVER' ? 2147483647 : name
  Object.const_set(name, value)
  HBaseConstants.const_set(name, value)
end
{ 'ENDKEY' => STOPROW, 'ENDROW' => STOPROW, 'STARTKEY' => STARTROW }.each do |name, value|
  Object.const_set(name, value)
  HBaseConstants.const_set(name, value)
end

# --- tables of text ---------------------------------------------------------------------------------------------------------

# HBase's formatter: lines as wide as the terminal; in a pipe, without padding. `$stdout` can be another object.
class Formatter
  attr_reader :rows

  def initialize
    @width = Shell.width
    @rows = 0
  end

  def header(list = [], widths = [])
    @width = Shell.width
    unless list.empty?
      Shell.page
      on, off = Shell.paint('1', "\n").split("\n")
      print on if on && !on.empty?
      row(list, false, widths)
      print off if off
    end
    @rows = 0
  end

  def row(list, inset = true, widths = [])
    return if list.nil? || list.empty?
    case list.length
    when 1 then pieces(@width, list[0]).each { |s| puts pad(@width, s) }
    when 2 then pair(list, inset, widths)
    else puts ' ' + list.map { |v| v.to_s }.join(' ')
    end
    @rows += 1
  end

  def footer(count = nil, stale = false)
    puts Shell.paint('2', "#{count || @rows} row(s)")
    puts ' (possible stale results) ' if stale
  end

  # Those that `names` includes, or all; they do not count as rows.
  def metrics(values, names)
    before = @rows
    puts
    row(%w[METRIC VALUE], false)
    values.sort.each { |name, value| row([name, value.to_s]) if names.nil? || names.empty? || names.include?(name) }
    @rows = before
  end

  def line(text)
    print pad(@width, text)
  end

  private

  def pair(list, inset, widths)
    left = @width == 0 ? 0 : (widths.nil? || widths.empty? ? @width / 4 : @width * widths[0] / 100)
    right = @width == 0 ? 0 : (widths.nil? || widths.length < 2 ? @width - left - 2 : @width * widths[1] / 100 - 2)
    a = pieces(left, list[0])
    b = pieces(right, list[1])
    count = a.length > b.length ? a.length : b.length
    count.times do |i|
      print(inset ? " #{pad(left, a[i])} #{pad(right, b[i])}\n" : "#{pad(left, a[i])}  #{pad(right, b[i])}\n")
    end
  end

  # HBase: numbers are not shown by the formatter.
  def pieces(width, text)
    text = text.is_a?(Integer) ? '' : text.to_s
    return [text] if width == 0
    list = []
    at = 0
    while at < text.length
      list << text[at, width]
      at += width
    end
    list
  end

  def pad(width, text)
    text = text.to_s
    text.length < width ? text.ljust(width) : text
  end
end

# --- commands ---------------------------------------------------------------------------------------------------------------

# A running command; commands are its methods.
class Command
  attr_accessor :name, :begun, :ended

  def initialize(name)
    @name = name
    @begun = Shell.monotonic
  end

  def out
    @out ||= Formatter.new
  end

  # The time of preparations does not count.
  def begin_now
    @begun = Shell.monotonic
  end

  def end_now
    @ended = Shell.monotonic
  end

  def table(name)
    return name if name.is_a?(Hbase::Table)
    Hbase::Table.new(name)
  end
end

module Shell
  # group => [title, prelude, commands, note]
  GROUPS = {
    'general' => ['GENERAL HBASE SHELL COMMANDS', 'general', %w[status version table_help whoami processlist]],
    'ddl' => ['TABLES MANAGEMENT COMMANDS', 'ddl',
              %w[alter create describe disable disable_all is_disabled drop drop_all enable enable_all is_enabled exists list
                 show_filters alter_status alter_async get_table locate_region list_regions clone_table_schema
                 list_enabled_tables list_disabled_tables]],
    'namespace' => ['NAMESPACE MANAGEMENT COMMANDS', 'namespace',
                    %w[create_namespace drop_namespace alter_namespace describe_namespace list_namespace
                       list_namespace_tables]],
    'dml' => ['DATA MANIPULATION COMMANDS', 'dml',
              %w[count delete deleteall get get_counter incr put scan truncate truncate_preserve append get_splits]],
    'tools' => ['HBASE SURGERY TOOLS', 'tools',
                %w[assign balancer balance_switch balancer_enabled normalize normalizer_switch normalizer_enabled
                   is_in_maintenance_mode clear_slowlog_responses close_region compact compaction_switch flush
                   flush_master_store get_balancer_decisions get_balancer_rejections get_slowlog_responses
                   get_largelog_responses major_compact move split merge_region unassign zk_dump wal_roll hbck_chore_run
                   catalogjanitor_run catalogjanitor_switch catalogjanitor_enabled cleaner_chore_run cleaner_chore_switch
                   cleaner_chore_enabled compact_rs compaction_state trace snapshot_cleanup_switch snapshot_cleanup_enabled
                   splitormerge_switch splitormerge_enabled clear_compaction_queues list_deadservers list_liveservers
                   list_unknownservers clear_deadservers clear_block_cache stop_master stop_regionserver regioninfo rit
                   list_decommissioned_regionservers decommission_regionservers recommission_regionserver truncate_region],
                "WARNING: Above commands are for 'experts'-only as misuse can damage an install"],
    'replication' => ['CLUSTER REPLICATION TOOLS', 'replication',
                      %w[add_peer remove_peer list_peers enable_peer disable_peer set_peer_replicate_all set_peer_serial
                         set_peer_namespaces append_peer_namespaces remove_peer_namespaces set_peer_exclude_namespaces
                         append_peer_exclude_namespaces remove_peer_exclude_namespaces show_peer_tableCFs set_peer_tableCFs
                         set_peer_exclude_tableCFs append_peer_exclude_tableCFs remove_peer_exclude_tableCFs
                         set_peer_bandwidth list_replicated_tables append_peer_tableCFs remove_peer_tableCFs
                         enable_table_replication disable_table_replication get_peer_config list_peer_configs
                         update_peer_config peer_modification_enabled peer_modification_switch]],
    'snapshots' => ['CLUSTER SNAPSHOT TOOLS', 'snapshots',
                    %w[snapshot clone_snapshot restore_snapshot delete_snapshot delete_all_snapshot delete_table_snapshots
                       list_snapshots list_table_snapshots]],
    'configuration' => ['ONLINE CONFIGURATION TOOLS', 'tools', %w[update_config update_all_config update_rsgroup_config]],
    'quotas' => ['CLUSTER QUOTAS TOOLS', 'quotas',
                 %w[set_quota list_quotas list_quota_table_sizes list_quota_snapshots list_snapshot_sizes enable_rpc_throttle
                    disable_rpc_throttle rpc_throttle_enabled enable_exceed_throttle_quota disable_exceed_throttle_quota]],
    'security' => ['SECURITY TOOLS', 'security', %w[list_security_capabilities grant revoke user_permission],
                   'NOTE: Above commands are only applicable if running with the AccessController coprocessor'],
    'procedures' => ['PROCEDURES & LOCKS MANAGEMENT', 'logs', %w[list_procedures list_locks]],
    'visibility labels' => ['VISIBILITY LABEL TOOLS', 'security',
                            %w[add_labels list_labels set_auths get_auths clear_auths set_visibility],
                            'NOTE: Above commands are only applicable if running with the VisibilityController coprocessor'],
    'rsgroup' => ['RSGroups', 'rsgroup',
                  %w[list_rsgroups get_rsgroup add_rsgroup remove_rsgroup balance_rsgroup move_servers_rsgroup
                     move_tables_rsgroup move_namespaces_rsgroup move_servers_tables_rsgroup move_servers_namespaces_rsgroup
                     get_server_rsgroup get_table_rsgroup remove_servers_rsgroup rename_rsgroup alter_rsgroup_config
                     show_rsgroup_config get_namespace_rsgroup],
                  "NOTE: The rsgroup Coprocessor Endpoint must be enabled on the Master else commands fail with:\n" \
                  '  UnknownProtocolException: No registered Master Coprocessor Endpoint found for RSGroupAdminService'],
    'storefiletracker' => ['StoreFileTracker', 'ddl', %w[change_sft change_sft_all]]
  }
  ALIASES = { 'desc' => 'describe', 'hlog_roll' => 'wal_roll' }

  UTF8 = /\A([\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+\z/

  @loaded = {}
  @arity = {}
  @preludes = {}
  GROUPS.each_value { |g| g[2].each { |c| @preludes[c] = g[1] } }
  %w[clear_slowlog_responses get_slowlog_responses get_largelog_responses get_balancer_decisions get_balancer_rejections].each { |c| @preludes[c] = 'logs' }
  ALIASES.each { |a, c| @preludes[a] = @preludes[c] }

  class << self
    attr_reader :exit_code_of_script
    attr_accessor :debug, :timing

    def commands
      @preludes
    end

    def need(prelude)
      return if @loaded[prelude]
      @loaded[prelude] = true
      load(prelude)
    end

    def interactive
      @interactive = option('interactive') if @interactive.nil?
      @interactive
    end

    def exit_code(_)
      @exit_code
    end

    def configuration
      @configuration ||= settings.inject({}) do |h, pair|
        k, v = pair.split('=')
        h[k] = v
        h
      end
    end

    # A command by its name, as the official shell runs it: errors are printed, or end the script (-n).
    def run(name, args, is_last = true)
      need(@preludes[name])
      name = ALIASES[name] || name
      c = Command.new(name)
      failure = nil
      begin
        check_arity(name, args.length)
        value = c.__send__(name, *args)
      rescue StandardError => e
        failure = Failures.translate(e, name, args)
        raise failure unless interactive
        tell(failure, name)
        value = nil
      ensure
        c.end_now if c.ended.nil?
        c.out.line(format('Took %.4f seconds', c.ended - c.begun))
      end
      puts if is_last
      value
    end

    def tell(failure, name)
      puts
      puts Shell.paint('31', "ERROR: #{Failures.text(failure)}")
      puts "Backtrace: #{(failure.backtrace || []).join("\n           ")}" if debug
      puts
      puts "For usage try 'help \"#{name}\"'"
      puts
    end

    # Ruby's own text for a wrong number of arguments, which mruby words differently.
    def check_arity(name, given)
      least, most = (@arity[name] ||= arity_of(name))
      return if given >= least && (most.nil? || given <= most)
      expected = most.nil? ? "#{least}+" : (least == most ? least.to_s : "#{least}..#{most}")
      raise ArgumentError, "wrong number of arguments (given #{given}, expected #{expected})"
    end

    def arity_of(name)
      list = Command.instance_method(name.to_sym).parameters
      least = list.select { |k| k[0] == :req }.length
      return [least, nil] if list.any? { |k| k[0] == :rest }
      [least, least + list.select { |k| k[0] == :opt }.length]
    end

    def export(target)
      @preludes.each_key do |name|
        target.define_singleton_method(name.to_sym) { |*args| Shell.run(name, args) }
      end
    end

    # To a question; without an input Ruby's error, as in the official shell.
    def answer
      line = read_line
      raise NoMethodError, "undefined method `chomp' for nil:NilClass" if line.nil?
      line.chomp
    end

    # --- called by C ---

    def show(value)
      Shell.readable(value.inspect)
    end

    # mruby's strings are bytes: UTF-8 becomes letters again, other bytes as Ruby writes them.
    def readable(text)
      return text unless text.include?('\\x')
      text = text.gsub(/\\\\|\\x[0-7][0-9a-f]/) { |m| m.length == 2 ? m : "\\x#{m[2, 2].upcase}" }
      text.gsub(/(\\x[89a-f][0-9a-f])+/) do |run|
        bytes = run.scan(/\\x(..)/).map { |h| h[0].to_i(16) }.pack('C*')
        bytes =~ UTF8 ? bytes : run.plain_gsub('\\x') { '%' }.upcase.plain_gsub('%') { '\\x' }
      end
    end

    # A statement took so long (\timing).
    def took(seconds)
      puts format('Time: %.3f ms', seconds * 1000) if @timing
    end

    # An exception that left a statement: :exit, :fail or nil, to go on.
    def failed(e, text, is_script)
      if e.is_a?(ShellExit)
        @exit_code = e.code
        return :exit
      end
      if e.is_a?(Interrupt)
        puts
        return nil
      end
      kind, message = Failures.in_ruby(e, text)
      if interactive && (e.is_a?(NameError) || e.is_a?(SyntaxError))
        bold, under, back, plain = width > 0 ? ["\e[1m", "\e[4m", "\e[0;1m", "\e[m"] : ['', '', '', '']
        puts "#{bold}Traceback#{plain} (most recent call last):"
        puts "#{bold}#{kind} (#{under}#{message}#{back})#{plain}"
        return nil
      end
      # Of a script the shell itself prints it; else Ruby.
      is_script ? puts("ERROR #{kind}: #{message}") : $stderr.puts("#{kind}: #{message}")
      puts((e.backtrace || []).join("\n")) if debug
      return nil if option('tty')
      @exit_code = 1
      :fail
    end

    def banner(_)
      puts 'HBase Shell'
      puts 'Use "help" to get list of supported commands.'
      puts 'Use "exit" to quit this interactive shell.'
      puts 'For Reference, please visit: https://hbase.apache.org/docs/shell'
      print 'Version '
      run('version', [], false)
      puts
    end

    def help(name = nil)
      need('help')
      show_help(name)
    end

    def meta(line)
      need('prompt')
      Prompt.meta(line.strip)
      nil
    rescue ShellExit => e
      @exit_code = e.code
      :exit
    rescue Interrupt
      puts
    rescue StandardError => e
      puts "ERROR: #{Failures.text(Failures.translate(e, 'meta', [line.split(' ')[1]]))}"
    end

    def complete(before, word)
      need('prompt')
      Prompt.complete(before, word)
    end
  end
  @debug = option('debug')
end

TOP = self
self.define_singleton_method(:help) { |name = nil| Shell.help(name) }
self.define_singleton_method(:tools) { Shell.help('tools') }
self.define_singleton_method(:debug?) do
  puts "Debug mode is #{Shell.debug ? 'ON' : 'OFF'}\n\n"
  nil
end
self.define_singleton_method(:debug) do
  Shell.debug = !Shell.debug
  debug?
end
Shell.export(self)
Shell.need('names')
Shell.need('table')
Shell.need('descriptor')
Shell.need('java')
