import { HostError, type IpFamily, seconds } from '@switchyard/core';
import {
  birthmarkChain,
  commandFailed,
  type CommandRunner,
  iptablesName,
  type IptablesPlace,
  isPermissionDenied,
  type KernelFiles,
} from '@switchyard/host';

/** What the kernel is asked by instead of iptables. */
export interface AskedWithoutIptables {
  readonly runner: CommandRunner;
  readonly files: KernelFiles;
  readonly place: IptablesPlace;
}

/**
 * For a place that iptables could not be asked of, as its programs are not installed: rejects with `HostError` when rules of this
 * agent may be there. Another image may have written them. All of them come with a birthmark in table mangle.
 */
export async function refuseUnseenRules(asked: AskedWithoutIptables, signal: AbortSignal): Promise<void> {
  const { place, files } = asked;
  const name = iptablesName(place);
  if (place.variant === 'nft') {
    if (!(await hasBirthmark(asked, signal))) return;
    throw unseen(`rules of this agent are in the tables of ${name}`, name);
  }
  const tables = files.read(legacyTables[place.ipFamily])?.split(/\s+/) ?? [];
  if (tables.includes('mangle')) throw unseen(`the kernel has tables of ${name} (${tables.join(', ')})`, name);
}

/** Names of the tables that legacy programs have made in this network namespace; no file without the kernel's module. */
const legacyTables: Readonly<Record<IpFamily, string>> = {
  IPv4: '/proc/net/ip_tables_names',
  IPv6: '/proc/net/ip6_tables_names',
};

async function hasBirthmark({ runner, place }: AskedWithoutIptables, signal: AbortSignal): Promise<boolean> {
  const args = ['list', 'chain', place.ipFamily === 'IPv4' ? 'ip' : 'ip6', 'mangle', birthmarkChain];
  const result = await runner.run('nft', args, { timeout: seconds(60), signal });
  if (result.exitCode === 0) return true;
  if (/No such file or directory/.test(result.stderr) && !isPermissionDenied(result)) return false;
  const attempt = `cannot tell whether rules of this agent are in the tables of ${iptablesName(place)}, which is not installed`;
  throw commandFailed(attempt, { file: 'nft', args }, result);
}

function unseen(what: string, name: string): HostError {
  const next = `clean up with an image that has ${name}`;
  return new HostError('cleanup.unseen', `${what}, which were not looked at, as ${name} is not installed; ${next}`);
}
