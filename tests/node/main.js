// SPDX-License-Identifier: Apache-2.0
// npm's hbase-rpc-client against a running server: a client without cell blocks, whose cells are
// inside the messages. ZK=host:port is the server, TABLE a table with the families f and g, split at
// row0300 and row0700. Prints PASS and FAIL lines and their counts, like the programs of the other clients.
'use strict';
// The package is from 2016: Node warns of its deprecated way of making Buffers.
process.noDeprecation = true;
const assert = require('assert');
const hbase = require('hbase-rpc-client');

const TABLE = process.env.TABLE;
const ROWS = 1000;
// No retries (0 would mean the default): after an exception the client looks regions up by a call that servers since 2.0
// do not answer.
const client = hbase({zookeeperHosts: [process.env.ZK], tcpNoDelay: true, maxActionRetries: -1});
const failures = [];
let passed = 0;

client.on('error', error => failures.push(`the client: ${error.message || error}`));

/** Calls a method that takes a callback; returns a promise. */
function call(object, method, ...args) {
  return new Promise((resolve, reject) => {
    object[method](...args, (error, result) => error ? reject(error) : resolve(result));
  });
}

async function step(name, body) {
  try {
    await body();
    passed++;
    console.log(`PASS hbase-rpc-client/${name}`);
  } catch (error) {
    failures.push(name);
    console.log(`FAIL hbase-rpc-client/${name}: ${String(error && error.message || error).split('\n').join(' ').slice(0, 300)}`);
  }
}

const row = i => 'row' + String(i).padStart(4, '0');
const put = (key, cells) => {
  const p = new hbase.Put(key);
  for (const [column, value] of Object.entries(cells)) p.add(...column.split(':'), value);
  return p;
};
/** A column's value in an increment's response. */
const number = (answer, column) => client._parseResponse(answer.result).cols[column].value.readBigInt64BE();
/** {column: text} of a result; null if there is no row. */
const texts = result => result && Object.fromEntries(
  Object.entries(result.cols).map(([column, cell]) => [column, cell.value.toString()]));
const rows = results => results.map(result => result.row.toString());
const read = async (key, ...column) => {
  const get = new hbase.Get(key);
  if (column.length > 0) get.addColumn(...column);
  return texts(await call(client, 'get', TABLE, get));
};
/** A scan that fits into one response: if it needs more, the client's timer for a response without `ttl` ends it (with HBase too). */
const scan = (from, to, change = () => {}) => {
  const scanner = client.getScanner(TABLE, from, to);
  change(scanner);
  return call(scanner, 'toArray');
};

async function single() {
  await step('put, get', async () => {
    await call(client, 'put', TABLE, put('row0001', {'f:q': 'value', 'f:empty': '', 'g:ü': 'é'}));
    assert.deepStrictEqual(await read('row0001'), {'f:empty': '', 'f:q': 'value', 'g:ü': 'é'});
    assert.deepStrictEqual(await read('row0001', 'g'), {'g:ü': 'é'});
    assert.deepStrictEqual(await read('row0001', 'f', 'q'), {'f:q': 'value'});
  });
  await step('no such row', async () => assert.strictEqual(await read('row0002'), null));
  await step('bytes', async () => {
    const bytes = Buffer.from(Array.from({length: 256}, (_, i) => i));
    await call(client, 'put', TABLE, put('row0003', {'f:q': bytes}));
    const result = await call(client, 'get', TABLE, new hbase.Get('row0003'));
    assert.ok(result.cols['f:q'].value.equals(bytes));
  });
  await step('a megabyte', async () => {
    const large = Buffer.alloc(1 << 20, 'x');
    await call(client, 'put', TABLE, put('row0004', {'f:q': large}));
    assert.ok((await call(client, 'get', TABLE, new hbase.Get('row0004'))).cols['f:q'].value.equals(large));
  });
  await step('time range', async () => {
    const p = new hbase.Put('row0005');
    p.add('f', 'q', 'old', 1000);
    await call(client, 'put', TABLE, p);
    const within = new hbase.Get('row0005').setTimeRange(1000, 1001);
    const before = new hbase.Get('row0005').setTimeRange(0, 1000);
    assert.deepStrictEqual(texts(await call(client, 'get', TABLE, within)), {'f:q': 'old'});
    assert.strictEqual(await call(client, 'get', TABLE, before), null);
  });
  await step('delete a column, a family, a row', async () => {
    await call(client, 'put', TABLE, put('row0006', {'f:a': '1', 'f:b': '2', 'g:c': '3', 'g:d': '4'}));
    const column = new hbase.Delete('row0006');
    column.deleteColumns('f', 'a');
    await call(client, 'delete', TABLE, column);
    assert.deepStrictEqual(await read('row0006'), {'f:b': '2', 'g:c': '3', 'g:d': '4'});
    const family = new hbase.Delete('row0006');
    family.deleteFamily('g');
    await call(client, 'delete', TABLE, family);
    assert.deepStrictEqual(await read('row0006'), {'f:b': '2'});
    await call(client, 'delete', TABLE, new hbase.Delete('row0006'));
    assert.strictEqual(await read('row0006'), null);
  });
}

async function atomic() {
  await step('increment', async () => {
    const increment = new hbase.Increment('row0010');
    increment.add('f', 'a', 5);
    increment.add('g', 'b', '9007199254740993');
    await call(client, 'increment', TABLE, increment);
    const result = await call(client, 'increment', TABLE, increment);
    assert.strictEqual(number(result, 'f:a'), 10n);
    assert.strictEqual(number(result, 'g:b'), 18014398509481986n);
    const less = await call(client, 'incrementColumnValue', TABLE, 'row0010', 'f', 'a', -11);
    assert.strictEqual(number(less, 'f:a'), -1n);
  });
  await step('100 increments at once', async () => {
    await Promise.all(Array.from({length: 100}, () =>
      call(client, 'incrementColumnValue', TABLE, 'row0011', 'f', 'n', 1)));
    const result = await call(client, 'get', TABLE, new hbase.Get('row0011'));
    assert.strictEqual(result.cols['f:n'].value.readBigInt64BE(), 100n);
  });
  await step('checkAndPut', async () => {
    const first = put('row0012', {'f:q': 'new'});
    const refused = await call(client, 'checkAndPut', TABLE, 'row0012', 'f', 'q', 'other', first);
    assert.strictEqual(refused.processed, false);
    assert.strictEqual(await read('row0012'), null);
    await call(client, 'put', TABLE, put('row0012', {'f:q': 'old'}));
    assert.strictEqual((await call(client, 'checkAndPut', TABLE, 'row0012', 'f', 'q', 'old', first)).processed, true);
    assert.deepStrictEqual(await read('row0012'), {'f:q': 'new'});
  });
  await step('checkAndDelete', async () => {
    const gone = new hbase.Delete('row0012');
    assert.strictEqual((await call(client, 'checkAndDelete', TABLE, 'row0012', 'f', 'q', 'old', gone)).processed, false);
    assert.deepStrictEqual(await read('row0012'), {'f:q': 'new'});
    assert.strictEqual((await call(client, 'checkAndDelete', TABLE, 'row0012', 'f', 'q', 'new', gone)).processed, true);
    assert.strictEqual(await read('row0012'), null);
  });
}

async function several() {
  await step('mput, rows of three regions', async () => {
    const all = Array.from({length: ROWS - 100}, (_, i) => put(row(i + 100), {'f:q': `v${i + 100}`}));
    assert.strictEqual((await call(client, 'mput', TABLE, all)).length, ROWS - 100);
  });
  await step('mget', async () => {
    const keys = [100, 299, 300, 699, 700, 999].map(row);
    const results = await call(client, 'mget', TABLE, [...keys, 'rowxxxx']);
    assert.deepStrictEqual(results.slice(0, 6).map(texts), keys.map(key => ({'f:q': 'v' + Number(key.slice(3))})));
    assert.strictEqual(results[6].cell.length, 0);
  });
  await step('mdelete', async () => {
    await call(client, 'mdelete', TABLE, [row(500), row(900)]);
    assert.strictEqual(await read(row(500)), null);
    assert.strictEqual(await read(row(900)), null);
    await call(client, 'mput', TABLE, [put(row(500), {'f:q': 'v500'}), put(row(900), {'f:q': 'v900'})]);
  });
}

async function scans() {
  const keys = (from, to) => Array.from({length: to - from}, (_, i) => row(from + i));
  await step('scan', async () => {
    assert.deepStrictEqual(rows(await scan(row(400), row(470))), keys(400, 470));
    assert.deepStrictEqual(texts((await scan(row(400), row(401)))[0]), {'f:q': 'v400'});
  });
  await step('scan over two regions', async () =>
    assert.deepStrictEqual(rows(await scan(row(260), row(340))), keys(260, 340)));
  await step('reverse scan', async () =>
    assert.deepStrictEqual(rows(await scan(row(450), row(400), s => s.setReversed())), keys(401, 451).reverse()));
  await step('scan with filters', async () => {
    const value = text => ({singleColumnValueFilter: {
      columnFamily: 'f', columnQualifier: 'q', compareOp: 'EQUAL', comparator: {substringComparator: {substr: text}},
      filterIfMissing: true, latestVersionOnly: true}});
    assert.deepStrictEqual(rows(await scan(row(400), row(500), s => s.setFilter(value('44')))), keys(440, 450).filter(
      key => key.includes('44')));
    const list = new hbase.FilterList('MUST_PASS_ONE');
    list.addFilter(value('441'));
    list.addFilter(value('459'));
    assert.deepStrictEqual(rows(await scan(row(400), row(500), s => s.setFilter(list))), [row(441), row(459)]);
    assert.deepStrictEqual(rows(await scan(row(400), row(500), s => s.setFilter({prefixFilter: {prefix: 'row045'}}))),
      keys(450, 460));
  });
}

async function main() {
  await single();
  await atomic();
  await several();
  await scans();
  await step('an unknown family', () => assert.rejects(
    call(client, 'put', TABLE, put('row0020', {'none:q': 'v'})),
    error => /NoSuchColumnFamilyException/.test(error.exceptionClassName || error.name || error.message)));
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exit(failures.length > 0 ? 1 : 0);
}

main();
