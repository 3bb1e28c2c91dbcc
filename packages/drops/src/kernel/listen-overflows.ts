import { type IpAddress, ipFromBytes } from '@switchyard/core';
import type { ReadFile } from './conntrack-state.ts';
import type { ProcessNamespace } from './namespaces.ts';

/** Connections that a full accept queue refused since the last reading. */
export interface ListenOverflow {
  /** Places of the sockets with the longest accept queue in the namespace. */
  readonly listeners: readonly { readonly address: IpAddress; readonly port: number }[];
  readonly count: number;
  readonly inode: number;
}

/** A SYN that a full accept queue refuses leaves no drop: only the namespace counts it (`ListenOverflows`). */
export class ListenOverflows {
  readonly #readFile: ReadFile;
  #before: ReadonlyMap<number, number> | undefined;

  constructor(readFile: ReadFile) {
    this.#readFile = readFile;
  }

  /** The first reading has none. */
  read(namespaces: readonly ProcessNamespace[]): readonly ListenOverflow[] {
    const before = this.#before;
    const now = new Map<number, number>();
    const found: ListenOverflow[] = [];
    for (const namespace of namespaces) {
      const { inode, folder } = namespace;
      const total = overflowsOf(this.#readFile(`${folder}/net/netstat`) ?? '');
      now.set(inode, total);
      const count = total - (before?.get(inode) ?? total);
      if (count > 0) found.push({ inode, count, listeners: this.#fullest(namespace) });
    }
    this.#before = now;
    return found;
  }

  #fullest({ folder, addresses }: ProcessNamespace): ListenOverflow['listeners'] {
    const files = ['tcp', 'tcp6'].map((name) => this.#readFile(`${folder}/net/${name}`) ?? '');
    const listeners = files.flatMap(parseListeners);
    const most = Math.max(1, ...listeners.map(({ queue }) => queue));
    return listeners
      .filter(({ queue }) => queue === most)
      .flatMap(({ address, port }) =>
        (address === 'any' ? [...addresses] : [address]).map((one) => ({ address: one, port })),
      );
  }
}

/** `TcpExt: ... ListenOverflows ...`: names in one line, values in the next. */
function overflowsOf(netstat: string): number {
  const [names, values] = netstat.split('\n').filter((line) => line.startsWith('TcpExt:'));
  const index = names?.split(' ').indexOf('ListenOverflows') ?? -1;
  return index < 0 ? 0 : Number(values?.split(' ')[index] ?? 0);
}

interface Listener {
  readonly address: IpAddress | 'any';
  readonly port: number;
  /** Connections that wait to be accepted. */
  readonly queue: number;
}

/** Listening sockets (state 0A) of `/proc/PID/net/tcp` or `tcp6`, where the receive queue is the accept queue. */
export function parseListeners(text: string): readonly Listener[] {
  return text.split('\n').flatMap((line): readonly Listener[] => {
    const [, local = '', , state, queues = ''] = line.trim().split(/\s+/);
    const [digits = '', port = ''] = local.split(':');
    if (state !== '0A') return [];
    const queue = Number.parseInt(queues.split(':')[1] ?? '0', 16);
    return [{ address: addressOf(digits), port: Number.parseInt(port, 16), queue }];
  });
}

/** 32-bit words in the machine's byte order, here little-endian. */
function addressOf(digits: string): IpAddress | 'any' {
  if (/^0+$/.test(digits)) return 'any';
  const words = digits.match(/.{8}/g) ?? [];
  return ipFromBytes(Uint8Array.from(words.flatMap((word) => [...Buffer.from(word, 'hex')].toReversed())));
}
