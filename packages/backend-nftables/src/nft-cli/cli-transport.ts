import type { CommandRunner } from '@switchyard/host';
import { ownChanges } from '@switchyard/native';
import { birthmarkSet, heartbeatSet, heartbeatTimeout, isCountedMap, objectKind } from '../names.ts';
import type { NftTransport } from '../transport.ts';
import { createNftClient, type NftClient } from './nft-client.ts';
import {
  parseClasses,
  parseCounters,
  parseElements,
  parseHeartbeat,
  parseIntervals,
  parseMarks,
} from './parse-elements.ts';
import { printChanges } from './print.ts';

/** Everything through short-lived nft processes: needs no native code, and every step can be repeated by hand. */
export function createCliTransport(runner: CommandRunner, netns?: string): NftTransport {
  const client = createNftClient(runner);
  return {
    kind: 'cli',
    canAddClasses: false,
    keeper: undefined,
    exclusively: (work) => ownChanges(netns).exclusively(work),
    loadRules: (attempt, script, signal) => client.apply(attempt, script, signal),
    write: (attempt, { table, changes }, signal) => client.apply(attempt, printChanges(table, changes), signal),
    ...readers(client),
    writeHeartbeat: ({ table, suffix, now }, signal) => {
      const set = `inet ${table} ${heartbeatSet}${suffix}`;
      // nft reads a bare number of this type as seconds.
      const element = `${Math.floor(now / 1000)} timeout ${heartbeatTimeout / 1000}s`;
      const script = `flush set ${set}\nadd element ${set} { ${element} }\n`;
      return client.apply(`cannot write the heartbeat of table inet ${table}`, script, signal);
    },
    flushObjects: (table, objects, signal) => {
      const script = objects.map(({ kind, name }) => `flush ${kind} inet ${table} ${name}\n`).join('');
      return client.apply(`cannot empty ${objects.length} objects of table inet ${table}`, script, signal);
    },
    deleteTable: (table, signal) =>
      client.apply(`cannot delete table inet ${table}`, `delete table inet ${table}\n`, signal),
    [Symbol.asyncDispose]: () => Promise.resolve(), // holds nothing
  };
}

type Reader =
  | 'findTable'
  | 'readElements'
  | 'readCounters'
  | 'readIntervals'
  | 'readHeartbeat'
  | 'readClasses'
  | 'listObjects';

function readers(client: NftClient): Pick<NftTransport, Reader> {
  return {
    findTable: async (table, signal) => {
      const marks = await client.elements({ table, kind: 'set', name: birthmarkSet }, signal);
      if (marks !== undefined) return { birthmarks: parseMarks(marks) };
      return (await client.hasTable(table, signal)) ? { birthmarks: undefined } : undefined;
    },
    readElements: async ({ table, object, suffix }, signal) => {
      const name = `${object}${suffix}`;
      const listed = await client.elements({ table, kind: objectKind(object), name }, signal);
      return listed && parseElements(object, suffix, listed);
    },
    readIntervals: async ({ table, object, suffix }, signal) => {
      const listed = await client.elements({ table, kind: 'set', name: `${object}${suffix}` }, signal);
      return listed && parseIntervals(object, listed);
    },
    readCounters: async ({ table, object, suffix }, signal) => {
      const kind = isCountedMap(object) ? 'map' : 'set';
      const listed = await client.elements({ table, kind, name: `${object}${suffix}` }, signal);
      return listed && parseCounters(object, listed);
    },
    readHeartbeat: async ({ table, suffix }, signal) => {
      const listed = await client.elements({ table, kind: 'set', name: `${heartbeatSet}${suffix}` }, signal);
      return listed && parseHeartbeat(listed);
    },
    readClasses: async (table, suffix, signal) => {
      const listed = await client.elements({ table, kind: 'map', name: `lb${suffix}-classes` }, signal);
      return parseClasses(listed ?? []);
    },
    listObjects: async (table, signal) => {
      const objects = await client.objects(table, signal);
      return objects.map(({ kind, name, elements }) => ({ kind, name, isEmpty: elements.length === 0 }));
    },
  };
}
