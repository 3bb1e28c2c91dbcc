import type { Logger } from '../log.ts';
import type { NodeName } from '../records/keys.ts';
import type { NodeRecord } from '../records/node.ts';

/** Why load balancers are told not to use this node (KEP-3836), in words for the operator. */
const leaving = 'our Node has the taint ToBeDeletedByClusterAutoscaler, or is being deleted';
const unknown = 'the cluster has no such Node; check --hostname-override';

/** One line when /healthz begins to send load balancers away because of our Node, and one when that is over. */
export class EligibilityLog {
  readonly #nodeName: NodeName;
  readonly #logger: Logger;
  #reason: string | undefined;

  constructor(nodeName: NodeName, logger: Logger) {
    this.#nodeName = nodeName;
    this.#logger = logger;
  }

  /** Our Node as it is now, once all Nodes were listed; undefined when there is none. */
  note(node: NodeRecord | undefined): void {
    const reason = node === undefined ? unknown : node.isEligible ? undefined : leaving;
    if (reason === this.#reason) return;
    this.#reason = reason;
    const nodeName = this.#nodeName;
    if (reason === undefined) this.#logger.info('load balancers may use this node again', { nodeName });
    else this.#logger.warn('load balancers are told not to use this node: /healthz answers 503', { nodeName, reason });
  }
}
