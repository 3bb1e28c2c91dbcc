import type {
  ApiServerAddress,
  Clock,
  ClusterStateSource,
  EventRecorder,
  IpAddress,
  Logger,
  Metrics,
  Millis,
} from '@switchyard/core';
import type { DataplaneBackend } from '@switchyard/core/engine';
import type { HttpListener } from '@switchyard/core/health';
import type { FlowHost } from './clean-flows.ts';
import type { LeftRules } from './cleanup/left-rules.ts';
import type { RunConfig } from './config.ts';
import type { ConfigFollower } from './config/config-follower.ts';
import type { AddressHost } from './follow-addresses.ts';
import type { EndpointViews } from './http/metrics-routes.ts';
import type { LoopbackProxyHost } from './localhost-node-ports/localhost-node-ports.ts';
import type { MetricsPage } from './metrics/metrics-page.ts';
import type { RuleMetricsOptions } from './metrics/agent-metrics.ts';

/** Access of the agent to the machine. */
export interface AgentHost extends FlowHost, AddressHost {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly metricsPage: MetricsPage;
  readonly listener: HttpListener;
  readonly events: EventRecorder;
  /** Addresses of this machine's interfaces now, without loopback. */
  readonly interfaceAddresses: () => readonly IpAddress[];
  /** The same with loopback addresses: where servers can listen. */
  readonly listenAddresses: () => readonly IpAddress[];
  readonly loopbackProxy: LoopbackProxyHost;
  /** Removes the rules of a stopped kube-proxy and of this agent's other modes (`all`), or only the latter. Rejects only when aborted. */
  readonly removeLeftRules: (whose: 'all' | 'ours', signal: AbortSignal) => Promise<LeftRules>;
  readonly packetCounts: RuleMetricsOptions['packetCounts'];
  readonly views: EndpointViews;
  /** Called once, when the cluster was applied in every family for the first time. */
  readonly onForwarding: () => void;
  /** Called after each apply of a family. */
  readonly onApplied: () => void;
}

/** Facts about the connections to the API server. */
export interface ApiServerContact {
  /** Addresses to which connections go; the same array until something changes. */
  readonly addresses: () => readonly ApiServerAddress[];
  /** Calls `listener` after each change of `addresses`. One listener. */
  readonly onAddresses: (listener: () => void) => void;
  readonly silence: () => Millis;
}

/** Parts of an agent. One backend per IP family; the caller disposes them afterwards. */
export interface AgentParts {
  readonly config: RunConfig;
  /** Reports changes of `config`. Default: no changes. */
  readonly follower?: ConfigFollower;
  readonly source: ClusterStateSource;
  /** Default: the source needs no API server. */
  readonly contact?: ApiServerContact | undefined;
  readonly backends: readonly DataplaneBackend[];
  readonly host: AgentHost;
}
