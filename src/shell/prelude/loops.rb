# SPDX-License-Identifier: Apache-2.0
# Loops that Ctrl-C ends: Wire.go_on raises Interrupt after it. Enumerable's methods are on these; `while` and `until` are
# rewritten (rewrite.c). Every 256th step asks, which costs nothing that can be measured.

module Kernel
  def loop
    return to_enum(:loop) unless block_given?
    while Wire.go_on
      yield
    end
  rescue StopIteration => e
    e.result
  end
end

class Integer
  def times
    return to_enum(:times) { self } unless block_given?
    i = 0
    while i < self
      Wire.go_on if i & 255 == 0
      yield i
      i += 1
    end
    self
  end

  def upto(last)
    return to_enum(:upto, last) unless block_given?
    i = self
    while i <= last
      Wire.go_on if i & 255 == 0
      yield i
      i += 1
    end
    self
  end

  def downto(last)
    return to_enum(:downto, last) unless block_given?
    i = self
    while i >= last
      Wire.go_on if i & 255 == 0
      yield i
      i -= 1
    end
    self
  end
end

class Array
  def each
    return to_enum(:each) unless block_given?
    i = 0
    while i < length
      Wire.go_on if i & 255 == 255
      yield self[i]
      i += 1
    end
    self
  end
end
