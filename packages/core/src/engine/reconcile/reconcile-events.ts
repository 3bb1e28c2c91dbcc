import { type EventRecorder, nodeSubject, serviceSubject } from '../../base/events.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import { type NodeName, type ServicePortKey, servicePortParts } from '../../model/records/keys.ts';
import type { Drift } from '../dataplane-backend.ts';

/** Reporter and family of events. */
export interface ReconcileEventsOptions {
  readonly ipFamily: IpFamily;
  readonly nodeName: NodeName;
  readonly events: EventRecorder;
}

/** Records Events of one family. The recorder merges repetitions. */
export class ReconcileEvents {
  readonly #options: ReconcileEventsOptions;

  constructor(options: ReconcileEventsOptions) {
    this.#options = options;
  }

  /** Records that a foreign change of the rules was repaired. */
  driftHealed({ kind, changes, process }: Drift, durationMs: number): void {
    const who = process === undefined ? 'another process' : `${process.name} (pid ${process.pid})`;
    this.#onNode({
      type: 'Warning',
      reason: 'ForwardingRulesRepaired',
      action: 'RepairForwardingRules',
      note: `${who} changed the forwarding rules in the kernel (${changes.join(', ') || kind}); they are repaired after ${durationMs} ms`,
    });
  }

  /** Records that an apply began to fail as a whole. */
  applyFailed(error: Error): void {
    this.#onNode({
      type: 'Warning',
      reason: 'FailedToApply',
      action: 'Apply',
      note: `will be tried again: ${error.message}`,
    });
  }

  /** Records that applying a Service began to fail. */
  serviceFailed(service: ServicePortKey, error: Error): void {
    const { events, ipFamily, nodeName } = this.#options;
    events.record({
      type: 'Warning',
      reason: 'FailedToApply',
      action: 'Apply',
      regarding: serviceSubject(servicePortParts(service)),
      note: `node ${nodeName}, ${ipFamily}: ${service} is not forwarded as it should be, will be tried again: ${error.message}`,
    });
  }

  /** Records that a Service claims addresses at which this process reaches the API server; they are not forwarded. */
  apiServerAddressRefused(service: ServicePortKey, addresses: string): void {
    const { events, nodeName } = this.#options;
    events.record({
      type: 'Warning',
      reason: 'ApiServerAddressNotForwarded',
      action: 'Forward',
      regarding: serviceSubject(servicePortParts(service)),
      note: `node ${nodeName}: ${service} claims ${addresses}, where this node reaches the API server; it is not forwarded there`,
    });
  }

  #onNode(event: {
    readonly type: 'Normal' | 'Warning';
    readonly reason: string;
    readonly action: string;
    readonly note: string;
  }): void {
    const { events, ipFamily, nodeName } = this.#options;
    events.record({ ...event, regarding: nodeSubject(nodeName), note: `${ipFamily}: ${event.note}` });
  }
}
