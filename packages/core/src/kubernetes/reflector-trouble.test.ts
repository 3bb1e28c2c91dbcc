import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Exchange, serveWatchList } from '../testing/scripted-api-server.ts';
import { millis, seconds } from '../base/time.ts';
import { OutageWaits } from './outages.ts';
import { added, deleted, modified, ReflectorHarness } from './testing/reflector-harness.ts';

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create();
});

afterEach(() => h[Symbol.asyncDispose]());

describe('trouble', () => {
  const faults: readonly (readonly [string, (exchange: Exchange) => void])[] = [
    ['HTTP 401', (exchange) => exchange.answer(401, { kind: 'Status', message: 'Unauthorized' })],
    ['HTTP 403', (exchange) => exchange.answer(403, { kind: 'Status', message: 'services is forbidden' })],
    ['HTTP 404', (exchange) => exchange.answer(404, '404 page not found')],
    ['HTTP 429', (exchange) => exchange.answer(429, 'Too many requests')],
    ['HTTP 500', (exchange) => exchange.answer(500, '')],
    ['HTTP 503', (exchange) => exchange.answer(503, 'service unavailable')],
    ['HTTP 504', (exchange) => exchange.answer(504, { message: 'Too large resource version' })],
    ['a connection reset before the answer', (exchange) => exchange.reset()],
    ['a connection reset in the stream', (exchange) => exchange.stream().write('{"type":"ADD') && exchange.reset()],
    ['truncated JSON', (exchange) => exchange.stream().write('{"type":"ADDED","obj\n').end()],
    ['a last line without a newline', (exchange) => exchange.stream().write('{"type":"ADDED"').end()],
    ['a line that is not an event', (exchange) => exchange.stream().write('[1]\n').end()],
    ['an unknown event type', (exchange) => exchange.stream().send({ type: 'MOVED', object: {} }).end()],
    [
      'an ERROR event other than 410',
      (exchange) =>
        exchange
          .stream()
          .send({ type: 'ERROR', object: { code: 500 } })
          .end(),
    ],
    ['a stream that ends at once', (exchange) => exchange.stream().end()],
    ['gzip without a request for it', (exchange) => exchange.answer(200, {}, { 'content-encoding': 'gzip' })],
    ['a web page', (exchange) => exchange.answer(200, '<html>\n<body>\nlog in</body>')],
  ];

  test.each(faults)('%s while listing is waited out', async (_, fault) => {
    h.start();
    fault(await h.next());
    fault(await h.next());
    expect(h.events).toEqual([]);
    await h.sync('10', 'a');
    expect(h.told).toEqual(['replace shop/a']);
    expect(h.clock.waits.length).toBeGreaterThanOrEqual(2);
    await h.until(() => h.log.transitions.length === 2);
    expect(h.log.transitions).toEqual([
      'warn lost the API server; forwarding stays as it is',
      'info the API server is back',
    ]);
  });

  test.each(faults)('%s while watching resumes from the last version and delivers nothing', async (_, fault) => {
    h.start();
    (await h.sync('10', 'a')).send(modified('a', '11')).end();
    fault(await h.next());
    fault(await h.next());
    const resumed = await h.next();
    expect(resumed.query.get('resourceVersion')).toBe('11');
    expect(h.told).toEqual(['replace shop/a', 'upsert shop/a']);
    resumed.stream().send(deleted('a', '12'));
    await h.until(() => h.events.length === 3);
    expect(h.told[2]).toBe('delete shop/a');
  });

  test('waits double up to the bound, half of each random, and start over after success', async () => {
    h.start({ backOff: { first: millis(100), max: millis(400) }, shortWatch: millis(0) }, 0.5);
    for (let round = 0; round < 5; round++) (await h.next()).answer(500, 'no');
    expect((await h.sync('10')).target).toContain('sendInitialEvents');
    expect(h.clock.waits).toEqual([75, 150, 300, 300, 300]);
    h.server.requests.length = 0;
    h.clock.waits.length = 0;
    await h.stop();
    h.start({ backOff: { first: millis(100), max: millis(400) }, shortWatch: millis(0) }, 0);
    (await h.next()).answer(500, 'no');
    serveWatchList(await h.next(), '10').end();
    (await h.next()).answer(500, 'no');
    await h.next();
    expect(h.clock.waits).toEqual([50, 50]);
  });

  test.each([
    [429, '2', 2000],
    [503, '5', 5000],
    [504, '1', 1000],
  ])('HTTP %i with Retry-After %s is obeyed', async (status, retryAfter, least) => {
    h.start({}, 0.25);
    (await h.next()).answer(status, 'later', { 'retry-after': retryAfter });
    await h.next();
    expect(h.clock.waits).toEqual([least + 250]);
  });

  // Waits of a minute and more are real here: only an early end can be why the next request comes.
  const patient = { backOff: { first: seconds(120), max: seconds(120) } };

  test.each<readonly [string, (exchange: Exchange) => void]>([
    ['a connection that breaks off', (exchange) => exchange.stream().write('{"type"').end()],
    ['a gateway without a server', (exchange) => exchange.answer(502, 'bad gateway')],
  ])('the wait after %s ends when another reflector gets through', async (_, fault) => {
    const waits = new OutageWaits(h.clock);
    h.start(patient, 0.5, waits);
    fault(await h.next());
    await h.until(() => h.log.transitions.length === 1);
    await h.pause();
    waits.end();
    await h.sync('10', 'a');
    expect(h.told).toEqual(['replace shop/a']);
  });

  test.each([
    [429, {}],
    [503, { 'retry-after': '70' }],
    [403, {}],
  ])('the wait after HTTP %i is not cut short', async (status, headers) => {
    const waits = new OutageWaits(h.clock);
    h.start(patient, 0.5, waits);
    (await h.next()).answer(status, 'no', headers);
    await h.until(() => h.log.transitions.length === 1);
    await h.pause();
    waits.end();
    await h.pause();
    expect(h.server.requests).toHaveLength(1);
  });

  test('getting through ends the waits of the others', async () => {
    const waits = new OutageWaits(h.clock);
    const other = waits.sleep(seconds(120), new AbortController().signal);
    h.start({}, 0.5, waits);
    (await h.next()).answer(500, 'no');
    await h.sync('10', 'a');
    await other;
  });

  test('an outage is logged once, with its cause, and once when it is over', async () => {
    h.start();
    for (let round = 0; round < 4; round++)
      (await h.next()).answer(403, { message: 'services is forbidden: User "x"' });
    await h.sync('10');
    await h.until(() => h.log.transitions.length === 2);
    const [lost, back] = h.log.lines.filter(({ level }) => level !== 'debug');
    expect(lost?.fields['error']).toMatch(
      /^GET \/api\/v1\/services\?.*: answered 403: services is forbidden: User "x"; grant "list" and "watch" to this account/,
    );
    expect(back?.fields).toMatchObject({ resource: 'Service', failures: 4 });
  });

  test('a watch whose connection closes without the terminator is an ordinary end', async () => {
    h.start({ shortWatch: millis(0) });
    (await h.sync('10')).send(added('a', '11'));
    await h.until(() => h.events.length === 2);
    h.server.requests[0]?.cut();
    expect((await h.next()).query.get('resourceVersion')).toBe('11');
    expect(h.log.transitions).toEqual([]);
  });

  test('a version the server keeps refusing is given up for a new list', async () => {
    h.start();
    (await h.sync('10', 'a')).send(modified('a', 'nonsense')).end();
    for (let round = 0; round < 5; round++) {
      const refused = await h.next();
      expect(refused.query.get('resourceVersion')).toBe('nonsense');
      refused.answer(500, { message: 'strconv.ParseUint: parsing "nonsense"' });
    }
    expect((await h.next()).query.get('sendInitialEvents')).toBe('true');
  });

  test('refusals are counted anew after a watch that brought something', async () => {
    h.start();
    (await h.sync('10', 'a')).end();
    for (let version = 11; version < 14; version++) {
      for (let round = 0; round < 4; round++) (await h.next()).answer(500, 'no');
      (await h.next())
        .stream()
        .send(modified('a', `${version}`))
        .end();
    }
    expect((await h.next()).query.get('resourceVersion')).toBe('13');
  });

  test.each([401, 403, 429, 503])('HTTP %i, however often, never gives up the version', async (status) => {
    h.start();
    (await h.sync('10', 'a')).send(modified('a', '11')).end();
    for (let round = 0; round < 8; round++) (await h.next()).answer(status, 'no');
    expect((await h.next()).query.get('resourceVersion')).toBe('11');
  });
});
