import { type IpFamily, UsageError } from '@switchyard/core';
import { IptablesBackend } from './backend.ts';
import { OwnProcesses } from './watch/own-processes.ts';
import { type IptablesHost, openIptables } from './kernel/facts.ts';

/** Finds out what the machine has, and opens one family. Rejects with `HostError` when iptables is not installed. */
export async function openBackend(
  host: IptablesHost,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<IptablesBackend> {
  const own = new OwnProcesses();
  const runner = own.runner(host.runner);
  // Not by spreading: a host may inherit what it has.
  const { logger, variant, syncPeriod, clock, netns, packetCounters, masqueradeBit, tcpBeLiberal } = host;
  const place = { runner, logger, variant, netns, packetCounters };
  const { client, facts, prepare } = await openIptables(place, ipFamily, signal);
  if (!Number.isInteger(masqueradeBit) || masqueradeBit < 0 || masqueradeBit > 31) {
    throw new UsageError('iptables.masquerade-bit', `a mark has the bits 0 to 31: ${masqueradeBit}`);
  }
  const { randomFully, nfacct } = facts;
  const choices = { masqueradeMark: 2 ** masqueradeBit, dropInvalid: !tcpBeLiberal, randomFully, nfacct };
  return new IptablesBackend({ client, runner, logger, choices, prepare, syncPeriod, watch: { own, netns }, clock });
}
