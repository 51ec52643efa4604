# SPDX-License-Identifier: Apache-2.0
"""The part of HBase's RPC that the drivers need. It uses no client library, whose retries would
hide errors and whose checks would prevent malformed requests.

Cells are inside the messages, because the connection names no codec. Each connection is for one thread.
"""
import random
import socket
import struct
import time

TIMEOUT = 300  # seconds; only for calls that hang
HB = "org.apache.hadoop.hbase."
PUT = 2


# ---- a minimal protobuf


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def delimited(message):
    return varint(len(message)) + message


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """{field number: list of its values}"""
    at, out = 0, {}
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 2:
            length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif tag & 7 == 5:
            value, at = data[at:at + 4], at + 4
        else:
            value, at = read_varint(data, at)
        out.setdefault(tag >> 3, []).append(value)
    return out


# ---- sockets


def read_exact(connection, length):
    data = b""
    while len(data) < length:
        some = connection.recv(length - len(data))
        if not some:
            raise EOFError(f"closed after {len(data)} of {length} bytes")
        data += some
    return data


# ---- messages


def header(service, version="2.6.1", codec=None, compressor=None, user="tester"):
    """A connection header. version None: none is sent. codec, compressor: Java classes."""
    head = text(1, text(1, user)) + text(2, service)
    head += (text(3, codec) if codec else b"") + (text(4, compressor) if compressor else b"")
    if version is None:
        return head
    major, minor = version.split(".")[:2]
    told = b"".join(text(n, version if n == 1 else "") for n in range(1, 7))
    return head + text(5, told + number(7, int(major)) + number(8, int(minor)))


def region(name):
    """A RegionSpecifier: names with a comma are full region names, others encoded names."""
    return number(1, 1 if b"," in name else 2) + text(2, name)


def table_name(table):
    return text(1, "default") + text(2, table)


def region_info(table, start, end, region_id, namespace=b"default", replica=0):
    return (number(1, region_id) + text(2, text(1, namespace) + text(2, table)) + text(3, start) +
            text(4, end) + number(5, 0) + number(6, 0) + number(7, replica))


def nonce():
    return random.getrandbits(62) | 1


def put_message(row, cells):
    """cells: {(family, qualifier): value}"""
    columns = b"".join(text(3, text(1, f) + text(2, text(1, q) + text(2, v)))
                       for (f, q), v in cells.items())
    return text(1, row) + number(2, PUT) + columns


def key_value(row, family, qualifier, value, timestamp=(1 << 63) - 1):
    """A put's cell as KeyValueCodec encodes it in a cell block."""
    key = struct.pack(">HB", len(row), len(family))
    key = key[:2] + row + key[2:] + family + qualifier + struct.pack(">Qb", timestamp, 4)
    cell = struct.pack(">II", len(key), len(value)) + key + value
    return struct.pack(">I", len(cell)) + cell


def result_cells(result):
    """{(family, qualifier): value} of a Result's first version of each column."""
    out = {}
    for cell in fields(result).get(1, []):
        f = fields(cell)
        out.setdefault((f.get(2, [b""])[0], f.get(3, [b""])[0]), f.get(6, [b""])[0])
    return out


def wait_for(condition):
    """Waits until the condition holds."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.005)
    raise TimeoutError("it does not come about")


class Refused(Exception):
    """The exception that the server sent instead of a result."""

    def __init__(self, name, trace):
        super().__init__(f"{name}: {trace.splitlines()[0] if trace else ''}")
        self.name = name.removeprefix(HB)
        self.trace = trace


class Connection:
    """A connection to one service at one address."""

    def __init__(self, address, service="ClientService", version="2.6.1", codec=None, compressor=None, user="tester"):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = header(service, version, codec, compressor, user)
        self.socket.sendall(b"HBas\0\x50" + struct.pack(">I", len(head)) + head)
        self.last_id = 0
        self.input = self.socket.makefile("rb", 1 << 16)

    def close(self):
        self.input.close()
        self.socket.close()

    def send(self, method, message, block=b""):
        """Sends a call without waiting for the response; returns its id. block: the cell block after the message."""
        self.last_id += 1
        head = number(1, self.last_id) + text(3, method) + number(4, 1)
        head += text(5, number(1, len(block))) if block else b""
        body = delimited(head) + delimited(message) + block
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        return self.last_id

    def _read(self, length):
        data = self.input.read(length)
        if len(data) < length:
            raise EOFError(f"closed by the server after {len(data)} of {length} bytes")
        return data

    def receive(self):
        """Reads a response: (call id, its fields or Refused)"""
        body = self._read(struct.unpack(">I", self._read(4))[0])
        size, at = read_varint(body, 0)
        head = fields(body[at:at + size])
        at += size
        if 2 in head:
            exception = fields(head[2][0])
            return head[1][0], Refused(exception[1][0].decode(),
                                       exception.get(2, [b""])[0].decode(errors="replace"))
        size, at = read_varint(body, at)
        self.block = body[at + size:]  # the response's cell block
        return head[1][0], fields(body[at:at + size])

    def call(self, method, message, block=b""):
        wanted = self.send(method, message, block)
        call_id, answer = self.receive()
        assert call_id == wanted, f"answer to call {call_id}, not to {wanted}"
        if isinstance(answer, Refused):
            raise answer
        return answer

    # ---- data

    def put(self, region_name, row, cells):
        self.call("Mutate", text(1, region(region_name)) + text(2, put_message(row, cells)))

    def put_many(self, region_name, rows):
        """Puts [(row, cells)]; returns the rows' exceptions, None for acknowledged rows."""
        return multi_outcomes(self.call("Multi", multi_message(region_name, rows)), len(rows))

    def get(self, region_name, row):
        got = self.call("Get", text(1, region(region_name)) + text(2, text(1, row)))
        return result_cells(got[1][0]) if 1 in got else {}

    def scan(self, region_name, start=b"", stop=b"", rows=1000):
        """Every row of a region: {row: {(family, qualifier): value}}."""
        scan = text(3, start) + text(4, stop) + number(17, rows)
        answer = self.call("Scan", text(1, region(region_name)) + text(2, scan) + number(4, rows))
        out = {}
        while True:
            for result in answer.get(5, []):
                cells = fields(result).get(1, [])
                row = fields(cells[0])[1][0]
                out.setdefault(row, {}).update(result_cells(result))
            if answer.get(8, [1])[0] == 0 or answer.get(3, [1])[0] == 0 or 2 not in answer:
                return out
            scanner = answer[2][0]
            answer = self.call("Scan", number(3, scanner) + number(4, rows))
            answer.setdefault(2, [scanner])


def multi_message(region_name, rows):
    actions = b"".join(text(3, number(1, i) + text(2, put_message(row, cells)))
                       for i, (row, cells) in enumerate(rows))
    return text(1, text(1, region(region_name)) + actions)


def multi_outcomes(answer, count):
    result = fields(answer[1][0])
    if 2 in result:
        return [exception_name(result[2][0])] * count
    out = ["no answer"] * count
    for one in result.get(1, []):
        f = fields(one)
        out[f.get(1, [0])[0]] = exception_name(f[3][0]) if 3 in f else None
    return out


def exception_name(pair):
    return fields(pair)[1][0].decode().removeprefix(HB)


class Client:
    """The services of a started server."""

    def __init__(self, server):
        self.data = Connection(server.regionserver)
        self.admin = Connection(server.regionserver, "AdminService")
        self.master = Connection(server.master, "MasterService")

    def close(self):
        for connection in (self.data, self.admin, self.master):
            connection.close()

    def create(self, table, families, splits=(), values=None):
        """families: {name: {attribute: value}}; values: {attribute: value} of the table"""
        described = b"".join(
            text(3, text(1, name) + b"".join(text(2, text(1, k) + text(2, v))
                                             for k, v in attributes.items()))
            for name, attributes in families.items())
        own = b"".join(text(2, text(1, k) + text(2, v)) for k, v in (values or {}).items())
        message = text(1, text(1, table_name(table)) + own + described)
        message += b"".join(text(2, split) for split in splits)
        message += number(3, nonce()) + number(4, nonce())
        self.procedure(self.master.call("CreateTable", message)[1][0])

    def procedure(self, proc_id):
        """Waits for the procedure as clients do: by polling."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            got = self.master.call("getProcedureResult", number(1, proc_id))
            if got[1][0] == 2:
                if 5 in got:
                    raise RuntimeError(f"procedure {proc_id}: {got[5][0]!r}")
                return
            time.sleep(0.005)
        raise TimeoutError(f"procedure {proc_id} is not finished")

    def regions(self, table):
        """[(start key, full name, encoded name)] from hbase:meta."""
        table = table.encode()
        rows = self.data.scan(b"1588230740", table + b",,", table + b" ,,")
        out = [(row.split(b",", 1)[1].rpartition(b",")[0], row, row[:-1].rpartition(b".")[2])
               for row in sorted(rows)]
        return sorted(out)

    def flush(self, region_name):
        self.admin.call("FlushRegion", text(1, region(region_name)))

    def split(self, table, at):
        """Splits the table's first region."""
        start, name, _ = self.regions(table)[0]
        region_id = int(name.rpartition(b",")[2].split(b".")[0])
        message = (text(1, region_info(table.encode(), start, b"", region_id)) + text(2, at) +
                   number(3, nonce()) + number(4, nonce()))
        self.procedure(self.master.call("SplitRegion", message)[1][0])
