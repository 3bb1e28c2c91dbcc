import type { HaproxyConfiguration } from '../haproxy/render-haproxy.ts';
import type { ApplyResult, LoadBalancerRuntime } from '../runtime/load-balancer-runtime.ts';

/** A runtime without HAProxy: remembers what it was given, and can be told to refuse it. */
export class MemoryRuntime implements LoadBalancerRuntime {
  /** Configurations that were taken, oldest first; none twice in a row. */
  readonly applied: HaproxyConfiguration[] = [];
  /** Asked before each configuration is taken; a text is the reason to reject it. */
  judge: (configuration: HaproxyConfiguration) => string | undefined = () => undefined;

  apply(configuration: HaproxyConfiguration): Promise<ApplyResult> {
    const reason = this.judge(configuration);
    if (reason !== undefined) return Promise.resolve({ status: 'rejected', reason });
    if (this.applied.at(-1)?.text === configuration.text) return Promise.resolve({ status: 'unchanged' });
    this.applied.push(configuration);
    return Promise.resolve({ status: 'applied' });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
