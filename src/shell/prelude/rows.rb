# SPDX-License-Identifier: Apache-2.0
# Scans with a block. The scanner is closed however the block is left: at the end, by break, return or an exception.

module Rows
  # Yields the rows, arrays of cells; an answer of a server may have a row without cells. Returns the number of rows.
  def self.scan(table, options, more)
    rows = 0
    with_scanner(table, options, more) do |scanner|
      while (cells = scanner.next)
        rows += 1
        yield cells
      end
    end
    rows
  end

  # Yields number and key of every interval-th row. Returns the number of rows. HBASE: Table._count_internal, by `%`: an
  # interval may be negative, and 0 is an error when there is a row.
  def self.count(table, options, more, interval)
    rows = 0
    with_scanner(table, options.merge(interval: interval.abs), more) do |scanner|
      while (counted = scanner.count)
        rows, marks = counted
        raise ZeroDivisionError, 'divided by 0' if interval == 0 && rows > 0
        marks.each { |number, key| yield number, key }
      end
    end
    rows
  end

  def self.with_scanner(table, options, more)
    scanner = open(table, options, more)
    begin
      yield scanner
    ensure
      scanner.close
    end
  end
end
