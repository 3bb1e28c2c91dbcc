import { HostError, type Millis, millis } from '@switchyard/core';
import type { RuleText } from '../render/chains.ts';
import type { IptablesClient } from './client/iptables-client.ts';
import { chainNames } from '../render/names.ts';

/** Incremented when an older agent cannot adopt the rules. */
const rulesVersion = 1;

/** The only rule of chain SWITCHYARD; no packet reaches it. `at`: time since boot; undefined: no apply has succeeded yet. */
export function heartbeatRule(at: Millis | undefined): RuleText {
  const time = at === undefined ? '-' : String(Math.floor(at));
  return `-m comment --comment "switchyard ${rulesVersion} ${time}"`;
}

/** Records that the rules are right now. Rejects with `HostError`. */
export async function writeHeartbeat(client: IptablesClient, at: Millis, signal: AbortSignal): Promise<void> {
  const name = chainNames.mark;
  const text = `*mangle\n:${name} - [0:0]\n-A ${name} ${heartbeatRule(at)}\nCOMMIT\n`;
  const result = await client.restore(text, signal);
  if (result.status === 'done') return;
  const message = `cannot note in chain ${name} that the rules are right; it is tried again with the next heartbeat`;
  throw new HostError('iptables.heartbeat', message, { cause: result.error });
}

/** Time since boot of the last heartbeat; undefined when there is none. */
export async function readHeartbeat(client: IptablesClient, signal: AbortSignal): Promise<Millis | undefined> {
  const rules = await client.list('mangle', chainNames.mark, signal);
  for (const { rule } of rules ?? []) {
    const time = /"switchyard \d+ (\d+)"/.exec(rule)?.[1];
    if (time !== undefined) return millis(Number(time));
  }
  return undefined;
}
