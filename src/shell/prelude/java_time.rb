# SPDX-License-Identifier: Apache-2.0
# Java's dates, as far as scripts print, parse and compare times: Date, SimpleDateFormat.

# The part of java.util.Date with which scripts print and compare times.
class JavaDate
  include JavaNames

  def self.inspect
    'Java::JavaUtil::Date'
  end

  def initialize(ms = (Time.now.to_f * 1000).to_i)
    @ms = ms.to_i
  end

  def getTime
    @ms
  end

  def toString
    Shell.strftime('%a %b %d %H:%M:%S %Z %Y', @ms.div(1000), false)
  end
  alias to_s toString

  def inspect
    "#<Java::JavaUtil::Date: #{toString}>"
  end
end

class JavaParsePosition
  attr_accessor :index

  def self.inspect
    'Java::JavaText::ParsePosition'
  end

  def initialize(index)
    @index = index
  end
end

# Patterns of numbers and of months' and days' names in English: yyyy-MM-dd'T'HH:mm:ss,SSS.
class JavaDateFormat
  include JavaNames

  FIELDS = { 'y' => '%Y', 'M' => '%m', 'd' => '%d', 'H' => '%H', 'm' => '%M', 's' => '%S', 'E' => '%a', 'z' => '%Z', 'Z' => '%z' }
  MONTHS = %w[Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec]

  def self.inspect
    'Java::JavaText::SimpleDateFormat'
  end

  # Runs of a letter are fields; text in quotes and other signs stand for themselves.
  def initialize(pattern)
    @parts = []
    until pattern.empty?
      @parts << (pattern[/\A'[^']*'/] || pattern[/\A([A-Za-z])\1*/] || pattern[0, 1])
      pattern = pattern[@parts[-1].length..-1].to_s
    end
    wrong = @parts.find { |p| p =~ /\A[A-Za-z]/ && !FIELDS.key?(p[0]) && p[0] != 'S' }
    raise HBaseError.make('java.lang.IllegalArgumentException', "Illegal pattern character '#{wrong[0]}'") unless wrong.nil?
  end

  # If the text does not match: nil if a position was given, otherwise an error.
  def parse(text, position = nil)
    at = position.nil? ? 0 : position.index
    found = {}
    @parts.each do |part|
      length = match(part, text[at..-1].to_s, found)
      if length.nil?
        return nil unless position.nil?
        raise HBaseError.make('java.text.ParseException', "Unparseable date: \"#{text}\"")
      end
      at += length
    end
    position.index = at unless position.nil?
    JavaDate.new(Time.local(found['y'] || 1970, found['M'] || 1, found['d'] || 1, found['H'] || 0, found['m'] || 0, found['s'] || 0).to_i * 1000 + (found['S'] || 0))
  end

  # The number of characters that the part matches; nil: it does not match.
  def match(part, text, found)
    return literal(part, text) unless part =~ /\A[A-Za-z]/
    return month(text, found) if part[0] == 'M' && part.length > 2
    digits = text[/\A\d+/].to_s
    digits = digits[0, part.length] if part.length > 1
    return nil if digits.empty?
    found[part[0]] = part[0] == 'y' && part.length == 2 ? century(digits.to_i) : digits.to_i
    digits.length
  end

  def literal(part, text)
    part = part[1..-2] if part[0] == "'"
    text.start_with?(part) ? part.length : nil
  end

  def month(text, found)
    n = MONTHS.index(text[0, 3])
    found['M'] = n + 1 unless n.nil?
    n.nil? ? nil : 3
  end

  # Java: within 80 years before and 20 years after today.
  def century(year)
    now = Time.now.year
    year += now.div(100) * 100
    return year - 100 if year > now + 20
    year <= now - 80 ? year + 100 : year
  end

  def format(date)
    ms = date.getTime
    @parts.map do |part|
      next part[1..-2] if part[0] == "'"
      next part unless part =~ /\A[A-Za-z]/
      next Kernel.format("%0#{part.length}d", ms % 1000) if part[0] == 'S'
      form = part[0] == 'y' && part.length == 2 ? '%y' : part[0] == 'M' && part.length > 2 ? '%b' : FIELDS[part[0]]
      Shell.strftime(form, ms.div(1000), false)
    end.join('')
  end
end
