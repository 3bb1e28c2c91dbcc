import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
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

/** One line about the machine that the figures are from. */
export function describeMachine(): string {
  const all = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`;
  const load = loadavg()[0]?.toFixed(1) ?? '?';
  return [
    `${all.length} cores (${all[0]?.model.trim() ?? 'unknown'}), ${memory}`,
    `kernel ${release()}`,
    versionOf('nft', /\bv(\S+)/, 'nft '),
    versionOf('iptables'),
    `Node ${process.version}`,
    `load ${load}`,
  ].join(', ');
}

function versionOf(program: string, pattern = /.*/, prefix = ''): string {
  try {
    const text = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim();
    const found = pattern.exec(text);
    return `${prefix}${found?.[1] ?? found?.[0] ?? text}`;
  } catch {
    return `no ${program}`;
  }
}
