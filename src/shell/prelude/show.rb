# SPDX-License-Identifier: Apache-2.0
# Values as people read them, for \as: numbers, times, JSON, places, the fields of protobuf messages. A value that is not of the kind is
# shown as HBase's shell does.

Shell.need('bytes')

module Show
  KINDS = %w[text hex int long float double time json protobuf geohash]
  # `<` and `>` of mruby are wrong from 2^62 on, so numbers of the data are compared by <=>.
  SIZES = { 'int' => [4], 'long' => [8], 'float' => [4], 'double' => [8], 'time' => [8] }
  LETTERS = '0123456789bcdefghjkmnpqrstuvwxyz' # of GeoHash

  class << self
    def value(kind, v)
      return Bytes.toStringBinary(v) if SIZES.key?(kind) && !SIZES[kind].include?(v.length)
      case kind
      when 'text' then text(v)
      when 'hex' then Bytes.toHex(v)
      when 'int', 'long' then Bytes.signed(v).to_s
      when 'float' then Bytes.toFloat(v).to_s
      when 'double' then Bytes.toDouble(v).to_s
      when 'time' then time(Bytes.signed(v))
      else try(kind, v) || Bytes.toStringBinary(v)
      end
    end

    # UTF-8 as it is; other bytes and control characters, which would command the terminal, in HBase's form.
    def text(v)
      v =~ /[^\x20-\x7e]/ ? v.gsub(Shell::LETTER_OR_BYTE) { |m| letter(m) ? m : Bytes.toStringBinary(m) }.gsub(/[\x00-\x1f\x7f]/) { |m| Bytes.toStringBinary(m) } : v
    end

    # Of more than one byte, and no control character (U+0080 to U+009F).
    def letter(text)
      text.bytesize > 1 && !(text.getbyte(0) == 0xc2 && text.getbyte(1) < 0xa0)
    end

    # nil: the value is not of the kind.
    def try(kind, v)
      case kind
      when 'json' then json(v)
      when 'protobuf' then message(v, 0)
      when 'geohash' then place(v)
      end
    end

    # Milliseconds since 1970; others than those of the years up to 9999 are shown as numbers.
    def time(ms)
      (ms <=> 253_402_300_800_000) > 0 || (ms <=> -62_135_596_800_000) < 0 ? ms.to_s : Shell.local_time(ms)
    end

    def json(v)
      Shell.need('json')
      v =~ /\A\s*[\[{]/ ? Json.text(Json.parse(v)) : nil
    rescue StandardError
      nil
    end

    # The middle of the cell: "u33dc0 (52.5146, 13.4033)".
    def place(text)
      return nil unless text =~ /\A[0-9b-hjkmnp-z]{1,12}\z/
      ranges = [[-180.0, 180.0], [-90.0, 90.0]]
      bit = 0
      text.each_char do |c|
        n = LETTERS.index(c)
        4.downto(0) do |i|
          r = ranges[bit % 2]
          middle = (r[0] + r[1]) / 2
          n & (1 << i) == 0 ? r[1] = middle : r[0] = middle
          bit += 1
        end
      end
      longitude, latitude = ranges.map { |r| (r[0] + r[1]) / 2 }
      format('%s (%.4f, %.4f)', text, latitude, longitude)
    end

    # --- protobuf ---

    DEPTH = 8

    # "{1: 150, 2: "text", 3: {1: 7}}" if the bytes are a message: each field has a number, and the last one ends with them.
    def message(bytes, depth)
      return nil if bytes.empty? || depth > DEPTH
      at = 0
      fields = []
      while at < bytes.length
        tag, at = varint(bytes, at)
        return nil if tag.nil? || (tag <=> 8) < 0 || (tag <=> 4_294_967_295) > 0
        text, at = field(bytes, at, tag & 7, depth)
        return nil if text.nil?
        fields << "#{tag >> 3}: #{text}"
      end
      "{#{fields.join(', ')}}"
    end

    # [value, where it ends]; nil: it does not end.
    def varint(bytes, at)
      n = 0
      shift = 0
      while at < bytes.length && shift < 63
        b = bytes.getbyte(at)
        at += 1
        n += (b & 127) << shift
        return [n, at] if b < 128
        shift += 7
      end
      return nil unless shift == 63 && at < bytes.length && bytes.getbyte(at) < 2
      [bytes.getbyte(at) == 0 ? n : n - 9_223_372_036_854_775_807 - 1, at + 1] # negative: of 64 bits
    end

    def field(bytes, at, wire, depth)
      case wire
      when 0 then varint(bytes, at)
      when 1 then at + 8 > bytes.length ? nil : [fixed(bytes[at, 8].reverse), at + 8]
      when 5 then at + 4 > bytes.length ? nil : [fixed(bytes[at, 4].reverse), at + 4]
      when 2
        length, at = varint(bytes, at)
        length.nil? || (length <=> 0) < 0 || (length <=> bytes.length - at) > 0 ? nil : [part(bytes[at, length], depth), at + length]
      end
    end

    # A number of 4 or 8 bytes: floating-point if that is between 1e-6 and 1e12, else an integer. Small integers, read as a float, are
    # tiny.
    def fixed(v)
      real = Bytes.real(v)
      real.abs > 1e-6 && real.abs < 1e12 ? real.to_s : Bytes.signed(v).to_s
    end

    # Text, a message inside, or bytes.
    def part(v, depth)
      return "\"#{v}\"" if v =~ /\A[\x20-\x7e]*\z/
      message(v, depth + 1) || "\"#{Bytes.toStringBinary(v)}\""
    end
  end
end
