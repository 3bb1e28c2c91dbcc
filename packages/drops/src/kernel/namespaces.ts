import { readFileSync } from 'node:fs';
import { HostError, type IpAddress, ipFromBytes, type Millis, millis, parseIp } from '@switchyard/core';
import { linkedNamespaces, netnsCookie, type NetworkNamespace, networkNamespaces } from '@switchyard/native';

/** A network namespace in which a process of this node runs. */
export interface ProcessNamespace {
  readonly inode: number;
  /** The kernel's number, which is never used again; undefined without CAP_SYS_ADMIN. */
  readonly cookie: number | undefined;
  /** Whether it is the node's or a device of the node leads there; otherwise it may be of another node on this machine. */
  readonly isLinked: boolean;
  /** `/proc/PID` of one of its processes. */
  readonly folder: string;
  /** Local addresses, without those of IPv6 links. */
  readonly addresses: ReadonlySet<IpAddress>;
}

/**
 * The node's network namespace, first, and those of its pods: of all namespaces with a visible process, the ones that a device of the node
 * leads into, or all if it leads into none. (Nodes in containers share a kernel, and their pods may have the same addresses.) A pod sees
 * only its own processes unless it has `hostPID`, and needs CAP_SYS_PTRACE for those of others. Throws `NativeError`.
 */
export function listNamespaces(): readonly ProcessNamespace[] {
  const [own, ...others] = [...networkNamespaces({ mounted: nowhere })].filter((one) => one !== undefined);
  const linked = linkedNamespaces(others.map(pidOf));
  const pods = linked.size === 0 ? others : others.filter((one) => linked.has(pidOf(one)));
  return [...(own === undefined ? [] : [own]), ...pods].map((namespace) => {
    const { inode, path } = namespace;
    const folder = path.slice(0, -'/ns/net'.length);
    const ipv4 = parseFibTrie(orEmpty(`${folder}/net/fib_trie`));
    const ipv6 = parseIfInet6(orEmpty(`${folder}/net/if_inet6`));
    const isLinked = namespace === own || linked.size > 0;
    return { inode, cookie: cookieOf(path), isLinked, folder, addresses: new Set([...ipv4, ...ipv6]) };
  });
}

/** Cookie of this process's network namespace (Linux 5.14); 0 if it cannot be read. */
export function ownCookie(): number {
  return cookieOf() ?? 0;
}

/** Undefined without the right, the addon, or the process. */
function cookieOf(path?: string): number | undefined {
  try {
    return Number(netnsCookie(path)); // below 2^53
  } catch (error) {
    if (error instanceof HostError) return undefined;
    throw error;
  }
}

/** Only processes have files with addresses. */
const nowhere = '/nonexistent';

function pidOf({ path }: NetworkNamespace): number {
  return Number(path.split('/')[2]);
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
function orEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Lists change seldom, and take a look at each process. */
const listInterval = millis(5_000);

/** The namespaces of this node while it is watched, those of ended pods included. */
export class NodeNamespaces {
  readonly #list: () => readonly ProcessNamespace[];
  readonly #monotonic: () => Millis;
  #current: readonly ProcessNamespace[] = [];
  #listedAt = -Infinity;
  readonly #seen = new Set<number>();
  /** Looked for since the last list, and not found. */
  readonly #foreign = new Set<number>();

  constructor(list: () => readonly ProcessNamespace[], monotonic: () => Millis) {
    this.#list = list;
    this.#monotonic = monotonic;
  }

  /** Those that are surely of this node; at most 5 s old. */
  current(): readonly ProcessNamespace[] {
    if (this.#monotonic() - this.#listedAt >= listInterval) {
      this.#foreign.clear();
      this.#refresh();
    }
    return this.#current;
  }

  /** Whether the namespace with this cookie is of this node; undefined until one of a pod was seen. */
  has(cookie: number): boolean | undefined {
    this.current();
    if (this.#seen.size <= 1) return undefined;
    if (!this.#seen.has(cookie) && !this.#foreign.has(cookie)) {
      this.#refresh();
      if (!this.#seen.has(cookie)) this.#foreign.add(cookie);
    }
    return this.#seen.has(cookie);
  }

  #refresh(): void {
    this.#listedAt = this.#monotonic();
    this.#current = this.#list().filter(({ isLinked }) => isLinked);
    for (const { cookie } of this.#current) if (cookie !== undefined) this.#seen.add(cookie);
  }
}
