import type { HaproxyServer } from './haproxy-servers.ts';

/** Columns of `show servers state`, format 1. */
const column = {
  backend: 1,
  server: 3,
  address: 4,
  operationalState: 5,
  weight: 7,
  initialWeight: 8,
  checkHealth: 12,
  port: 18,
  checkPort: 21,
  checkAddress: 22,
  agentPort: 24,
} as const;
const columns = 25;

/**
 * Server states that a reload may carry over from `show servers state`: the servers whose addresses and ports are the same in the next
 * configuration. For the others HAProxy would not only keep the health but also restore the old address and port.
 */
export function keepServerStates(dump: string, servers: readonly HaproxyServer[]): string {
  // An unchecked server is UP: with a kept DOWN state from earlier checks it would never return.
  const known = new Map(servers.filter(({ isChecked }) => isChecked).map((one) => [identityOf(one), one]));
  const [version = '1', ...lines] = dump.split('\n');
  const kept = lines.flatMap((line) => {
    if (line.startsWith('#')) return [line];
    const fields = line.split(' ');
    const server = fields.length < columns ? undefined : known.get(identityIn(fields));
    if (server === undefined) return [];
    fields[column.agentPort] = '-'; // it repeats the check's port, and HAProxy warns that there is no agent
    // More than a lowered `fall` allows would have to fail away first.
    fields[column.checkHealth] = `${Math.min(Number(fields[column.checkHealth]), server.maxHealth)}`;
    if (fields[column.initialWeight] === '0' && server.draining !== 'empty') {
      // It had no endpoint. Whether its node knows the new one, only a check can say.
      fields[column.operationalState] = '0';
      fields[column.checkHealth] = '0';
    }
    if (!server.isWeighted) fields[column.weight] = fields[column.initialWeight] ?? '1'; // it may have been until now
    return [fields.join(' ')];
  });
  return `${[version, ...kept].join('\n')}\n`;
}

/** The servers that are UP in `show servers state`: one text per server, `BACKEND/SERVER`. */
export function upServers(dump: string): ReadonlySet<string> {
  const lines = dump.split('\n').map((line) => line.split(' '));
  const isUp = (fields: readonly string[]): boolean =>
    fields.length >= columns && fields[0] !== '#' && Number(fields[column.operationalState]) > 0;
  return new Set(lines.filter(isUp).map((fields) => `${fields[column.backend]}/${fields[column.server]}`));
}

function identityOf({ backend, name, address, port, check }: HaproxyServer): string {
  const checkAddress = check.address === address ? '-' : check.address;
  return [backend, name, address, port, check.port, checkAddress].join(' ');
}

function identityIn(fields: readonly string[]): string {
  const { backend, server, address, port, checkPort, checkAddress } = column;
  return [backend, server, address, port, checkPort, checkAddress].map((index) => fields[index]).join(' ');
}
