import { FakeNft } from '@switchyard/backend-nftables/testing';
import { noopLogger, seconds } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { BackendHost } from '../backends.ts';
import type { NftTables } from '../cleanup/tables.ts';

/** A kernel without tables of nftables, other than these of the family `inet`. */
export function memoryTables(inet: readonly string[] = []): NftTables {
  return {
    listTables: async (family) => (family === 'inet' ? inet : []),
    listChains: async () => [],
    deleteTable: async () => false,
  };
}

/** A machine whose commands are all answered by the runner, with rules in memory, the agent's defaults and no bpffs. */
export function backendHost(runner: CommandRunner, tables: NftTables = memoryTables()): BackendHost {
  return {
    runner,
    tables,
    openTransport: new FakeNft().openTransport,
    logger: noopLogger,
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
