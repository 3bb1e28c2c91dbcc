import type { ForwardingTable, ServiceForwarding, ServiceKey } from '@switchyard/core';

/** The ports of a Service, which follow each other in a table. */
export function portsOf({ services }: ForwardingTable, service: ServiceKey): readonly ServiceForwarding[] {
  const ports: ServiceForwarding[] = [];
  for (const one of services.values()) {
    if (one.service === service) ports.push(one);
    else if (ports.length > 0) break;
  }
  return ports;
}
