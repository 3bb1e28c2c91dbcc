import { readdirSync, readlinkSync, statSync } from 'node:fs';

/** A network namespace of this machine, with a path to enter it. */
export interface NetworkNamespace {
  /** Inode of nsfs: the same for all paths that lead to it. */
  readonly inode: number;
  readonly path: string;
}

/** Folders that are searched for namespaces; for tests. */
export interface NamespacePlaces {
  /** Default `/proc`. */
  readonly proc?: string;
  /** Default `/run/netns`, where `ip netns` and container runtimes mount them. */
  readonly mounted?: string;
}

/** Namespaces of visible processes and mounted ones, own first; undefined in between, where a caller may pause. */
export function* networkNamespaces({ proc = '/proc', mounted = '/run/netns' }: NamespacePlaces = {}): Generator<
  NetworkNamespace | undefined,
  void,
  undefined
> {
  const seen = new Set<number>();
  const add = (inode: number | undefined, path: string): NetworkNamespace | undefined => {
    if (inode === undefined || seen.has(inode)) return undefined;
    seen.add(inode);
    return { inode, path };
  };
  yield add(inodeOfLink(`${proc}/self/ns/net`), `${proc}/self/ns/net`);
  for (const name of namesIn(mounted)) yield add(inodeOfMount(`${mounted}/${name}`), `${mounted}/${name}`);
  for (const name of namesIn(proc)) {
    if (!/^[0-9]+$/.test(name)) continue;
    const path = `${proc}/${name}/ns/net`;
    yield add(inodeOfLink(path), path);
  }
}

/** Empty without such a directory. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Reads a link like `net:[4026531840]`; undefined for an ended process, or for a kernel thread without permission. */
function inodeOfLink(path: string): number | undefined {
  try {
    const match = /^net:\[([0-9]+)\]$/.exec(readlinkSync(path));
    return match === null ? undefined : Number(match[1]);
  } catch {
    return undefined;
  }
}

function inodeOfMount(path: string): number | undefined {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}
