import {
  type ApplyOutcome,
  type ApplyRequest,
  type Clock,
  type ForwardingTable,
  InvariantError,
  isEqual,
  type Logger,
  type Millis,
  type RuleCount,
  type ServiceForwarding,
  type ServicePortKey,
  type TableDelta,
} from '@switchyard/core';
import {
  type AppliedState,
  commitGroups,
  type CommitResult,
  KernelDiffersError,
  noResult,
  outcomeOf,
} from '@switchyard/core/engine';
import { isOurChain } from '@switchyard/host';
import type { ChainRule, RenderedSettings, TableName } from '../chains.ts';
import type { IptablesClient } from '../client/iptables-client.ts';
import { compareStates } from '../drift/compare-states.ts';
import { type RenderChoices, renderOptions, type RenderOptions } from '../options.ts';
import { AppliedSettings, listsOf } from './applied-settings.ts';
import { type Change, type ChainKey, chainKey, chainOfKey, type ChainRef } from './change.ts';
import { EntryOwners, type OwnedEntry } from './entry-owners.ts';
import type { Group } from './group.ts';
import { KernelState } from './kernel-state.ts';
import { dueChains, leftoverChains, leftoverEntries, type Leftovers, staleChains } from './leftovers.ts';
import { OwnedServices, type ServicePlanning } from './owned-services.ts';
import { readChains, type Reading, readTable, tableNames } from './read-kernel.ts';
import type { Renderer } from './renderer.ts';
import { noRules, RestoreWriter, type RulesByTable } from './restore-writer.ts';
import type { ChainHash } from './rule-hash.ts';
import { Spellings } from './spellings.ts';
import { StaleChains } from './stale-chains.ts';
import { UnremovedLog } from './unremoved-log.ts';

/** What an engine is made of. */
export interface EngineOptions {
  readonly client: IptablesClient;
  readonly renderer: Renderer;
  readonly logger: Logger;
  readonly clock: Clock;
  /** `comments` is the engine's choice. */
  readonly choices: Omit<RenderChoices, 'comments'>;
  readonly syncPeriod: Millis;
  /** Makes what rules name besides chains; called before all rules are compared. Throws `HostError`. */
  readonly prepare?: (() => void) | undefined;
  /** Is told of each change that the kernel took. */
  readonly onWritten?: (change: Change) => void;
}

/** With more endpoints in a family, a cluster is large: rules of endpoints carry no comments, stale chains wait. As kube-proxy. */
const largeClusterEndpoints = 1000;

/** Chains named per restore. Legacy copies the whole table for each restore, the nft variant is quadratic in one. */
const limits: Readonly<Record<IptablesClient['variant'], number>> = { nft: 1200, legacy: Infinity };

/** So many chains are read one by one where the whole is not much. Legacy copies the whole table for each. */
const fewSuspects = 3;
/** The nft variant lists so many chains in the time that a process takes which lists one. */
const chainsPerListing = 25;

/** Brings the kernel's rules of one family to what tables ask for. Calls do not overlap. */
export class Engine implements AppliedState {
  readonly #options: EngineOptions;
  readonly #owners = new EntryOwners();
  readonly #services = new OwnedServices(this.#owners);
  readonly #settings = new AppliedSettings(this.#owners);
  readonly #stale: StaleChains;
  readonly #spellings = new Spellings();
  /** Undefined when it is not known what the kernel holds. */
  #state: KernelState | undefined;
  #lists: Reading['lists'] = new Map();
  #jumps: Reading['jumps'] = [];
  #renderOptions: RenderOptions | undefined;
  #written: RulesByTable = noRules();
  /** Chains that somebody may have changed. */
  #suspects = new Map<ChainKey, ChainRef>();
  /** Somebody may have changed anything. */
  #areAllSuspect = false;
  readonly #unremovedLog: UnremovedLog;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#stale = new StaleChains(options.clock, options.syncPeriod);
    const { ipFamily } = options.client;
    this.#unremovedLog = new UnremovedLog({ clock: options.clock, logger: options.logger, ipFamily });
  }

  /** Whether a delta can be written. */
  get isKnown(): boolean {
    return this.#state !== undefined;
  }

  /** Rules of ours, and those that the last apply wrote. */
  ruleCounts(): readonly RuleCount[] {
    const entries: Record<TableName, number> = { nat: this.#services.rules, filter: 0, mangle: 0 };
    for (const { table } of this.#services.entries()) entries[table]++;
    return tableNames.map((table) => {
      return { table, total: entries[table] + this.#settings.rulesOf(table), last: this.#written[table] };
    });
  }

  /** Every rule that a Service port has in a shared chain. */
  entries(): Iterable<OwnedEntry> {
    return this.#services.entries();
  }

  /** What the kernel is known to hold; undefined when that is not known. */
  get state(): KernelState | undefined {
    return this.#state;
  }

  /** All must be read before the next delta. */
  forget(): void {
    this.#state = undefined;
    this.#suspects.clear();
  }

  /** This chain is read again by the next `heal`. */
  suspect(chain: ChainRef): void {
    this.#suspects.set(chainKey(chain.table, chain.name), chain);
  }

  /** Writes what changed. What the kernel holds must be known. */
  async applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome> {
    const run = await this.#beginKnown(table, signal);
    return this.#commit(this.#deltaGroups(run, delta), run, signal);
  }

  /** Everything in this table is read again by the next `heal`. */
  suspectTable(table: TableName): void {
    if (this.#state === undefined) return this.suspectAll(); // it may have been read already by the reading in progress
    for (const name of this.#state.chainsOf(table).keys()) this.suspect({ table, name });
    for (const key of this.#state.lists().keys()) {
      const chain = chainOfKey(key);
      if (chain.table === table) this.suspect(chain);
    }
  }

  /** Nothing may be as it was left: all is to be read, and `heal` would not do. */
  suspectAll(): void {
    this.#areAllSuspect = true;
  }

  /** Whether it would do, and is cheaper than to read everything, to read the suspects. */
  get canHeal(): boolean {
    if (this.#state === undefined || this.#areAllSuspect) return false;
    const suspects = this.#suspects.size;
    if (suspects <= fewSuspects || this.#options.client.variant === 'legacy') return suspects <= fewSuspects;
    let chains = 0;
    for (const table of tableNames) chains += this.#state.chainsOf(table).size;
    return suspects * chainsPerListing < chains;
  }

  /** Reads everything, or after drift only what may have changed, and writes what differs. */
  async applyFull({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    if (scope.kind === 'full' && scope.after === 'drift' && this.canHeal) return this.#heal(table, signal);
    this.#options.prepare?.();
    const believed = this.#state;
    this.forget();
    this.#areAllSuspect = false;
    const state = new KernelState();
    const run = this.#begin(table, state);
    await this.#readAll(state, signal);
    this.#state = state;
    const differences = believed === undefined ? [] : compareStates(believed, state);
    const again = this.#spellings.noteSurprises(
      differences.map(({ table: of, chain }) => ({ table: of, name: chain })),
      state,
    );
    const result = await this.#commit(this.#allGroups(run), run, signal);
    if (again.size > 0) {
      const found = new KernelState();
      await this.#readAll(found, signal);
      this.#learn(state, found, again);
    }
    return result;
  }

  /** Reads the suspects, and writes what differs and what changed. What the kernel holds must be known. */
  async #heal(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    const run = await this.#beginKnown(table, signal);
    const suspects = [...this.#suspects.values()];
    this.#suspects.clear();
    const changed = await readChains(this.reading, suspects, run.state, signal);
    const again = this.#spellings.noteSurprises(changed, run.state);
    const result = await this.#commit(this.#healGroups(run, changed), run, signal);
    if (again.size > 0) {
      const found = new KernelState();
      await readChains(this.reading, changed, found, signal);
      this.#learn(run.state, found, again);
    }
    return result;
  }

  async #readAll(state: KernelState, signal: AbortSignal): Promise<void> {
    for (const name of tableNames) await readTable(this.reading, name, state, signal);
  }

  /** What reads differently again, and was just written: if it reads so all the same, iptables has other words for it. */
  #learn(written: KernelState, found: KernelState, again: ReadonlyMap<ChainKey, ChainHash>): void {
    const chains = this.#spellings.learn(written, found, again);
    if (chains === 0) return;
    const { ipFamily, version } = this.#options.client;
    this.#options.logger.info('iptables prints rules in other words than they were written', {
      ipFamily,
      version,
      chains,
    });
  }

  /** Which chains are edited hangs on the settings, too. One that is from now on may be there already, with rules of others. */
  async #beginKnown(table: ForwardingTable, signal: AbortSignal): Promise<Run> {
    const before = this.#lists;
    const run = this.#begin(table);
    const now = this.#lists;
    for (const { table, name } of [...before.keys()].filter((key) => !now.has(key)).map(chainOfKey)) {
      run.state.setList(table, name, undefined);
    }
    const added = [...now.keys()].filter((key) => !before.has(key)).map(chainOfKey);
    await readChains(this.reading, added, run.state, signal);
    return run;
  }

  #begin(table: ForwardingTable, state: KernelState | undefined = this.#state): Run {
    if (state === undefined) throw new InvariantError('a delta is to be written, and it is not known to what');
    const { choices, renderer } = this.#options;
    const isLarge = endpointsOf(table) > largeClusterEndpoints;
    const options = renderOptions(table, { ...choices, comments: !isLarge });
    const isSame = this.#renderOptions !== undefined && isEqual(this.#renderOptions, options);
    if (!isSame) this.#renderOptions = options;
    const settings = renderer.settings(options);
    this.#lists = listsOf(settings);
    this.#jumps = [...settings.jumps, ...settings.ensured.rules];
    const planning = {
      state,
      stale: this.#stale,
      defersRemoval: isLarge,
      render: rememberLast((service: ServiceForwarding) => renderer.service(service, options)),
    };
    return { table, state, settings, planning, areOptionsNew: !isSame, result: noResult() };
  }

  *#deltaGroups(run: Run, delta: TableDelta): Generator<Group> {
    const { table, state, settings, planning } = run;
    const isAll = run.areOptionsNew; // what else a changed setting can be does not concern Services
    if (isAll) yield this.#settings.base(settings, state);
    if (isAll || delta.settingsChanged) yield this.#healthChecks(run);
    for (const service of isAll ? table.services.values() : delta.upserted)
      yield this.#services.upsert(service, planning);
    for (const key of delta.removed) yield this.#services.remove(key, planning);
    if (isAll) yield this.#settings.jumps(settings, state);
    yield* staleChains(this.#leftovers(run));
  }

  *#allGroups(run: Run): Generator<Group> {
    this.#settings.forgetTails();
    const { table, state, settings } = run;
    const wanted = new Set<string>();
    const planning = { ...run.planning, note: (chain: string) => void wanted.add(chain) };
    yield this.#settings.base(settings, state);
    yield this.#healthChecks(run);
    for (const service of table.services.values()) yield this.#services.upsert(service, planning);
    yield* this.#removals(run, planning);
    yield this.#settings.jumps(settings, state);
    const leftovers = this.#leftovers(run);
    yield* leftoverEntries(leftovers);
    yield* leftoverChains(leftovers, (chain) => wanted.has(chain));
  }

  *#healGroups(run: Run, changed: readonly ChainRef[]): Generator<Group> {
    const { table, state, settings, planning } = run;
    this.#settings.forgetTails();
    yield this.#settings.base(settings, state);
    yield this.#healthChecks(run);
    const damaged = this.#damaged(state, changed);
    for (const service of table.services.values()) {
      const { key } = service;
      const isDone = !run.areOptionsNew && !damaged.has(key) && this.#services.applied(key) === service;
      if (!isDone) yield this.#services.upsert(service, planning);
    }
    yield* this.#removals(run, planning);
    yield this.#settings.jumps(settings, state);
    const leftovers = this.#leftovers(run);
    yield* leftoverEntries(leftovers);
    const names = new Set(changed.filter((chain) => chain.table === 'nat').map(({ name }) => name));
    const owned = new Set([...this.#services.chainsAmong(names)].map(([, name]) => name));
    yield* leftoverChains(leftovers, (chain) => !names.has(chain) || owned.has(chain));
  }

  /** Services that chains are of, and those that lack an entry in a shared chain among them. */
  #damaged(state: KernelState, changed: readonly ChainRef[]): ReadonlySet<ServicePortKey> {
    const damaged = new Set<ServicePortKey>();
    if (changed.length === 0) return damaged;
    const names = new Set(changed.filter(({ table }) => table === 'nat').map(({ name }) => name));
    for (const [key] of this.#services.chainsAmong(names)) damaged.add(key);
    const lists = new Set(changed.map(({ table, name }) => chainKey(table, name)));
    for (const { table, chain, rule, key } of this.#services.entries()) {
      if (lists.has(chainKey(table, chain)) && state.count(table, chain, rule) === 0) damaged.add(key);
    }
    return damaged;
  }

  *#removals({ table }: Run, planning: ServicePlanning): Generator<Group> {
    for (const key of this.#services.keys()) {
      if (!table.services.has(key)) yield this.#services.remove(key, planning);
    }
  }

  #healthChecks({ table, state }: Run): Group {
    const { renderer } = this.#options;
    const entries = [...table.healthChecks.values()].map((check) => renderer.healthCheck(check));
    return this.#settings.healthChecks(entries, state);
  }

  #leftovers({ table, state, settings, result }: Run): Leftovers {
    const failed = (): readonly ServiceForwarding[] =>
      [...result.failed.keys()].flatMap((key) => table.services.get(key) ?? []);
    const entriesOf = (key: ServicePortKey): readonly ChainRule[] | undefined => this.#services.entriesOf(key);
    return { settings, state, owners: this.#owners, stale: this.#stale, failed, entriesOf };
  }

  /** How the kernel is read. */
  get reading(): Reading {
    const { client } = this.#options;
    return { client, spellings: this.#spellings, lists: this.#lists, jumps: this.#jumps, isOurs: isOurChain };
  }

  async #commit(groups: Iterable<Group>, run: Run, signal: AbortSignal): Promise<ApplyOutcome> {
    const { state, result } = run;
    const { client, clock, onWritten } = this.#options;
    const refresh = async (chains: readonly ChainRef[], during: AbortSignal): Promise<boolean> => {
      const changed = await readChains(this.reading, chains, state, during);
      // Who asks is a Service, and that chain is not its own to make.
      const gone = changed.find(
        ({ table, name }) => this.#lists.has(chainKey(table, name)) && !state.list(table, name),
      );
      if (gone !== undefined) throw new KernelDiffersError(`chain ${gone.name} of table ${gone.table} is gone`);
      return changed.length > 0;
    };
    const limit = limits[client.variant];
    const { unremoved } = result;
    const writer = new RestoreWriter({
      client,
      clock,
      state,
      unremoved,
      owners: this.#owners,
      limit,
      refresh,
      onWritten,
    });
    try {
      await commitGroups(groups, { writer, result }, signal);
      // A chain may have stayed for a refusal that had another reason, and is gone by now.
      if (unremoved.length > 0) await commitGroups(dueChains(this.#leftovers(run)), { writer, result }, signal);
    } finally {
      this.#written = writer.rules;
    }
    this.#unremovedLog.note(unremoved);
    return outcomeOf(result);
  }
}

/** One apply. */
interface Run {
  readonly table: ForwardingTable;
  readonly state: KernelState;
  readonly settings: RenderedSettings;
  readonly planning: ServicePlanning;
  readonly areOptionsNew: boolean;
  readonly result: CommitResult;
}

/** Remembers the last answer: the chains of one Service are asked for one after the other. */
function rememberLast<Q, A>(answer: (question: Q) => A): (question: Q) => A {
  let last: { readonly question: Q; readonly answer: A } | undefined;
  return (question) => {
    if (last === undefined || last.question !== question) last = { question, answer: answer(question) };
    return last.answer;
  };
}

function endpointsOf(table: ForwardingTable): number {
  let endpoints = 0;
  for (const { knownEndpoints } of table.services.values()) endpoints += knownEndpoints.length;
  return endpoints;
}
