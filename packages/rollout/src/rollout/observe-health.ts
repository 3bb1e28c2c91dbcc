import { type IpFamily, millis, type Millis, systemClock } from '@switchyard/core';
import type { LabNode, Prober } from '@switchyard/lab';
import { inBackground } from '../in-background.ts';
import type { HealthMoment } from '../run-record.ts';

/** Changes of the answer of nodes' healthCheckNodePorts. */
export interface HealthObserver extends AsyncDisposable {
  readonly moments: readonly HealthMoment[];
}

/** Sends a request to every node every `period`, from outside, until disposed; none if `port` is undefined. A failing prober ends the experiment. */
export function observeHealth(options: {
  readonly prober: Prober;
  readonly nodes: readonly LabNode[];
  readonly port: number | undefined;
  readonly ipFamily: IpFamily;
  readonly period: Millis;
}): HealthObserver {
  const moments: HealthMoment[] = [];
  const last = new Map<string, number>();
  const ask = async (node: LabNode, port: number): Promise<void> => {
    const address = node.addresses[options.ipFamily] ?? '';
    const at = systemClock.now();
    const result = await options.prober.probe({
      protocol: 'http',
      address,
      port,
      path: '/',
      timeout: 1000,
    });
    const status = result.status === 'answered' ? (result.httpStatus ?? 0) : 0;
    if (last.get(node.name) === status) return;
    last.set(node.name, status);
    moments.push({ at, node: node.name, status });
  };
  const observing = inBackground(async (signal) => {
    const { port } = options;
    if (port === undefined) return;
    while (!signal.aborted) {
      const sleep = systemClock.sleep(millis(options.period), signal).catch(() => undefined);
      await Promise.all(options.nodes.map((node) => ask(node, port)));
      await sleep;
    }
  });
  return { moments, ...observing };
}
