# SPDX-License-Identifier: Apache-2.0
# The core of the shell: runs commands, prints their failures, ends the session.
# The commands themselves are methods of Command in the other files of this folder, each loaded when the first command of its
# group runs.

%w[regexp ruby loops failures arguments output files values constants formatter groups].each { |name| Shell.load(name) }

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

  # The time of preparations is not included.
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

# The answer to the question before a command was no.
class NotConfirmed < StandardError; end

module Shell
  LETTER_OR_BYTE = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]/

  @loaded = {}
  @arity = {}
  @preludes = {}
  GROUPS.each_value { |g| g[2].each { |c| @preludes[c] = g[1] } }
  %w[clear_slowlog_responses get_slowlog_responses get_largelog_responses get_balancer_decisions get_balancer_rejections].each { |c| @preludes[c] = 'logs' }
  ALIASES.each { |a, c| @preludes[a] = @preludes[c] }

  class << self
    attr_accessor :debug, :timing
    attr_reader :running # the command, for lines of progress

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
      @running = args[0].is_a?(String) ? "#{name} #{args[0]}" : name
      args = Big.normalize(args) if @loaded['big']
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
      return puts("Not done\n\n") if failure.is_a?(NotConfirmed)
      puts paint('31', "ERROR: #{Failures.text(failure)}")
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

    # The answer to a question; at the end of input Ruby's error, as in the official shell.
    def answer
      line = read_line
      raise NoMethodError, "undefined method `chomp' for nil:NilClass" if line.nil?
      line.chomp
    end

    # --- called by C ---

    def show(value)
      Shell.readable(value.inspect)
    end

    # mruby's strings are bytes: UTF-8 is shown as characters, other bytes are escaped as Ruby does.
    def readable(text)
      return text unless text.include?('\\x')
      text = text.gsub(/\\\\|\\x[0-7][0-9a-f]/) { |m| m.length == 2 ? m : "\\x#{m[2, 2].upcase}" }
      text.gsub(/(\\x[89a-f][0-9a-f])+/) do |run|
        bytes = run.scan(/\\x(..)/).map { |h| h[0].to_i(16) }.pack('C*')
        bytes.gsub(LETTER_OR_BYTE) { |m| m.length > 1 ? m : Kernel.format('\\x%02X', m.getbyte(0)) }
      end
    end

    # Of a statement's new variable. A Java object is kept, as before HBASE-28660: scripts write `put = Put.new(row)`.
    def hides_command?(name, value)
      return false unless @preludes.key?(name.to_s)
      return false if @loaded['java'] && value.is_a?(JavaNames)
      $stderr.puts("WARN: '#{name}' is a reserved HBase command. Local variable assignment ignored.")
      true
    end

    # A statement took so long (\timing).
    def took(seconds)
      puts format('Time: %.3f ms', seconds * 1000) if @timing
    end

    # Handles an exception that ended a statement. Returns :exit, :fail, or nil to continue.
    def failed(e, text, is_script)
      if e.is_a?(ShellExit)
        @exit_code = e.code
        return :exit
      end
      if e.is_a?(Interrupt)
        puts
        return nil unless is_script
        return interactive ? :exit : :fail # Ctrl-C ends a script, not only its statement
      end
      kind, message = Failures.in_ruby(e, text)
      place = e.instance_variable_get('@place')
      $stderr.puts "  at #{place}" unless place.nil? # of a file that `load` runs: load.c
      if interactive && (e.is_a?(NameError) || e.is_a?(SyntaxError))
        bold, under, back, plain = width > 0 ? ["\e[1m", "\e[4m", "\e[0;1m", "\e[m"] : ['', '', '', '']
        puts "#{bold}Traceback#{plain} (most recent call last):"
        puts "#{bold}#{kind} (#{under}#{message}#{back})#{plain}"
        hint(kind, message, e, text) if option('tty')
        return nil
      end
      # In a script the shell prints it itself; otherwise Ruby does.
      is_script ? puts("ERROR #{kind}: #{message}") : $stderr.puts("#{kind}: #{message}")
      puts((e.backtrace || []).join("\n")) if debug
      return nil if option('tty') || (option('typed') && interactive)
      @exit_code = 1
      :fail
    end

    # What was probably meant.
    def hint(kind, message, e, text)
      need('hints')
      line = hint_of(kind, message, e.is_a?(NameError) ? e.name : nil, text)
      puts line unless line.nil?
    end

    def banner(_)
      puts 'HBase Shell'
      puts 'Use "help" to get list of supported commands.'
      puts 'Use "exit" to quit this interactive shell.'
      puts 'For Reference, please visit: http://hbase.apache.org/2.0/book.html#shell'
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
    rescue StandardError, ScriptError => e
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
Shell.need('rows')
Shell.need('names')
Shell.need('table')
TOP.instance_variable_set('@shell', ShellObject.new)
TOP.instance_variable_set('@hbase', TOP.instance_variable_get('@shell').hbase)
