import type { ForwardingTable, Frontend, ServiceForwarding, ServicePortKey, TableDelta } from '@switchyard/core';
import { leftToRules, type RuleServices, ruleServicesOf, withServices } from './left-to-rules.ts';

/** A change of the rules. */
export interface RulesStep {
  /** With `services` as all its services. */
  readonly table: ForwardingTable;
  readonly services: RuleServices;
  readonly delta: TableDelta;
}

/** How rules follow the maps. */
export interface RulesPlan {
  /** To be written before the maps: what programs are about to let pass is there already. Absent where they let nothing more pass. */
  readonly before: RulesStep | undefined;
  /** To be written after the maps. */
  readonly after: RulesStep;
}

/** What the kernel has. */
export interface AppliedTable {
  readonly table: ForwardingTable;
  /** What of it rules carry. */
  readonly services: RuleServices;
}

/** All of a table that rules carry, in an empty kernel or one that nobody remembers. */
export function wholeRules(table: ForwardingTable): Omit<RulesStep, 'delta'> {
  const services = ruleServicesOf(table.services.values());
  return { table: withServices(table, services), services };
}

/**
 * The changes of the rules that belong to a change of the table. A frontend that moves between programs and rules is carried by at
 * least one of them at every moment: rules have it before programs let it pass, and keep it until programs take it.
 */
export function planRules(applied: AppliedTable, table: ForwardingTable, delta: TableDelta): RulesPlan {
  const upserted: ServiceForwarding[] = [];
  const early: ServiceForwarding[] = [];
  const removed: ServicePortKey[] = delta.removed.filter((key) => applied.services.has(key));
  for (const service of delta.upserted) {
    const left = leftToRules(service);
    const before = applied.services.get(service.key);
    if (left !== undefined) upserted.push(left);
    else if (before !== undefined) removed.push(service.key);
    const bridge = left && bridgeOf({ service, left, before, old: applied.table.services.get(service.key) });
    if (bridge !== undefined) early.push(bridge);
  }
  const { services } = applied;
  return {
    before: early.length === 0 ? undefined : step(applied.table, services.with(early, []), { upserted: early }),
    after: step(table, services.with(upserted, removed), {
      upserted,
      removed,
      settingsChanged: delta.settingsChanged,
    }),
  };
}

interface Move {
  /** As it will be. */
  readonly service: ServiceForwarding;
  /** What rules will carry of it. */
  readonly left: ServiceForwarding;
  /** What rules carry of it now. */
  readonly before: ServiceForwarding | undefined;
  /** As it is now. */
  readonly old: ServiceForwarding | undefined;
}

/**
 * The service as rules must have it while programs change: what they have now and is still wanted, and what programs are about to
 * leave to them. Nothing that is new altogether: another Service may have had it a moment ago. Undefined where nothing comes from programs.
 */
function bridgeOf({ service, left, before, old }: Move): ServiceForwarding | undefined {
  const isIn = (of: ServiceForwarding | undefined, frontend: Frontend): boolean =>
    of?.frontends.some((one) => one.address === frontend.address && one.port === frontend.port) === true;
  const isComing = (frontend: Frontend): boolean =>
    isIn(old, frontend) && !isIn(before, frontend) && isIn(left, frontend);
  if (!service.frontends.some(isComing)) return undefined;
  const frontends = service.frontends.filter((one) => isIn(before, one) || isComing(one));
  return { ...service, frontends };
}

function step(
  table: ForwardingTable,
  services: RuleServices,
  { upserted = [], removed = [], settingsChanged = false }: Partial<TableDelta>,
): RulesStep {
  return { table: withServices(table, services), services, delta: { upserted, removed, settingsChanged } };
}
