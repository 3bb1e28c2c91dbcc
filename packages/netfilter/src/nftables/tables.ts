import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import {
  MessageWriter,
  NativeError,
  type NetlinkSocket,
  NLM_F,
  NLMSG,
  openNetlinkSocket,
  readAttributes,
  readErrno,
  readUint32be,
  receiveAnswers,
  type WriteBody,
} from '@switchyard/native';
import { BATCH, familyNumbers, NFT_MSG, NFTA, subsystem } from './constants.ts';
import { type DumpedObject, RulesReader, type TableFamily } from './rules-reader.ts';

/** A table of any owner. */
export interface TablePlace {
  readonly family: TableFamily;
  readonly table: string;
  /** As for `NetlinkOptions.netns`. */
  readonly netns?: string | undefined;
}

/** Names of the tables of one family; none where the kernel has no nftables. Reads no set and no rule. Throws `HostError`. */
export function listTables(family: TableFamily, netns?: string): readonly string[] {
  return withSocket(netns, [], (socket) => {
    const attempt = `cannot list the nftables tables of family ${family}`;
    return new RulesReader(socket, { attempt, code: 'nftables' }, family).tables();
  });
}

/** Names of the chains of a table; none where there is no such table. Reads neither rules nor sets. Throws `HostError`. */
export function listChains({ family, table, netns }: TablePlace): readonly string[] {
  return withSocket(netns, [], (socket) => {
    const attempt = `cannot list the chains of table ${family} ${table}`;
    const chains = new RulesReader(socket, { attempt, code: 'nftables' }, family).chains(table);
    return chains.map(({ name }) => name);
  });
}

/** A chain that netfilter calls at a hook. */
export interface BaseChain {
  readonly family: TableFamily;
  readonly table: string;
  readonly chain: string;
  readonly hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';
}

/** By `NF_INET_...`. */
const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;

/** The chains at hooks of IP packets, of all tables, but for those that translate: iptables forbids drops there. Throws `HostError`. */
export function listBaseChains(netns?: string): readonly BaseChain[] {
  return (['inet', 'ip', 'ip6'] as const).flatMap((family) =>
    withSocket(netns, [], (socket) => {
      const reader = new RulesReader(
        socket,
        { attempt: `cannot list the chains of family ${family}`, code: 'nftables' },
        family,
      );
      return reader.tables().flatMap((table) =>
        reader.chains(table).flatMap(({ name, settings }) => {
          const hook = isTranslating(settings) ? undefined : hooks[hookNumber(settings)];
          return hook === undefined ? [] : [{ family, table, chain: name, hook }];
        }),
      );
    }),
  );
}

function isTranslating(settings: DumpedObject['settings']): boolean {
  const type = settings.find(([one]) => one === NFTA.CHAIN.TYPE)?.[1];
  return type !== undefined && new TextDecoder().decode(type).startsWith('nat');
}

/** NFTA_HOOK_HOOKNUM within NFTA_CHAIN_HOOK; -1 for a chain without a hook. */
function hookNumber(settings: DumpedObject['settings']): number {
  const hook = settings.find(([type]) => type === NFTA.CHAIN.HOOK)?.[1];
  if (hook === undefined) return -1;
  for (const { type, start } of readAttributes(hook, 0, hook.length))
    if (type === NFTA.HOOK.NUMBER) return readUint32be(hook, start);
  return -1;
}

/** Deletes a table with all that is in it. False where there is none. Throws `HostError`. */
export function deleteTable({ family, table, netns }: TablePlace): boolean {
  return withSocket(netns, false, (socket) => {
    const body: WriteBody = (writer) => {
      writer.netfilterHeader(familyNumbers[family], 0);
      writer.attributeText(NFTA.TABLE.NAME, table);
    };
    transact(socket, `cannot delete nftables table ${family} ${table}`, [{ type: NFT_MSG.DELTABLE, flags: 0, body }]);
    return true;
  });
}

/** One change of a transaction. */
export interface TableChange {
  readonly type: number;
  /** `NLM_F_...`, besides REQUEST. */
  readonly flags: number;
  readonly body: WriteBody;
}

/** Makes changes, all or none. Throws `HostError`: `NativeError` where the kernel refuses them. */
export function transact(socket: NetlinkSocket, attempt: string, changes: readonly TableChange[]): void {
  const writer = new MessageWriter();
  const message = (sequence: number, { type, flags, body }: TableChange): void => {
    writer.beginMessage({ type, flags: NLM_F.REQUEST | flags, sequence });
    body(writer);
    writer.endMessage();
  };
  const envelope: WriteBody = () => writer.netfilterHeader(0, subsystem);
  message(0, { type: BATCH.BEGIN, flags: 0, body: envelope });
  for (const [index, change] of changes.entries()) message(index + 1, { ...change, flags: change.flags | NLM_F.ACK });
  message(changes.length + 1, { type: BATCH.END, flags: 0, body: envelope });
  socket.send(writer.bytes());
  const errno = firstErrno(socket);
  if (errno === undefined)
    throw new HostError('nftables.noAnswer', `${attempt}: the kernel did not answer; try it again`);
  if (errno !== 0) throw new NativeError(attempt, { errno, syscall: 'nf_tables commit' });
}

/** Takes all answers to a transaction. The errno of its first refusal, 0 for success; undefined without an answer. */
export function firstErrno(socket: NetlinkSocket): number | undefined {
  let first: number | undefined;
  for (const [{ type, start }, bytes] of receiveAnswers(socket)) {
    if (type === NLMSG.ERROR) first = first || readErrno(bytes, start);
  }
  return first;
}

const { EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT } = constants.errno;
const absences: ReadonlySet<number> = new Set([EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT]);

/** Returns `none` for a kernel without nftables, or a table that is not there. */
function withSocket<T>(netns: string | undefined, none: T, work: (socket: NetlinkSocket) => T): T {
  try {
    using socket = openNetlinkSocket({ protocol: 'netfilter', netns });
    return work(socket);
  } catch (error) {
    if (error instanceof NativeError && absences.has(error.errno)) return none;
    throw error;
  }
}
