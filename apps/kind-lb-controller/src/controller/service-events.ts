import type { EventRecorder, RecordedEvent } from '@switchyard/core';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type ExcludedNode, excludedNodesText, type Problem, problemText } from '../plan/problem.ts';
import { refusalReason } from './planned-status.ts';
import { readyConditionType } from './service-status.ts';

/** Reporting controller of the Events. */
export const eventController = 'switchyard-lb';

/** Reasons and notes of the Events about steps in a load balancer's life. */
const steps = {
  ensuring: ['EnsuringLoadBalancer', 'Ensuring load balancer'],
  ensured: ['EnsuredLoadBalancer', 'Ensured load balancer'],
  updated: ['UpdatedLoadBalancer', 'Updated load balancer'],
  updatedHosts: ['UpdatedLoadBalancer', 'Updated load balancer with new hosts'],
  deleting: ['DeletingLoadBalancer', 'Deleting load balancer'],
  deleted: ['DeletedLoadBalancer', 'Deleted load balancer'],
} as const;

/** A step in a load balancer's life. */
type LoadBalancerStep = keyof typeof steps;

/** Topics that get one Event, and another one when they change. */
type LastingTopic = 'excluded' | 'noNodes' | 'problems';

/**
 * Events on Services, in the words of the cloud service controller where it has some. What lasts (excluded nodes, wrong
 * configuration) gets an Event when it begins or changes, not at each check of a Service; none from a new controller if
 * the condition Ready shows it already.
 */
export class ServiceEvents {
  readonly #recorder: EventRecorder;
  readonly #reported = new Map<string, string>();

  constructor(recorder: EventRecorder) {
    this.#recorder = recorder;
  }

  step(service: LoadBalancerService, step: LoadBalancerStep): void {
    const [reason, note] = steps[step];
    this.#record(service, { type: 'Normal', reason, action: 'SyncLoadBalancer', note });
  }

  failed(service: LoadBalancerService, attempt: 'ensure' | 'delete', why: string): void {
    const note = `Error syncing load balancer: failed to ${attempt} load balancer: ${why}`;
    this.#warn(service, 'SyncLoadBalancerFailed', note);
  }

  /** Which nodes the load balancer leaves out, and whether any is left. */
  nodes(service: LoadBalancerService, excluded: readonly ExcludedNode[], hasUsable: boolean): void {
    const text = excludedNodesText(excluded);
    const key = text === '' ? '' : `${hasUsable} ${text}`;
    const { reason, message } = shownBy(service);
    const isShown = message.includes(text) && (reason === 'NoNodes') === !hasUsable;
    if (this.#isNew(service, 'excluded', { text: key, isShown }) && text !== '') {
      const note = `${hasUsable ? 'These nodes get' : 'Every node is left out, so the load balancer has nowhere to send connections; these nodes get'} no connections from the load balancer: ${text}`;
      const event = { reason: 'LoadBalancerNodesExcluded', action: 'SelectNodes', note };
      this.#record(service, { ...event, type: hasUsable ? 'Normal' : 'Warning' });
    }
    const none = { text: hasUsable ? '' : 'none', isShown: reason === 'NoNodes' };
    if (this.#isNew(service, 'noNodes', none) && !hasUsable) {
      this.#warn(service, 'UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer');
    }
  }

  /** Reports faults of the Service and parts of it that are not served. */
  problems(service: LoadBalancerService, problems: readonly Problem[], cluster: string): void {
    const lasting = problems.filter(({ kind }) => kind !== 'noNodes' && kind !== 'noEndpoints');
    const texts = lasting.map((problem) => problemText(problem, cluster));
    const text = texts.join('; ');
    const { message } = shownBy(service);
    const isShown = texts.every((one) => message.includes(one));
    if (!this.#isNew(service, 'problems', { text, isShown }) || text === '') return;
    const reason = refusalReason(lasting);
    this.#record(service, { type: 'Warning', reason, action: 'PlanLoadBalancer', note: text });
  }

  /** The Service is gone: should one of its name come, everything about it is new. */
  forget({ uid, record }: Pick<LoadBalancerService, 'uid' | 'record'>): void {
    for (const topic of ['excluded', 'noNodes', 'problems'] satisfies readonly LastingTopic[]) {
      this.#reported.delete(`${topic} ${record.key} ${uid}`);
    }
  }

  #isNew(
    { uid, record }: LoadBalancerService,
    topic: LastingTopic,
    { text, isShown }: { readonly text: string; readonly isShown: boolean },
  ): boolean {
    const key = `${topic} ${record.key} ${uid}`;
    const before = this.#reported.get(key);
    this.#reported.set(key, text);
    return before === undefined ? !isShown && text !== '' : before !== text;
  }

  #warn(service: LoadBalancerService, reason: string, note: string): void {
    this.#record(service, { type: 'Warning', reason, action: 'SyncLoadBalancer', note });
  }

  #record({ record, uid }: LoadBalancerService, event: Omit<RecordedEvent, 'regarding'>): void {
    const [namespace = '', name = ''] = record.key.split('/');
    this.#recorder.record({ ...event, regarding: { kind: 'Service', namespace, name, uid } });
  }
}

/** Reason and message of the condition Ready, which an earlier controller may have written. */
function shownBy({ conditions }: LoadBalancerService): { readonly reason: string; readonly message: string } {
  const ready = conditions.find(({ type }) => type === readyConditionType);
  return { reason: ready?.reason ?? '', message: ready?.message ?? '' };
}
