import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { HostError, type IpAddress, ipFromBytes } from '@switchyard/core';

/**
 * Path of the network namespace that has an address, found by this machine's processes. Throws `HostError` if no visible process is
 * in such a namespace: a pod sees only its own processes unless it has `hostPID`.
 */
export function namespaceOf(address: IpAddress): string {
  const seen = new Set<string>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const folder = `/proc/${pid}`;
    const namespace = orUndefined(() => readlinkSync(`${folder}/ns/net`));
    if (namespace === undefined || seen.has(namespace)) continue;
    seen.add(namespace);
    if (localAddresses(folder).has(address)) return `${folder}/ns/net`;
  }
  throw new HostError(
    'why.namespace',
    `no process on this node has the address ${address}: ask the node of that pod, and run the agent with hostPID and CAP_SYS_PTRACE`,
  );
}

function localAddresses(folder: string): ReadonlySet<string> {
  const ipv4 = orUndefined(() => readFileSync(`${folder}/net/fib_trie`, 'utf8')) ?? '';
  const ipv6 = orUndefined(() => readFileSync(`${folder}/net/if_inet6`, 'utf8')) ?? '';
  return new Set([...parseFibTrie(ipv4), ...parseIfInet6(ipv6)]);
}

/** Local addresses of `/proc/PID/net/fib_trie`: a line with an address, followed by one that says LOCAL. */
export function parseFibTrie(text: string): readonly string[] {
  return [...text.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address = '']) => address);
}

/** Addresses of `/proc/PID/net/if_inet6`, which has them as 32 hexadecimal digits. */
export function parseIfInet6(text: string): readonly IpAddress[] {
  return [...text.matchAll(/^([0-9a-f]{32}) /gm)].map(([, digits = '']) => ipFromBytes(Buffer.from(digits, 'hex')));
}

/** A process or its rights may be gone at any time. */
function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
