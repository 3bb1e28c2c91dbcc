import type { Workspace } from '../workspace.ts';

/** One measurement that can be asked for. */
export interface Bench {
  /** Of the package's folder; further benches of a package carry what follows `bench-` in their target's name. */
  readonly name: string;
  /** As nx takes it. */
  readonly target: string;
}

/** What belongs together beyond one package: name to the packages whose benches it runs, in this order. */
const suites: Readonly<Record<string, readonly string[]>> = { nftables: ['rollout', 'backend-nftables'] };

/** Every nx target `bench` or `bench-...` of the packages. */
export function findBenches(workspaces: readonly Pick<Workspace, 'folder' | 'targets'>[]): readonly Bench[] {
  return workspaces.flatMap(({ folder, targets }) => {
    const project = folder.slice(folder.indexOf('/') + 1);
    return targets
      .filter((target) => target === 'bench' || target.startsWith('bench-'))
      .map((target) => ({ name: `${project}${target.slice('bench'.length)}`, target: `${project}:${target}` }));
  });
}

/** The names that may be asked for: benches, and suites of them. */
export function benchNames(benches: readonly Bench[]): readonly string[] {
  return [...Object.keys(suites), ...benches.map(({ name }) => name)];
}

/** The benches behind names; without names all of them. Every name must be one of `benchNames`. */
export function selectBenches(names: readonly string[], benches: readonly Bench[]): readonly Bench[] {
  if (names.length === 0) return benches;
  return names.flatMap((name) => {
    const suite = suites[name];
    if (suite === undefined) return benches.filter((bench) => bench.name === name);
    return suite.flatMap((project) => benches.filter(({ target }) => target.startsWith(`${project}:`)));
  });
}
