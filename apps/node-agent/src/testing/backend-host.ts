import { noopLogger, seconds } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { BackendHost } from '../backends.ts';

/** A machine whose commands are all answered by the runner, with the agent's defaults and no bpffs. */
export function backendHost(runner: CommandRunner): BackendHost {
  return {
    runner,
    logger: noopLogger,
    transport: 'cli',
    variant: 'auto',
    masqueradeBit: 14,
    localhostNodePorts: false,
    tcpBeLiberal: false,
    syncPeriod: seconds(30),
    cgroup: undefined,
    bpffs: '/nowhere',
    interfaces: [],
    northSouth: 'auto',
    socketLb: 'all',
  };
}
