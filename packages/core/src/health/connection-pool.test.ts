import { expect, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { seconds } from '../base/time.ts';
import { ConnectionPool } from './connection-pool.ts';

function bench(connections = 3) {
  const clock = new ManualClock();
  const pool = new ConnectionPool({ connections, requestTime: seconds(5) }, clock);
  const cut: string[] = [];
  const open = (name: string) => {
    const connection = { cut: () => void cut.push(name) };
    pool.add(connection);
    return connection;
  };
  return { clock, pool, cut, open };
}

test('a new connection at the limit replaces the one that has sent no whole request for longest', async () => {
  const { clock, pool, cut, open } = bench();
  const names = ['a', 'b', 'c'];
  for (const name of names) {
    open(name);
    await clock.advance(1);
  }
  open('d');
  expect(cut).toEqual(['a']);
  open('e');
  expect(cut).toEqual(['a', 'b']);
  expect(pool.size).toBe(3);
});

test('a connection with a request in work is replaced last', async () => {
  const { clock, pool, cut, open } = bench();
  pool.beginAnswer(open('in work'));
  await clock.advance(1);
  pool.expectReading(open('not read'));
  await clock.advance(1);
  open('incomplete');
  ['x', 'y'].forEach(open);
  expect(cut).toEqual(['not read', 'incomplete']);
  const full = bench(1);
  full.pool.beginAnswer(full.open('in work'));
  full.open('new');
  expect(full.cut).toEqual(['in work']);
});

test('a client that takes its answer becomes the youngest again', async () => {
  const { clock, pool, cut, open } = bench(2);
  const reading = open('reading');
  pool.expectReading(reading);
  await clock.advance(1);
  pool.expectReading(open('stuck'));
  await clock.advance(1);
  pool.expectReading(reading);
  open('new');
  expect(cut).toEqual(['stuck']);
});

test('a client has five seconds to begin a request, and five to complete it', async () => {
  const { clock, pool, cut, open } = bench();
  open('silent');
  const slow = open('slow');
  await clock.advance(4000);
  pool.expectRequest(slow); // its first byte
  await clock.advance(999);
  expect(cut).toEqual([]);
  await clock.advance(1);
  expect(cut).toEqual(['silent']);
  await clock.advance(4000);
  expect(cut).toEqual(['silent', 'slow']);
  expect(clock.sleeping).toBe(0);
});

test('answers take as long as they take, and nothing sleeps without a connection to wait for', async () => {
  const { clock, pool, cut, open } = bench();
  const [working, sending, gone] = ['working', 'sending', 'gone'].map(open);
  if (!working || !sending || !gone) throw new Error('no connection');
  pool.beginAnswer(working);
  pool.expectReading(sending);
  pool.remove(gone);
  pool.expectRequest(gone); // its answer ends after it has
  await clock.advance(60_000);
  expect(cut).toEqual([]);
  expect(pool.size).toBe(2);
  expect(clock.sleeping).toBe(0);
});

test('a thousand connections need one timer', () => {
  const { clock, pool, open } = bench(1000);
  for (let count = 0; count < 1000; count++) open('c');
  expect(clock.sleeping).toBe(1);
  expect(pool.size).toBe(1000);
});
