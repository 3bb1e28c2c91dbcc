import type { IpFamily } from '@switchyard/core';
import { type BackendHost, backends } from '../backends.ts';
import type { ProxyMode } from '../config/proxy-mode.ts';
import { nothingRemoved, type Removal } from './removal.ts';

/** What a mode made in one family goes. Not probed: a host that cannot run a mode any more may have its state all the same. */
export async function cleanBackend(
  mode: ProxyMode,
  host: BackendHost,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<Removal> {
  const factory = await backends[mode]();
  await using backend = await factory.open(host, ipFamily, signal);
  return { ...nothingRemoved, removed: await backend.cleanup(signal) };
}
