# SPDX-License-Identifier: Apache-2.0
# Standard output and errors, and what Ruby's Kernel has for programs: puts, gets, sleep, load, exit.

# C's standard output, so that lines of Ruby and of C keep their order.
class ShellOutput
  def print(*list)
    return Shell.print(list[0].to_s) if list.length == 1
    list.each { |v| Shell.print(v.to_s) }
    nil
  end

  def <<(v)
    print(v)
    self
  end

  def putc(v)
    print(v.is_a?(Integer) ? v.chr : v.to_s[0, 1])
    v
  end

  def fileno
    1
  end

  def inspect
    '#<IO:<STDOUT>>'
  end

  def class
    IO
  end

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
Object.const_set(:STDOUT, $stdout)
Object.const_set(:STDERR, $stderr)

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

  def putc(v)
    $stdout.putc(v)
  end

  # Blocks that run when the session ends, in reverse order.
  def at_exit(&block)
    Shell.endings.unshift(block)
    block
  end

  def pp(*list)
    p(*list)
  end

  def warn(*list)
    $stderr.puts(*list) unless list.empty?
  end

  def abort(text = nil)
    warn(text) unless text.nil?
    exit(1)
  end

  def gets(*)
    Shell.read_line
  end

  def sleep(seconds = 3600 * 24 * 365)
    Wire.pause(seconds.to_f)
    seconds.to_i
  end

  # Runs a command by the system's shell and prints its output when it ends. nil: it cannot be run.
  def system(*words)
    print IO.popen(words.length == 1 ? words[0] : words.map { |w| "'#{w.to_s.gsub("'", "'\\\\''")}'" }.join(' ')) { |f| f.read }
    $?.nil? ? nil : $?.to_i == 0
  end

  def binding
    nil
  end

  # Runs the named file, unless it has run already. Other names are libraries, which are built in.
  def require(name)
    path = ["#{name}.rb", name].map { |n| Shell.in_load_path(n) || n }.find { |p| p[-3..-1] == '.rb' && File.exist?(p) }
    return Shell.require_library(name) if path.nil?
    path = File.expand_path(path)
    return false if Shell.required[path]
    Shell.required[path] = true
    $LOADED_FEATURES << path
    load(path)
  end

  def load(path, *)
    path = path.to_path if path.respond_to?(:to_path)
    found = Shell.in_load_path(path)
    found ||= File.expand_path(path) if path.is_a?(String) && File.file?(path) # JRuby: __FILE__ is the whole path
    Shell.load_file(found || path)
    true
  end

  def exit(code = 0)
    code = code == true ? 0 : 1 if code == true || code == false
    raise ShellExit.new(code)
  end
  alias exit! exit

  # HBase: in a script it ends irb, and the prompt begins.
  def quit
    raise ShellExit.new(nil)
  end
  alias irb_exit quit
  alias irb_quit quit
end

module Shell
  # Libraries that the official shell has loaded, including its own files, and others that are built in at least in part, or replaced by commands.
  LOADED = %w[java json date time irb rubygems etc rbconfig stringio hbase hbase_shell hbase_constants shell thread]
  OTHERS = %w[base64 benchmark csv digest digest/md5 digest/sha1 digest/sha2 securerandom set timeout pp optparse open3 ostruct
              fileutils tempfile logger yaml erb English bigdecimal socket net/http open-uri uri zlib pathname monitor forwardable
              singleton observer tsort io/console readline delegate matrix prime rational shellwords strscan tmpdir]

  def self.endings
    @endings ||= []
  end

  # The file of that name in the first folder of $LOAD_PATH that has it; nil: none, or the name says where the file is.
  def self.in_load_path(name)
    return nil if !name.is_a?(String) || name.start_with?('/', './', '../', '~')
    folder = $LOAD_PATH.find { |f| File.file?(File.expand_path(name, f.to_s)) }
    folder.nil? ? nil : File.expand_path(name, folder.to_s)
  end

  # Called by C: a script that is run as a whole.
  def self.run_file(path)
    load_file(path)
  end

  # Called by C.
  def self.run_endings(_)
    endings.shift.call until endings.empty?
  end

  def self.required
    @required ||= {}
  end

  def self.require_library(name)
    return false if LOADED.include?(name) || required[name] || name =~ %r{\A(hbase|shell|irb)/}
    raise LoadError, "no such file to load -- #{name}" unless OTHERS.include?(name)
    required[name] = true
  end
end
$LOAD_PATH = []
$: = $LOAD_PATH
$LOADED_FEATURES = []
class LoadError < ScriptError; end unless Object.const_defined?(:LoadError)
RUBY_PLATFORM = 'java' unless Object.const_defined?(:RUBY_PLATFORM)
# HBase's JRuby: scripts compare them.
{ RUBY_VERSION: '2.6.8', RUBY_ENGINE: 'jruby', JRUBY_VERSION: '9.3.13.0' }.each { |name, text| Object.const_set(name, text) }

class ShellExit < Exception
  attr_reader :code
  def initialize(code)
    @code = code
    super('exit')
  end
end
SystemExit = ShellExit
class SyntaxError < ScriptError; end unless Object.const_defined?(:SyntaxError)
