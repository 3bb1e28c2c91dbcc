import { type DataplaneBackend } from '@switchyard/core/engine';
import { type ForwardingTable, noopLogger, seconds } from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { type IptablesHost, iptablesBackend } from '../src/index.ts';
import { withService } from './cluster.ts';
import type { Dataplane } from './dataplane.ts';
import { recordingRunner } from './recording-runner.ts';
import type { Place } from './stage.ts';

/** Our backend, a process with no memory of what is there. */
export async function openOurs(place: Place, variant: IptablesVariant, signal: AbortSignal): Promise<Dataplane> {
  const runner = recordingRunner(place.runner);
  const host: IptablesHost = {
    runner,
    logger: noopLogger,
    variant,
    masqueradeBit: 14,
    localhostNodePorts: true,
    tcpBeLiberal: false,
    syncPeriod: seconds(30),
    netns: place.netns,
  };
  let backend: DataplaneBackend | undefined;
  let table: ForwardingTable | undefined;
  return {
    async load(given) {
      table = given;
      const start = performance.now();
      backend ??= await iptablesBackend.open(host, 'IPv4', signal);
      requireApplied(await backend.apply({ table: given, scope: { kind: 'full' } }, signal));
      return performance.now() - start;
    },
    async change(service) {
      if (table === undefined || backend === undefined) throw new Error('nothing was loaded');
      table = withService(table, service);
      const delta = { upserted: [service], removed: [], settingsChanged: false };
      requireApplied(await backend.apply({ table, scope: { kind: 'delta', delta } }, signal));
    },
    taken: () => runner.taken(),
    async [Symbol.asyncDispose]() {
      await backend?.[Symbol.asyncDispose]();
    },
  };
}

/** Anything but `applied` would be measured as very fast. */
function requireApplied(outcome: Awaited<ReturnType<DataplaneBackend['apply']>>): void {
  if (outcome.status !== 'applied') throw new Error(`the bench was not applied: ${JSON.stringify(outcome)}`);
}
