# SPDX-License-Identifier: Apache-2.0
# Files and folders, as scripts read and write them; failures as Ruby words them.

class SystemCallError < StandardError
  attr_reader :errno

  # Called by mruby: a call of the system failed; of an open, the text is "open PATH".
  def self._sys_fail(number, text = nil)
    e = (Errno::CLASSES[number] || self).new(Shell.error_text(number) + (text.nil? ? '' : " - #{text.sub(/\Aopen /, '')}"))
    e.number(number)
    raise e
  end

  def number(n)
    @errno = n
  end
end

module Errno
  CLASSES = {}
  { EPERM: 1, ENOENT: 2, EIO: 5, EBADF: 9, EACCES: 13, EEXIST: 17, ENOTDIR: 20, EISDIR: 21, EFBIG: 27, ENOSPC: 28, EROFS: 30, EPIPE: 32,
    ENAMETOOLONG: 36, ENOTEMPTY: 39 }.each { |name, number| CLASSES[number] = const_set(name, Class.new(SystemCallError)) }
end

class File
  class << self
    alias open_any open
    alias base_of basename

    def open(path, *rest, &block)
      f = open_any(path, *rest)
      return f if block.nil?
      begin
        block.call(f)
      ensure
        f.close unless f.closed?
      end
    end

    def read(path, length = nil)
      open(path) { |f| (length.nil? ? f.read : f.read(length)).to_s }
    end

    def readlines(path, *)
      lines = read(path).split("\n", -1)
      last = lines.pop
      lines = lines.map { |l| l + "\n" }
      last.to_s.empty? ? lines : lines << last
    end

    def foreach(path, &block)
      readlines(path).each(&block)
      nil
    end

    def write(path, text)
      open(path, 'w') { |f| f.write(text.to_s) }
      text.to_s.length
    end

    # Without the suffix; '.*' is any.
    def basename(path, suffix = nil)
      name = base_of(path)
      return name if suffix.nil?
      suffix = extname(name) if suffix == '.*'
      name.end_with?(suffix) ? name[0, name.length - suffix.length] : name
    end

    alias exists? exist?
  end

  def each_line
    while (line = gets)
      yield line
    end
    self
  end
  alias each each_line

  def <<(v)
    write(v.to_s)
    self
  end

  def printf(form, *list)
    write(format(form, *list))
  end
end

class IO
  def self.readlines(path, *rest)
    File.readlines(path, *rest)
  end

  def self.read(path)
    File.read(path)
  end

  def self.foreach(path, &block)
    File.foreach(path, &block)
  end
end

# By C's functions (terminal.c).
class Dir
  class << self
    def glob(pattern)
      list = [pattern].flatten.map { |p| Shell.glob(p) }.flatten
      return list.each { |p| yield p } if block_given?
      list
    end

    def [](*patterns)
      glob(patterns)
    end

    def entries(path)
      %w[. ..] + children(path)
    end

    def children(path)
      raise Errno::ENOENT, "No such file or directory - #{path}" unless File.directory?(path)
      Shell.glob("#{path}/{*,.[!.]*}").map { |p| File.basename(p) }
    end

    def foreach(path, &block)
      entries(path).each(&block)
    end

    def exist?(path)
      File.directory?(path)
    end
    alias exists? exist?

    def mkdir(path, *)
      Shell.make_folder(path)
      0
    end

    def rmdir(path)
      Shell.remove_folder(path)
      0
    end
    alias delete rmdir
    alias unlink rmdir

    def pwd
      File.expand_path('.')
    end
    alias getwd pwd
  end
end
