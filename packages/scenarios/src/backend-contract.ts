import { type DataplaneBackend } from '@switchyard/core/engine';
import { UsageError } from '@switchyard/core';
import type { ForwardingTable, Millis, ServiceForwarding } from '@switchyard/core';
import { TableApplier, type BackendHarness, type FakeKernel } from './run-on-backend.ts';
import type { Scenario } from './scenario.ts';
import { firstState, nextState, ScenarioTables } from './scenario-tables.ts';

/** One promise that every dataplane backend keeps. */
export interface ContractClause {
  /** Completes "a backend …". */
  readonly promise: string;
  /** Violations of the backend with the tables of one scenario; empty if none. Each call gets its own kernel. */
  faults(subject: ContractSubject, signal: AbortSignal): Faults;
}

/** Violations of a promise; empty if none. */
type Faults = Promise<readonly string[]>;

/** Backend and scenario that a clause checks. */
export interface ContractSubject {
  readonly harness: BackendHarness;
  readonly scenario: Scenario;
}

/** The contract of `DataplaneBackend`, clause by clause; needs a fake kernel and no packets. */
export const backendContract: readonly ContractClause[] = [
  { promise: 'writes nothing when the kernel already has the table', faults: secondApply },
  { promise: 'adopts what another instance wrote, without a write', faults: adoption },
  { promise: 'reaches the same kernel by differences as in full', faults: deltaEqualsFull },
  { promise: 'says the same of the same forwarding, however it came about', faults: canonicalDump },
  { promise: 'names the services the kernel refused, and writes all others', faults: partialFailure },
  { promise: 'is as good as new after an aborted apply', faults: abortedApply },
  { promise: 'cleans up without memory, twice if need be, and leaves nothing', faults: cleanup },
  { promise: 'keeps the age of the rules for the next instance, or says that it cannot', faults: ageOfRules },
];

/** A backend over a kernel of its own, at one table after another. */
interface Moment {
  readonly kernel: FakeKernel;
  readonly backend: DataplaneBackend;
  readonly applier: TableApplier;
  readonly table: ForwardingTable;
  readonly faults: string[];
}

/** Takes one backend through the scenario's tables; returns the faults that `look` adds. */
async function along(
  { harness, scenario }: ContractSubject,
  signal: AbortSignal,
  look: (moment: Moment) => Promise<void>,
  tables: readonly ForwardingTable[] = tablesOf(scenario),
): Faults {
  const kernel = harness.createKernel();
  await using backend = await kernel.open(scenario.ipFamily, signal);
  const applier = new TableApplier(backend);
  const faults: string[] = [];
  for (const table of tables) await look({ kernel, backend, applier, table, faults });
  return faults;
}

function secondApply(subject: ContractSubject, signal: AbortSignal): Faults {
  return along(subject, signal, async ({ backend, applier, table, faults }) => {
    await applier.apply(table, signal);
    const before = await backend.dump(signal);
    const again = await applier.apply(table, signal);
    const full = await backend.apply({ table, scope: { kind: 'full' } }, signal);
    if (again.writes !== 0) faults.push(`an empty difference wrote ${again.writes} elements`);
    if (full.status !== 'applied' || full.writes !== 0) faults.push(`a full apply again: ${JSON.stringify(full)}`);
    if ((await backend.dump(signal)) !== before) faults.push('applying the same table again changed the kernel');
  });
}

function adoption(subject: ContractSubject, signal: AbortSignal): Faults {
  return along(subject, signal, async ({ kernel, backend, applier, table, faults }) => {
    await applier.apply(table, signal);
    await using fresh = await kernel.open(table.ipFamily, signal);
    const outcome = await fresh.apply({ table, scope: { kind: 'full' } }, signal);
    if (outcome.status !== 'applied' || outcome.writes !== 0) faults.push(`a new instance: ${JSON.stringify(outcome)}`);
    if ((await fresh.dump(signal)) !== (await backend.dump(signal))) faults.push('a new instance sees another kernel');
  });
}

function deltaEqualsFull(subject: ContractSubject, signal: AbortSignal): Faults {
  return differencesAlong(subject, { tables: tablesOf(subject.scenario), when: 'after differences' }, signal);
}

/** Goes through all states and back, and ends with an empty table. */
function canonicalDump(subject: ContractSubject, signal: AbortSignal): Faults {
  const tables = tablesOf(subject.scenario);
  const [first] = tables;
  const empty = first === undefined ? [] : [{ ...first, services: new Map(), healthChecks: new Map() }];
  const way = [...tables, ...tables.slice(0, -1).reverse(), ...empty];
  return differencesAlong(subject, { tables: way, when: 'on the way back' }, signal);
}

interface Way {
  readonly tables: readonly ForwardingTable[];
  /** Prefix of the reported differences. */
  readonly when: string;
}

/** Differences between a kernel that goes from table to table and a new kernel with each table. */
function differencesAlong(subject: ContractSubject, { tables, when }: Way, signal: AbortSignal): Faults {
  const { harness } = subject;
  const look = async ({ backend, applier, table, faults }: Moment): Promise<void> => {
    await applier.apply(table, signal);
    const difference = await differenceFromNew(backend, { harness, table }, signal);
    if (difference !== undefined) faults.push(`${when}: ${difference}`);
  };
  return along(subject, signal, look, tables);
}

/** Refuses each cluster IP in turn: the backend must name its Service and apply all others at once. */
async function partialFailure({ harness, scenario }: ContractSubject, signal: AbortSignal): Faults {
  const faults: string[] = [];
  for (const table of endsOf(tablesOf(scenario))) {
    for (const address of clusterIpsOf(table)) {
      const kernel = harness.createKernel();
      await using backend = await kernel.open(table.ipFamily, signal);
      const applier = new TableApplier(backend);
      kernel.refuse(address);
      const outcome = await applier.attempt(table, signal);
      const isOwner = (service: ServiceForwarding): boolean => service.frontends.some((one) => one.address === address);
      const services = [...table.services];
      const owners = services.flatMap(([key, service]) => (isOwner(service) ? [key] : []));
      const others = new Map(services.filter(([, service]) => !isOwner(service)));
      const named = outcome.status === 'partial' ? [...outcome.failed.keys()].sort().join(', ') : outcome.status;
      if (named !== owners.sort().join(', ')) faults.push(`${address} refused, but named: ${named}`);
      const reference = { harness, table: { ...table, services: others } };
      const missing =
        harness.dataplane.atomicity === 'transaction'
          ? await differenceFromNew(backend, reference, signal)
          : await missingBeside(backend, reference, signal);
      if (missing !== undefined) faults.push(`beside the refused ${address}: ${missing}`);
      kernel.refuse(undefined);
      await applier.apply(table, signal);
      const difference = await differenceFromNew(backend, { harness, table }, signal);
      if (difference !== undefined) faults.push(`after the repair: ${difference}`);
    }
  }
  return faults;
}

function abortedApply(subject: ContractSubject, signal: AbortSignal): Faults {
  const { harness } = subject;
  return along(subject, signal, async ({ backend, applier, table, faults }) => {
    const reason = new UsageError('contract.abort', 'enough');
    const ended = await applier.attempt(table, AbortSignal.abort(reason)).then(
      ({ status }) => status,
      (error: unknown) => error,
    );
    // With nothing to write there is nothing to abort.
    if (ended !== reason && ended !== 'applied') faults.push(`an aborted apply ended with ${String(ended)}`);
    await applier.apply(table, signal);
    const difference = await differenceFromNew(backend, { harness, table }, signal);
    if (difference !== undefined) faults.push(`after an abort: ${difference}`);
  });
}

async function cleanup({ harness, scenario }: ContractSubject, signal: AbortSignal): Faults {
  const faults: string[] = [];
  for (const table of endsOf(tablesOf(scenario))) {
    const kernel = harness.createKernel();
    await using writer = await kernel.open(scenario.ipFamily, signal);
    await new TableApplier(writer).apply(table, signal);
    await using cleaner = await kernel.open(scenario.ipFamily, signal);
    const wasEmpty = kernel.isEmpty();
    const removed = await cleaner.cleanup(signal);
    const again = await cleaner.cleanup(signal);
    if (removed.length === 0 && !wasEmpty) faults.push('a cleanup does not say what it removed');
    if (again.length > 0) faults.push(`a second cleanup says that it removed ${again.join(', ')}`);
    if (!kernel.isEmpty()) faults.push('something is left after a cleanup');
    if ((await cleaner.dump(signal)) !== '') faults.push('the dump of a cleaned kernel is not empty');
  }
  return faults;
}

async function ageOfRules({ harness, scenario }: ContractSubject, signal: AbortSignal): Faults {
  const [table] = tablesOf(scenario);
  const kernel = harness.createKernel();
  await using writer = await kernel.open(scenario.ipFamily, signal);
  const { age } = writer.observers;
  if (age === undefined) return [];
  const faults: string[] = [];
  const ages: (Millis | undefined)[] = [await age.read(signal)];
  if (table !== undefined) await new TableApplier(writer).apply(table, signal);
  const before = await writer.dump(signal);
  await age.mark(signal);
  await using reader = await kernel.open(scenario.ipFamily, signal);
  ages.push(await reader.observers.age?.read(signal));
  const [atFirst, marked] = ages;
  if (atFirst !== undefined) faults.push(`an empty kernel has an age of ${atFirst} ms`);
  if (marked === undefined || marked < 0 || marked > 60_000) faults.push(`just marked, the age is ${marked} ms`);
  if ((await reader.dump(signal)) !== before) faults.push('a mark changed the forwarding');
  return faults;
}

const tablesByScenario = new WeakMap<Scenario, readonly ForwardingTable[]>();

/** The tables of the scenario's own family, one for each state. */
function tablesOf(scenario: Scenario): readonly ForwardingTable[] {
  const known = tablesByScenario.get(scenario) ?? buildTables(scenario);
  tablesByScenario.set(scenario, known);
  return known;
}

function buildTables(scenario: Scenario): readonly ForwardingTable[] {
  const tables = new ScenarioTables(scenario);
  let state = firstState(scenario);
  const all = [tables.update(state)];
  for (const step of scenario.steps) {
    const next = nextState(state, step);
    if (next !== state) all.push(tables.update(next));
    state = next;
  }
  return all.flatMap((one) => one.get(scenario.ipFamily) ?? []);
}

/** First and last table, for clauses that build a kernel for each. */
function endsOf(tables: readonly ForwardingTable[]): readonly ForwardingTable[] {
  return tables.filter((_, index) => index === 0 || index === tables.length - 1);
}

function clusterIpsOf(table: ForwardingTable): ReadonlySet<string> {
  const frontends = [...table.services.values()].flatMap((service) => service.frontends);
  return new Set(frontends.filter(({ kind }) => kind === 'clusterIP').map(({ address }) => address));
}

const dumps = new WeakMap<BackendHarness, WeakMap<ForwardingTable, Promise<string>>>();

/** Dump of a table that a new backend applied to an empty kernel; cached, because every clause needs it. */
function dumpOfNew(harness: BackendHarness, table: ForwardingTable, signal: AbortSignal): Promise<string> {
  const known = dumps.get(harness) ?? new WeakMap<ForwardingTable, Promise<string>>();
  dumps.set(harness, known);
  const dump = known.get(table) ?? makeDump(harness, table, signal);
  known.set(table, dump);
  return dump;
}

async function makeDump(harness: BackendHarness, table: ForwardingTable, signal: AbortSignal): Promise<string> {
  await using backend: DataplaneBackend = await harness.createKernel().open(table.ipFamily, signal);
  await new TableApplier(backend).apply(table, signal);
  return await backend.dump(signal); // before the backend is disposed
}

interface Reference {
  readonly harness: BackendHarness;
  readonly table: ForwardingTable;
}

/** First difference from a kernel to which a new backend applied the table; undefined if none. */
async function differenceFromNew(
  backend: DataplaneBackend,
  { harness, table }: Reference,
  signal: AbortSignal,
): Promise<string | undefined> {
  return firstDifference(await backend.dump(signal), await dumpOfNew(harness, table, signal));
}

/** First line that a new backend would have written for the table and that is missing; additional lines are allowed. */
async function missingBeside(
  backend: DataplaneBackend,
  { harness, table }: Reference,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = new Set((await backend.dump(signal)).split('\n'));
  const missing = (await dumpOfNew(harness, table, signal)).split('\n').find((line) => !found.has(line));
  return missing === undefined ? undefined : `the dump lacks '${missing}'`;
}

function firstDifference(found: string, wanted: string): string | undefined {
  if (found === wanted) return undefined;
  const [foundLines, wantedLines] = [found.split('\n'), wanted.split('\n')];
  const index = foundLines.findIndex((line, at) => line !== wantedLines[at]);
  const at = index < 0 ? foundLines.length : index;
  return `line ${at + 1} of the dump is '${foundLines[at] ?? ''}' instead of '${wantedLines[at] ?? ''}'`;
}
