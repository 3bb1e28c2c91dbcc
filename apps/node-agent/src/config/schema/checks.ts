import {
  cidrFamilyOf,
  interfaceNameFault,
  type IpAddress,
  type Port,
  tryParseCidr,
  tryParseIp,
  tryParsePort,
} from '@switchyard/core';
import type { FieldValue } from './field.ts';

type Check = (value: FieldValue) => string | undefined;

/** At least 0. */
export const notNegative: Check = (value) => (Number(value) >= 0 ? undefined : 'must be greater than or equal to 0');

/** More than 0. */
export const positive: Check = (value) => (Number(value) > 0 ? undefined : 'must be greater than 0');

/** Within a range, both ends included. */
export function between(low: number, high: number): Check {
  return (value) =>
    Number(value) >= low && Number(value) <= high ? undefined : `must be within the range [${low}, ${high}]`;
}

/** One of a few words. */
export function oneOf(...words: readonly string[]): Check {
  return (value) => (words.includes(String(value)) ? undefined : `must be one of ${words.join(', ')}`);
}

/** An IP address. */
export const ipAddress: Check = (value) =>
  tryParseIp(String(value)) === undefined ? 'must be an IP address, such as 10.9.8.7 or 2001:db8::1' : undefined;

/** `IP:port`, IPv6 in brackets. */
export const bindAddress: Check = (value) => {
  const text = String(value);
  if (text === '' || parseBindAddress(text) !== undefined) return undefined;
  return 'must be IP:port, such as 0.0.0.0:10256 or [::]:10256, or an IP address alone';
};

/** One range, or one of each family. */
export const podRanges: Check = (value) => {
  const parts = String(value).split(',');
  const cidrs = parts.map((part) => tryParseCidr(part));
  const bad = parts.find((_, index) => cidrs[index] === undefined);
  if (bad !== undefined) return `${JSON.stringify(bad)} is not a CIDR, such as 10.100.0.0/16 or fde4:8dba:82e1::/48`;
  const families = new Set(cidrs.flatMap((cidr) => (cidr === undefined ? [] : [cidrFamilyOf(cidr)])));
  if (parts.length > 2 || families.size < parts.length) {
    return 'must be one CIDR, or one of each IP family (such as 10.100.0.0/16,fde4:8dba:82e1::/48)';
  }
  return undefined;
};

/** Keywords of `nodePortAddresses` (KEP-6032). */
const nodePortKeywords: readonly string[] = ['primary', 'localhost', 'all'];

/** CIDRs and keywords, in any combination. */
export const nodePortRanges: Check = (value) => {
  const parts = value as readonly string[];
  const isLegal = (part: string): boolean => nodePortKeywords.includes(part) || tryParseCidr(part) !== undefined;
  const bad = parts.findIndex((part) => !isLegal(part.trim()));
  if (bad < 0) return undefined;
  return `[${bad}] must be a CIDR, such as 10.9.8.0/24 or 2001:db8::/64, or one of ${nodePortKeywords.join(', ')}`;
};

/** A path from the root. */
export const absolutePath: Check = (value) =>
  String(value).startsWith('/') ? undefined : 'must be an absolute path, such as /sys/fs/bpf';

/** Names of network interfaces, in which `*` stands for any text. */
export const interfacePatterns: Check = (value) => {
  const parts = value as readonly string[];
  const faults = parts.map((part) => (part === '*' ? undefined : interfaceNameFault(part.replaceAll('*', ''))));
  const bad = faults.findIndex((fault) => fault !== undefined);
  return bad < 0 ? undefined : `[${bad}] cannot be the name of an interface, such as eth0 or bond*: ${faults[bad]}`;
};

/** Rules of klog for per-file verbosity. */
export const fileRules: Check = (value) => {
  const rules = value as readonly { readonly filePattern: string }[];
  const empty = rules.findIndex(({ filePattern }) => filePattern === '');
  if (empty >= 0) return `[${empty}] file pattern must not be empty`;
  const odd = rules.findIndex(({ filePattern }) => /[=,]/.test(filePattern));
  return odd < 0 ? undefined : `[${odd}] file pattern must not contain an equal sign or a comma`;
};

/** The parts of `IP:port`; of an IP address alone with `defaultPort`. Undefined for anything else. */
export function parseBindAddress(
  text: string,
  defaultPort?: number,
): { readonly address: IpAddress; readonly port: Port } | undefined {
  const bare = tryParseIp(text);
  const match = /^(?:\[(?<six>[^\]]+)\]|(?<four>[^:]*)):(?<port>\d{1,5})$/.exec(text);
  const address = bare ?? tryParseIp(match?.groups?.['six'] ?? match?.groups?.['four'] ?? '');
  const port = tryParsePort(bare === undefined ? Number(match?.groups?.['port']) : (defaultPort ?? 1));
  return address === undefined || port === undefined ? undefined : { address, port };
}
