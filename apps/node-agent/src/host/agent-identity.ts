import { hostname } from 'node:os';
import { type NodeName, systemClock } from '@switchyard/core';
import { version } from '../version.ts';
import type { AgentIdentity } from './one-agent.ts';

/** Identity of this process. A DaemonSet passes the pod in POD_NAMESPACE and POD_NAME. */
export function agentIdentity(nodeName: NodeName, env: Readonly<Record<string, string | undefined>>): AgentIdentity {
  const pod = env['POD_NAME'] ?? '';
  return {
    pid: process.pid,
    hostName: hostname(),
    pod: pod === '' ? '' : `${env['POD_NAMESPACE'] ?? 'default'}/${pod}`,
    nodeName,
    version,
    startedAt: new Date(systemClock.now()).toISOString(),
  };
}
