import {
  addressAndPort,
  type Clock,
  cpuTime,
  type IpAddress,
  type IpFamily,
  type Logger,
  type Metrics,
  millis,
} from '@switchyard/core';
import { type AfterApply, type FlowCriteria, type FlowJudge, flowJudge, type UdpFlow } from '@switchyard/core/engine';
import type { FlowTable } from '@switchyard/netfilter';

/** Machine access for the removal of stale flows. */
export interface FlowHost {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly interfaceAddresses: () => readonly IpAddress[];
  /** Opens the connection tracking table. Called once, and only on a node with UDP Services: it needs the native addon. */
  readonly openFlowTable: () => Promise<FlowTable>;
}

const maxLoggedFlows = 100;

/** Removes the stale UDP flows of one family. Logs and counts the flows removed before a failure, too. */
export function flowCleaner(ipFamily: IpFamily, host: FlowHost): NonNullable<AfterApply['cleanStaleFlows']> {
  const { clock, logger, metrics } = host;
  let flowTable: FlowTable | undefined;
  return async (criteria, signal) => {
    const judge = new NewestJudge(criteria, host.interfaceAddresses);
    const { destinationPorts } = judge.current;
    if (destinationPorts.size === 0) return millis(0);
    const start = clock.monotonic();
    const cpuStart = cpuTime();
    const removed: UdpFlow[] = [];
    let count = 0;
    try {
      flowTable ??= await host.openFlowTable();
      const isWanted = (flow: UdpFlow): boolean => judge.current.isStale(flow);
      for await (const flows of flowTable.list({ ipFamily, destinationPorts, isWanted }, signal)) {
        count += flowTable.delete(flows);
        removed.push(...flows.slice(0, maxLoggedFlows - removed.length));
      }
      return millis(cpuTime() - cpuStart);
    } finally {
      metrics.observe(
        'kubeproxy_conntrack_reconciler_sync_duration_seconds',
        { ip_family: ipFamily },
        (clock.monotonic() - start) / 1000,
      );
      if (count > 0) {
        metrics.add('kubeproxy_conntrack_reconciler_deleted_entries_total', { ip_family: ipFamily }, count);
        logger.info('stale flows removed', { ipFamily, count });
        logger.debug('removed flows', { ipFamily, flows: removed.map(describeFlow) });
      }
    }
  };
}

/** Judges flows by the newest table, because tables may be built while flows are listed. */
class NewestJudge {
  readonly #criteria: () => FlowCriteria;
  readonly #local: ReadonlySet<IpAddress>;
  #of: FlowCriteria | undefined;
  #judge: FlowJudge | undefined;

  constructor(criteria: () => FlowCriteria, interfaceAddresses: () => readonly IpAddress[]) {
    this.#criteria = criteria;
    this.#local = new Set(interfaceAddresses());
  }

  get current(): FlowJudge {
    const { table, except, former } = this.#criteria();
    const isOther = this.#of?.table !== table || this.#of.except !== except || this.#of.former !== former;
    if (this.#judge === undefined || isOther) {
      this.#of = { table, except, former };
      this.#judge = flowJudge({ table, except, former, isLocalAddress: (address) => this.#local.has(address) });
    }
    return this.#judge;
  }
}

function describeFlow(flow: UdpFlow): string {
  const { source, sourcePort, destination, destinationPort, replySource, replySourcePort } = flow;
  const places = [addressAndPort(source, sourcePort), addressAndPort(destination, destinationPort)];
  return `${places.join(' -> ')}, answered by ${addressAndPort(replySource, replySourcePort)}`;
}
