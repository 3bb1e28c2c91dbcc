import { addressAndPort, tryParseIp } from '@switchyard/core';

/** One flow of /proc/net/nf_conntrack: how it began, and how its answers look. */
export interface ConntrackEntry {
  readonly protocol: string;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  /** Both tuples and the state as text. */
  readonly text: string;
}

/** Reads /proc/net/nf_conntrack of one network namespace. Lines without two tuples are left out. */
export function readConntrack(text: string): readonly ConntrackEntry[] {
  return text.split('\n').flatMap((line) => {
    const values = (key: string): readonly string[] =>
      [...line.matchAll(new RegExp(`(?:^| )${key}=(\\S+)`, 'g'))].map((match) => match[1] ?? '');
    const sources = values('src').map(canonical);
    const destinations = values('dst').map(canonical);
    if (sources.length < 2 || destinations.length < 2) return [];
    const sourcePorts = values('sport').map(Number);
    const ports = values('dport').map(Number);
    const protocol = line.trim().split(/\s+/)[2] ?? '';
    const tuple = (which: 0 | 1): string =>
      `${addressAndPort(sources[which] ?? '', sourcePorts[which] ?? 0)} -> ${addressAndPort(destinations[which] ?? '', ports[which] ?? 0)}`;
    const marks = [...line.matchAll(/\[\w+\]| (?:CLOSE|ESTABLISHED|[A-Z]{3,}_[A-Z0-9_]+) /g)].map(([mark]) =>
      mark.trim(),
    );
    return [
      {
        protocol,
        source: sources[0] ?? '',
        sourcePort: sourcePorts[0] ?? 0,
        destination: destinations[0] ?? '',
        destinationPort: ports[0] ?? 0,
        text: `${tuple(0)} ${protocol}, answered as ${tuple(1)}${marks.length > 0 ? ` (${marks.join(' ')})` : ''}`,
      },
    ];
  });
}

/** An address in its canonical text; other text as it is. */
export function canonical(address: string): string {
  return tryParseIp(address) ?? address;
}
