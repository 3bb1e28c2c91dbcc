import type { ForwardingTable, HealthCheck, ServiceForwarding, TableDelta } from '../forwarding/forwarding-table.ts';
import type { ServiceKey, ServicePortKey } from '../records/keys.ts';

/**
 * `delta` plus what an earlier apply left undone: services that failed are not in the kernel although
 * the delta's base says so. Both lists stay in key order.
 */
export function withFailed(
  delta: TableDelta,
  table: ForwardingTable,
  failed: ReadonlyMap<ServicePortKey, unknown>,
): TableDelta {
  if (failed.size === 0) return delta;
  const upserted = new Map<ServicePortKey, ServiceForwarding>(delta.upserted.map((service) => [service.key, service]));
  const removed = new Set(delta.removed);
  for (const key of failed.keys()) {
    const service = table.services.get(key);
    if (service === undefined) removed.add(key);
    else upserted.set(key, service);
  }
  return {
    settingsChanged: delta.settingsChanged,
    upserted: [...upserted.values()].sort((a, b) => compareKeys(a.key, b.key)),
    removed: [...removed].sort(compareKeys),
  };
}

/**
 * The health checks that may be announced: those of `table`, but for Services with a failed port the
 * ones announced before, because the kernel still does what it did then.
 */
export function announcedChecks(
  previous: ReadonlyMap<ServiceKey, HealthCheck>,
  table: ForwardingTable,
  failed: ReadonlyMap<ServicePortKey, unknown>,
): ReadonlyMap<ServiceKey, HealthCheck> {
  if (failed.size === 0) return table.healthChecks;
  const held = new Set([...failed.keys()].map((key) => table.services.get(key)?.service));
  const announced = new Map<ServiceKey, HealthCheck>();
  for (const check of table.healthChecks.values()) {
    const allowed = held.has(check.service) ? previous.get(check.service) : check;
    if (allowed !== undefined) announced.set(check.service, allowed);
  }
  return announced;
}

function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
