import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { ConfigError, messageOf, type Port, type Random, systemClock, tryParsePort } from '@switchyard/core';
import { createHttpListener, type ListenTarget, usualHttpLimits } from '@switchyard/core/health';
import { type GateView, runDrainGate } from '@switchyard/drain-gate';
import { createLogger, logLevelOf } from '@switchyard/host';
import { inClusterConnection, kubeconfigConnection, KubernetesSource } from '../api-server-access.ts';
import { parseBindAddress } from '../config/schema/checks.ts';
import { listenTarget } from '../http/endpoints.ts';
import { version } from '../version.ts';
import { keepConditions } from './readiness-gate.ts';

const usage = `usage: switchyard-agent drain-gate [--bind-address ADDRESS:PORT] [--kubeconfig FILE] ...

Says when a pod that ends can be stopped without a lost request: every node has applied it, no load balancer sends to it any more, and no
connection is open. Serves GET /drain?pod=ADDRESS; asks the health ports of agents that run with --switchyard-drain-gate.

  --bind-address ADDRESS:PORT  default 0.0.0.0:10247
  --node-port PORT             health port of the agents; default 10256
  --health-check-failures N    failing health checks after which a load balancer that does not announce it has left a node; default 3
  --readiness-gate             keep the condition switchyard.dev/nodes-follow of pods that name it in spec.readinessGates
  --readiness-gate-pods LABELS labels of these pods, as of kubectl -l; default: all pods are watched
  --readiness-gate-lease NS/NAME
                               Lease of the replica that keeps it; default kube-system/switchyard-readiness-gate
  --kubeconfig FILE            default: the service account of the pod
  --v N                        verbosity of the log; default 2
`;

const options = {
  'bind-address': { type: 'string', default: '0.0.0.0:10247' },
  'node-port': { type: 'string', default: '10256' },
  'health-check-failures': { type: 'string', default: '3' },
  'readiness-gate': { type: 'boolean', default: false },
  'readiness-gate-pods': { type: 'string', default: '' },
  'readiness-gate-lease': { type: 'string', default: 'kube-system/switchyard-readiness-gate' },
  kubeconfig: { type: 'string' },
  v: { type: 'string', default: '2' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Process of the gate. */
export interface GateHost {
  readonly print: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly random: Random;
}

/** Runs the drain gate until aborted. Rejects with `ConfigError` for wrong arguments, and as `runDrainGate`. */
export async function gateCommand(
  args: readonly string[],
  { print, env, random }: GateHost,
  signal: AbortSignal,
): Promise<void> {
  const values = parse(args);
  if (values.help) return print(usage);
  const clock = systemClock;
  const logger = createLogger({ format: 'text', level: logLevelOf(numberOf('v', values.v, 0)) });
  const connection =
    values.kubeconfig === undefined
      ? await inClusterConnection({ env, clock })
      : await kubeconfigConnection(values.kubeconfig, clock);
  const userAgent = `switchyard-drain-gate/${version}`;
  const source = new KubernetesSource({
    connection,
    nodes: { kind: 'all' },
    clock,
    random,
    log: logger,
    userAgent,
  });
  const readiness = {
    connection,
    lease: leaseOf(values['readiness-gate-lease']),
    selector: values['readiness-gate-pods'],
    identity: `${hostname()}_${randomUUID()}`,
    userAgent,
    clock,
    random,
    logger,
  };
  const listener = createHttpListener({ ...usualHttpLimits, connections: 10_000 });
  const gate = {
    source,
    listener,
    target: targetOf(values['bind-address']),
    nodePort: portOf('node-port', values['node-port']),
    failures: numberOf('health-check-failures', values['health-check-failures'], 1),
    clock,
    logger,
    beside: values['readiness-gate']
      ? (view: GateView, stop: AbortSignal) => keepConditions(view, readiness, stop)
      : undefined,
  };
  logger.info('starting', { version, from: connection.url.origin });
  await runDrainGate(gate, signal);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    throw wrong(messageOf(error));
  }
}

function targetOf(text: string): ListenTarget {
  const target = parseBindAddress(text);
  if (target === undefined) throw wrong(`--bind-address ${JSON.stringify(text)} is not ADDRESS:PORT`);
  return listenTarget(target);
}

function portOf(name: string, text: string): Port {
  const port = tryParsePort(Number(text));
  if (port === undefined) throw wrong(`--${name} ${JSON.stringify(text)} is no port`);
  return port;
}

function leaseOf(text: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = '', ...more] = text.split('/');
  if (namespace === '' || name === '' || more.length > 0)
    throw wrong(`--readiness-gate-lease ${JSON.stringify(text)} is not NAMESPACE/NAME`);
  return { namespace, name };
}

function numberOf(name: string, text: string, least: number): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) < least)
    throw wrong(`--${name} ${JSON.stringify(text)} is no number from ${least}`);
  return Number(text);
}

function wrong(message: string): ConfigError {
  return new ConfigError('drain.arguments', `${message} (switchyard-agent drain-gate --help)`);
}
