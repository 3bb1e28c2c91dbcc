import type { HaproxyServer } from './render-haproxy.ts';

/** Columns of `show servers state`, format 1. */
const column = { backend: 1, server: 3, address: 4, port: 18, checkPort: 21, agentPort: 24 };
const columns = 25;

/**
 * What a reload may carry over from `show servers state`: the servers whose address and ports are the same in the next
 * configuration. For the others HAProxy would not only keep the health but also restore the old address and port.
 */
export function keepServerStates(dump: string, servers: readonly HaproxyServer[]): string {
  const known = new Set(servers.map((one) => identity(one.backend, one.name, one.address, one.port, one.checkPort)));
  const [version = '1', ...lines] = dump.split('\n');
  const kept = lines.flatMap((line) => {
    if (line.startsWith('#')) return [line];
    const fields = line.split(' ');
    if (fields.length < columns) return [];
    const at = (index: number): string => fields[index] ?? '';
    const found = identity(
      at(column.backend),
      at(column.server),
      at(column.address),
      at(column.port),
      at(column.checkPort),
    );
    if (!known.has(found)) return [];
    fields[column.agentPort] = '-'; // it repeats the check's port, and HAProxy warns that there is no agent
    return [fields.join(' ')];
  });
  return `${[version, ...kept].join('\n')}\n`;
}

function identity(...parts: readonly (string | number)[]): string {
  return parts.join(' ');
}
