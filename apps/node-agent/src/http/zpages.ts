import { type HttpAnswer, type HttpRequest, jsonAnswer, textAnswer } from '@switchyard/core/health';
import type { Millis } from '@switchyard/core';

interface MediaRange {
  /** Such as `application/json` or `text/*`, in lower case. */
  readonly type: string;
  /** Without `q`; names in lower case, values as given without quotes. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Media types that a client accepts, best first; entries of equal weight in its order. Empty without a header. */
export function parseAccept(header: string | undefined): readonly MediaRange[] {
  const ranges = (header ?? '').split(',').flatMap((entry) => {
    const [type = '', ...rest] = entry.split(';').map((part) => part.trim());
    if (type === '') return [];
    const parameters = new Map(rest.map(parseParameter));
    const weight = Number(parameters.get('q') ?? '1');
    parameters.delete('q');
    return [{ range: { type: type.toLowerCase(), parameters }, weight: Number.isNaN(weight) ? 0 : weight }];
  });
  return ranges
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .map(({ range }) => range);
}

/** Whether `range` includes the media type `type/subtype`. */
export function includesType(range: MediaRange, type: string): boolean {
  return range.type === type || range.type === '*/*' || range.type === `${type.split('/')[0]}/*`;
}

function parseParameter(text: string): readonly [string, string] {
  const [name = '', ...value] = text.split('=');
  return [name.trim().toLowerCase(), value.join('=').trim().replaceAll(/^"|"$/g, '')];
}

/** This process. */
export interface ProcessFacts {
  /** Wall clock. */
  readonly startTime: Millis;
  /** Version of the runtime, such as `v24.21.0`. */
  readonly nodeVersion: string;
  readonly version: string;
  readonly commandLine: readonly string[];
}

interface StatuszFacts extends Pick<ProcessFacts, 'startTime' | 'nodeVersion' | 'version'> {
  /** Wall clock. */
  readonly now: Millis;
  /** Kubernetes release whose kube-proxy the agent emulates, such as `1.36`. */
  readonly emulationVersion: string;
  /** Paths of endpoints; only the first segment of each is shown. */
  readonly paths: readonly string[];
}

const component = 'kube-proxy';
const warning =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';
/** Newest first. */
const versions = ['v1beta1', 'v1alpha1'];

/** `/statusz` (KEP-4827): text, or the object `Statusz` of `config.k8s.io` if the client accepts it by name. */
export function statuszAnswer(facts: StatuszFacts, request: HttpRequest): HttpAnswer {
  const uptime = Math.max(0, Math.floor((facts.now - facts.startTime) / 1000));
  const paths = [...new Set(facts.paths.map((path) => `/${path.split('/')[1]}`))].sort();
  return negotiated('Statusz', request, {
    text: () =>
      [
        '',
        `${component} statusz`,
        warning,
        '',
        `Started: ${unixDate(facts.startTime)}`,
        `Up: ${hours(uptime)}`,
        `Node.js version: ${facts.nodeVersion}`,
        `Binary version: ${facts.version}`,
        `Emulation version: ${facts.emulationVersion}`,
        `Paths: ${paths.join(' ')}`,
        '',
      ].join('\n'),
    fields: () => ({
      startTime: new Date(facts.startTime).toISOString().replace(/\.\d+Z$/, 'Z'),
      uptimeSeconds: uptime,
      goVersion: facts.nodeVersion, // always present in Kubernetes; as in kubernetes_build_info, the runtime's version
      binaryVersion: facts.version,
      emulationVersion: facts.emulationVersion,
      paths,
    }),
  });
}

/** `/flagz` (KEP-4828): each flag and its value, sorted by name; text, or the object `Flagz` of `config.k8s.io`. */
export function flagzAnswer(flags: ReadonlyMap<string, string>, request: HttpRequest): HttpAnswer {
  const sorted = [...flags].sort(([a], [b]) => (a < b ? -1 : 1));
  return negotiated('Flagz', request, {
    text: () =>
      ['', `${component} flagz`, warning, ...sorted.map(([name, value]) => `${name}=${value}`), ''].join('\n'),
    fields: () => ({ flags: Object.fromEntries(sorted) }),
  });
}

/** 406 if the client accepts neither text nor the object by its full name, as in Kubernetes. */
function negotiated(
  kind: string,
  { headers }: HttpRequest,
  { text, fields }: { readonly text: () => string; readonly fields: () => object },
): HttpAnswer {
  const plain = (): HttpAnswer => textAnswer(200, text());
  const accept = headers['accept'] ?? '';
  if (accept.trim() === '') return plain();
  for (const range of parseAccept(accept)) {
    const version = range.parameters.get('v') ?? '';
    const isObject =
      range.parameters.get('as') === kind &&
      range.parameters.get('g') === 'config.k8s.io' &&
      versions.includes(version);
    const type = ['application/json', 'application/yaml'].find((one) => includesType(range, one));
    if (isObject && type !== undefined) {
      const object = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: component }, ...fields() };
      const isOld = version !== versions[0];
      const warnings = isOld ? { Warning: `299 - "${version} is deprecated; use ${versions[0]}"` } : {};
      return jsonAnswer(200, object, { 'Content-Type': type, ...warnings }); // JSON is YAML
    }
    if (includesType(range, 'text/plain') && !range.parameters.has('as')) return plain();
  }
  const wanted = `application/json;g=config.k8s.io;v=${versions[0]};as=${kind}`;
  return textAnswer(406, `406 ${kind.toLowerCase()} is text/plain, or ${wanted}, or the same with application/yaml\n`);
}

/** Such as `Sat Nov 21 10:00:00 UTC 2026`. */
function unixDate(time: Millis): string {
  const [weekday = '', day = '', month = '', year = '', clock = ''] = new Date(time).toUTCString().split(/,? /);
  return `${weekday} ${month} ${day.replace(/^0/, ' ')} ${clock} UTC ${year}`;
}

function hours(uptime: number): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${Math.floor(uptime / 3600)} hr ${two(Math.floor(uptime / 60) % 60)} min ${two(uptime % 60)} sec`;
}
