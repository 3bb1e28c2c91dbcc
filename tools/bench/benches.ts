import type { Workspace } from '../workspace.ts';

/** One measurement that can be run by name. */
export interface Bench {
  /** Of the package's folder; further benches of a package carry what follows `bench-` in their target's name. */
  readonly name: string;
  /** As nx takes it. */
  readonly target: string;
}

/** Suites across packages: name to the benches that it runs, in this order. */
const suites: Readonly<Record<string, readonly string[]>> = {
  nftables: ['rollout', 'backend-nftables', 'backend-nftables-drift', 'backend-nftables-large-service'],
  iptables: ['rollout-iptables', 'backend-iptables'],
  ebpf: ['backend-ebpf', 'backend-ebpf-drift', 'backend-ebpf-idle', 'native-bpf'],
  profiles: ['rollout-profiles'],
  'health-attack': ['node-agent-health-attack'],
};

/** Every nx target `bench` or `bench-...` of the packages. */
export function findBenches(workspaces: readonly Pick<Workspace, 'folder' | 'targets'>[]): readonly Bench[] {
  return workspaces.flatMap(({ folder, targets }) => {
    const project = folder.slice(folder.indexOf('/') + 1);
    return targets
      .filter((target) => target === 'bench' || target.startsWith('bench-'))
      .map((target) => ({ name: `${project}${target.slice('bench'.length)}`, target: `${project}:${target}` }));
  });
}

export function benchNames(benches: readonly Bench[]): readonly string[] {
  return [...Object.keys(suites), ...benches.map(({ name }) => name)];
}

/** The benches behind names; without names all of them. Every name must be one of `benchNames`. */
export function selectBenches(names: readonly string[], benches: readonly Bench[]): readonly Bench[] {
  if (names.length === 0) return benches;
  const wanted = names.flatMap((name) => suites[name] ?? [name]);
  return wanted.flatMap((name) => benches.filter((bench) => bench.name === name));
}

/** Names of benches, and from the first word with a dash on what is handed to each of them. */
export function splitArguments(words: readonly string[]): {
  readonly names: readonly string[];
  readonly options: readonly string[];
} {
  const first = words.findIndex((word) => word.startsWith('-'));
  const end = first < 0 ? words.length : first;
  return { names: words.slice(0, end), options: words.slice(end) };
}
