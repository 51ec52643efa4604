# SPDX-License-Identifier: Apache-2.0
# Tables of text.

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

  # Prints the entries that `names` includes, or all; they are not counted as rows.
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
