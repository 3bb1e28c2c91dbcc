import {
  type ForwardingTable,
  type Frontend,
  type ServiceForwarding,
  type ServicePortKey,
  SortedMap,
} from '@switchyard/core';

/** Services that rules carry, by key; versions share what did not change. */
export type RuleServices = SortedMap<ServicePortKey, ServiceForwarding>;

const none: RuleServices = SortedMap.empty((service) => service.key);

/** SCTP, which kernels refuse to track for programs, and source ranges: a socket has no address when it connects. */
export function isLeftToRules(service: ServiceForwarding, frontend: Frontend): boolean {
  return service.protocol === 'SCTP' || frontend.allowedSources !== 'any';
}

/** The service reduced to the frontends that rules carry: itself for all of them, undefined for none. */
export function leftToRules(service: ServiceForwarding): ServiceForwarding | undefined {
  const isLeft = (frontend: Frontend): boolean => isLeftToRules(service, frontend);
  if (!service.frontends.some(isLeft)) return undefined;
  return service.frontends.every(isLeft) ? service : { ...service, frontends: service.frontends.filter(isLeft) };
}

/** The part of a table's services that rules carry. */
export function ruleServicesOf(services: Iterable<ServiceForwarding>): RuleServices {
  const left: ServiceForwarding[] = [];
  for (const service of services) {
    const rest = leftToRules(service);
    if (rest !== undefined) left.push(rest);
  }
  return none.with(left, []);
}

/** Replaces the services of a table; its health checks and settings stay. */
export function withServices(table: ForwardingTable, services: RuleServices): ForwardingTable {
  return { ...table, services };
}
