import { setTimeout } from 'node:timers/promises';
import { createLab, type Lab } from '@switchyard/lab';
import { type NetlinkSocket, openNetlinkSocket } from '@switchyard/native';
import { expect } from 'vitest';
import type { Change, Element } from '../../src/render/elements.ts';
import { elementObjects, intervalObjects, type TableName } from '../../src/render/names.ts';
import { createNetlinkTransport } from '../../src/kernel/netlink/netlink-transport.ts';
import { NftError } from '../../src/kernel/nft-error.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import type { NftTransport } from '../../src/kernel/transport.ts';
import { signal } from './support.ts';

export const table = 'switchyard';

/** Sizes of a socket's buffers. */
export interface Buffers {
  readonly sendBuffer?: number;
  readonly receiveBuffer?: number;
}

/** One namespace, and a transport into it. */
export class NetlinkSite implements AsyncDisposable {
  readonly lab: Lab;
  readonly netlink: NftTransport;

  private constructor(lab: Lab) {
    this.lab = lab;
    this.netlink = this.open();
  }

  static async create(name: string): Promise<NetlinkSite> {
    return new NetlinkSite(await createLab({ name, nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  }

  /** Another netlink transport into the same namespace. */
  open(buffers?: Buffers): NftTransport {
    const netns = `/run/netns/${this.lab.nodes[0]!.namespace}`;
    const socket = (): NetlinkSocket => openNetlinkSocket({ protocol: 'netfilter', netns, ...buffers });
    return createNetlinkTransport(buffers === undefined ? { netns } : { netns, open: socket });
  }

  nft(...args: readonly string[]): Promise<string> {
    return this.#run(args);
  }

  /** Has nft run a script. */
  nftScript(stdin: string): Promise<string> {
    return this.#run(['-f', '-'], stdin);
  }

  async #run(args: readonly string[], stdin = ''): Promise<string> {
    const result = await this.lab.nodes[0]!.run('nft', args, { stdin });
    expect(result.exitCode, result.stderr).toBe(0);
    return result.stdout;
  }

  /** Our rules, without elements, and nothing else. */
  async reset(): Promise<void> {
    await this.nft('flush', 'ruleset');
    await this.netlink.loadRules('cannot load', skeleton(table), signal);
  }

  write(changes: readonly Change[], to: TableName = table): Promise<void> {
    return this.netlink.write('cannot try', { table: to, changes }, signal);
  }

  async refusal(changes: readonly Change[], to: TableName = table): Promise<NftError> {
    const error: unknown = await this.write(changes, to).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NftError);
    return error as NftError;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.netlink[Symbol.asyncDispose]();
    await this.lab[Symbol.asyncDispose]();
  }
}

export function added(id: string, data = ''): Change {
  return { kind: 'add', id, data };
}

/** Everything in the table, by the given transport. */
export async function contents(transport: NftTransport): Promise<Readonly<Record<string, unknown>>> {
  const all: Record<string, unknown> = {};
  for (const suffix of ['4', '6'] as const) {
    for (const object of elementObjects) {
      all[`${object}${suffix}`] = sorted(await readWhole(transport, { table, object, suffix }));
    }
    for (const object of intervalObjects) {
      all[`${object}${suffix}`] = await transport.readIntervals({ table, object, suffix }, signal);
    }
    all[`classes${suffix}`] = [...(await transport.readClasses(table, suffix, signal))].sort(([a], [b]) => a - b);
  }
  return all;
}

/** The elements of an object, when the kernel has done with enlarging it: before that a list can lack some. */
export async function readWhole(
  transport: NftTransport,
  object: Parameters<NftTransport['readElements']>[0],
): Promise<readonly Element[]> {
  for (let reads = 0; reads < 100; reads++) {
    const elements = (await transport.readElements(object, signal)) ?? [];
    if (new Set(elements.map(({ id }) => id)).size === elements.length) return elements;
    await setTimeout(5);
  }
  return expect.unreachable(`${object.object} has doubles in every list`);
}

const text = ({ id, data }: Element): string => `${id} : ${data}`;
export const sorted = (elements: readonly Element[]): readonly string[] => elements.map(text).sort();

/** Two classes that the rules do not have. */
export const classes: readonly Change[] = [
  { kind: 'class', suffix: '4', handleClass: 300, chain: { kind: 'lb', slots: 300 } },
  { kind: 'class', suffix: '6', handleClass: 999, chain: { kind: 'lb', slots: 999 } },
];
