import { addressAndPort, type Endpoint, type ForwardingTable, type ServiceForwarding } from '@switchyard/core';

/** Content of the file: JSON texts by the key of a service port. `settings` holds what concerns all of them. */
export type Entries = ReadonlyMap<string, string>;

/** One service port. Frontends carry the decision per source class; endpoints are listed per policy. */
export function renderService({ frontends, protocol, endpoints, sessionAffinity }: ServiceForwarding): string {
  return JSON.stringify({
    protocol,
    frontends: frontends.map(({ address, port, decisions, allowedSources }) => ({
      address,
      port,
      decisions,
      allowedSources,
    })),
    endpoints: { Cluster: endpoints.Cluster.map(placeOf), Local: endpoints.Local.map(placeOf) },
    sessionAffinity,
  });
}

/** Settings that a reader needs beside the services. */
export function renderSettings({ nodePortCidrs, serviceCidrs, podDetector }: ForwardingTable): string {
  return JSON.stringify({ nodePortCidrs, serviceCidrs, podDetector });
}

/** The file: one entry a line, sorted, so that a line names what changed. Empty for no entries. */
export function printEntries(entries: Entries): string {
  if (entries.size === 0) return '';
  const lines = [...entries]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, text]) => `${JSON.stringify(key)}: ${text}`);
  return `{\n${lines.join(',\n')}\n}\n`;
}

/** The entries of a file. A text that is no JSON object is one entry that no table wants: it is overwritten, not a failure. */
export function parseEntries(text: string): Entries {
  try {
    const content = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return new Map(Object.entries(content).map(([key, value]) => [key, JSON.stringify(value)]));
  } catch {
    return new Map(text === '' ? [] : [['not JSON', text]]);
  }
}

/** Keys whose entries differ, sorted. */
export function changedKeys(before: Entries, after: Entries): readonly string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => before.get(key) !== after.get(key)).sort();
}

function placeOf({ address, port }: Endpoint): string {
  return addressAndPort(address, port);
}
