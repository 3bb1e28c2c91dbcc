import { describe, expect, test } from 'vitest';
import * as engine from './engine/index.ts';
import * as health from './health/index.ts';
import { ClusterState, nodeName, noopEvents, noopLogger, noopMetrics, systemClock, UsageError } from './index.ts';
import * as kubernetes from './kubernetes/index.ts';
import { RecordingBackend, tableOf } from './testing/index.ts';

// Programs in plain JavaScript, and casts, get past the types. Every function that these entry points export must refuse
// a wrong argument with `argument.invalid`: a TypeError reads like a defect of this package, and an object made of wrong
// parts fails later, elsewhere. `wrong-input.test.ts` is about the other entry points.

type Call = (...args: readonly unknown[]) => unknown;

const inputs: Readonly<Record<string, unknown>> = { undefined, null: null, 5: 5, text: 'x', object: {}, list: [] };
const all = Object.keys(inputs);

interface Exception {
  /** Inputs that are not refused. */
  readonly inputs: readonly string[];
  readonly reason: string;
}

const takesNothing: Exception = { inputs: all, reason: 'has no parameter' };
const isHot: Exception = { inputs: all, reason: 'runs for each object of a list: unchecked for speed' };
const runsPerApply: Exception = { inputs: all, reason: 'runs in each apply: unchecked for speed' };
const hasDefaults: Exception = { inputs: ['undefined'], reason: 'every parameter has a default' };

const exceptions: Readonly<Record<string, Exception>> = {
  'engine ServiceCounts': takesNothing,
  'engine ServiceTracker': takesNothing,
  'engine noResult': takesNothing,
  'engine commitGroups': runsPerApply,
  'engine outcomeOf': runsPerApply,
  'engine wishesOf': runsPerApply,
  'engine withFailed': runsPerApply,
  'engine KernelDiffersError': { inputs: ['text'], reason: 'takes a text' },
  'health createHttpListener': hasDefaults,
  'kubernetes fixedCredentials': { inputs: ['undefined', 'text'], reason: 'takes a text, or undefined for no header' },
  'kubernetes newProjectionContext': hasDefaults,
  'kubernetes recordFromEndpointSlice': isHot,
  'kubernetes recordFromNode': isHot,
  'kubernetes recordFromService': isHot,
  'kubernetes recordFromServiceCidr': isHot,
  'kubernetes statusMessage': { inputs: ['text'], reason: 'takes a text' },
};

const functions: readonly (readonly [string, Call])[] = Object.entries({ engine, health, kubernetes }).flatMap(
  ([entry, names]) =>
    Object.entries(names).flatMap(([name, value]) =>
      typeof value === 'function' ? [[`${entry} ${name}`, value as Call] as const] : [],
    ),
);

/** The error with which the call ends. Disposes of what it returns, so that nothing goes on. */
async function errorOf(call: Call, args: readonly unknown[]): Promise<unknown> {
  try {
    const made = await (String(call).startsWith('class') ? Reflect.construct(call, args) : call(...args));
    await dispose(made);
    return undefined;
  } catch (error) {
    return error;
  }
}

async function isRefused(call: Call, args: readonly unknown[]): Promise<boolean> {
  const error = await errorOf(call, args);
  return error instanceof UsageError && error.code === 'argument.invalid';
}

async function dispose(made: unknown): Promise<void> {
  if (typeof made !== 'object' || made === null) return;
  const { [Symbol.asyncDispose]: end, [Symbol.dispose]: endNow } = made as Partial<AsyncDisposable & Disposable>;
  endNow?.call(made);
  await end?.call(made);
}

describe('one wrong value for all arguments', () => {
  test.each(functions)('%s refuses every input but the listed ones', async (name, call) => {
    const accepted: string[] = [];
    for (const [input, value] of Object.entries(inputs)) {
      if (!(await isRefused(call, [value, value, value, value]))) accepted.push(input);
    }
    expect(accepted.sort()).toEqual([...(exceptions[name]?.inputs ?? [])].sort());
  });

  test('each exception is that of an export', () => {
    const names = new Set(functions.map(([name]) => name));
    expect(Object.keys(exceptions).filter((name) => !names.has(name))).toEqual([]);
  });
});

const url = new URL('http://127.0.0.1:1');
const aborted = AbortSignal.abort(new Error('aborted'));
const ignore = (): undefined => undefined;
const [clock, log, metrics] = [systemClock, noopLogger, noopMetrics];
const connection = { ...kubernetes.anonymousConnection(url) };
const clientOptions = { clock, userAgent: 'test', metrics, connectLimit: 1, onAddress: ignore };
const table = tableOf({});
const timings = kubernetes.defaultTimings;
const healthOfProxy = { ...health.proxyHealth({ families: new Map(), timeout: clock.now(), isNodeEligible: true }) };
const identity = { namespace: 'kube-system', name: 'lease', identity: 'a' };

/** Arguments that each export takes. None starts anything that lasts: signals are aborted, files are missing. */
const right: Readonly<Record<string, readonly unknown[]>> = {
  'engine ApplyEngine': [{ begin: ignore, forget: ignore }, new engine.ServiceTracker()],
  'engine BoundedRunner': [{ clock, minGap: 0, resyncInterval: 1, retry: { first: 1, max: 1 }, run: ignore }],
  'engine KernelDiffersError': ['a rule'],
  'engine createApply': [
    { apply: ignore, forget: ignore },
    { logger: log, ipFamily: 'IPv4' },
  ],
  'engine createReconciler': [
    {
      source: { batches: ignore },
      state: new ClusterState({ nodeName: nodeName('n1') }),
      nodeName: 'n1',
      families: [{ backend: new RecordingBackend(), tableOptions: ignore, afterApply: { syncHealth: ignore } }],
      startConditions: [],
      timing: { minSyncPeriod: undefined, retry: { first: 1, max: 1 }, resyncInterval: 1 },
      clock,
      logger: log,
      metrics,
      events: noopEvents,
      sourceSilence: ignore,
    },
  ],
  'engine flowJudge': [{ table, isLocalAddress: ignore, except: new Set(), former: [] }],
  'health ServiceHealth': [
    {
      ipFamily: 'IPv4',
      nodeName: 'n1',
      listener: health.createHttpListener(),
      addresses: ignore,
      isProxyLive: ignore,
      clock,
      logger: log,
      metrics,
      events: noopEvents,
    },
  ],
  'health createHttpListener': [health.usualHttpLimits, clock],
  'health healthzAnswer': [healthOfProxy, 0],
  'health jsonAnswer': [200, [], new Map()],
  'health livezAnswer': [healthOfProxy, 0],
  'health proxyHealth': [{ families: new Map(), timeout: 1, isNodeEligible: true }],
  'health textAnswer': [200, '', new Map()],
  'kubernetes ApiEventRecorder': [
    {
      send: ignore,
      reporter: { controller: 'test', instance: 'a' },
      clock,
      logger: log,
      policy: kubernetes.agentEventPolicy,
      flushTime: 1,
    },
  ],
  'kubernetes ApiServerAddresses': [url],
  'kubernetes KubernetesSource': [
    {
      connection,
      nodes: { kind: 'one', name: 'n1' },
      clock,
      random: Math.random,
      log,
      userAgent: 'test',
      metrics,
      sourceMetrics: new kubernetes.SourceMetrics(metrics, clock),
      addresses: new kubernetes.ApiServerAddresses(url),
      timings: {},
      merge: {},
    },
  ],
  'kubernetes Reflector': [
    {
      query: { kind: 'Node', path: '/', selectors: {} },
      client: { open: ignore, get: ignore },
      project: ignore,
      deliver: ignore,
      clock,
      random: Math.random,
      log,
      timings,
      sourceMetrics: new kubernetes.SourceMetrics(metrics, clock),
      waits: { sleep: ignore, end: ignore },
    },
  ],
  'kubernetes SourceMetrics': [metrics, clock, ignore],
  'kubernetes anonymousConnection': [url],
  'kubernetes fixedCredentials': ['Bearer a'],
  'kubernetes inClusterConnection': [{ env: {}, clock, folder: '/' }],
  'kubernetes kubeconfigConnection': ['/missing/kubeconfig', clock, 'kind'],
  'kubernetes kubeconfigTextConnection': ['', 'of a test', clock],
  'kubernetes newApiClient': [connection, clientOptions],
  'kubernetes newObjectClient': [connection, { ...clientOptions, advice: {} }],
  'kubernetes newProjectionContext': [ignore],
  'kubernetes runAsLeader': [
    { ...identity, send: ignore, clock, random: Math.random, log, timings: kubernetes.defaultLeaderTimings },
    ignore,
    aborted,
  ],
  'kubernetes sendJson': [
    { connection, clock, userAgent: 'test', metrics, answerLimit: 1, maxBytes: 1 },
    { method: 'GET', path: '/' },
    aborted,
  ],
  'kubernetes statusMessage': [''],
};

/** A value that nothing takes. */
const wrong = Symbol('wrong');

/** The arguments with one of them, or one field of one of them, replaced by `wrong`. */
function* variants(args: readonly unknown[]): Generator<readonly [string, readonly unknown[]]> {
  for (const [index, value] of args.entries()) {
    yield [`${index}`, args.with(index, wrong)];
    const plain = isPlain(value) ? value : {};
    for (const field of Object.keys(plain)) yield [`${index}.${field}`, args.with(index, { ...plain, [field]: wrong })];
  }
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

describe('one wrong value among right ones', () => {
  const checked = functions.filter(
    ([name]) => ![takesNothing, isHot, runsPerApply].includes(exceptions[name] ?? hasDefaults),
  );

  test('every checked export has a call with right arguments', () =>
    expect(Object.keys(right).sort()).toEqual(checked.map(([name]) => name).sort()));

  test.each(checked)('%s takes right arguments and refuses each with a wrong part', async (name, call) => {
    const args = right[name] ?? [];
    // Another error is that of a missing file, or of the aborted signal.
    expect(await isRefused(call, args)).toBe(false);
    expect(await errorOf(call, args)).not.toBeInstanceOf(TypeError);
    const accepted: string[] = [];
    for (const [what, variant] of variants(args)) if (!(await isRefused(call, variant))) accepted.push(what);
    expect(accepted).toEqual([]);
  });
});

const untyped = (value: unknown): Call => value as Call;

test.each([
  [
    kubernetes.newApiClient,
    [{ ...connection, url: 'http://x' }, clientOptions],
    'newApiClient: connection.url must be a URL',
  ],
  [kubernetes.anonymousConnection, [new URL('ftp://x')], 'url must be an http or https URL, not "ftp://x/"'],
  [kubernetes.newObjectClient, [connection, {}], 'newObjectClient: options.clock must be an object with a method now'],
  [engine.flowJudge, [{ table: {} }], 'flowJudge: options.table.ipFamily must be IPv4 or IPv6, not undefined'],
  [
    health.createHttpListener,
    [{ connections: '9' }],
    'createHttpListener: limits.connections must be a number, not "9"',
  ],
  [health.healthzAnswer, [healthOfProxy, Number.NaN], 'healthzAnswer: now must be a time in milliseconds, not NaN'],
  [health.jsonAnswer, [200, undefined], 'jsonAnswer: value must be a value that JSON has, not undefined'],
  [health.jsonAnswer, [200, 10n], 'jsonAnswer: value cannot be written as JSON: '],
  [health.textAnswer, [99, ''], 'textAnswer: status must be an HTTP status (200-599), not 99'],
])('%# names the argument and its value', async (call, args, message) => {
  await expect((async () => await untyped(call)(...args))()).rejects.toThrow(message);
});
