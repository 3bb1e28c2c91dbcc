import { millis } from '@switchyard/core';
import { createProber } from '@switchyard/lab';
import { awaitCondition } from '../stage/await-condition.ts';
import type { App } from './app.ts';
import { programsOf, type Scene } from './scene.ts';

/** An app that answers, and nothing changes any more. */
export interface SettledApp extends App {
  /** Where clients reach it. */
  readonly address: string;
  /** Name of the pod that answers. */
  readonly pod: string;
}

const settleTimeout = millis(60_000);

/** Waits until the app answers through the load balancer and HAProxy has dropped the node without a pod. */
export async function awaitSettled(scene: Scene, app: App, signal: AbortSignal): Promise<SettledApp> {
  const { stage, loadBalancer } = scene;
  const options = { timeout: settleTimeout, programs: programsOf(scene), signal };
  const address = await loadBalancer.addressOf(app, signal);
  await using prober = await createProber(stage.lab.client, signal);
  const pod = await awaitCondition(
    'the first answer through the load balancer',
    async () => {
      const result = await prober.probe({ protocol: 'http', address, port: app.port, timeout: 500 });
      return result.status === 'answered' ? result.by : undefined;
    },
    options,
  );
  await awaitCondition(
    'HAProxy to find out which node has no pod',
    async () => ([...loadBalancer.judgedOf(app).values()].includes(false) ? true : undefined),
    options,
  );
  return { ...app, address, pod };
}
