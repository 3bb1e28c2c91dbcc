export type * from './lab.ts';
export { clusterCidrs, nodeNetworks, perFamily, podCidrs, serviceCidrs } from './network-plan.ts';

export { createLab } from './namespace-lab.ts';
export { destroyLab, type LabListing, listLabs } from './destroy-lab.ts';
export { freshPort, icmpCounterFiles, icmpErrorsHeldBack } from './probe.ts';
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
export { type LoadOptions, type LoadOutcome, type LoadResult, type LoadRun, startLoad } from './load.ts';
export { LoadResults } from './load-loop.ts';
export { echoServerCommand, type EchoServerOptions, startEchoServer } from './echo-server.ts';
export * from './workloads/start-workloads.ts';
export * from './workloads/zeroapp.ts';
export { podEvents, type WorkloadEvent } from './workloads/workload-event.ts';
export * from './apiserver/server.ts';
export type { Fault, FaultOptions, Faults } from './apiserver/http/faults.ts';
export {
  type Connect,
  type ConnectTarget,
  connectorIn,
  listenInNamespace,
  type NamespaceAddress,
  type NamespaceConnector,
} from './apiserver/namespace-sockets.ts';
export {
  type ClusterOptions,
  createApiClient,
  type LabApiServer,
  type LabApiServerOptions,
  type LabCluster,
  startCluster,
  startLabApiServer,
} from './lab-cluster.ts';
export {
  type AgentMode,
  agentModes,
  type AgentOptions,
  defaultAgentMode,
  proxyModeFlags,
  startAgent,
  waitForAgents,
} from './agent-program.ts';
export type { ClusterRecord } from './lab-record.ts';
export {
  type Access,
  type ApiRequest,
  type ApiUser,
  type AuditEntry,
  isGranted,
  type OtherRequest,
  type PolicyRule,
  type ResourceRequest,
} from './apiserver/access.ts';
export {
  type DockerEngine,
  type DockerEngineOptions,
  dockerPackages,
  emptyImage,
  machinePrograms,
  startDockerEngine,
} from './docker/docker-engine.ts';
export { type JoinedNetwork, type JoinedNetworkOptions, joinDockerNetwork } from './docker/join-network.ts';
export { type KindCluster, type KindClusterOptions, startKindCluster } from './docker/kind-cluster.ts';
export { runnerIn } from './run-program.ts';
export {
  awaitEcho,
  connectWhile,
  createSite,
  liftIcmpLimits,
  type Site,
  sitePort,
  type Traffic,
  type TrafficOptions,
} from './site.ts';
export { startSctpServers } from './sctp.ts';
export type { SctpRequest } from './sctp-sender.ts';
export { findCgroup2Mount, findCgroupObstacle, tryKill } from './cgroup.ts';
export { directWrites, type DirectName, type DirectObject, type DirectWrites } from './apiserver/direct-writes.ts';
export * from './traffic-pod.ts';
export { createTrafficHandlers } from './traffic-handlers.ts';
