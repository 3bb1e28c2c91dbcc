import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type IpAddress, ipFromBytes, parseIp } from '@switchyard/core';

/** A network namespace in which a process of this machine runs. */
export interface ProcessNamespace {
  readonly inode: number;
  /** `/proc/PID` of one of its processes. */
  readonly folder: string;
  /** Local addresses, without those of IPv6 links. */
  readonly addresses: ReadonlySet<IpAddress>;
}

/**
 * Network namespaces with a visible process: a pod sees only its own processes unless it has `hostPID`, and needs CAP_SYS_PTRACE for
 * those of others.
 */
export function listNamespaces(): readonly ProcessNamespace[] {
  const found = new Map<number, ProcessNamespace>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const folder = `/proc/${pid}`;
    const inode = Number(/\[(\d+)\]/.exec(orEmpty(() => readlinkSync(`${folder}/ns/net`)))?.[1]);
    if (Number.isNaN(inode) || found.has(inode)) continue;
    const ipv4 = parseFibTrie(orEmpty(() => readFileSync(`${folder}/net/fib_trie`, 'utf8')));
    const ipv6 = parseIfInet6(orEmpty(() => readFileSync(`${folder}/net/if_inet6`, 'utf8')));
    found.set(inode, { inode, folder, addresses: new Set([...ipv4, ...ipv6]) });
  }
  return [...found.values()];
}

/** Local addresses of `/proc/PID/net/fib_trie`: a line with an address, followed by one that says LOCAL. */
export function parseFibTrie(text: string): readonly IpAddress[] {
  return [...text.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address = '']) => parseIp(address));
}

/** Addresses of `/proc/PID/net/if_inet6`, which has them as 32 hexadecimal digits. */
export function parseIfInet6(text: string): readonly IpAddress[] {
  const addresses = [...text.matchAll(/^([0-9a-f]{32}) /gm)];
  return addresses.map(([, digits = '']) => ipFromBytes(Buffer.from(digits, 'hex')));
}

/** A process may end at any time, and others' files may be closed to this one. */
function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
