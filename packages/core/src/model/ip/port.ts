import type { Branded } from '../../base/brand.ts';
import { ConfigError } from '../../base/errors.ts';

/** A transport port, 1–65535. */
export type Port = Branded<number, 'Port'>;

/** Transport protocols a Service may have, spelled as in the API. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/** `value` as a port, or undefined when it is not an integer in 1–65535. */
export function tryParsePort(value: unknown): Port | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535
    ? (value as Port)
    : undefined;
}

/** Like `tryParsePort`, but throws `ConfigError`. */
export function parsePort(value: unknown): Port {
  const port = tryParsePort(value);
  if (port === undefined) throw new ConfigError('port.invalid', `not a port (1-65535): ${JSON.stringify(value)}`);
  return port;
}

/** `10.0.0.1:80` or `[fd00::1]:80`, as URLs and iptables have it. */
export function addressAndPort(address: string, port: number | string): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** `value` as a protocol, or undefined. */
export function tryParseProtocol(value: unknown): Protocol | undefined {
  return value === 'TCP' || value === 'UDP' || value === 'SCTP' ? value : undefined;
}
