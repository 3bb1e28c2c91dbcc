import { setTimeout as sleep } from 'node:timers/promises';
import type { Rendered } from './rendered.ts';

// Replaces the DaemonSet controller and kubelet for one DaemonSet on one node: a changed template replaces the pod there.

/** Pods on the node for one template. */
export interface RunningPod {
  /** Resolves when it is ready; rejects when it never will be. */
  readonly ready: Promise<void>;
  stop(): Promise<void>;
}

/** DaemonSet to run. */
export interface RunnerOptions {
  /** The API server's URL. */
  readonly url: string;
  readonly name: string;
  readonly start: (podSpec: Rendered) => Promise<RunningPod>;
}

const namespace = 'kube-system';

/** Follows the DaemonSet until disposed; the last pod is stopped then. */
export class DaemonSetRunner implements AsyncDisposable {
  readonly #options: RunnerOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #pod: RunningPod | undefined;
  #template = '';
  #revision = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#pod?.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const object = await this.#get();
      if (object !== undefined && JSON.stringify(object.spec.template) !== this.#template) await this.#replace(object);
      await sleep(50, undefined, { signal }).catch(() => undefined);
    }
  }

  async #replace(object: Rendered): Promise<void> {
    this.#template = JSON.stringify(object.spec.template);
    await this.#writeRevision(object);
    await this.#writeStatus(object, false);
    await this.#pod?.stop();
    this.#pod = await this.#options.start(object.spec.template.spec);
    const isReady = await this.#pod.ready.then(
      () => true,
      () => false,
    );
    if (isReady) await this.#writeStatus(object, true);
  }

  async #get(): Promise<Rendered | undefined> {
    const response = await fetch(this.#url('daemonsets', `/${this.#options.name}`));
    return response.ok ? response.json() : undefined;
  }

  /** As the controller: a template that comes back gets a new number. */
  async #writeRevision(object: Rendered): Promise<void> {
    const list = (await (await fetch(this.#url('controllerrevisions'))).json()) as Rendered;
    const data = { spec: { template: { ...object.spec.template, $patch: 'replace' } } };
    const same = list.items.find((one: Rendered) => JSON.stringify(one.data) === JSON.stringify(data));
    this.#revision += 1;
    if (same !== undefined) {
      await this.#send('PUT', this.#url('controllerrevisions', `/${same.metadata.name}`), {
        ...same,
        revision: this.#revision,
      });
      return;
    }
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: object.metadata.name, uid: object.metadata.uid };
    await this.#send('POST', this.#url('controllerrevisions'), {
      metadata: {
        name: `${object.metadata.name}-${this.#revision}`,
        labels: object.spec.template.metadata.labels,
        ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
      },
      data,
      revision: this.#revision,
    });
  }

  async #writeStatus(object: Rendered, isReady: boolean): Promise<void> {
    const count = isReady ? 1 : 0;
    await this.#send('PATCH', this.#url('daemonsets', `/${object.metadata.name}/status`), {
      status: {
        observedGeneration: object.metadata.generation,
        desiredNumberScheduled: 1,
        currentNumberScheduled: 1,
        updatedNumberScheduled: 1,
        numberMisscheduled: 0,
        numberReady: count,
        numberAvailable: count,
      },
    });
  }

  async #send(method: string, url: string, body: unknown): Promise<void> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(url, { method, headers: { 'content-type': type }, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${url}: ${await response.text()}`);
  }

  #url(plural: string, rest: string = ''): string {
    return `${this.#options.url}/apis/apps/v1/namespaces/${namespace}/${plural}${rest}`;
  }
}
