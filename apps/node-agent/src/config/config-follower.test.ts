import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HostError, type LogFields, noopLogger, noopMetrics, seconds } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { describe, expect, test, vi } from 'vitest';
import { loadConfig } from '../config.ts';
import { ConfigWatch, type ConfigWatchOptions } from './config-follower.ts';
import { ConfigFolder } from './testing/config-folder.ts';

const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
const ownHead = 'apiVersion: switchyard.dev/v1alpha1\nkind: SwitchyardConfiguration\n';

/** A watch of real files by a clock that is moved by hand. */
class WatchBench implements AsyncDisposable {
  readonly clock = new ManualClock(Date.parse('2026-11-21T10:00:00Z'));
  readonly lines: (readonly [string, LogFields])[] = [];
  readonly counted: string[] = [];
  readonly watch: ConfigWatch;
  changes = 0;
  failure: unknown;
  readonly #ended: Promise<void>;
  readonly #stop = new AbortController();

  private constructor(watch: (bench: WatchBench) => ConfigWatch) {
    this.watch = watch(this);
    this.watch.onChange(() => void this.changes++);
    this.#ended = this.watch.run(this.#stop.signal).catch((error: unknown) => {
      this.failure = error;
    });
  }

  static of(...args: readonly string[]): Promise<WatchBench> {
    return WatchBench.with({}, ...args);
  }

  static async with(more: Partial<ConfigWatchOptions>, ...args: readonly string[]): Promise<WatchBench> {
    const config = await loadConfig(args, {});
    if (config.kind !== 'run') throw new Error('not a run');
    return new WatchBench(({ clock, lines, counted }) => {
      const log = (message: string, fields: LogFields = {}): void => void lines.push([message, fields]);
      return new ConfigWatch({
        config,
        load: () => loadConfig(args, {}),
        clock,
        logger: { ...noopLogger, info: log, warn: log, error: log },
        metrics: {
          ...noopMetrics,
          add: (name, labels) => void counted.push(`${name} ${Object.values(labels).join()}`),
        },
        ...more,
      });
    });
  }

  /** Lets the watch look `times` times, to the end of each look. */
  async look(times: number): Promise<void> {
    for (let time = 0; time < times; time++) {
      await this.clock.advance(seconds(2));
      const isLooking = (): boolean => this.clock.sleeping === 0 && this.failure === undefined;
      await vi.waitUntil(() => !isLooking(), { timeout: 10_000, interval: 1 });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }
}

describe('a changed file', () => {
  test('applies what is safe, once two looks saw the same', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(
      file,
      `${head}clusterCIDR: 10.1.0.0/16\nlogging: { verbosity: 4 }\nnftables: { masqueradeAll: true }\n`,
    );
    await bench.look(1);
    expect(bench.changes).toBe(0);
    await bench.look(1);
    expect(bench.changes).toBe(1);
    expect(bench.watch.current()).toMatchObject({
      detectLocal: { kind: 'clusterCIDR', cidrs: { IPv4: '10.1.0.0/16' } },
      logLevel: 'debug',
      masqueradeAll: true,
    });
    expect(bench.lines).toEqual([
      [
        'the configuration changed',
        {
          settings: [
            'logging.verbosity: 0 -> 4',
            'nftables.masqueradeAll: false -> true',
            'clusterCIDR: "" -> "10.1.0.0/16"',
          ],
        },
      ],
    ]);
    expect(bench.counted).toEqual(['switchyard_config_reloads_total applied']);
    await bench.look(5);
    expect(bench.changes).toBe(1);
  });

  test.each<readonly [string, (folder: ConfigFolder, text: string) => Promise<unknown>]>([
    ['the symlinks of a ConfigMap are swapped', (folder, text) => folder.publish('v2', 'config.conf', text)],
    [
      'another file is renamed over it',
      async (folder, text) => rename(await folder.write('next', text), join(folder.path, 'config.conf')),
    ],
    ['it is written in place', (folder, text) => folder.write('config.conf', text)],
  ])('is noticed when %s', async (_, change) => {
    await using folder = await ConfigFolder.create();
    const file = await folder.publish('v1', 'config.conf', head);
    await using bench = await WatchBench.of(`--config=${file}`);
    await bench.look(2);
    await change(folder, `${head}nodePortAddresses: [10.0.0.0/8]\n`);
    await bench.look(2);
    expect(bench.watch.current().nodePortAddresses).toEqual({ primary: false, cidrs: ['10.0.0.0/8'], loopback: [] });
  });

  test('of Switchyard is followed, too', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('own.yaml', ownHead);
    await using bench = await WatchBench.of('--proxy-mode=nftables', `--switchyard-config=${file}`);
    await writeFile(file, `${ownHead}terminatingFallback: off\n`);
    await bench.look(2);
    expect(bench.watch.current().terminatingFallback).toBe('off');
  });

  test('ends the process for other settings, naming them with their old and new values', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', `${head}clusterCIDR: 10.1.0.0/16\n`);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(file, `${head}healthzBindAddress: 127.0.0.1\noomScoreAdj: -5\nconntrack: { udpTimeout: 90s }\n`);
    await bench.look(2);
    expect(bench.failure).toMatchObject({
      name: 'ConfigError',
      message:
        `ending for a restart, since ${file} changed a setting that a running process cannot take over: ` +
        'healthzBindAddress: "0.0.0.0:10256" -> "127.0.0.1:10256"; oomScoreAdj: -999 -> -5; ' +
        'conntrack.udpTimeout: "0s" -> "1m30s"; forwarding stays in place',
    });
    expect(bench.counted).toEqual(['switchyard_config_reloads_total restart']);
    expect(bench.watch.current().detectLocal).toMatchObject({ cidrs: { IPv4: '10.1.0.0/16' } });
  });

  test('a changed feature gate is such a setting', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(file, `${head}featureGates: { AllowServiceExternalIPs: false }\n`);
    await bench.look(2);
    expect(bench.failure).toMatchObject({
      message: expect.stringContaining('featureGates: {} -> {"AllowServiceExternalIPs":false}'),
    });
  });
});

describe('a mode that this node cannot run', () => {
  const nowEbpf = head.replace('mode: nftables', 'mode: ebpf');
  const obstacle = new HostError('host.bpffs', 'no bpffs is at /run/switchyard/bpf');

  test('leaves the old one in force, said, counted and noted once, and taken when the node can run it', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    const noted: Error[] = [];
    const asked: string[] = [];
    let found: Error | undefined = obstacle;
    const restartObstacle: ConfigWatchOptions['restartObstacle'] = async ({ mode }) => {
      asked.push(mode);
      return found;
    };
    const options = { restartObstacle, noteObstacle: (error: Error) => void noted.push(error) };
    await using bench = await WatchBench.with(options, `--config=${file}`);
    await writeFile(file, nowEbpf);
    await bench.look(10);
    expect([bench.failure, bench.watch.current().mode, asked]).toEqual([undefined, 'nftables', ['ebpf']]);
    await bench.look(10);
    expect([bench.failure, asked]).toEqual([undefined, ['ebpf', 'ebpf']]);
    expect(bench.lines).toEqual([
      [
        'this node cannot run the changed configuration, the old one stays in force',
        { settings: ['mode: "nftables" -> "ebpf"'], error: obstacle },
      ],
    ]);
    expect([noted, bench.counted]).toEqual([[obstacle], ['switchyard_config_reloads_total rejected']]);
    found = undefined;
    await bench.look(15);
    expect(bench.failure).toMatchObject({ message: expect.stringContaining('mode: "nftables" -> "ebpf"') });
  });

  test('that is taken back is not probed again', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    let asked = 0;
    const restartObstacle = async (): Promise<Error> => {
      asked += 1;
      return obstacle;
    };
    await using bench = await WatchBench.with({ restartObstacle }, `--config=${file}`);
    await writeFile(file, nowEbpf);
    await bench.look(2);
    await writeFile(file, head);
    await bench.look(40);
    expect([bench.failure, asked]).toEqual([undefined, 1]);
    expect(bench.lines.at(-1)?.[0]).toBe('the configuration file is valid again and equals the running configuration');
  });
});

describe('a file that says the same', () => {
  test('in other words, is no change', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(file, `${head}# a comment\nclusterCIDR: ""\n`);
    await bench.look(4);
    expect([bench.failure, bench.changes, bench.counted]).toEqual([undefined, 0, []]);
  });

  test('a new setting without effect is named', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', `${head}portRange: "1-2"\n`);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(file, `${head}portRange: "1-2"\nipvs: { strictARP: true }\n`);
    await bench.look(2);
    expect(bench.lines.map(([message, fields]) => [message, fields['setting']])).toEqual([
      ['the configuration changed', undefined],
      ['setting has no effect', 'ipvs.strictARP'],
    ]);
    expect(bench.changes).toBe(0);
  });
});

describe('a broken file', () => {
  test.each<readonly [string, (file: string) => Promise<unknown>, RegExp]>([
    ['no YAML', (file) => writeFile(file, 'a: ['), /not YAML/],
    ['a value that is refused', (file) => writeFile(file, `${head}oomScoreAdj: 2000\n`), /must be within the range/],
    ['an empty file', (file) => writeFile(file, ''), /the file is empty/],
    ['no file', (file) => rm(file), /cannot read the file/],
  ])('%s: the old one stays in force, said and counted once, until it is repaired', async (_, breakIt, message) => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', `${head}clusterCIDR: 10.1.0.0/16\n`);
    await using bench = await WatchBench.of(`--config=${file}`);
    await breakIt(file);
    await bench.look(5);
    expect(bench.lines).toEqual([
      [
        'the changed configuration is broken, the old one stays in force',
        { files: [file], error: expect.objectContaining({ message: expect.stringMatching(message) }) },
      ],
    ]);
    expect(bench.counted).toEqual(['switchyard_config_reloads_total rejected']);
    expect(bench.watch.current().detectLocal).toMatchObject({ cidrs: { IPv4: '10.1.0.0/16' } });
    await writeFile(file, `${head}clusterCIDR: 10.2.0.0/16\n`);
    await bench.look(2);
    expect(bench.watch.current().detectLocal).toMatchObject({ cidrs: { IPv4: '10.2.0.0/16' } });
  });

  test('that is taken back is no change', async () => {
    await using folder = await ConfigFolder.create();
    const file = await folder.write('config.conf', head);
    await using bench = await WatchBench.of(`--config=${file}`);
    await writeFile(file, 'a: [');
    await bench.look(2);
    await writeFile(file, head);
    await bench.look(3);
    expect(bench.changes).toBe(0);
    expect(bench.lines.map(([message]) => message)).toEqual([
      'the changed configuration is broken, the old one stays in force',
      'the configuration file is valid again and equals the running configuration',
    ]);
  });
});

test('without files nothing is looked at', async () => {
  await using bench = await WatchBench.of('--proxy-mode=nftables');
  expect(bench.clock.sleeping).toBe(0);
});
