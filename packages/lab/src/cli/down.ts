import { rm } from 'node:fs/promises';
import { millis, systemClock } from '@switchyard/core';
import { destroyLab } from '../destroy-lab.ts';
import { isAlive, type LabRecord, readLabRecord } from '../lab-record.ts';
import { type LabListing, listLabs } from '../list-labs.ts';
import { daemonLog } from '../names.ts';
import type { LabChoice } from './options.ts';

const grace = millis(15_000);

/** Stops the owners of the labs and removes the labs. Yields the name of each removed lab. */
export async function* takeDown(choice: LabChoice, signal: AbortSignal): AsyncGenerator<string> {
  const listings = await listLabs();
  const present = new Set(listings.map(({ name }) => name));
  for (const name of chosen(choice, listings)) {
    const record = await readLabRecord(name);
    if (record !== undefined) await stopOwner(record, signal);
    await destroyLab(name);
    await rm(daemonLog(name), { force: true });
    if (present.has(name)) yield name;
  }
}

/** Ignores remains without a record for `dead`: their owner may be removing them at this moment. */
function chosen(choice: LabChoice, listings: readonly LabListing[]): readonly string[] {
  if (choice !== 'all' && choice !== 'dead') return choice;
  const isChosen = ({ status, record }: LabListing): boolean =>
    choice === 'all' || (status === 'dead' && record !== undefined);
  return listings.filter(isChosen).map(({ name }) => name);
}

/** Sends SIGTERM, so that the owner removes its lab; SIGKILL after 15 s. */
async function stopOwner(record: LabRecord, signal: AbortSignal): Promise<void> {
  const { owner } = record;
  if (!(await isAlive(owner)) || owner.pid === process.pid) return;
  process.kill(owner.pid, 'SIGTERM');
  const until = systemClock.monotonic() + grace;
  while (await isAlive(owner)) {
    if (systemClock.monotonic() > until) process.kill(owner.pid, 'SIGKILL');
    await systemClock.sleep(millis(50), signal);
  }
}
