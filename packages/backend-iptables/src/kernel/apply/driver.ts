import {
  type ApplyRequest,
  type CommitResult,
  type Driver,
  type DriverRun,
  KernelDiffersError,
  type RuleCount,
  type ServiceTracker,
  type ServiceWish,
} from '@switchyard/core/engine';
import {
  type Clock,
  type ForwardingTable,
  InvariantError,
  isEqual,
  type Logger,
  type Millis,
  type ServiceForwarding,
  type ServicePortKey,
} from '@switchyard/core';
import { isOurChain } from '@switchyard/netfilter/iptables';
import { type RenderedSettings, type TableName, tableNames } from '../../render/chains.ts';
import type { IptablesClient } from '../client/iptables-client.ts';
import { compareStates } from '../compare-states.ts';
import { type RenderChoices, renderOptions, type RenderOptions } from '../../render/options.ts';
import { AppliedSettings, listsOf } from './applied-settings.ts';
import { type ChainKey, chainKey, chainOfKey, type ChainRef, type Change } from './change.ts';
import { EntryOwners, type Group, type OwnedEntry } from './entry-owners.ts';
import { KernelState } from './kernel-state.ts';
import { PrintedRules } from './printed-rules.ts';
import { readChains, type Reading, readTable } from './read-kernel.ts';
import { renderService } from '../../render/render-service.ts';
import { renderHealthCheck, renderSettings } from '../../render/render-settings.ts';
import { noRules, RestoreWriter, type RulesByTable } from './restore-writer.ts';
import type { ChainHash } from './rule-hash.ts';
import { type HeldChains, ServiceChains, type ServicePlanning } from './service-chains.ts';
import {
  dueChains,
  removeDueChains,
  removeStaleEntries,
  removeUnwantedChains,
  StaleChains,
  type StaleContext,
} from './stale-rules.ts';
import { UnremovedLog } from './unremoved-log.ts';

export interface IptablesDriverOptions {
  readonly client: IptablesClient;
  readonly tracker: ServiceTracker<HeldChains>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** `comments` is the driver's choice. */
  readonly choices: Omit<RenderChoices, 'comments'>;
  /** Minimum time between two removals of stale chains in a large cluster. */
  readonly syncPeriod: Millis;
  /** Makes the objects that rules name besides chains; called before everything is read. Throws `HostError`. */
  readonly prepare?: (() => void) | undefined;
  readonly onWritten?: (change: Change) => void;
}

/** With more endpoints in a family, a cluster is large: rules of endpoints carry no comments, stale chains wait. As kube-proxy. */
const largeClusterEndpoints = 1000;

/** Chains named per restore. Legacy copies the whole table for each restore, the nft variant is quadratic in one. */
const limits: Readonly<Record<IptablesClient['variant'], number>> = { nft: 1200, legacy: Infinity };

/** Up to this number, chains are always read one by one. Legacy copies the whole table for each. */
const fewChains = 3;
/** The nft variant lists so many chains in the time that a process takes which lists one. */
const chainsPerListing = 25;

/** Writes the rules of one family. The kernel takes each table as a whole. Notes which chains others may have changed. */
export class IptablesDriver implements Driver<Group, Change> {
  readonly #options: IptablesDriverOptions;
  readonly #owners = new EntryOwners();
  readonly #services: ServiceChains;
  readonly #settings = new AppliedSettings(this.#owners);
  readonly #stale: StaleChains;
  readonly #printed = new PrintedRules();
  readonly #unremovedLog: UnremovedLog;
  #state: KernelState | undefined;
  #lists: Reading['lists'] = new Map();
  #jumps: Reading['jumps'] = [];
  #renderOptions: RenderOptions | undefined;
  #written: RulesByTable = noRules();
  #foreign = new Map<ChainKey, ChainRef>();
  #isAllForeign = false;

  constructor(options: IptablesDriverOptions) {
    const { client, tracker, clock, logger, syncPeriod } = options;
    this.#options = options;
    this.#services = new ServiceChains(this.#owners, tracker);
    this.#stale = new StaleChains(clock, syncPeriod);
    this.#unremovedLog = new UnremovedLog({ clock, logger, ipFamily: client.ipFamily });
  }

  /** Number of our rules, and of those that the last apply wrote. */
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

  /** The chains in the kernel, as recorded; undefined when they are not known. */
  get state(): KernelState | undefined {
    return this.#state;
  }

  get reading(): Reading {
    const { client } = this.#options;
    return { client, printed: this.#printed, lists: this.#lists, jumps: this.#jumps, isOurs: isOurChain };
  }

  forget(): void {
    this.#state = undefined;
    this.#foreign.clear();
  }

  /** Another process touched this chain: an apply after drift reads it. */
  noteChain(chain: ChainRef): void {
    this.#foreign.set(chainKey(chain.table, chain.name), chain);
  }

  /** Another process may have touched all of this table. */
  noteTable(table: TableName): void {
    if (this.#state === undefined) return this.noteAll(); // it may have been read already by the reading in progress
    for (const name of this.#state.chainsOf(table).keys()) this.noteChain({ table, name });
    for (const key of this.#state.lists().keys()) {
      const chain = chainOfKey(key);
      if (chain.table === table) this.noteChain(chain);
    }
  }

  /** Another process may have touched anything: an apply after drift reads everything. */
  noteAll(): void {
    this.#isAllForeign = true;
  }

  /** Whether an apply after drift reads single chains, because that suffices and is cheaper than everything. */
  get canHeal(): boolean {
    if (this.#state === undefined || this.#isAllForeign) return false;
    const { size } = this.#foreign;
    if (size <= fewChains || this.#options.client.variant === 'legacy') return size <= fewChains;
    let chains = 0;
    for (const table of tableNames) chains += this.#state.chainsOf(table).size;
    return size * chainsPerListing < chains;
  }

  begin({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<DriverRun<Group, Change>> {
    if (scope.kind === 'delta') return this.#beginDelta(table, scope.delta.settingsChanged, signal);
    return scope.after === 'drift' && this.canHeal ? this.#beginHeal(table, signal) : this.#beginFull(table, signal);
  }

  async #beginDelta(
    table: ForwardingTable,
    areSettingsNew: boolean,
    signal: AbortSignal,
  ): Promise<DriverRun<Group, Change>> {
    const plan = await this.#planKnown(table, signal);
    if (plan.areOptionsNew) return this.#run(plan, { unknown: 'all', stale: removeDueChains });
    const before = areSettingsNew ? [this.#healthChecks(plan)] : []; // other settings of the table are options
    return {
      ...this.#run(plan, { unknown: undefined, stale: removeDueChains }),
      before: () => before,
      after: () => [],
    };
  }

  async #beginFull(table: ForwardingTable, signal: AbortSignal): Promise<DriverRun<Group, Change>> {
    this.#options.prepare?.();
    const before = this.#state;
    this.forget();
    this.#isAllForeign = false;
    const state = new KernelState();
    const plan = this.#plan(table, state);
    await this.#readAll(state, signal);
    this.#state = state;
    this.#settings.forgetTails();
    const differences = before === undefined ? [] : compareStates(before, state);
    const changed = differences.map(({ table: of, chain }) => ({ table: of, name: chain }));
    const wanted = new Set<string>();
    plan.planning.note = (chain) => void wanted.add(chain);
    const stale = function* (context: StaleContext): Generator<Group> {
      yield* removeStaleEntries(context);
      yield* removeUnwantedChains(context, (chain) => wanted.has(chain));
    };
    return this.#run(plan, { unknown: 'all', stale, changed, read: (found) => this.#readAll(found, signal) });
  }

  /** Reads the chains that others may have changed. */
  async #beginHeal(table: ForwardingTable, signal: AbortSignal): Promise<DriverRun<Group, Change>> {
    const plan = await this.#planKnown(table, signal);
    const chains = [...this.#foreign.values()];
    this.#foreign.clear();
    const changed = await readChains(this.reading, chains, plan.state, signal);
    this.#settings.forgetTails();
    const names = new Set(changed.filter((chain) => chain.table === 'nat').map(({ name }) => name));
    const services = this.#services;
    const stale = function* (context: StaleContext): Generator<Group> {
      yield* removeStaleEntries(context);
      const owned = new Set([...services.chainsAmong(names)].map(([, name]) => name));
      yield* removeUnwantedChains(context, (chain) => !names.has(chain) || owned.has(chain));
    };
    const unknown = plan.areOptionsNew ? 'all' : this.#damaged(plan.state, changed, names);
    const read = async (found: KernelState): Promise<void> => {
      await readChains(this.reading, changed, found, signal);
    };
    return this.#run(plan, { unknown, stale, changed, read });
  }

  #run(plan: Plan, { unknown, stale, changed = [], read }: RunParts): DriverRun<Group, Change> {
    const { state, settings, planning } = plan;
    const again = this.#printed.noteDifferences(changed, state);
    const writer = this.#writer(state);
    this.#written = writer.rules;
    const group = ({ key, service }: ServiceWish): Group =>
      service === undefined ? this.#services.remove(key, planning) : this.#services.upsert(service, planning);
    return {
      unknown,
      writer,
      before: () => [this.#settings.base(settings, state), this.#healthChecks(plan)],
      *services(wishes) {
        for (const wish of wishes) yield group(wish);
      },
      after: () => [this.#settings.jumps(settings, state)],
      stale: (result) => stale(this.#staleContext(plan, result)),
      finish: async ({ result, commit }) => {
        const { unremoved } = result;
        unremoved.unshift(...writer.kept);
        // A chain may have stayed for a refusal that had another reason, and nothing leads to it by now.
        if (unremoved.length > 0) await commit(dueChains(this.#staleContext(plan, result)));
        this.#unremovedLog.note(unremoved);
        if (again.size > 0 && read !== undefined) await this.#learn(state, again, read);
      },
    };
  }

  #writer(state: KernelState): RestoreWriter {
    const { client, clock, onWritten } = this.#options;
    const refresh = async (chains: readonly ChainRef[], signal: AbortSignal): Promise<boolean> => {
      const changed = await readChains(this.reading, chains, state, signal);
      // The refused group is a Service's, which cannot make this chain.
      const missing = changed.find(
        ({ table, name }) => this.#lists.has(chainKey(table, name)) && !state.list(table, name),
      );
      if (missing !== undefined)
        throw new KernelDiffersError(`chain ${missing.name} of table ${missing.table} is missing`);
      return changed.length > 0;
    };
    return new RestoreWriter({
      client,
      clock,
      state,
      owners: this.#owners,
      limit: limits[client.variant],
      refresh,
      onWritten,
    });
  }

  async #readAll(state: KernelState, signal: AbortSignal): Promise<void> {
    for (const name of tableNames) await readTable(this.reading, name, state, signal);
  }

  /** Reads chains that differ again right after they were written: iptables may print their rules in other words. */
  async #learn(
    written: KernelState,
    again: ReadonlyMap<ChainKey, ChainHash>,
    read: (found: KernelState) => Promise<void>,
  ): Promise<void> {
    const found = new KernelState();
    await read(found);
    const chains = this.#printed.learn(written, found, again);
    if (chains === 0) return;
    const { client, logger } = this.#options;
    const { ipFamily, version } = client;
    logger.info('iptables prints rules in other words than they were written', { ipFamily, version, chains });
  }

  /** Plans over the recorded state. A chain that the new settings edit may be there already, with rules of others: it is read. */
  async #planKnown(table: ForwardingTable, signal: AbortSignal): Promise<Plan> {
    if (this.#state === undefined) throw new InvariantError('rules are changed before the kernel was read');
    const before = this.#lists;
    const plan = this.#plan(table, this.#state);
    const now = this.#lists;
    for (const { table: of, name } of [...before.keys()].filter((key) => !now.has(key)).map(chainOfKey)) {
      plan.state.setList(of, name, undefined);
    }
    const added = [...now.keys()].filter((key) => !before.has(key)).map(chainOfKey);
    await readChains(this.reading, added, plan.state, signal);
    return plan;
  }

  #plan(table: ForwardingTable, state: KernelState): Plan {
    const { choices } = this.#options;
    const isLarge = endpointsOf(table) > largeClusterEndpoints;
    const options = renderOptions(table, { ...choices, comments: !isLarge });
    const isSame = this.#renderOptions !== undefined && isEqual(this.#renderOptions, options);
    if (!isSame) this.#renderOptions = options;
    const settings = renderSettings(options);
    this.#lists = listsOf(settings);
    this.#jumps = [...settings.jumps, ...settings.ensured.rules];
    const planning = {
      state,
      stale: this.#stale,
      defersRemoval: isLarge,
      render: rememberLast((service: ServiceForwarding) => renderService(service, options)),
    };
    return { table, state, settings, planning, areOptionsNew: !isSame };
  }

  /** Services that changed chains are of, and those that lack an entry in a changed shared chain. */
  #damaged(state: KernelState, changed: readonly ChainRef[], names: ReadonlySet<string>): ReadonlySet<ServicePortKey> {
    const damaged = new Set<ServicePortKey>();
    if (changed.length === 0) return damaged;
    for (const [key] of this.#services.chainsAmong(names)) damaged.add(key);
    const lists = new Set(changed.map(({ table, name }) => chainKey(table, name)));
    for (const { table, chain, rule, key } of this.#services.entries()) {
      if (lists.has(chainKey(table, chain)) && state.count(table, chain, rule) === 0) damaged.add(key);
    }
    return damaged;
  }

  #healthChecks({ table, state }: Plan): Group {
    const entries = [...table.healthChecks.values()].map(renderHealthCheck);
    return this.#settings.healthChecks(entries, state);
  }

  #staleContext({ table, state, settings }: Plan, result: CommitResult): StaleContext {
    const failed = (): readonly ServiceForwarding[] =>
      [...result.failed.keys()].flatMap((key) => table.services.get(key) ?? []);
    const entriesOf: StaleContext['entriesOf'] = (key) => this.#services.entriesOf(key);
    return { settings, state, owners: this.#owners, stale: this.#stale, failed, entriesOf };
  }
}

interface Plan {
  readonly table: ForwardingTable;
  readonly state: KernelState;
  readonly settings: RenderedSettings;
  readonly planning: ServicePlanning;
  readonly areOptionsNew: boolean;
}

interface RunParts extends Pick<DriverRun<Group, Change>, 'unknown'> {
  readonly stale: (context: StaleContext) => Iterable<Group>;
  /** Chains that were read and differ from the record. */
  readonly changed?: readonly ChainRef[];
  readonly read?: (found: KernelState) => Promise<void>;
}

/** Remembers the last answer: the chains of one Service are rendered one after the other. */
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
