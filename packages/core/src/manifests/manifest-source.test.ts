import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError } from '../base/errors.ts';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { MemoryLogger } from '../testing/memory-logger.ts';
import { millis, seconds, systemClock } from '../base/time.ts';
import { ManifestSource } from './manifest-source.ts';

let folder: string;
let log: MemoryLogger;
let stop: AbortController;
let pulling: Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-manifests-'));
  log = new MemoryLogger();
  stop = new AbortController();
  pulling = Promise.resolve();
});

afterEach(async () => {
  stop.abort();
  await pulling;
  await rm(folder, { recursive: true });
});

/** Pulls batches as a reconciler does, and returns them to the test in short: a port distinguishes versions. */
class Follower {
  readonly #unread: (readonly string[])[] = [];

  constructor(batches: AsyncIterable<readonly ClusterEvent[]>) {
    const pull = async (): Promise<void> => {
      for await (const batch of batches) this.#unread.push(batch.map(short));
    };
    pulling = pull();
  }

  /** The next batch. */
  async told(): Promise<readonly string[]> {
    await expect.poll(() => this.#unread.length, { interval: 2 }).toBeGreaterThan(0);
    return this.#unread.shift() ?? [];
  }
}

function short(event: ClusterEvent): string {
  if (event.kind === 'delete') return `delete ${event.name}`;
  const items = event.kind === 'replace' ? event.items : [event.item];
  const texts = items.map((item) => ('key' in item ? `${item.key}:${item.ports[0]?.port}` : item.name));
  return [event.kind, event.resource, ...texts].join(' ');
}

/** Real notifications and real time, but no periodic look: what is seen was announced. */
function follow(): Follower {
  const options = { folder, clock: systemClock, log, debounce: millis(5), rescan: seconds(60) };
  return new Follower(new ManifestSource(options).batches(stop.signal));
}

const service = (name: string, port = 80): string =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: 10.96.0.10, ports: [{ port: ${port} }] }\n---\n`;

async function write(name: string, ...documents: readonly string[]): Promise<void> {
  await writeFile(join(folder, `.${name}.tmp`), documents.join(''));
  await rename(join(folder, `.${name}.tmp`), join(folder, name));
}

/** Waits until `count` lines at info or above were logged. */
async function logged(count: number): Promise<readonly string[]> {
  await expect.poll(() => log.transitions.length, { interval: 2 }).toBe(count);
  return log.transitions;
}

test('the first batch replaces every resource, those without objects too', async () => {
  await write('a.yaml', service('cart'), 'apiVersion: v1\nkind: Node\nmetadata: { name: n1 }\n');
  expect(await follow().told()).toEqual([
    'replace Service default/cart:80',
    'replace EndpointSlice',
    'replace Node n1',
    'replace ServiceCIDR',
  ]);
});

test('an empty folder is in sync and empty', async () => {
  expect(await follow().told()).toEqual([
    'replace Service',
    'replace EndpointSlice',
    'replace Node',
    'replace ServiceCIDR',
  ]);
});

test('a folder that is not there is an error of the operator', async () => {
  const source = new ManifestSource({ folder: join(folder, 'nowhere'), clock: systemClock, log });
  const first = source.batches(stop.signal).next();
  await expect(first).rejects.toThrow(ConfigError);
  await expect(first).rejects.toThrow(/cannot read the manifest folder .*nowhere/);
});

test('other files, hidden files and folders are not looked at', async () => {
  await write('README.md', service('a'));
  await write('b.yaml~', service('b'));
  await writeFile(join(folder, '.hidden.yaml'), service('c'));
  await write('d.json', '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}');
  expect(await follow().told()).toContain('replace Node n1');
  expect(log.transitions).toEqual([]);
});

describe('changes', () => {
  test('an object that is added, changed and removed, and a file that is deleted', async () => {
    await write('a.yaml', service('a'));
    await write('b.yaml', service('b'));
    const batches = follow();
    await batches.told();
    await write('a.yaml', service('a', 81), service('new'));
    expect(await batches.told()).toEqual(['upsert Service default/a:81', 'upsert Service default/new:80']);
    await write('a.yaml', service('new'));
    expect(await batches.told()).toEqual(['delete default/a']);
    await rm(join(folder, 'b.yaml'));
    expect(await batches.told()).toEqual(['delete default/b']);
  });

  test('a file that is written in place', async () => {
    await write('a.yaml', service('a'));
    const batches = follow();
    await batches.told();
    await writeFile(join(folder, 'a.yaml'), service('a', 90));
    expect(await batches.told()).toEqual(['upsert Service default/a:90']);
  });

  test('an object that moves to another file stays as it is', async () => {
    await write('a.yaml', service('a'), service('b'));
    const batches = follow();
    await batches.told();
    await write('a.yaml', service('a'));
    expect(await batches.told()).toEqual(['delete default/b']);
    await write('b.yaml', service('b'));
    expect(await batches.told()).toEqual(['upsert Service default/b:80']);
  });

  test('a mounted ConfigMap, which swaps a symbolic link', async () => {
    const versions = [await mkdtemp(join(tmpdir(), 'swy-v1-')), await mkdtemp(join(tmpdir(), 'swy-v2-'))] as const;
    await writeFile(join(versions[0], 'a.yaml'), service('a', 80));
    await writeFile(join(versions[1], 'a.yaml'), service('a', 81));
    await symlink(versions[0], join(folder, '..data'));
    await symlink('..data/a.yaml', join(folder, 'a.yaml'));
    const batches = follow();
    await batches.told();
    await symlink(versions[1], join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    expect(await batches.told()).toEqual(['upsert Service default/a:81']);
    await Promise.all(versions.map((version) => rm(version, { recursive: true })));
  });

  test('changes without a notification are found by the periodic scan', async () => {
    const clock = new ManualClock();
    const batches = new Follower(new ManifestSource({ folder, clock, log, rescan: seconds(10) }).batches(stop.signal));
    await batches.told();
    await write('a.yaml', service('a'));
    const next = batches.told();
    await expect.poll(() => clock.sleeping, { interval: 2 }).toBeGreaterThan(0);
    await clock.advance(seconds(10));
    expect(await next).toEqual(['upsert Service default/a:80']);
  });
});

describe('faults', () => {
  test('a broken file is named with line and column, keeps what was good, and never hides other files', async () => {
    await write('a.yaml', service('a'));
    const batches = follow();
    await batches.told();
    await write('a.yaml', 'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: http }] }\n');
    expect(await logged(1)).toEqual(['error manifest is faulty; its last valid content stays in force']);
    expect(log.lines[0]?.fields).toEqual({
      file: join(folder, 'a.yaml'),
      line: 4,
      column: 19,
      error: 'Service default/a: spec.ports[0].port must be a port (1-65535), not "http"',
    });
    await write('b.yaml', service('b'));
    expect(await batches.told()).toEqual(['upsert Service default/b:80']);
    await write('a.yaml', service('a', 81));
    expect(await batches.told()).toEqual(['upsert Service default/a:81']);
    expect(await logged(2)).toContain('info manifest has no faults any more');
  });

  test('one fault in a file keeps all of its last valid content', async () => {
    await write('a.yaml', service('a'), service('b'));
    const batches = follow();
    await batches.told();
    await write('a.yaml', service('a', 81), 'kind: [\n');
    await logged(1);
    await write('c.yaml', service('c'));
    expect(await batches.told()).toEqual(['upsert Service default/c:80']);
  });

  test('a broken file that is deleted takes its objects with it', async () => {
    await write('a.yaml', service('a'));
    const batches = follow();
    await batches.told();
    await write('a.yaml', 'kind: [\n');
    await logged(1);
    await rm(join(folder, 'a.yaml'));
    expect(await batches.told()).toEqual(['delete default/a']);
  });

  test('a fault is logged once, and again only when it changes', async () => {
    const batches = follow();
    await batches.told();
    await write('a.yaml', 'kind: [\n');
    await logged(1);
    await write('b.yaml', service('b'));
    await batches.told();
    await write('a.yaml', '\nkind: [\n');
    await logged(2);
  });

  test('the same object in two files is an error that names both; the first one stays in force', async () => {
    await write('b.yaml', service('a', 82));
    const batches = follow();
    expect(await batches.told()).toContain('replace Service default/a:82');
    await write('a.yaml', service('a', 81), service('other'));
    await logged(1);
    expect(log.lines[0]?.fields).toMatchObject({
      file: join(folder, 'a.yaml'),
      line: 1,
      error: `Service default/a is already defined in ${join(folder, 'b.yaml')}:1`,
    });
    await rm(join(folder, 'b.yaml'));
    expect(await batches.told()).toEqual(['upsert Service default/a:81', 'upsert Service default/other:80']);
  });

  test('at the start the first file by name wins, and a conflict keeps a file at its last valid content', async () => {
    await write('a.yaml', service('x', 81));
    await write('b.yaml', service('x', 82));
    await write('c.yaml', service('c', 80));
    const batches = follow();
    expect((await batches.told())[0]).toBe('replace Service default/x:81 default/c:80');
    await write('c.yaml', service('c', 83), service('x', 83));
    await logged(2);
    await write('a.yaml', service('a'));
    await rm(join(folder, 'b.yaml'));
    const events = [...(await batches.told())];
    while (!events.includes('upsert Service default/c:83')) events.push(...(await batches.told()));
    expect(events).toContain('upsert Service default/x:83');
  });

  test('an unsupported kind is reported once and ignored', async () => {
    await write('a.yaml', 'apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n---\n', service('a'));
    const batches = follow();
    expect(await batches.told()).toContain('replace Service default/a:80');
    await write('b.yaml', 'apiVersion: v1\nkind: Pod\n---\n', service('b'));
    await batches.told();
    expect(log.transitions).toEqual(['warn manifest object is not used']);
    expect(log.lines[0]?.fields['reason']).toBe('Pod (v1) is not a kind a proxy reads; ignored');
  });

  test('a folder that cannot be read for a while keeps everything', async () => {
    await write('a.yaml', service('a'));
    const clock = new ManualClock();
    const batches = new Follower(new ManifestSource({ folder, clock, log, rescan: seconds(10) }).batches(stop.signal));
    await batches.told();
    const next = batches.told();
    await rename(folder, `${folder}.away`);
    await expect.poll(async () => (await clock.advance(seconds(10)), log.transitions.length), { interval: 2 }).toBe(1);
    await rename(`${folder}.away`, folder);
    await write('b.yaml', service('b'));
    await expect.poll(async () => (await clock.advance(seconds(10)), log.transitions.length), { interval: 2 }).toBe(2);
    expect(await next).toEqual(['upsert Service default/b:80']);
  });
});

test('aborting ends the loop without an error', async () => {
  await follow().told();
  stop.abort();
  expect(await pulling).toBeUndefined();
});
