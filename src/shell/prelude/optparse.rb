# SPDX-License-Identifier: Apache-2.0
# The part of Ruby's OptionParser that scripts use: on with a short and a long name, an argument that is needed or not, a type;
# banner, separator, help; parse!, order!.

class OptionParser
  class ParseError < RuntimeError; end
  class InvalidOption < ParseError; end
  class MissingArgument < ParseError; end
  class InvalidArgument < ParseError; end

  # One option. argument: nil (none), :needed, :optional.
  class Switch
    attr_reader :short, :long, :argument, :type, :block

    def initialize(words, block)
      @block = block
      @text = []
      words.each { |w| take(w) }
    end

    def take(word)
      return @type = word unless word.is_a?(String)
      return @text << word unless word[0] == '-'
      name, rest = word[0, 2] == '--' ? word.split(/[ =]/, 2) : [word[0, 2], word[2..-1].to_s.strip]
      name, rest = [name[/\A[^\[]+/], name[/\[.*/]] if name.include?('[') && name !~ /\A--\[no-\]/
      word[0, 2] == '--' ? @long = name : @short = name
      @argument = rest.to_s.empty? ? @argument : (rest[0] == '[' ? :optional : :needed)
      @shown = "#{word.include?(' [') || rest[0] != '[' ? ' ' : ''}#{rest}" unless rest.to_s.empty?
    end

    def negatable?
      @long.to_s[0, 7] == '--[no-]'
    end

    def names
      [@short, negatable? ? "--#{@long[7..-1]}" : @long].compact
    end

    # The value to hand to the block; the option was called `name`.
    def convert(text, name)
      return text if text.nil? || @type.nil? || @type == String
      return text.split(',') if @type == Array
      raise InvalidArgument, "invalid argument: #{name} #{text}" unless text =~ (@type == Integer ? /\A-?\d+\z/ : /\A-?\d+(\.\d+)?\z/)
      @type == Integer ? text.to_i : text.to_f
    end

    def lines(width, indent)
      left = "#{@short.nil? ? '    ' : @short}#{@short.nil? || @long.nil? ? '' : ', '}#{@long}#{@shown}"
      return [indent + left] if @text.empty?
      first = left.length > width ? [indent + left] : ["#{indent}#{left.ljust(width)} #{@text[0]}"]
      first + @text[(left.length > width ? 0 : 1)..-1].map { |t| "#{indent}#{' ' * width} #{t}" }
    end
  end

  attr_writer :banner, :program_name
  attr_accessor :summary_width, :summary_indent, :version

  def initialize(banner = nil, width = 32, indent = ' ' * 4)
    @banner = banner
    @summary_width = width
    @summary_indent = indent
    @list = []
    yield self if block_given?
  end

  def banner
    @banner || "Usage: #{program_name} [options]"
  end

  def program_name
    @program_name || File.basename($0.to_s, '.rb')
  end

  def on(*words, &block)
    @list << Switch.new(words, block)
    self
  end
  alias on_tail on
  alias on_head on
  alias define on

  def separator(text = '')
    @list << text.to_s
    self
  end

  def help
    lines = @list.map { |s| s.is_a?(String) ? [s] : s.lines(@summary_width, @summary_indent) }.flatten
    ([banner] + lines).join("\n") + "\n"
  end
  alias to_s help

  # Takes the options out of the list; what is left is returned.
  def parse!(list = ARGV, into: nil)
    rest = []
    until list.empty?
      word = list.shift
      break rest.concat(list.slice!(0, list.length)) if word == '--'
      word =~ /\A-./ ? take(word, list, into) : rest << word
    end
    list.replace(rest)
  end
  alias permute! parse!

  # Stops at the first word that is no option.
  def order!(list = ARGV, into: nil)
    take(list.shift, list, into) while !list.empty? && list[0] =~ /\A-./ && list[0] != '--'
    list.shift if list[0] == '--'
    list
  end

  def parse(*list)
    list = list.flatten
    parse!(list)
  end

  def take(word, list, into)
    name, value = word[0, 2] == '--' ? word.split('=', 2) : [word[0, 2], word.length > 2 ? word[2..-1] : nil]
    switch, no = find(name)
    return help_and_exit if switch.nil? && %w[-h --help].include?(name)
    raise InvalidOption, "invalid option: #{word}" if switch.nil?
    if switch.argument.nil?
      list.unshift("-#{value}") if !value.nil? && word[0, 2] != '--'
      value = !no
    else
      value = list.shift if value.nil? && (switch.argument == :needed || (!list.empty? && list[0] !~ /\A-./))
      raise MissingArgument, "missing argument: #{word}" if value.nil? && switch.argument == :needed
      value = switch.convert(value, name)
    end
    into[switch.names[-1].sub(/\A-+/, '').to_sym] = value unless into.nil?
    switch.block.call(value) unless switch.block.nil?
  end

  # The option of a name, or of a beginning that only one long name has; whether it is its --no- form.
  def find(name)
    switches = @list.reject { |s| s.is_a?(String) }
    exact = switches.find { |s| s.names.include?(name) }
    return [exact, false] unless exact.nil?
    no = switches.find { |s| s.negatable? && name == "--no-#{s.long[7..-1]}" }
    return [no, true] unless no.nil?
    begun = name[0, 2] == '--' ? switches.select { |s| s.names[-1].start_with?(name) } : []
    [begun.length == 1 ? begun[0] : nil, false]
  end

  def help_and_exit
    puts help
    exit
  end
end
OptParse = OptionParser
