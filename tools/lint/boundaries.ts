import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, type Workspace, workspaces } from '../workspace.ts';
import { type Import, importsOf, type SourceFile, sourceFiles } from './source-files.ts';

/** Which layer may import which in production code. `tests` may also import what is in `testAllow`. */
const allow: Readonly<Record<string, readonly string[]>> = {
  core: [],
  host: ['core'],
  native: ['core'],
  netfilter: ['core', 'host', 'native'],
  'drain-gate': ['core'],
  drops: ['core', 'native'],
  loss: ['core'],
  backend: ['core', 'host', 'native', 'netfilter'],
  scenarios: ['core', 'backend'],
  lab: ['core', 'host'],
  experiment: ['core', 'host', 'lab', 'loss', 'scenarios'],
  app: ['core', 'drain-gate', 'drops', 'host', 'native', 'netfilter', 'backend', 'loss'],
  conformance: ['core', 'host', 'scenarios', 'lab', 'experiment', 'loss'],
  e2e: ['core', 'host', 'scenarios', 'conformance'],
  example: ['core', 'scenarios', 'conformance', 'backend', 'app'],
};
const testAllow: Readonly<Record<string, readonly string[]>> = {
  scenarios: ['backend', 'host', 'netfilter', 'lab'],
  native: ['lab', 'host'],
  netfilter: ['lab'],
  backend: ['lab'],
  app: ['lab'],
  e2e: ['lab'],
  example: ['lab'],
};

/** Exceptions to the layers: packages that use a backend's public entry as a library. */
const libraries: Readonly<Record<string, readonly string[]>> = {
  '@switchyard/backend-ebpf': ['@switchyard/backend-nftables'],
};

/** Production code of a layer that may import only one sub-path of another: traits are values without code. */
const subPaths: Readonly<Record<string, readonly string[]>> = {
  'scenarios backend': ['traits'],
};

/** External packages with one owner: path prefixes that may import them. */
const owners: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['packages/core/src/kubernetes/', 'apps/kind-lb-controller/src/'],
  execa: ['tools/', 'apps/kind-lb-controller/src/docker/'],
  pino: ['packages/host/src/'],
  'pprof-format': ['apps/node-agent/src/http/'],
  yaml: [
    'packages/core/src/manifests/',
    'packages/scenarios/src/',
    'packages/lab/src/',
    'apps/conformance/src/profiles/',
    'e2e/src/',
  ],
};

/** Inside core, in dependency order: a room may import itself and what stands before it. The model imports nothing but `base` and `metrics`. */
const coreOrder = [
  'base',
  'metrics',
  'model/ip',
  'model/records',
  'model/state',
  'model/policy',
  'model/forwarding',
  'engine',
  'health',
];

/** Inside a dataplane backend, in dependency order. Files beside the rooms put them together and may import all of them. */
const backendOrder = ['render', 'kernel', 'watch'];

/** Tools that the tests of packages may import: they bring programs that are not installed on this machine. */
const toolsForTests: readonly string[] = ['tools/debian/', 'tools/images/'];

interface Checkout {
  readonly folder: string;
  readonly all: readonly Workspace[];
}

/** Every import that breaks a rule, as `file: what; which rule`. Another checkout than this one is for tests. */
export function findBoundaryFaults(folder: string = root): readonly string[] {
  const checkout: Checkout = { folder, all: workspaces(folder) };
  return checkout.all.flatMap((workspace) => [
    ...manifestFaults(workspace, checkout),
    ...importFaults(workspace, checkout),
  ]);
}

function manifestFaults(workspace: Workspace, { folder: checkout, all }: Checkout): string[] {
  const ours = (names: readonly string[]): Workspace[] => all.filter((other) => names.includes(other.name));
  const faults: string[] = [];
  for (const other of ours(workspace.dependencies)) {
    if (!allow[workspace.layer]?.includes(other.layer) && !isLibraryOf(workspace, other)) {
      faults.push(
        `${workspace.folder}/package.json: layer ${workspace.layer} may not depend on ${other.name} (${other.layer})`,
      );
    }
  }
  const references = JSON.parse(readFileSync(join(checkout, workspace.folder, 'tsconfig.json'), 'utf8')) as {
    readonly references?: readonly { readonly path: string }[];
  };
  const wanted = ours([...workspace.dependencies, ...workspace.devDependencies]).map((other) => other.folder);
  const found = (references.references ?? []).map(({ path }) => join(workspace.folder, path));
  for (const folder of wanted.filter((one) => !found.includes(one))) {
    faults.push(`${workspace.folder}/tsconfig.json: "references" lacks ${folder}, a dependency`);
  }
  for (const folder of found.filter((one) => !wanted.includes(one))) {
    faults.push(`${workspace.folder}/tsconfig.json: "references" names ${folder}, which is no dependency`);
  }
  return faults;
}

function importFaults(workspace: Workspace, { folder: checkout, all }: Checkout): string[] {
  return sourceFiles(workspace.folder, checkout).flatMap((file) =>
    importsOf(file.code).flatMap((one) => {
      const fault = one.specifier.startsWith('.')
        ? relativeFault(workspace, file, one)
        : packageFault(workspace, file, one.specifier, all);
      return fault === undefined ? [] : [`${file.path}: import of '${one.specifier}': ${fault}`];
    }),
  );
}

function relativeFault(workspace: Workspace, file: SourceFile, { specifier, isTypeOnly }: Import): string | undefined {
  const target = join(file.path, '..', specifier);
  if (
    isTestFile(file.path) &&
    (target === 'vitest.config.base.ts' || toolsForTests.some((one) => target.startsWith(one)))
  ) {
    return undefined;
  }
  if (!target.startsWith(`${workspace.folder}/`)) return 'leaves the package; import it by its package name';
  if (isTestFile(file.path)) return undefined;
  if (isTypeOnly || !file.path.startsWith(`${workspace.folder}/src/`)) return undefined;
  if (workspace.layer === 'backend') return backendOrderFault(roomOf(workspace, file.path), roomOf(workspace, target));
  return workspace.layer === 'core' ? coreOrderFault(coreFolder(file.path), coreFolder(target), file) : undefined;
}

function roomOf({ folder }: Workspace, path: string): string {
  return /^(\w+)\//.exec(path.slice(`${folder}/src/`.length))?.[1] ?? '';
}

function backendOrderFault(from: string, to: string): string | undefined {
  const [fromIndex, toIndex] = [backendOrder.indexOf(from), backendOrder.indexOf(to)];
  if (fromIndex < 0 || (toIndex >= 0 && toIndex <= fromIndex)) return undefined;
  return `a backend's order is ${backendOrder.join(' ')}: ${from} may not import ${to || 'what puts the rooms together'}`;
}

/** Folders outside the list (kubernetes, manifests, testing, the index) may import anything in core. */
function coreOrderFault(from: string, to: string, file: SourceFile): string | undefined {
  const fromIndex = coreOrder.indexOf(from);
  if (fromIndex < 0 || file.path === 'packages/core/src/index.ts') return undefined;
  const toIndex = coreOrder.indexOf(to);
  if (toIndex < 0) return `core/${from} may not import core/${to}`;
  return toIndex > fromIndex
    ? `core's order is ${coreOrder.join(' ')}: ${from || 'the root'} may not import ${to}`
    : undefined;
}

function coreFolder(path: string): string {
  const [room = '', folder = '', file] = path.slice('packages/core/src/'.length).split('/');
  if (room === 'model' && file !== undefined) return `model/${folder}`;
  return folder === '' ? '' : room;
}

function packageFault(
  workspace: Workspace,
  file: SourceFile,
  specifier: string,
  all: readonly Workspace[],
): string | undefined {
  if (specifier.startsWith('node:')) return undefined;
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  const isTest = isTestFile(file.path);
  if (isTest && ['vitest', 'vite', 'fast-check'].includes(name)) return undefined;
  const ownerPaths = owners[name];
  if (ownerPaths !== undefined && !isTest && !ownerPaths.some((prefix) => file.path.startsWith(prefix))) {
    return `only ${ownerPaths.join(', ')} may import ${name}`;
  }
  const isDeclared = workspace.dependencies.includes(name) || (isTest && workspace.devDependencies.includes(name));
  if (!isDeclared) return `${name} is not a dependency of ${workspace.name}`;
  const other = all.find((candidate) => candidate.name === name);
  if (other === undefined) return undefined;
  const path = specifier.slice(name.length + 1);
  const open = isTest ? undefined : subPaths[`${workspace.layer} ${other.layer}`];
  if (open?.includes(path) === false) return `layer ${workspace.layer} may import only ${open.join(', ')} of ${name}`;
  const allowed = [...(allow[workspace.layer] ?? []), ...(isTest ? (testAllow[workspace.layer] ?? []) : [])];
  return allowed.includes(other.layer) || isLibraryOf(workspace, other)
    ? undefined
    : `layer ${workspace.layer} may not import layer ${other.layer}`;
}

function isLibraryOf(workspace: Workspace, other: Workspace): boolean {
  return libraries[workspace.name]?.includes(other.name) === true;
}

function isTestFile(path: string): boolean {
  return /\.(test|bench)\.ts$|\/test\/|\/bench\/|\/tools\/|vitest[.\w]*config\.ts$/.test(path);
}
