/** A dozen scenario files that touch every feature in seconds; have the tag `smoke` in one family, IPv4 where the cell has it. */
export const smokeScenarios: ReadonlySet<string> = new Set([
  'cluster-ip',
  'dual-stack-endpoints',
  'etp-local',
  'external-ip',
  'hairpin',
  'itp-local',
  'load-balancer-ip-mode',
  'node-port',
  'sctp',
  'session-affinity',
  'source-ranges',
  'terminating-fallback-local',
  'udp-stale-flows',
]);
