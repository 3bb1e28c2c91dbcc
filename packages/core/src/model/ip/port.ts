import type { Branded } from '../../base/brand.ts';
import { shown, wrongArgument } from '../../base/argument.ts';
import { ConfigError } from '../../base/errors.ts';

/** A transport port, 1–65535. */
export type Port = Branded<number, 'Port'>;

/** Transport protocols a Service may have, spelled as in the API. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/** All protocols of Services. */
export const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

/** `value` as a port, or undefined when it is not an integer in 1–65535. */
export function tryParsePort(value: unknown): Port | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535
    ? (value as Port)
    : undefined;
}

/** Like `tryParsePort`, but throws `ConfigError`. */
export function parsePort(value: unknown): Port {
  const port = tryParsePort(value);
  if (port === undefined) throw new ConfigError('port.invalid', `not a port (1-65535): ${shown(value)}`);
  return port;
}

/** `10.0.0.1:80` or `[fd00::1]:80`, as URLs and iptables have it. Throws `UsageError` for an address that is no text, or no port. */
export function addressAndPort(address: string, port: number | string): string {
  if (typeof address !== 'string') throw wrongArgument('addressAndPort: address', 'a text', address);
  if (typeof port !== 'number' && typeof port !== 'string') throw wrongArgument('addressAndPort: port', 'a port', port);
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** `value` as a protocol, or undefined. */
export function tryParseProtocol(value: unknown): Protocol | undefined {
  return value === 'TCP' || value === 'UDP' || value === 'SCTP' ? value : undefined;
}
