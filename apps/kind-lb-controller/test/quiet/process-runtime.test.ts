import {
  type IpAddress,
  millis,
  noopLogger,
  parseCidr,
  parseIp,
  parsePort,
  seconds,
  systemClock,
} from '@switchyard/core';
import { mkdirSync } from 'node:fs';
import { createCommandRunner } from '@switchyard/host';
import { withFastDrain } from '@switchyard/loss';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { healthProfile } from '../../src/health-profile/health-profiles.ts';
import { newInterfaceAddresses } from '../../src/kernel/interface-addresses.ts';
import { openProcessRuntime, type ProcessRuntime } from '../../src/runtime/process-runtime.ts';
import type { TargetChange } from '../../src/runtime/runtime.ts';
import { writeSpecs } from '../../src/runtime/saved-specs.ts';
import { type Draining, type LoadBalancerSpec, loadBalancerKey } from '../../src/spec/load-balancer-spec.ts';
import { exampleSpec } from '../../src/testing/example-specs.ts';
import { createHaproxyNamespace, type HaproxyNamespace, nodes } from '../privileged/haproxy-namespace.ts';
import { until } from '@switchyard/core/testing';

// The real HAProxy in a namespace with only a loopback interface; nodes and clients are played in there too.
const { signal } = new AbortController();
const runner = createCommandRunner();
const pool = [parseCidr('192.0.2.0/24')];
const quick = healthProfile('cloud-provider-kind', { interval: millis(200), fall: 1 });
let host: HaproxyNamespace;
let runtime: ProcessRuntime;
let changes: TargetChange[];
let configurations: number;

const open = (isKeptOnExit = false): Promise<ProcessRuntime> =>
  openProcessRuntime({
    runDirectory: `${host.folder}/run`,
    program: '/usr/sbin/haproxy',
    netns: host.netns,
    isKeptOnExit,
    source: { kind: 'pool', cidrs: pool },
    interfaceAddresses: newInterfaceAddresses({ runner, interfaceName: 'lo', netns: host.netns, pool }),
    routes: undefined,
    kernel: undefined,
    listener: { onDisturbed: () => undefined, onTargetChange: (change) => void changes.push(change) },
    runner,
    clock: systemClock,
    log: {
      ...noopLogger,
      info: (message) => void (message === 'HAProxy took a new configuration' && configurations++),
    },
  });

/** A load balancer on 192.0.2.NUMBER:80 for both nodes. */
function spec(
  number: number,
  changed: Partial<LoadBalancerSpec> = {},
  draining?: string,
  how: Draining = 'serving',
): LoadBalancerSpec {
  const address = parseIp(`192.0.2.${number}`);
  const targets = nodes.map((text, index) => {
    const own = parseIp(text);
    const check = { address: own, port: parsePort(32080), path: '/healthz' };
    const name = `node${index + 1}`;
    return {
      name,
      node: name,
      address: own,
      port: parsePort(30080),
      check,
      draining: text === draining ? how : ('no' as const),
    };
  });
  const ports = [{ port: parsePort(80), protocol: 'TCP' as const, addresses: [address], targets }];
  return exampleSpec(`web${number}`, { ports, profile: quick, ...changed });
}
const url = (number: number, path = '/'): string => `http://192.0.2.${number}${path}`;
const ensure = async (...specs: readonly LoadBalancerSpec[]): Promise<readonly string[]> =>
  (await Promise.all(specs.map((one) => runtime.ensure(one, signal)))).map((outcome) =>
    outcome.status === 'failed' ? outcome.reason : outcome.status,
  );
const pause = (time: number): Promise<void> => systemClock.sleep(millis(time), signal);
/** Last state of a target of the first load balancer, from HAProxy. */
const isUp = (target: string): boolean | undefined =>
  changes.findLast((one) => one.id.service === 'default/web1' && one.target === target)?.isUp;
/** Changes a node's health and waits until HAProxy has seen it. */
const become = async (address: string, status: number): Promise<void> => {
  await host.setHealth(address, status);
  await until(`${address} to be ${status}`, () => isUp(`node${nodes.indexOf(address) + 1}`) === (status === 200));
};

beforeEach(async () => {
  changes = [];
  configurations = 0;
  host = await createHaproxyNamespace('lbrt');
  runtime = await open();
});
afterEach(async () => {
  await runtime[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});

describe('ensure', () => {
  test('takes calls that come together as one change, and a bad one among them fails alone', async () => {
    const good = Array.from({ length: 30 }, (_, index) => spec(index + 1));
    expect(await ensure(...good)).toEqual(good.map(() => 'applied'));
    expect(configurations).toBe(1);
    expect(await ensure(...good)).toEqual(good.map(() => 'unchanged'));
    expect(configurations).toBe(1);
    const bad = spec(40, { addresses: [] }); // not added to the interface, so HAProxy cannot bind it
    expect(await ensure(spec(41), bad, spec(42))).toEqual(['applied', 'HAProxyRejected', 'applied']);
    expect(await host.get(url(30), 4)).toEqual({ [nodes[0]]: 2, [nodes[1]]: 2 });
    expect(await host.get(url(42), 4)).toEqual({ [nodes[0]]: 2, [nodes[1]]: 2 });
    expect((await runtime.list('kind')).map(({ id }) => loadBalancerKey(id))).not.toContain('kind/default/web40');
    expect(await runtime.list('other')).toEqual([]);
  });

  test('goes on with what an earlier runtime left', async () => {
    await ensure(spec(1), spec(2));
    await runtime[Symbol.asyncDispose]();
    runtime = await open(true);
    await ensure(spec(1), spec(2));
    await runtime[Symbol.asyncDispose]();
    const load = host.load(url(2), { count: 200, gap: 5 });
    runtime = await open();
    expect(await runtime.list('kind')).toEqual([spec(1), spec(2)].map(({ id, addresses }) => ({ id, addresses })));
    expect(await ensure(spec(1))).toEqual(['unchanged']);
    expect((await load)['lost']).toBeUndefined();
    await runtime.remove(spec(2).id, signal);
    expect(await runtime.list('kind')).toHaveLength(1);
  });

  test('gives up what an earlier runtime left where that cannot run any more', async () => {
    await ensure(spec(1), spec(2));
    await runtime[Symbol.asyncDispose]();
    const stale = [3, 4].map((number) => spec(number, { addresses: [] })); // not added to the interface
    mkdirSync(`${host.folder}/run`, { recursive: true });
    await writeSpecs(`${host.folder}/run/specs.json`, stale);
    runtime = await open();
    expect(await runtime.list('kind')).toHaveLength(2);
    expect(await ensure(spec(1))).toEqual(['applied']);
    expect(await runtime.list('kind')).toEqual([{ id: spec(1).id, addresses: spec(1).addresses }]);
  });

  test('without kernel forwarding refuses what needs it', async () => {
    expect(await ensure(spec(1, { path: 'transparent' }))).toEqual(['KernelForwardingUnavailable']);
  });
});

test('remove refuses new connections at once and lets established ones finish before the address goes', async () => {
  await ensure(spec(1), spec(2));
  const slow = host.get(url(1, '/slow'), 1);
  await pause(300);
  const removed = runtime.remove(spec(1).id, signal);
  await until('a refusal', async () => (await host.get(url(1), 1))['lost'] === 1);
  expect(host.run('ip', 'addr')).toContain('192.0.2.1/32');
  const [by = ''] = Object.keys(await slow);
  expect(nodes).toContain(by);
  await removed;
  expect(host.run('ip', 'addr')).not.toContain('192.0.2.1/32');
  expect(await host.get(url(2), 2)).toEqual({ [nodes[0]]: 1, [nodes[1]]: 1 });
  await runtime.remove(spec(1).id, signal); // one that is not there is success
});

describe('endpoint weights', () => {
  test('3 and 1 are three to one, also after a reload, and again equal when the header is gone', async () => {
    for (const [index, address] of nodes.entries()) await host.setHealth(address, 200, index === 0 ? 3 : 1);
    await ensure(spec(1, { isWeighted: true }));
    const isThreeToOne = async (): Promise<boolean> => (await host.get(url(1), 8))[nodes[0]] === 6;
    await until('three to one', isThreeToOne);
    expect(await host.get(url(1), 80)).toEqual({ [nodes[0]]: 60, [nodes[1]]: 20 });
    await ensure(spec(2));
    await until('three to one after a reload', isThreeToOne);
    expect(host.pids()).toHaveLength(2); // the program does not keep the old worker
    await host.setHealth(nodes[0], 200);
    await until('equal shares', async () => (await host.get(url(1), 8))[nodes[0]] === 4);
  });

  test('are forgotten when a load balancer is no longer weighted', async () => {
    for (const [index, address] of nodes.entries()) await host.setHealth(address, 200, index === 0 ? 300 : 600);
    await ensure(spec(1, { isWeighted: true }));
    await until('one to two', async () => (await host.get(url(1), 9))[nodes[0]] === 3);
    await ensure(spec(1));
    expect(await host.get(url(1), 10)).toEqual({ [nodes[0]]: 5, [nodes[1]]: 5 });
  });
});

describe('announcements to nodes', () => {
  const words = (address: string): Promise<readonly string[]> => host.announced(address);
  const isLast =
    (address: string, word: string): (() => Promise<boolean>) =>
    async () =>
      (await words(address)).at(-1) === word;

  test('follow what HAProxy does: a node is left when it is DOWN, and used again when it is UP', async () => {
    await ensure(spec(1, { isWeighted: true, profile: { ...quick, fall: 3, rise: 2 } }));
    for (const address of nodes) await until('the first word', isLast(address, 'uses 200'));
    await host.setHealth(nodes[0], 503);
    await until('the node to be left', isLast(nodes[0], 'left 503'));
    expect(await host.get(url(1), 4)).toEqual({ [nodes[1]]: 4 });
    await host.setHealth(nodes[0], 200);
    await until('the node to be used', isLast(nodes[0], 'uses 200'));
    // It was used after the first failing checks, and left for a while in which it was healthy again.
    expect(await words(nodes[0])).toEqual(['uses 200', 'uses 503', 'left 503', 'left 200', 'uses 200']);
    expect(await words(nodes[1])).toEqual(['uses 200']);
  });

  test('say `left` of a node that drains when another is UP, again until it fails its check, and through reloads', async () => {
    await host.setHealth(nodes[1], 503);
    await ensure(spec(1, { isWeighted: true }));
    await until('the other node to be DOWN', isLast(nodes[1], 'left 503'));
    await ensure(spec(1, { isWeighted: true }, nodes[0]));
    await pause(500);
    expect(await words(nodes[0])).toEqual(['uses 200']);
    await host.setHealth(nodes[1], 200);
    await until('the node to be left', isLast(nodes[0], 'left 200'));
    await host.setHealth(nodes[0], 503);
    await until('it to hear that', isLast(nodes[0], 'left 503'));
    for (let number = 2; number < 6; number++) await ensure(spec(number));
    await pause(500);
    expect(await words(nodes[0])).toEqual(['uses 200', 'left 200', 'left 503']);
    expect((await words(nodes[1])).at(-1)).toBe('uses 200');
  });

  test.each([
    ['close', 'left 503'],
    ['all', 'uses 503'],
    ['lastUp', 'uses 503'],
  ] as const)('while no node is UP, `%s`: %s', async (whenNoneUp, word) => {
    await ensure(spec(1, { isWeighted: true, profile: { ...quick, whenNoneUp, lastUpFor: seconds(60) } }));
    await until('the first word', isLast(nodes[1], 'uses 200'));
    for (const address of nodes) await become(address, 503);
    await pause(500);
    for (const address of nodes) expect((await words(address)).at(-1)).toBe(word);
  });

  test('an old worker that still has a connection says nothing', async () => {
    await ensure(spec(1, { isWeighted: true }));
    await until('the first word', isLast(nodes[0], 'uses 200'));
    const slow = host.load(url(1, '/slow'), { count: 2, gap: 1, timeout: 4000 });
    await pause(100);
    await ensure(spec(1, { isWeighted: true }, nodes[0]));
    await host.setHealth(nodes[0], 503);
    await until('the node to be left', isLast(nodes[0], 'left 503'));
    expect(host.pids()).toHaveLength(3);
    await slow;
    const said = await words(nodes[0]);
    expect(said.slice(said.indexOf('left 503'))).toEqual(['left 503']);
  });
});

describe('a node that drains', () => {
  test('gets no new connections while another is UP, finishes those it has, and serves when nobody else does', async () => {
    await ensure(spec(1));
    const slow = host.load(url(1, '/slow'), { count: 2, gap: 1, timeout: 4000 });
    await pause(100);
    await ensure(spec(1, {}, nodes[0]));
    expect(await host.get(url(1), 6)).toEqual({ [nodes[1]]: 6 });
    expect(await slow).toEqual({ [nodes[0]]: 1, [nodes[1]]: 1 });
    await become(nodes[1], 503);
    expect(await host.get(url(1), 6)).toEqual({ [nodes[0]]: 6 });
  });
});

describe('with fast drain', () => {
  const profile = withFastDrain({ ...quick, interval: seconds(30), fall: 2 });
  const isThere = (address: string) => async () => (await host.get(url(1), 4))[address] === 4;

  test('a node without an endpoint gets nothing before its checks fail, not even in the place of others', async () => {
    for (const address of nodes) await host.setHealth(address, 200, address === nodes[0] ? 3 : 1);
    await ensure(spec(1, { profile, isWeighted: true }));
    await until('weights', async () => (await host.get(url(1), 4))[nodes[0]] === 3);
    await ensure(spec(1, { profile, isWeighted: true }, nodes[0], 'empty'));
    expect(await host.get(url(1), 6)).toEqual({ [nodes[1]]: 6 });
    await ensure(spec(1, {}, nodes[0], 'empty'));
    await become(nodes[1], 503);
    expect(await host.get(url(1), 3)).toEqual({ lost: 3 });
  });

  test('it is used again after one good check, although it was UP all the time', async () => {
    await ensure(spec(1, { profile }));
    await pause(600); // one good check each; the next one is due in 30 s
    await ensure(spec(1, { profile }, nodes[0], 'empty'));
    await host.setHealth(nodes[0], 503);
    await ensure(spec(1, { profile }));
    await pause(600);
    expect(await host.get(url(1), 6)).toEqual({ [nodes[1]]: 6 });
    await host.setHealth(nodes[0], 200);
    await until('both', async () => (await host.get(url(1), 4))[nodes[0]] === 2);
  });

  test('a node that drains serves for as long as no other is UP, also while it fails its checks', async () => {
    const short = { ...withFastDrain(quick), lastUpFor: seconds(1) };
    await host.setHealth(nodes[1], 503);
    await ensure(spec(1, { profile: short }));
    await until('one node', isThere(nodes[0]));
    await ensure(spec(1, { profile: short }, nodes[0]));
    await become(nodes[0], 503);
    await pause(2000);
    expect(await host.get(url(1), 6)).toEqual({ [nodes[0]]: 6 });
    await host.setHealth(nodes[1], 200);
    await until('the other node', isThere(nodes[1]));
  });
});

describe('while no node is UP', () => {
  const lastUp = { ...quick, whenNoneUp: 'lastUp', lastUpFor: seconds(2) } as const;

  test('`close` closes connections at once', async () => {
    await ensure(spec(1));
    for (const address of nodes) await become(address, 503);
    expect(await host.get(url(1), 3)).toEqual({ lost: 3 });
  });

  test('`lastUp` has no hole between a node that goes and one that comes', async () => {
    await host.setHealth(nodes[1], 503);
    await ensure(spec(1, { profile: lastUp }));
    await pause(600); // one good check each: only who was seen UP is a last resort
    const load = host.load(url(1), { count: 400, gap: 4 });
    await become(nodes[0], 503); // no target is UP now
    await pause(300);
    await become(nodes[1], 200);
    const { [nodes[0]]: old = 0, [nodes[1]]: young = 0, lost } = await load;
    expect(lost).toBeUndefined();
    expect(old).toBeGreaterThan(60); // more than went there while it was UP
    expect(young).toBeGreaterThan(0);
    expect(await host.get(url(1), 4)).toEqual({ [nodes[1]]: 4 });
  });

  test('`lastUp` loses nothing, also at reloads, until `lastUpFor` is over; a node that comes back is used at once', async () => {
    await ensure(spec(1, { profile: { ...lastUp, lastUpFor: seconds(60) } }), spec(2, { profile: lastUp }));
    await pause(600); // one good check each: only who was seen UP is a last resort
    for (const address of nodes) await become(address, 503);
    const load = host.load(url(1), { count: 900, gap: 4 });
    for (let number = 3; number < 18; number++) await ensure(spec(number));
    const tally = await load;
    expect(tally['lost']).toBeUndefined();
    await until('lastUpFor to be over', async () => (await host.get(url(2), 1))['lost'] === 1);
    expect(await host.get(url(1), 2)).toEqual({ [nodes[0]]: 1, [nodes[1]]: 1 });
    await become(nodes[1], 200);
    expect(await host.get(url(1), 4)).toEqual({ [nodes[1]]: 4 });
  });

  test('`all` asks every node that does not drain, also those that were out before it was wanted, and through reloads', async () => {
    await ensure(spec(1, { profile: lastUp }), spec(2));
    for (const address of nodes) await become(address, 503);
    await until('lastUpFor to be over', async () => (await host.get(url(1), 1))['lost'] === 1);
    const profile = { ...quick, whenNoneUp: 'all' } as const;
    await ensure(spec(1, { profile }), spec(2, { profile }, nodes[0]));
    const load = host.load(url(1), { count: 250, gap: 4 });
    for (let number = 3; number < 7; number++) await ensure(spec(number));
    const { [nodes[0]]: first = 0, [nodes[1]]: second = 0 } = await load; // each reload begins the round anew
    expect([first + second, Math.abs(first - second) <= 8]).toEqual([250, true]);
    expect(await host.get(url(2), 4)).toEqual({ [nodes[1]]: 4 });
    await become(nodes[1], 200);
    expect(await host.get(url(1), 4)).toEqual({ [nodes[1]]: 4 });
  });
});

test('PROXY protocol v2 tells the client, and health checks do without it', async () => {
  await ensure(spec(1, { proxyProtocol: 'v2' }));
  await pause(600);
  const client: IpAddress = parseIp('192.0.2.1'); // over the loopback interface, source and destination are the same
  expect(await host.get(url(1), 4)).toEqual({ [`${nodes[0]} from ${client}`]: 2, [`${nodes[1]} from ${client}`]: 2 });
  expect(changes).toEqual([]);
});
