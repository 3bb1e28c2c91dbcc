export type * from './lab.ts';
export { clusterCidrs, nodeNetworks, perFamily, podCidrs, serviceCidrs } from './address-plan.ts';
export { icmpCounterFiles, icmpErrorsHeldBack, liftIcmpLimits } from './icmp-limits.ts';
export { createLab } from './create-lab.ts';
export { destroyLab } from './destroy-lab.ts';
export { listLabs, type LabListing } from './list-labs.ts';
export { freshPort } from './fresh-port.ts';
export { createProber, type Prober } from './prober.ts';
export type {
  AnswerWait,
  AwaitedAnswer,
  EchoAnswer,
  ProbeAnswer,
  ProbeConnection,
  ProbeSocket,
  ProbeExchange,
  ProbeRequest,
  ProbeResult,
} from './probe-types.ts';
export { type LoadRun, startLoad } from './load.ts';
export { LoadResults } from './load-results.ts';
export type { LoadOptions, LoadOutcome, LoadResult } from './load-types.ts';
export { echoServerCommand, type EchoServerOptions, startEchoServer } from './echo-server.ts';
export { createApiClient } from './api-client.ts';
export * from './workloads/start-workloads.ts';
export * from './workloads/zeroapp.ts';
export type * from './workloads/workload-event.ts';
export * from './apiserver/server.ts';
export type { Fault, FaultOptions, Faults } from './apiserver/http/faults.ts';
export * from './apiserver/listen-in-namespace.ts';
export {
  type Connect,
  type ConnectTarget,
  connectorIn,
  type NamespaceConnector,
} from './apiserver/connect-in-namespace.ts';
export { type ClusterOptions, type LabCluster, startCluster } from './lab-cluster.ts';
export {
  type AgentMode,
  agentModes,
  type AgentOptions,
  defaultAgentMode,
  proxyModeFlags,
  startAgent,
  waitForAgents,
} from './agent-program.ts';
export type { ClusterRecord } from './cluster-record.ts';
export type { Access, ApiUser, AuditEntry } from './apiserver/access/access.ts';
export type { ApiRequest, OtherRequest, ResourceRequest } from './apiserver/access/api-request.ts';
export * from './apiserver/access/policy-rule.ts';
export {
  type DockerEngine,
  type DockerEngineOptions,
  dockerPackages,
  startDockerEngine,
} from './docker/docker-engine.ts';
export { type JoinedNetwork, type JoinedNetworkOptions, joinDockerNetwork } from './docker/join-network.ts';
export { emptyImage, machinePrograms } from './docker/empty-image.ts';
export { type KindCluster, type KindClusterOptions, startKindCluster } from './docker/kind-cluster.ts';
export { type LabApiServer, type LabApiServerOptions, startLabApiServer } from './lab-api-server.ts';
export { runnerIn } from './runner-in.ts';
export { awaitEcho, connectWhile, createSite, type Site, sitePort, type Traffic, type TrafficOptions } from './site.ts';
export { probeSctp, type SctpRequest, startSctpServers } from './sctp.ts';
export { findCgroup2Mount, findCgroupObstacle, tryKill } from './cgroup.ts';
export { directWrites, type DirectName, type DirectObject, type DirectWrites } from './apiserver/direct-writes.ts';
export {
  type EchoPorts,
  portTakenExitCode,
  type TrafficCall,
  type TrafficCalls,
  trafficPodArguments,
  trafficPodCommand,
  type TrafficPodOptions,
  type TrafficProbe,
  trafficTokenHeader,
} from './traffic-pod.ts';
