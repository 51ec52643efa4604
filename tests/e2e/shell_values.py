# SPDX-License-Identifier: Apache-2.0
"""Values that `rorqual shell` shows and reads: numbers, times, keys, OrderedBytes, JSON, other forms of output. own_shell.py runs the
tests."""
import json
import os
import re
import struct
import subprocess

from rorqual import BINARY
from shell_world import shell


def other_forms(_):
    rows = "create 't', 'f'\nput 't', 'r', 'f:q', 'a,\"b'\nscan 't'\n"
    if '"value":"a,\\"b"' not in shell("-n", "--json", "memory:", text=rows).stdout:
        return "no JSON"
    if 'r,f:q,' not in shell("-n", "--csv", "memory:", text=rows).stdout:
        return "no CSV"
    return None if '\nr\tf:q\t' in shell("-n", "--tsv", "memory:", text=rows).stdout else "no TSV"


def floats_in_text(_):
    """As JRuby prints them; numbers of more than 15 digits have 51 bits of precision."""
    cases = {"0.1": "0.1", "1e100": "1.0e+100", "2e300": "2.0e+300", "1e16": "10000000000000000.0", "1e18": "1000000000000000000.0",
             "1e19": "1.0e+19", "0.0001": "0.0001", "0.00012": "0.00012", "1e-5": "1.0e-05", "-1.5": "-1.5", "-0.0": "-0.0", "1/3.0": "0.3333333333333333",
             "2/3.0": "0.6666666666666666", "2.0**70": "1.1805916207174113e+21", "1234567.891": "1234567.891", "100.0": "100.0",
             "1/0.0": "Infinity", "-1/0.0": "-Infinity", "0/0.0": "NaN", "123456789012345.0": "123456789012345.0", "[0.7, 2.5]": "[0.7, 2.5]",
             "1.7976931348623e308": "1.7976931348623e+308", "2.2250738585072e-308": "2.2250738585072e-308"}
    out = shell("-n", "memory:", text="".join(f"x = {c}; p x; nil\n" for c in cases)).stdout
    got = [line for line in out.splitlines() if line and not line.startswith("hbase:")]
    wrong = [f"{c}: {g} instead of {want}" for (c, want), g in zip(cases.items(), got) if g != want]
    # Printed numbers are read back as the same number, except for the two bits that mruby drops.
    again = shell("-n", "memory:", text="x = 1.0\n3000.times { |i| x = (x * 1.0173 + i) % 1e9 / 7 - i; puts \"#{x} #{Bytes.toHex(Bytes.toBytes(x))}\" }; nil\n").stdout
    pairs = re.findall(r"(?m)^(-?[0-9.e+-]+) ([0-9a-f]{16})$", again)
    wrong += [f"{text} is {bits}" for text, bits in pairs if struct.unpack(">Q", struct.pack(">d", float(text)))[0] ^ int(bits, 16) > 3]
    return "; ".join(wrong[:5]) or (None if len(got) == len(cases) and len(pairs) == 3000 else again[-500:])


def ordered_bytes_are_decoded(_):
    """Converters for OrderedBytes decode keys that `rorqual key` encoded, in both orders."""
    kinds = {"ob-i8": ("decodeInt8", [-128, 0, 127]), "ob-i16": ("decodeInt16", [-300, 7]), "ob-i32": ("decodeInt32", [-70000, 0, 2147483647]),
             "ob-i64": ("decodeInt64", [-9223372036854775808, 5]), "ob-f32": ("decodeFloat32", ["-1.5", "0.25"]), "ob-f64": ("decodeFloat64", ["-0.1", "1.5"]),
             "ob-text": ("decodeString", ["", "abc"]), "ob-blobvar": ("decodeBlobVar", ["a", "longer text"]),
             "ob-num": ("decodeNumericAsBigDecimal", ["0", "-123.45", "0.00001", "98765432109876543210"])}
    lines, expected = [], []
    for order in ("", "desc-"):
        for kind, (method, values) in kinds.items():
            for value in values:
                key = subprocess.run([BINARY, "key", "--hex", f"x:{order}{kind}", "--", str(value)], capture_output=True, text=True, check=True).stdout.strip()
                lines.append(f"puts org.apache.hadoop.hbase.util.OrderedBytes.{method}(['{key}'].pack('H*')).to_s; nil\n")
                expected.append(str(value))
    out = shell("-n", "memory:", text="".join(lines)).stdout
    got = [line for line in out.splitlines() if not line.startswith("hbase:")][:len(expected)]
    wrong = [f"{w}: {g}" for w, g in zip(expected, got) if g != w and (not re.fullmatch(r"[-0-9.E]+", g) or float(g) != float(w))]
    return "; ".join(wrong[:5]) or (None if len(got) == len(expected) else out[-500:])


def values_are_shown_by_kind(_):
    """The output of \\as: values of the kind, values of another kind, and damaged values."""
    cases = [("protobuf", r"\x08\x96\x01\x12\x04text\x1a\x02\x08\x07", '{1: 150, 2: "text", 3: {1: 7}}'),
             ("protobuf", r"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x11\0\0\0\0\0\0\x04\x40\x1d\x07\0\0\0", "{1: -1, 2: 2.5, 3: 7}"),
             ("protobuf", r"\x12\xff\xff\xff\xff\x0fx", r"\x12\xFF\xFF\xFF\xFF\x0Fx"), ("protobuf", r"\x0b\x0c", r"\x0B\x0C"), ("protobuf", r"\x08", r"\x08"),
             ("time", r"\0\0\x01\x9b\x7c\xa9\x8c\x88", "2026-01-02T03:04:05"), ("time", r"\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"), ("time", "x", "x"),
             ("json", '{\\"b\\" : [1]}', '{"b":[1]}'), ("json", "{x", "{x"), ("geohash", "u33dc0", "u33dc0 (52.5174, 13.4088)"), ("geohash", "a", "a"),
             ("float", r"\x40\x20\0\0", "2.5"), ("double", r"\x40\x04\0\0\0\0\0\0", "2.5"), ("int", r"\xff\xff\xff\xff", "-1"),
             ("long", r"\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"), ("hex", r"\0a", "0061"), ("text", "a", "a")]
    text = "Shell.need('show'); nil\n" + "".join(f'puts "#" + Show.value(\'{kind}\', "{value}"); nil\n' for kind, value, _ in cases)
    out = subprocess.run([BINARY, "shell", "-n", "memory:"], input=text, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC"}).stdout
    got = [line[1:] for line in out.splitlines() if line.startswith("#")]
    wrong = [f"{kind} {value}: {g}" for (kind, value, want), g in zip(cases, got) if g != want]
    return "; ".join(wrong) or (None if len(got) == len(cases) else out[-500:])


def times_of_other_zones(_):
    """Local times use the time zone, seconds since 1970 do not. Formats and times may have any length."""
    text = ("puts '#' + DateTime.parse('2026-01-02T03:04:05Z').strftime('%s')\n" "puts '#' + Time.at(1767323045).utc.strftime('%s %%s %H')\n"
            "puts '#' + Time.at(1767323045).strftime('%s %z %H')\n" "create 't', 'f'\n" "put 't', 'r', 'f:q', 'v', 1767323045006\n" "scan 't'\n"
            "puts '#' + Time.at(0).strftime('x' * 300).length.to_s\n" "puts '#' + Time.at(0).strftime('') + '.'\n"
            "begin; Time.at(0).strftime('%9999999Y'); rescue ArgumentError => e; puts '#' + e.message; end\n"
            "puts '#' + Shell.local_time(-9223372036854775807) + ' ' + Shell.local_time(-1)\n")
    out = subprocess.run([BINARY, "shell", "-n", "memory:"], input=text, capture_output=True, text=True, check=False,
                         env={**os.environ, "TZ": "NST3:30"}).stdout
    wanted = ["#1767323045", "#1767323045 %s 03", "#1767323045 -0330 23", " r column=f:q, timestamp=2026-01-01T23:34:05.006, value=v",
              "#300", "#.", "#the time in this format is too long", "#-292275055-05-16T13:17:04.193 1969-12-31T20:29:59.999"]
    missing = [line for line in wanted if line not in out.splitlines()]
    return f"{missing} not in {out}" if missing else None


def row_keys_are_those_of_the_command(_):
    """RowKey.encode and decode compared with `rorqual key`; wrong formats, values and keys are named."""
    form = "salt(16) user:u64 time:desc-ms"
    key = subprocess.run([BINARY, "key", "--hex", form, "7", "2022-12-31T23:59:59.999Z"], capture_output=True, text=True, check=True).stdout.strip()
    text = (f"f = '{form}'\nputs '#' + Bytes.toHex(RowKey.encode(f, 7, '2022-12-31T23:59:59.999Z'))\n"
            f"puts '#' + RowKey.decode(f, ['{key}'].pack('H*')).inspect\n"
            "def told\n  yield\nrescue ArgumentError => e\n  puts \"##{e.message}\"\nend\n"
            "told { RowKey.encode('user:u65', 7) }\ntold { RowKey.encode(f, 'x') }\ntold { RowKey.decode(f, 'x') }\ntold { RowKey.encode(f, *[1] * 300) }\n"
            "told { RowKey.encode(f, \"a\\0b\") }\n")
    wanted = [key, '{"user"=>"7", "time"=>"1672531199999"}', "user:u65: unknown type u65", "'x' is no integer", "the key ends in this part", "too many values", "null byte"]
    got = [line[1:] for line in shell("-n", "memory:", text=text).stdout.splitlines() if line.startswith("#")]
    return None if len(got) == len(wanted) and all(w in g for w, g in zip(wanted, got)) else f"{got}"


def json_is_read(_):
    """Json.parse decodes valid texts and refuses invalid ones."""
    good = ['[]', '{}', '[1,-2.5,1e3,true,false,null]', '{"a":{"b":["c\\n\\u00e9\\"",""]}}', ' [ 1 , { "x" : 2 } ] ', '"t"', '0']
    bad = ['', '[', '[1', '[1,]', '{', '{"a"}', '{"a":}', '{1:2}', '"a', '"\\u12"', 'tru', '01x', '-', '[1] 2', '[' * 1000, '\x00']
    text = "Shell.need('json')\n"
    for t in good + bad:
        encoded = "".join(f"\\x{b:02x}" for b in t.encode())
        text += f"puts(begin; Json.text(Json.parse(\"{encoded}\")); rescue ArgumentError; 'refused'; end)\n"
    out = [line for line in shell("-n", "memory:", text=text).stdout.splitlines() if line and not line.startswith(("hbase:", "=>"))]
    for t, line in zip(good, out):
        if json.loads(line) != json.loads(t):
            return f"{t}: {line}"
    refused = out[len(good):]
    return None if refused == ["refused"] * len(bad) else f"not refused: {refused}"


TESTS = (other_forms, floats_in_text, ordered_bytes_are_decoded, values_are_shown_by_kind, times_of_other_zones, row_keys_are_those_of_the_command,
         json_is_read)
