# SPDX-License-Identifier: Apache-2.0
# Ruby's StringIO and Logger, and what a script is told about libraries that the shell has not. Loaded when a script names one.

# Output that is kept as text, as `$stdout` too, and text that is read as a file.
class StringIO < ShellOutput
  include Enumerable
  attr_accessor :string
  attr_reader :pos, :lineno

  def initialize(text = '', _mode = nil)
    @string = text
    @pos = @lineno = 0
  end

  # Ruby writes where it reads, and over what is there.
  def print(*list)
    list.each do |v|
      text = v.to_s
      @string[@pos, text.bytesize] = text
      @pos += text.bytesize
    end
    nil
  end

  def write(*list)
    list.inject(0) { |n, v| print(v) || n + v.to_s.bytesize }
  end

  def puts(*list)
    return print("\n") if list.empty?
    list.flatten.each { |v| v.to_s[-1] == "\n" ? print(v) : print(v, "\n") }
    nil
  end

  def printf(form, *list)
    print(Kernel.format(form, *list))
  end

  def flush
    self
  end

  def tty?
    false
  end
  alias isatty tty?

  def fileno
    nil
  end

  def class
    StringIO
  end

  def inspect
    "#<StringIO:0x#{(object_id & 0xffffffff).to_s(16)}>"
  end

  def eof?
    @pos >= @string.bytesize
  end

  def rewind
    @pos = @lineno = 0
  end

  def gets
    return nil if eof?
    stop = @string.index("\n", @pos) || @string.bytesize - 1
    line = @string[@pos..stop]
    @pos = stop + 1
    @lineno += 1
    line
  end

  def read(length = nil)
    return length.nil? ? '' : nil if eof?
    text = @string[@pos, length || @string.bytesize]
    @pos += text.bytesize
    text
  end

  def each_line
    while (line = gets)
      yield line
    end
    self
  end
  alias each each_line

  def readlines
    to_a
  end

  def truncate(length)
    @string = @string[0, length]
    0
  end

  def close
    nil
  end
end

# Lines of a log in Ruby's form.
class Logger
  LEVELS = %w[DEBUG INFO WARN ERROR FATAL UNKNOWN]
  LEVELS.each_with_index { |name, i| const_set(name, i) }
  attr_accessor :level, :progname, :datetime_format, :formatter

  # to: an output, or a file's name to append to; nil: nothing is logged.
  def initialize(to = nil, *)
    @to = to.is_a?(String) ? File.open(to, 'a') : to
    @level = 0
  end

  def level=(level)
    number = level.is_a?(Integer) ? level : LEVELS.index(level.to_s.upcase)
    raise ArgumentError, "invalid log level: #{level}" if number.nil?
    @level = number
  end

  LEVELS.each_with_index do |name, i|
    define_method(name.downcase.to_sym) { |text = nil, &block| add(i, nil, text, &block) }
    define_method("#{name.downcase}?".to_sym) { @level <= i }
  end

  def add(severity, text = nil, program = nil, &block)
    return true if @to.nil? || severity < @level
    text, program = block ? [block.call, program] : [program, nil] if text.nil?
    text = "#{text.message} (#{text.class})\n#{(text.backtrace || []).join("\n")}" if text.is_a?(Exception)
    text = text.inspect unless text.is_a?(String)
    @to.write(line(severity, Time.now, program || @progname, text))
    @to.flush
    true
  end
  alias log add

  def close
    @to.close if @to.is_a?(File)
  end

  private

  def line(severity, now, program, text)
    name = LEVELS[severity]
    name = 'ANY' if name == 'UNKNOWN'
    return @formatter.call(name, now, program, text) unless @formatter.nil?
    at = @datetime_format.nil? ? now.strftime('%Y-%m-%dT%H:%M:%S.') + Kernel.format('%06d', now.usec) : now.strftime(@datetime_format)
    Kernel.format("%s, [%s #%d] %5s -- %s: %s\n", name[0, 1], at, Process.pid, name, program.to_s, text)
  end
end
