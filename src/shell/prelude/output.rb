# SPDX-License-Identifier: Apache-2.0
# Standard output and errors, and what Ruby's Kernel has for programs: puts, gets, sleep, load, exit.

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

  # By the system's shell; its output is printed when it ends. nil: it cannot be run.
  def system(*words)
    print IO.popen(words.length == 1 ? words[0] : words.map { |w| "'#{w.to_s.gsub("'", "'\\\\''")}'" }.join(' ')) { |f| f.read }
    $?.nil? ? nil : $?.to_i == 0
  end

  def binding
    nil
  end

  # A library is there already; a file is run, once.
  def require(name)
    path = [name, "#{name}.rb"].find { |p| p[-3..-1] == '.rb' && File.exist?(p) }
    return Shell.require_library(name) if path.nil?
    path = File.expand_path(path)
    return false if Shell.required[path]
    Shell.required[path] = true
    load(path)
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

module Shell
  LIBRARY = %w[Base64 Benchmark CSV Date DateTime Digest Dir JSON SecureRandom Set]
  # Those that the official shell has loaded, and others of which the shell has a part, or which its commands replace.
  LOADED = %w[java json date time irb rubygems etc rbconfig stringio hbase hbase_shell hbase_constants shell thread]
  OTHERS = %w[base64 benchmark csv digest digest/md5 digest/sha1 digest/sha2 securerandom set timeout pp optparse open3 ostruct
              fileutils tempfile logger yaml erb English bigdecimal socket net/http open-uri uri zlib pathname monitor forwardable
              singleton observer tsort io/console readline delegate matrix prime rational shellwords strscan tmpdir]

  def self.required
    @required ||= {}
  end

  def self.require_library(name)
    return false if LOADED.include?(name) || required[name]
    raise LoadError, "no such file to load -- #{name}" unless OTHERS.include?(name)
    required[name] = true
  end
end
class LoadError < ScriptError; end unless Object.const_defined?(:LoadError)
RUBY_PLATFORM = 'java' unless Object.const_defined?(:RUBY_PLATFORM)

class ShellExit < Exception
  attr_reader :code
  def initialize(code)
    @code = code
    super('exit')
  end
end
SystemExit = ShellExit
class SyntaxError < ScriptError; end unless Object.const_defined?(:SyntaxError)
