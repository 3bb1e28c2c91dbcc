import { ConfigError, InvariantError, parseIp, parsePort, sourceClasses, tryParseIp } from '@switchyard/core';
import type { Port, DataplaneTraits, IpAddress, IpFamily, Protocol, SourceClass } from '@switchyard/core';
import { readdirSync, readFileSync } from 'node:fs';
import { modeInFiles, nameInFiles, referenceDataplane } from './dataplanes.ts';
import { ipv6TwinOf, ipv6TwinOfCidr, otherFamilyOf } from './other-family.ts';
import {
  runKinds,
  type Expectation,
  type Scenario,
  type ScenarioAgent,
  type ScenarioRuns,
  type ScenarioDetection,
  type ScenarioEndpoint,
  type ScenarioFlow,
  type ScenarioService,
  type ScenarioStep,
} from './scenario.ts';
import { isPerDataplane, scenarioSchema } from './schema.ts';
import type { expectationSchema, PerDataplane, ScenarioFile } from './schema.ts';
import * as v from 'valibot';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';

/**
 * Reads one scenario file: one scenario per IP family it names. Throws `ConfigError` with `file:line` for broken YAML,
 * an unknown field, a wrong value, or an address outside the plan of `other-family.ts`. Where dataplanes differ, it is
 * what `dataplane` must do.
 */
export function loadScenario(
  id: string,
  text: string,
  dataplane: DataplaneTraits = referenceDataplane,
): readonly Scenario[] {
  return scenariosOf(parseScenario(id, text), dataplane);
}

/** Content of a scenario file, checked by the schema; the same for all dataplanes. */
export interface ParsedScenario {
  readonly id: string;
  /** Name of the file in messages. */
  readonly source: string;
  readonly file: ScenarioFile;
  /** Line of a field in the file, from 1. */
  readonly lineOf: (path: readonly unknown[]) => number;
}

/**
 * Parses a scenario file. Throws `ConfigError` with `file:line` for broken YAML, an unknown field or a wrong value; `source` is the
 * name of the file there.
 */
export function parseScenario(id: string, text: string, source: string = `${id}.yaml`): ParsedScenario {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  const lineOf = (path: readonly unknown[]): number => lineOfPath(document, lineCounter, path);
  const syntaxError = document.errors[0];
  if (syntaxError !== undefined) {
    throw new ConfigError('scenario.syntax', `${source}:${syntaxError.linePos?.[0].line ?? 1}: ${syntaxError.message}`);
  }
  const result = v.safeParse(scenarioSchema, document.toJS());
  if (!result.success) {
    const faults = result.issues.map((issue) => {
      const path = (issue.path ?? []).map((item) => item.key);
      return `${source}:${lineOf(path)}: ${path.join('.') || 'scenario'}: ${issue.message}`;
    });
    throw new ConfigError('scenario.invalid', faults.join('\n'));
  }
  return { id, source, file: result.output, lineOf };
}

/** The scenarios of a file, one for each IP family it names. Throws `ConfigError` for an address outside the plan of `other-family.ts`. */
export function scenariosOf(parsed: ParsedScenario, dataplane: DataplaneTraits): readonly Scenario[] {
  const { id, source, file, lineOf } = parsed;
  return file.ipFamilies.map((ipFamily) =>
    new Reader({ id, source, ipFamily, isDualStack: file.dualStack, dataplane, lineOf }).scenario(file),
  );
}

/** The line of the deepest node on the path that the document has. */
function lineOfPath(document: Document, lineCounter: LineCounter, path: readonly unknown[]): number {
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line;
  }
  return 1;
}

function runsOf({ dataplanes, runs: limit }: ScenarioFile, dataplane: DataplaneTraits): ScenarioRuns {
  if (dataplanes !== undefined && !dataplanes.run.includes(nameInFiles(dataplane))) {
    return { kinds: [], because: `not for ${dataplane.name}: ${dataplanes.because}` };
  }
  const isLimited = limit?.dataplanes.includes(nameInFiles(dataplane)) === true;
  return isLimited ? { kinds: limit.only, because: limit.because } : { kinds: runKinds, because: undefined };
}

function pickAgent({ detectsPods, detectLocal, ...rest }: FileAgent): Omit<ScenarioAgent, 'nodePortAddresses'> {
  return { ...rest, detectLocal: detectionOf({ detectsPods, detectLocal }) };
}

function detectionOf({ detectsPods, detectLocal }: Pick<FileAgent, 'detectsPods' | 'detectLocal'>): ScenarioDetection {
  if (detectsPods === false) return { kind: 'none' };
  if (typeof detectLocal === 'string') return { kind: detectLocal === 'NodeCIDR' ? 'nodeCIDR' : 'clusterCIDR' };
  return 'bridgeInterface' in detectLocal
    ? { kind: 'bridgeInterface', name: detectLocal.bridgeInterface }
    : { kind: 'interfaceNamePrefix', prefix: detectLocal.interfaceNamePrefix };
}

type FileAgent = ScenarioFile['given']['agent'];
type FileService = ScenarioFile['given']['services'][number];
type FileEndpoint = ScenarioFile['given']['endpoints'][number];
type FileStep = ScenarioFile['steps'][number];
type FileFlow = Extract<FileStep, { readonly to: string }>;
type FileExpectation = v.InferOutput<typeof expectationSchema>;

type Reading = Pick<Scenario, 'ipFamily' | 'isDualStack' | 'dataplane'> &
  Pick<ParsedScenario, 'id' | 'source' | 'lineOf'>;

function givenPort(port: number | undefined): Port | undefined {
  return port === undefined ? undefined : parsePort(port);
}

/** Turns checked file content into a scenario of one family, for one dataplane. */
class Reader {
  readonly #in: Reading;

  constructor(reading: Reading) {
    this.#in = reading;
  }

  scenario(file: ScenarioFile): Scenario {
    const { given } = file;
    return {
      id: this.#in.id,
      name: file.name,
      why: file.why,
      ipFamily: this.#in.ipFamily,
      isDualStack: file.dualStack,
      dataplane: this.#in.dataplane,
      runs: runsOf(file, this.#in.dataplane),
      agent: {
        ...pickAgent(given.agent),
        nodePortAddresses: this.#nodePortAddresses(given.agent.nodePortAddresses),
      },
      zone: given.zone,
      services: given.services.map((service, index) => this.#service(service, ['given', 'services', index])),
      endpoints: given.endpoints.map((endpoint, index) => this.#endpoint(endpoint, ['given', 'endpoints', index])),
      objects: this.#objects(file),
      steps: file.steps.map((step, index) => this.#step(step, ['steps', index])),
    };
  }

  #nodePortAddresses(given: FileAgent['nodePortAddresses']): Scenario['agent']['nodePortAddresses'] {
    return typeof given === 'string' ? given : given.map((cidr) => this.#cidr(cidr, ['given', 'agent']));
  }

  /** Objects have addresses of one family, without a twin. */
  #objects({ given, ipFamilies }: ScenarioFile): Scenario['objects'] {
    if (given.objects.length === 0 || ipFamilies.length === 1) return given.objects;
    return this.#refuse(['given', 'objects'], 'a scenario with objects has a single family; say which in ipFamilies');
  }

  #step(step: FileStep, path: readonly unknown[]): ScenarioStep {
    const line = this.#in.lineOf(path);
    if ('to' in step) return { kind: 'flow', flow: this.#flow(step, path), line };
    if ('health-check' in step) {
      const { service, status, localEndpoints } = step['health-check'];
      const ipFamily = this.#family(step['health-check'].family, path);
      return { kind: 'healthCheck', check: { service, ipFamily, status, localEndpoints }, line };
    }
    if ('put-service' in step) return { kind: 'putService', service: this.#service(step['put-service'], path), line };
    if ('remove-service' in step) return { kind: 'removeService', service: step['remove-service'], line };
    if ('put-endpoint' in step)
      return { kind: 'putEndpoint', endpoint: this.#endpoint(step['put-endpoint'], path), line };
    if ('remove-endpoint' in step) {
      const { service, ip, family } = step['remove-endpoint'];
      return { kind: 'removeEndpoint', service, ip: this.#ip(ip, path, this.#family(family, path)), line };
    }
    if ('node-address' in step) return { kind: 'nodeAddress', address: this.#ip(step['node-address'], path), line };
    if ('put-service-cidr' in step) {
      const { name, cidr } = step['put-service-cidr'];
      return { kind: 'putServiceCidr', name, cidr: this.#cidr(cidr, path), line };
    }
    if ('remove-service-cidr' in step) return { kind: 'removeServiceCidr', name: step['remove-service-cidr'], line };
    return { kind: 'restartAgent', line };
  }

  #service(service: FileService, path: readonly unknown[]): ScenarioService {
    const isHeadless = service.clusterIP === 'None';
    return {
      ...service,
      clusterIP: isHeadless ? 'None' : this.#ip(service.clusterIP, [...path, 'clusterIP']),
      otherClusterIP:
        isHeadless || !this.#in.isDualStack
          ? undefined
          : this.#ip(service.clusterIP, path, otherFamilyOf(this.#in.ipFamily)),
      ports: service.ports.map((port) => ({
        name: port.name,
        protocol: port.protocol,
        port: parsePort(port.port),
        nodePort: givenPort(port.nodePort),
      })),
      externalIPs: service.externalIPs.flatMap((ip) => this.#ips(ip, [...path, 'externalIPs'])),
      loadBalancerIPs: service.loadBalancerIPs.flatMap((entry) => {
        const { ip, ipMode } = typeof entry === 'string' ? { ip: entry, ipMode: undefined } : entry;
        return this.#ips(ip, [...path, 'loadBalancerIPs']).map((one) => ({ ip: one, ipMode }));
      }),
      loadBalancerSourceRanges: service.loadBalancerSourceRanges.map((cidr) =>
        this.#cidr(cidr, [...path, 'loadBalancerSourceRanges']),
      ),
      healthCheckNodePort: givenPort(service.healthCheckNodePort),
      sessionAffinityTimeoutSeconds: service.sessionAffinityTimeoutSeconds,
    };
  }

  #endpoint(endpoint: FileEndpoint, path: readonly unknown[]): ScenarioEndpoint {
    const { family, ...fields } = endpoint;
    const ip = this.#ip(fields.ip, [...path, 'ip'], this.#family(family, path));
    return {
      ...fields,
      ip,
      port: parsePort(fields.port),
      ready: fields.ready,
      serving: fields.serving,
      terminating: fields.terminating,
    };
  }

  #flow(flow: FileFlow, path: readonly unknown[]): ScenarioFlow {
    const [, address = '', port = '', protocol = ''] = /^(.*):(\d+)\/(\w+)$/.exec(flow.to) ?? [];
    const isFromItself = flow.from === 'itself';
    const from = isFromItself ? 'node' : flow.from;
    const isClass = (sourceClasses as readonly string[]).includes(from);
    const family = this.#family(flow.family, path);
    const expect = this.#expectation(this.#own(flow.expect), [...path, 'expect'], {
      family,
      // A socket that connects to itself needs no masquerading for the reply.
      isHairpinMasqueraded: this.#in.dataplane.translation === 'packets' || protocol === 'SCTP',
    });
    return {
      from: isClass ? (from as SourceClass) : 'pod',
      isFromItself,
      fromEndpoint: isClass ? undefined : this.#ip(from, [...path, 'from'], family),
      sourcePort: givenPort(flow.fromPort),
      to: this.#ip(address, [...path, 'to'], family),
      port: parsePort(Number(port)),
      protocol: protocol as Protocol,
      expect,
      kept:
        flow.kept === undefined ? undefined : this.#kept(this.#ip(this.#own(flow.kept), path, family), expect, path),
    };
  }

  #kept(kept: IpAddress, expect: Expectation, path: readonly unknown[]): IpAddress {
    const isOne = expect.kind === 'forward' && expect.to.some(({ address }) => address === kept);
    return isOne ? kept : this.#refuse(path, `${kept} is not among the endpoints`);
  }

  /** Value of a file for all dataplanes, or for this one. */
  #own<T extends FileExpectation | string>(given: T | PerDataplane<T>): T {
    if (!isPerDataplane(given)) return given;
    const own = given[nameInFiles(this.#in.dataplane)] ?? given[modeInFiles(this.#in.dataplane)];
    if (own === undefined)
      throw new InvariantError(`the schema of scenarios lets ${this.#in.dataplane.kubeProxyMode} be left out`);
    return own;
  }

  #expectation(
    expect: FileExpectation,
    path: readonly unknown[],
    { family, isHairpinMasqueraded }: { readonly family: IpFamily; readonly isHairpinMasqueraded: boolean },
  ): Expectation {
    if (typeof expect === 'string') return { kind: expect };
    const to = expect.forward.map((text) => {
      const [address = '', port] = text.split(':');
      return { address: this.#ip(address, path, family), port: givenPort(port === undefined ? port : Number(port)) };
    });
    const withPort = to.filter(({ port }) => port !== undefined);
    if (withPort.length > 0 && withPort.length < to.length) {
      return this.#refuse(path, 'either all endpoints have a port or none has');
    }
    const masquerade =
      expect.masquerade === 'packets' ? this.#in.dataplane.translation === 'packets' : expect.masquerade;
    return { kind: 'forward', to, masquerade, isHairpinMasqueraded };
  }

  #family(which: 'own' | 'other', path: readonly unknown[]): IpFamily {
    if (which === 'own') return this.#in.ipFamily;
    if (!this.#in.isDualStack) return this.#refuse(path, 'only a dualStack scenario has another family');
    return otherFamilyOf(this.#in.ipFamily);
  }

  /** The address in every family the scenario has. */
  #ips(text: string, path: readonly unknown[]): readonly IpAddress[] {
    const own = this.#ip(text, path);
    return this.#in.isDualStack ? [own, this.#ip(text, path, otherFamilyOf(this.#in.ipFamily))] : [own];
  }

  #ip(text: string, path: readonly unknown[], family: IpFamily = this.#in.ipFamily): IpAddress {
    const twin = ipv6TwinOf(text);
    if (tryParseIp(text) === undefined || twin === undefined) {
      const plan = '172.18.0.N, 10.244.N.N, 10.96.N.N, 10.97.N.N, 198.51.100.N, 203.0.113.N';
      return this.#refuse(path, `${text} is not in the address plan of scenarios (${plan})`);
    }
    return family === 'IPv4' ? parseIp(text) : twin;
  }

  #cidr(text: string, path: readonly unknown[]): string {
    const twin = ipv6TwinOfCidr(text);
    if (twin === undefined) return this.#refuse(path, `${text} is not a CIDR of the address plan of scenarios`);
    return this.#in.ipFamily === 'IPv4' ? text : twin;
  }

  #refuse(path: readonly unknown[], why: string): never {
    throw new ConfigError('scenario.address', `${this.#in.source}:${this.#in.lineOf(path)}: ${path.join('.')}: ${why}`);
  }
}

const folder = new URL('../scenarios/', import.meta.url);

// The files are part of the package and do not change while a program runs.
let files: readonly ParsedScenario[] | undefined;
const scenariosByDataplane = new WeakMap<DataplaneTraits, readonly Scenario[]>();

/**
 * Every scenario file of this package, in every family it names, sorted by id, with what a dataplane must do. Files are read once;
 * the same traits return the same scenarios.
 */
export function allScenarios(dataplane: DataplaneTraits = referenceDataplane): readonly Scenario[] {
  files ??= readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => parseScenario(file.slice(0, -'.yaml'.length), readFileSync(new URL(file, folder), 'utf8')));
  const all = scenariosByDataplane.get(dataplane) ?? files.flatMap((file) => scenariosOf(file, dataplane));
  scenariosByDataplane.set(dataplane, all);
  return all;
}
