# SPDX-License-Identifier: Apache-2.0
# Ruby's Date and DateTime, and Time.parse, iso8601 and strptime. Loaded when a script names one.

# A day, as the number of days since 1970-01-01.
class Date
  include Comparable
  MONTHS = %w[jan feb mar apr may jun jul aug sep oct nov dec]
  attr_reader :days

  def self.of_days(days)
    d = allocate
    d.set(days)
    d
  end

  def self.today
    t = Time.now
    new(t.year, t.month, t.day)
  end

  def self.valid_date?(year, month, day)
    new(year, month, day)
    true
  rescue ArgumentError
    false
  end

  def self.parse(text)
    new(*Time.date_of(text, ArgumentError.new('invalid date')))
  end

  def self.strptime(text, form = '%F')
    t = Time.strptime(text, form)
    new(t.year, t.month, t.day)
  end

  def initialize(year = -4712, month = 1, day = 1)
    t = Time.gm(year, month, day < 0 ? 1 : day)
    raise ArgumentError, 'invalid date' unless month.between?(1, 12) && (day < 0 || t.month == month)
    set(t.to_i.div(86400))
    return unless day < 0
    set(((Date.of_days(@days) >> 1) + day).days)
  end

  def set(days)
    @days = days
  end

  def to_time
    Time.local(year, month, day)
  end

  def of_day
    Time.at(@days * 86400).utc
  end

  def year
    of_day.year
  end

  def month
    of_day.month
  end
  alias mon month

  def day
    of_day.day
  end
  alias mday day

  def wday
    of_day.wday
  end

  def yday
    of_day.yday
  end

  def +(n)
    Date.of_days(@days + n)
  end

  def -(other)
    other.is_a?(Date) ? @days - other.days : Date.of_days(@days - other)
  end

  # Adds months; a day that the month lacks becomes the month's last day.
  def >>(n)
    m = year * 12 + month - 1 + n
    y, m = m.divmod(12)
    d = day
    d -= 1 until Date.valid_date?(y, m + 1, d)
    Date.new(y, m + 1, d)
  end

  def <<(n)
    self >> -n
  end

  def next
    self + 1
  end
  alias succ next
  alias next_day +
  alias prev_day -

  def next_month(n = 1)
    self >> n
  end

  def prev_month(n = 1)
    self << n
  end

  def saturday?
    wday == 6
  end

  def sunday?
    wday == 0
  end

  def <=>(other)
    other.is_a?(Date) ? @days <=> other.days : nil
  end

  def eql?(other)
    self == other
  end

  def hash
    @days.hash
  end

  def step(limit, by = 1)
    d = self
    while by > 0 ? d <= limit : d >= limit
      yield d
      d += by
    end
    self
  end

  def upto(last, &block)
    step(last, &block)
  end

  def downto(last, &block)
    step(last, -1, &block)
  end

  def strftime(form = '%F')
    of_day.strftime(form)
  end

  def to_s
    strftime('%Y-%m-%d')
  end
  alias iso8601 to_s

  def to_date
    self
  end

  def inspect
    "#<Date: #{self}>"
  end
end

# A time; as Time, with +00:00.
class DateTime < Date
  def self.parse(text)
    of(Time.parse(text.to_s =~ /(Z|UTC|GMT|[-+]\d\d:?\d\d)\s*\z/ ? text : "#{text} UTC"))
  end

  def self.now
    of(Time.now)
  end

  def self.of(time)
    d = of_days(time.to_i.div(86400))
    d.at(time)
    d
  end

  def at(time)
    @time = time.dup.utc
  end

  def to_time
    @time
  end

  def strftime(form = '%FT%T%:z')
    @time.strftime(form)
  end

  def hour
    @time.hour
  end

  def minute
    @time.min
  end
  alias min minute

  def second
    @time.sec
  end
  alias sec second

  def to_s
    @time.strftime('%Y-%m-%dT%H:%M:%S+00:00')
  end
  alias iso8601 to_s
end

class Time
  def to_date
    Date.new(year, month, day)
  end

  # [year, month, day] in a text: 2026-01-02, 2026/1/2, 20260102, 2 Jan 2026, Jan 2 2026.
  def self.date_of(text, wrong)
    text = text.to_s
    m = /(\d{4})[-\/](\d{1,2})[-\/](\d{1,2})/.match(text) || /\b(\d{4})(\d\d)(\d\d)/.match(text)
    return [m[1].to_i, m[2].to_i, m[3].to_i] if m
    m = /(\d{1,2})(?:st|nd|rd|th)?[ -]([A-Za-z]{3})[a-z]*[ ,-]+(\d{4})/.match(text)
    return [m[3].to_i, month_of(m[2], wrong), m[1].to_i] if m
    m = /([A-Za-z]{3})[a-z]* +(\d{1,2})(?:st|nd|rd|th)?,?(?: +\d+:\d+:\d+(?: \S+)?)? +(\d{4})/.match(text)
    return [m[3].to_i, month_of(m[1], wrong), m[2].to_i] if m
    raise wrong
  end

  def self.month_of(name, wrong)
    n = Date::MONTHS.index(name.downcase)
    raise wrong if n.nil?
    n + 1
  end

  def self.parse(text)
    wrong = ArgumentError.new("no time information in #{text.inspect}")
    clock = /(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?/.match(text)
    now = Time.now
    day = clock && text !~ /\d{4}/ ? [now.year, now.month, now.day] : date_of(text, wrong)
    hour, minute, second = clock ? [clock[1].to_i, clock[2].to_i, clock[3].to_i] : [0, 0, 0]
    micro = clock && clock[4] ? clock[4][0, 6].ljust(6, '0').to_i : 0
    in_zone(text, day + [hour, minute, second, micro])
  end

  def self.in_zone(text, parts)
    zone = /(Z|UTC|GMT|[-+]\d\d:?\d\d)\s*\z/.match(text)
    return Time.local(*parts) if zone.nil? || (zone[1] =~ /\A-/ && text !~ /:\d\d.*-\d\d:?\d\d\s*\z/)
    t = Time.gm(*parts)
    return t if zone[1] =~ /[A-Z]/
    away = zone[1][1, 2].to_i * 3600 + zone[1][-2..-1].to_i * 60
    Time.at(t.to_i - (zone[1][0] == '-' ? -away : away), t.usec)
  end

  def self.iso8601(text)
    raise ArgumentError, "invalid date: #{text.inspect}" unless text =~ /\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/
    parse(text)
  end

  def self.xmlschema(text)
    iso8601(text)
  end

  FIELDS = { 'Y' => '(\d{4})', 'm' => '(\d{1,2})', 'd' => '(\d{1,2})', 'H' => '(\d{1,2})', 'M' => '(\d{1,2})', 'S' => '(\d{1,2})',
             'y' => '(\d{2})', 'b' => '([A-Za-z]{3})', 'B' => '([A-Za-z]+)', 'L' => '(\d{1,3})', 'N' => '(\d+)', 'z' => '(Z|UTC|[-+]\d\d:?\d\d)',
             'Z' => '([A-Z]+)', 's' => '(\d+)', 'j' => '(\d{1,3})', 'e' => '\s*(\d{1,2})' }

  def self.strptime(text, form)
    form = form.gsub('%F', '%Y-%m-%d').gsub('%T', '%H:%M:%S').gsub('%D', '%m/%d/%y').gsub('%R', '%H:%M')
    names = []
    pattern = Regexp.escape(form.gsub(/%([A-Za-z])/) { "\x00#{$1}" }).gsub(/\x00([A-Za-z])/) do
      names << $1
      FIELDS[$1] || raise(ArgumentError, "invalid strptime format - `#{form}'")
    end
    m = Regexp.new("\\A#{pattern}").match(text)
    raise ArgumentError, "invalid date or strptime format - `#{text}' `#{form}'" if m.nil?
    of_fields(names.each_with_index.inject({}) { |h, (n, i)| h[n] = m[i + 1]; h })
  end

  def self.of_fields(f)
    return Time.at(f['s'].to_i) if f['s']
    year = f['Y'] ? f['Y'].to_i : (f['y'] ? (f['y'].to_i < 69 ? 2000 : 1900) + f['y'].to_i : Time.now.year)
    name = f['b'] || f['B']
    month = name ? month_of(name[0, 3], ArgumentError.new("no month: #{name}")) : (f['m'] || 1).to_i
    micro = (f['N'] || f['L']).to_s[0, 6].ljust(6, '0').to_i
    parts = [year, month, (f['d'] || f['e'] || 1).to_i, f['H'].to_i, f['M'].to_i, f['S'].to_i, micro]
    f['z'] ? in_zone(":00#{f['z']}", parts) : Time.local(*parts)
  end
end
