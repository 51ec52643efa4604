# SPDX-License-Identifier: Apache-2.0
# JSON as HBase's shell prints or re-reads it, and the JSON of a server's page of tasks.

module Json
  def self.text(v)
    case v
    when String then quote(v)
    when Symbol then quote(v.to_s)
    when nil then 'null'
    when Array then "[#{v.map { |e| text(e) }.join(',')}]"
    when Hash then "{#{v.map { |k, e| "#{quote(k.to_s)}:#{text(e)}" }.join(',')}}"
    else v.to_s
    end
  end

  def self.quote(s)
    out = ''
    s.each_char do |c|
      b = c.getbyte(0)
      out << (c == '"' ? '\\"' : c == '\\' ? '\\\\' : c == "\n" ? '\\n' : c == "\t" ? '\\t' : b < 32 ? format('\\u%04x', b) : c)
    end
    "\"#{out}\""
  end

  def self.pretty(h)
    "{\n" + h.map { |k, v| "  #{quote(camel(k))}: #{text(v)}" }.join(",\n") + "\n}"
  end

  def self.camel(name)
    parts = name.to_s.split('_')
    parts[0] + parts[1..-1].map { |p| p.empty? ? '' : p[0, 1].upcase + p[1..-1] }.join('')
  end

  # protobuf's JSON of a message: bytes in base 64, 64-bit numbers as text.
  def self.of_message(v)
    case v
    when Hash
      v.inject({}) do |h, (k, e)|
        h[camel(k)] = of_message(e) unless e.nil? || e == []
        h
      end
    when Array then v.map { |e| of_message(e) }
    when Symbol then v.to_s
    else v
    end
  end

  def self.ruby(v)
    case v
    when Hash then "{#{v.map { |k, e| "#{k.inspect}=>#{ruby(e)}" }.join(', ')}}"
    when Array then "[#{v.map { |e| ruby(e) }.join(', ')}]"
    else v.inspect
    end
  end

  # --- reading; an untrusted text ---

  NAMES = { 't' => ['true', true], 'f' => ['false', false], 'n' => ['null', nil] }
  ESCAPES = { 'n' => "\n", 't' => "\t", 'r' => "\r", 'b' => "\b", 'f' => "\f" }
  DEPTH_MAX = 100

  # Hashes, arrays, strings, numbers; anything else is an ArgumentError.
  def self.parse(text)
    v, at = value(text, blank(text, 0), 0)
    at = blank(text, at)
    wrong(text, at) if at < text.length
    v
  end

  def self.wrong(text, at)
    raise ArgumentError, "no JSON at byte #{at}: #{text[at, 20].inspect}"
  end

  def self.blank(text, at)
    at += 1 while at < text.length && " \t\r\n".include?(text[at])
    at
  end

  # [value, where it ends]
  def self.value(text, at, depth)
    wrong(text, at) if depth > DEPTH_MAX
    c = text[at]
    case c
    when '{' then elements(text, at + 1, depth, {}, '}')
    when '[' then elements(text, at + 1, depth, [], ']')
    when '"' then string(text, at + 1)
    when 't', 'f', 'n' then name(text, at, *NAMES[c])
    else number(text, at)
    end
  end

  def self.name(text, at, name, v)
    wrong(text, at) unless text[at, name.length] == name
    [v, at + name.length]
  end

  def self.number(text, at)
    stop = at
    stop += 1 while stop < text.length && '+-.0123456789eE'.include?(text[stop])
    digits = text[at...stop]
    wrong(text, at) unless digits =~ /\A-?\d+(\.\d+)?([eE][-+]?\d+)?\z/
    [digits =~ /[.eE]/ ? digits.to_f : digits.to_i, stop]
  end

  def self.string(text, at)
    out = ''
    loop do
      stop = at
      stop += 1 while stop < text.length && text[stop] != '"' && text[stop] != '\\'
      wrong(text, at) if stop >= text.length
      out << text[at...stop]
      return [out, stop + 1] if text[stop] == '"'
      c, at = escape(text, stop + 1)
      out << c
    end
  end

  def self.escape(text, at)
    c = text[at].to_s
    return [ESCAPES[c] || c, at + 1] unless c == 'u'
    hex = text[at + 1, 4].to_s
    wrong(text, at) unless hex =~ /\A[0-9a-fA-F]{4}\z/
    [utf8(hex.to_i(16)), at + 5]
  end

  def self.utf8(n)
    return [n].pack('C') if n < 0x80
    return [0xc0 | n >> 6, 0x80 | n & 63].pack('C*') if n < 0x800
    [0xe0 | n >> 12, 0x80 | n >> 6 & 63, 0x80 | n & 63].pack('C*')
  end

  # Reads an array's or object's elements into `all`, up to the character `last`.
  def self.elements(text, at, depth, all, last)
    at = blank(text, at)
    return [all, at + 1] if text[at] == last
    loop do
      key, at = key(text, blank(text, at)) if all.is_a?(Hash)
      v, at = value(text, blank(text, at), depth + 1)
      all.is_a?(Hash) ? all[key] = v : all << v
      at = blank(text, at)
      return [all, at + 1] if text[at] == last
      wrong(text, at) unless text[at] == ','
      at += 1
    end
  end

  # [key, where its value begins]
  def self.key(text, at)
    wrong(text, at) unless text[at] == '"'
    key, at = string(text, at + 1)
    at = blank(text, at)
    wrong(text, at) unless text[at] == ':'
    [key, at + 1]
  end
end
