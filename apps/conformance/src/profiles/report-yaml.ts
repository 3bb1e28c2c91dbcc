import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { ConfigError, messageOf, UsageError } from '@switchyard/core';
import * as v from 'valibot';
import { parse, stringify } from 'yaml';
import { apiVersion, type ConformanceReport, kind } from './conformance-report.ts';
import { type ProfileName, profiles } from './profiles.ts';

// A report as a YAML file, with a digest of its contents and, if its author has a key, a signature of that.

/** Proof that a report is as it was written, and of its author. */
export interface Seal {
  /** `sha256:` and the digest of the report as JSON with sorted keys, without the seal, in hexadecimal digits. */
  readonly digest: string;
  readonly signature?: {
    readonly algorithm: 'ed25519';
    /** Of the digest's text, base64. */
    readonly value: string;
    /** PEM. */
    readonly publicKey: string;
  };
}

/** The text of a report file. `privateKey`: PEM of an Ed25519 key. Throws `ConfigError` for another key. */
export function writeConformanceReport(report: ConformanceReport, privateKey?: string): string {
  const digest = digestOf(report);
  const signature = privateKey === undefined ? {} : { signature: signatureOf(digest, privateKey) };
  return stringify({ ...report, seal: { digest, ...signature } satisfies Seal }, { lineWidth: 0 });
}

function signatureOf(digest: string, pem: string): NonNullable<Seal['signature']> {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType !== 'ed25519')
      throw new UsageError('publish.key', `its type is ${key.asymmetricKeyType}`);
    const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
    return { algorithm: 'ed25519', value: sign(null, Buffer.from(digest), key).toString('base64'), publicKey };
  } catch (cause) {
    const what = `the key to sign with is not the PEM text of an Ed25519 private key: ${messageOf(cause)}`;
    throw new ConfigError('publish.key', `${what}; openssl genpkey -algorithm ed25519 makes one`, { cause });
  }
}

function digestOf(report: ConformanceReport): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify(sorted(report)))
    .digest('hex')}`;
}

/** The same value with sorted keys, so that the digest does not depend on their order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, sorted(one)]));
}

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const notes = v.optional(v.array(v.strictObject({ case: v.string(), because: v.string() })));
const level = v.optional(
  v.strictObject({
    result: v.picklist(['success', 'partial', 'failure', 'none']),
    statistics: v.strictObject({ passed: count, failed: count, skipped: count, inconclusive: count }),
    failed: notes,
    skipped: notes,
    inconclusive: notes,
  }),
);
const text = v.pipe(v.string(), v.minLength(1, 'must not be empty'));
const schema = v.strictObject({
  apiVersion: v.literal(apiVersion),
  kind: v.literal(kind),
  date: text,
  implementation: v.strictObject({
    organization: text,
    project: text,
    url: text,
    version: text,
    contact: v.array(text),
  }),
  mode: text,
  kubernetesVersion: text,
  kernel: v.string(),
  ipFamilies: v.picklist(['ipv4', 'ipv6', 'dual']),
  tool: v.strictObject({ name: v.literal('switchyard-conformance'), version: text }),
  reproduce: text,
  rounds: count,
  duration: text,
  profiles: v.array(
    v.strictObject({ name: v.picklist(Object.keys(profiles) as ProfileName[]), required: level, extended: level }),
  ),
  differences: notes,
  seal: v.strictObject({
    digest: text,
    signature: v.optional(v.strictObject({ algorithm: v.literal('ed25519'), value: text, publicKey: text })),
  }),
});

/** A report that was read, unchanged since it was written. */
export interface SealedReport {
  readonly report: ConformanceReport;
  readonly seal: Seal;
}

/**
 * Reads a report file. `name` is for messages. Throws `ConfigError` for what is no report, for one that was changed, and for a signature
 * that is not of its key, or not of `publicKey` (PEM), if given.
 */
export function readConformanceReport(name: string, file: string, publicKey?: string): SealedReport {
  const fault = (what: string): ConfigError => new ConfigError('report.conformance', `${name}: ${what}`);
  let value: unknown;
  try {
    value = parse(file);
  } catch (cause) {
    throw fault(`not YAML: ${messageOf(cause)}`);
  }
  const parsed = v.safeParse(schema, value);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    throw fault(`not a ${kind}: ${v.getDotPath(issue) ?? 'the file'}: ${issue.message}`);
  }
  const { seal, ...report } = parsed.output as ConformanceReport & { readonly seal: Seal };
  const digest = digestOf(report);
  if (digest !== seal.digest)
    throw fault(`was changed after it was written: its digest is ${digest}, not ${seal.digest}`);
  const { signature } = seal;
  if (signature === undefined) {
    if (publicKey !== undefined) throw fault('has no signature');
    return { report, seal };
  }
  if (!isSignedBy(signature.publicKey, seal)) throw fault('its signature is not of the key that it names');
  if (publicKey !== undefined && !isSignedBy(publicKey, seal)) throw fault('its signature is not of the given key');
  return { report, seal };
}

function isSignedBy(pem: string, { digest, signature }: Seal): boolean {
  try {
    return verify(null, Buffer.from(digest), createPublicKey(pem), Buffer.from(signature?.value ?? '', 'base64'));
  } catch {
    return false; // no key
  }
}
