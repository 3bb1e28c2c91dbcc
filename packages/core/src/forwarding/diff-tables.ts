import { SortedMap } from '../sorted-map.ts';
import { isEqual } from '../equal.ts';
import type { HealthCheck, ForwardingTable, ServiceForwarding, TableDelta } from './forwarding-table.ts';
import type { ServiceKey, ServicePortKey } from '../records/keys.ts';

const noServices: SortedMap<ServicePortKey, ServiceForwarding> = SortedMap.empty((service) => service.key);
const noHealthChecks: SortedMap<ServiceKey, HealthCheck> = SortedMap.empty((check) => check.service);

/**
 * What a backend must do to get from `previous` (undefined: nothing applied yet) to `next`. Compares
 * services by identity. Tables made by `buildTable` share what did not change and are compared in
 * time proportional to the change, whether one build lies between them or many.
 */
export function diffTables(previous: ForwardingTable | undefined, next: ForwardingTable): TableDelta {
  const { upserted, removed } = sorted(next.services).changesSince(sorted(previous?.services));
  return {
    upserted,
    removed,
    settingsChanged:
      previous === undefined || !haveEqualSettings(previous, next) || !haveEqualHealthPorts(previous, next),
  };
}

/** Whether a delta asks for nothing. */
export function isEmptyDelta(delta: TableDelta): boolean {
  return !delta.settingsChanged && delta.upserted.length === 0 && delta.removed.length === 0;
}

/** Whether everything outside `services` and `healthChecks` is equal. */
export function haveEqualSettings(a: ForwardingTable, b: ForwardingTable): boolean {
  return (
    a.ipFamily === b.ipFamily &&
    isEqual(a.nodePortCidrs, b.nodePortCidrs) &&
    a.nodePortsOnLoopback === b.nodePortsOnLoopback &&
    isEqual(a.serviceCidrs, b.serviceCidrs) &&
    isEqual(a.podDetector, b.podDetector)
  );
}

/** Whether the health check servers have the same ports: some backends open these to load balancers. */
function haveEqualHealthPorts(previous: ForwardingTable, next: ForwardingTable): boolean {
  if (previous.healthChecks === next.healthChecks) return true;
  const { upserted, removed } = sortedHealthChecks(next.healthChecks).changesSince(
    sortedHealthChecks(previous.healthChecks),
  );
  return (
    removed.length === 0 && upserted.every(({ service, port }) => previous.healthChecks.get(service)?.port === port)
  );
}

/** The services of a table as the map `buildTable` makes; a table written by hand is copied into one. */
export function sorted(
  services: ForwardingTable['services'] | undefined,
): SortedMap<ServicePortKey, ServiceForwarding> {
  if (services === undefined) return noServices;
  return services instanceof SortedMap ? services : noServices.with(services.values(), []);
}

/** The same for health checks. */
export function sortedHealthChecks(
  checks: ForwardingTable['healthChecks'] | undefined,
): SortedMap<ServiceKey, HealthCheck> {
  if (checks === undefined) return noHealthChecks;
  return checks instanceof SortedMap ? checks : noHealthChecks.with(checks.values(), []);
}
