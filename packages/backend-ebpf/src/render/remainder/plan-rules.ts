import type { ForwardingTable, Frontend, ServiceForwarding, ServicePortKey, TableDelta } from '@switchyard/core';
import { leftToRules, type RuleServices, ruleServicesOf, withServices } from './left-to-rules.ts';

export interface RulesStep {
  /** The table, whose services are `services`. */
  readonly table: ForwardingTable;
  readonly services: RuleServices;
  readonly delta: TableDelta;
}

/** Changes of the rules before and after a change of the maps. */
export interface RulesPlan {
  /** Written before the maps: rules for traffic that programs are about to pass. Absent without any. */
  readonly before: RulesStep | undefined;
  /** Written after the maps. */
  readonly after: RulesStep;
}

export interface AppliedTable {
  readonly table: ForwardingTable;
  /** Services that rules carry. */
  readonly services: RuleServices;
}

/** All that rules carry of a table, for a kernel without a record. */
export function wholeRules(table: ForwardingTable): Omit<RulesStep, 'delta'> {
  const services = ruleServicesOf(table.services.values());
  return { table: withServices(table, services), services };
}

/** Plans the rules' changes: a frontend that moves is carried by rules or programs at every moment. */
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
  readonly service: ServiceForwarding;
  /** Its part that rules will carry. */
  readonly left: ServiceForwarding;
  /** Its part that rules carry now. */
  readonly before: ServiceForwarding | undefined;
  readonly old: ServiceForwarding | undefined;
}

/**
 * The service as rules must have it while programs change: frontends that rules carry now and that are still wanted, and those that
 * programs are about to leave to them. No new frontend: another Service may have had it a moment ago. Undefined if no frontend moves from
 * programs to rules.
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
