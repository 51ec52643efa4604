# SPDX-License-Identifier: Apache-2.0
# HBase's OrderedBytes, decoded: `cf:q:c(org.apache.hadoop.hbase.util.OrderedBytes).decodeInt64`. In HBase's shell
# these methods cannot be used, because they take a PositionedByteRange; here they take the value's bytes. The first byte of a value
# is its type; in descending order all its bits are inverted.

module JavaTypes
  module OrderedBytes
    NULL = 0x05
    NUMBERS = { 0x29 => 1, 0x2a => 2, 0x2b => 4, 0x2c => 8 }
    REALS = { 0x30 => 4, 0x31 => 8 }

    class << self
      def inspect
        'Java::OrgApacheHadoopHbaseUtil::OrderedBytes'
      end

      # [header, bytes behind it] in ascending order; a header inverted is one above 0x80.
      def parts(bytes)
        refuse('no bytes') if bytes.empty?
        bytes = bytes.bytes.map { |b| 255 - b }.pack('C*') if bytes.getbyte(0) > 0x80
        [bytes.getbyte(0), bytes[1..-1]]
      end

      def refuse(text)
        raise HBaseError.make('java.lang.IllegalArgumentException', text)
      end

      def unexpected(header)
        refuse("unexpected value in first byte: 0x#{header.to_s(16)}")
      end

      def integer(bytes, width)
        header, rest = parts(bytes)
        return nil if header == NULL
        unexpected(header) unless NUMBERS[header] == width && rest.length >= width
        list = rest[0, width].bytes
        list[0] ^= 0x80
        Bytes.signed(list.pack('C*'))
      end

      def decodeInt8(bytes)
        integer(bytes, 1)
      end

      def decodeInt16(bytes)
        integer(bytes, 2)
      end

      def decodeInt32(bytes)
        integer(bytes, 4)
      end

      def decodeInt64(bytes)
        integer(bytes, 8)
      end

      # A negative number has all bits inverted, others only the first bit.
      def floating(bytes, width)
        header, rest = parts(bytes)
        return nil if header == NULL
        unexpected(header) unless REALS[header] == width && rest.length >= width
        list = rest[0, width].bytes
        list = list[0] < 128 ? list.map { |b| 255 - b } : [list[0] ^ 0x80] + list[1..-1]
        Shell.java_float(Bytes.real(list.pack('C*')))
      end

      def decodeFloat32(bytes)
        floating(bytes, 4)
      end

      def decodeFloat64(bytes)
        floating(bytes, 8)
      end

      def decodeString(bytes)
        header, rest = parts(bytes)
        return nil if header == NULL
        unexpected(header) unless header == 0x34
        rest[0, rest.index("\x00") || rest.length]
      end

      # Seven bits in a byte; its first bit means that more bytes follow.
      def decodeBlobVar(bytes)
        header, rest = parts(bytes)
        return nil if header == NULL
        unexpected(header) unless header == 0x37
        out = []
        held = count = 0
        rest.bytes.each do |b|
          held = (held << 7 | b & 0x7f) & 0x7fff
          count += 7
          if count >= 8
            count -= 8
            out << (held >> count & 255)
          end
          break if b < 128
        end
        out.pack('C*')
      end

      def decodeBlobCopy(bytes)
        header, rest = parts(bytes)
        return nil if header == NULL
        unexpected(header) unless header == 0x38
        bytes.getbyte(0) > 0x80 ? rest[0...-1] : rest
      end

      def isNull(bytes)
        parts(bytes)[0] == NULL
      end

      # --- numbers of base 100, 0.M × 100^E: each digit as 2d + 1, the last as 2d ---

      def decodeNumericAsBigDecimal(bytes)
        text = numeric(bytes)
        text.nil? || text.length == 3 && text != text.to_i.to_s ? text : JavaBigDecimal.new(text)
      end

      def decodeNumericAsDouble(bytes)
        text = numeric(bytes)
        text.nil? ? nil : (text == 'NaN' ? text : Shell.java_float(text.to_f))
      end

      def decodeNumericAsLong(bytes)
        text = numeric(bytes)
        return nil if text.nil?
        value = JavaBigDecimal.new(text)
        value.scale <= 0 ? (value.unscaled * Shell.big(10)**-value.scale).normal : value.unscaled.abs.div(Shell.big(10)**value.scale).normal * (text[0] == '-' ? -1 : 1)
      end

      # The number in decimal; nil: NULL.
      def numeric(bytes)
        header, rest = parts(bytes)
        case header
        when NULL then nil
        when 0x07 then '-Infinity'
        when 0x23 then 'Infinity'
        when 0x25, 0x26 then 'NaN'
        when 0x15 then '0'
        when 0x08 then number_of(invert(rest), true, nil, true)
        when 0x09..0x13 then number_of(invert(rest), true, 0x13 - header, true)
        when 0x14 then number_of(rest, true, nil, false)
        when 0x16 then number_of(rest, false, nil, false)
        when 0x17..0x21 then number_of(rest, false, header - 0x17, true)
        when 0x22 then number_of(rest, false, nil, true)
        else unexpected(header)
        end
      end

      def invert(bytes)
        bytes.bytes.map { |b| 255 - b }.pack('C*')
      end

      # Small numbers have their exponent inverted, and negative ones their digits.
      def number_of(rest, negative, exponent, large)
        if exponent.nil?
          plain = large || negative ? rest : invert(rest)
          exponent, used = variable(plain)
          exponent = -exponent unless large
          rest = rest[used..-1]
        end
        rest = invert(rest) if negative && !large
        digits = ''
        rest.bytes.each do |b|
          digits << (b >> 1).to_s.rjust(2, '0')
          break if b.even?
        end
        "#{negative ? '-' : ''}0.#{digits}e#{2 * exponent}"
      end

      # [number, bytes]: SQLite4's.
      def variable(bytes)
        a, b, c = bytes.bytes
        return [a, 1] if a <= 240
        return [240 + 256 * (a - 241) + b, 2] if a <= 248
        return [2288 + 256 * b + c, 3] if a == 249
        length = a - 247
        [bytes[1, length].bytes.inject(0) { |n, v| n << 8 | v }, length + 1]
      end
    end
  end
end
