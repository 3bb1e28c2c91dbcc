import { addressAndPort } from '@switchyard/core';
import type { Loss } from './drain.ts';

/** Returns the losses as a table for a terminal, below a line that sums them up. */
export function printLosses(losses: readonly Loss[], node: string): string {
  if (losses.length === 0) return `draining ${node}: no Service loses traffic\n`;
  const services = new Set(losses.map(({ service }) => service)).size;
  const head = ['SERVICE PORT', 'FRONTEND', 'AT', 'FROM', 'NEW CONNECTIONS'];
  const rows = [head, ...losses.map((loss) => rowOf(loss, node))];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const count = services === 1 ? '1 Service loses' : `${services} Services lose`;
  return `draining ${node}: ${count} traffic until pods on other nodes are ready\n\n${lines.join('\n')}\n`;
}

function rowOf(
  { service, port, protocol, frontend, where, from, answer, healthCheckNodePort }: Loss,
  node: string,
): string[] {
  const { kind, address } = frontend;
  const place = address === 'anyNodePortAddress' ? frontend.port : addressAndPort(address, frontend.port);
  const fate = answer === 'reject' ? 'refused' : 'no answer';
  const check = healthCheckNodePort === undefined ? '' : `; healthCheckNodePort ${healthCheckNodePort} fails`;
  return [
    `${service}:${port}/${protocol}`,
    `${kind} ${place}`,
    where === 'node' ? `${node} only` : 'every node',
    from.join(', '),
    `${fate}${where === 'node' ? check : ''}`,
  ];
}
