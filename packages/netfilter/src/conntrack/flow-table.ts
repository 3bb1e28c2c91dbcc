import { constants } from 'node:os';
import { type Clock, HostError, type IpFamily, type Millis, millis } from '@switchyard/core';
import type { UdpFlow } from '@switchyard/core/engine';
import {
  MessageWriter,
  NativeError,
  type NetlinkOptions,
  type NetlinkSocket,
  NLM_F,
  type NetlinkMessage,
  NLMSG,
  openNetlinkSocket,
  readAttributes,
  readErrno,
  readMessages,
  readUint32be,
  receiveAnswers,
} from '@switchyard/native';
import { conntrack, sequence, writeDelete, writeGetStatistics, writeList } from './flow-messages.ts';
import { FlowReader, type TrackedFlow } from './flow-reader.ts';

/** Which flows to list. */
export interface FlowQuery {
  readonly ipFamily: IpFamily;
  /** Flows to other ports are skipped before any object is made. Default: all ports. */
  readonly destinationPorts?: ReadonlySet<number>;
  /** Whether a flow to these ports is wanted. Default: all are. */
  readonly isWanted?: (flow: UdpFlow) => boolean;
}

/** The UDP flows in the connection tracking of one network namespace. */
export interface FlowTable {
  /** The flows that are there now, a part at a time; some may come twice. Rejects with `NativeError` or `HostError`. */
  list(query: FlowQuery, signal: AbortSignal): AsyncGenerator<readonly TrackedFlow[], void, undefined>;
  /** Deletes flows that were listed; returns how many were still there. Throws `NativeError`. */
  delete(flows: readonly TrackedFlow[]): number;
}

/** Clock and network namespace of a flow table. */
export interface FlowTableOptions {
  readonly clock: Clock;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string | undefined;
  /** For tests; default `openNetlinkSocket`. */
  readonly open?: (options: NetlinkOptions) => NetlinkSocket;
  /** Maximum number of entries of all protocols with which the kernel filters. Default 32,768. */
  readonly maxFiltered?: number;
}

/**
 * While it filters, the kernel walks the whole table within one system call (measured: 11 ms for 262,144 empty buckets,
 * 0.2 us more for each entry left out). Unfiltered it returns after each 32 KB, but takes ten times as long in all.
 */
const defaultMaxFiltered = 32_768;
/** Maximum time that the event loop waits, apart from one system call. */
const maxSlice: Millis = millis(4);
const maxAttempts = 4;
const retryDelay: Millis = millis(20);
/** The kernel fills at most 32 KB of a larger buffer. */
const bufferLength = 1 << 16;
const deletionsPerMessage = 64;

/** Opens nothing yet: each call has a socket of its own. */
export function createFlowTable(options: FlowTableOptions): FlowTable {
  const { netns, open = openNetlinkSocket } = options;
  const connect = (): NetlinkSocket => open({ protocol: 'netfilter', netns });
  return {
    list: (query, signal) => list(query, { ...options, connect }, signal),
    delete: (flows) => deleteFlows(flows, connect),
  };
}

interface ListOptions extends FlowTableOptions {
  readonly connect: () => NetlinkSocket;
}

async function* list(
  query: FlowQuery,
  options: ListOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly TrackedFlow[], void, undefined> {
  const reader = new FlowReader(query.ipFamily);
  for (let attempt = 1; ; attempt++) {
    using socket = options.connect();
    const listing = new Listing(socket, query, reader);
    listing.begin(options.maxFiltered ?? defaultMaxFiltered);
    while (listing.status === 'more') {
      signal.throwIfAborted();
      const flows = listing.readUntil(options.clock, maxSlice);
      if (flows.length > 0) yield flows;
      if (listing.status === 'more') await options.clock.sleep(millis(0), signal);
    }
    if (listing.status === 'complete') return;
    if (attempt === maxAttempts) {
      throw new HostError(
        'conntrack.interrupted',
        `cannot list the UDP flows (${query.ipFamily}): the kernel broke off ${maxAttempts} listings in a row, as it does ` +
          'while its table is resized or memory is short; flows that were not listed stay',
      );
    }
    await options.clock.sleep(retryDelay, signal);
  }
}

class Listing {
  status: 'more' | 'complete' | 'interrupted' = 'more';
  readonly #socket: NetlinkSocket;
  readonly #query: FlowQuery;
  readonly #reader: FlowReader;
  readonly #buffer = new Uint8Array(bufferLength);
  #isWhole = true;

  constructor(socket: NetlinkSocket, query: FlowQuery, reader: FlowReader) {
    this.#socket = socket;
    this.#query = query;
    this.#reader = reader;
  }

  begin(maxFiltered: number): void {
    const writer = new MessageWriter();
    writeGetStatistics(writer);
    this.#socket.send(writer.bytes());
    const entries = receiveEntries(this.#socket, this.#buffer);
    writer.clear();
    writeList(writer, entries > maxFiltered ? undefined : this.#query.ipFamily);
    this.#socket.send(writer.bytes());
  }

  /** Reads for `slice`, or until `status` is no longer `more`. */
  readUntil(clock: Clock, slice: Millis): readonly TrackedFlow[] {
    const flows: TrackedFlow[] = [];
    const end = clock.monotonic() + slice;
    do {
      const length = this.#receive();
      if (length === undefined) this.status = 'interrupted';
      else this.#read(this.#buffer.subarray(0, length), flows);
    } while (this.status === 'more' && clock.monotonic() < end);
    return flows;
  }

  /** Each datagram makes the kernel write the next one, so nothing to read means that it could not. */
  #receive(): number | undefined {
    try {
      return this.#socket.receive(this.#buffer);
    } catch (error) {
      if (error instanceof NativeError && error.errno === constants.errno.ENOBUFS) return undefined;
      throw error;
    }
  }

  #read(datagram: Uint8Array, into: TrackedFlow[]): void {
    const { destinationPorts: ports, isWanted = () => true } = this.#query;
    for (const message of readMessages(datagram)) {
      if (message.sequence !== sequence) continue;
      if ((message.flags & NLM_F.DUMP_INTR) !== 0) this.#isWhole = false;
      if (message.type === NLMSG.ERROR || message.type === NLMSG.DONE) {
        const errno = readErrno(datagram, message.start);
        if (errno !== 0) throw refusal(`cannot list the UDP flows (${this.#query.ipFamily})`, errno);
        this.status = this.#isWhole ? 'complete' : 'interrupted';
        return;
      }
      const port = this.#reader.enter(datagram, message.start, message.end);
      if (port === undefined || ports?.has(port) === false) continue;
      const flow = this.#reader.flow(isWanted);
      if (flow !== undefined) into.push(flow);
    }
  }
}

function deleteFlows(flows: readonly TrackedFlow[], connect: () => NetlinkSocket): number {
  if (flows.length === 0) return 0;
  using socket = connect();
  const writer = new MessageWriter();
  const buffer = new Uint8Array(bufferLength);
  let deleted = flows.length;
  for (let first = 0; first < flows.length; first += deletionsPerMessage) {
    writer.clear();
    for (const { ipFamily, handle } of flows.slice(first, first + deletionsPerMessage)) {
      writeDelete(writer, ipFamily, handle);
    }
    socket.send(writer.bytes());
    deleted -= receiveMissing(socket, buffer);
  }
  return deleted;
}

const { EINVAL, ENOENT, EOPNOTSUPP, EPERM } = constants.errno;
const noCtnetlink = 'the kernel needs CONFIG_NF_CT_NETLINK; where it is a module: modprobe nf_conntrack_netlink';
const advice: Readonly<Record<number, string>> = {
  [EPERM]: 'run with CAP_NET_ADMIN',
  [EOPNOTSUPP]: noCtnetlink,
  [EINVAL]: noCtnetlink,
};

function refusal(attempt: string, errno: number): NativeError {
  return new NativeError(attempt, { errno, syscall: 'ctnetlink' }, advice[errno]);
}

/** Entries of all protocols in the socket's namespace, from the answer to `writeGetStatistics`. Throws `NativeError`. */
function receiveEntries(socket: NetlinkSocket, buffer: Uint8Array): number {
  for (const [{ type, start, end }] of receiveAnswers(socket, buffer)) {
    if (type === NLMSG.ERROR)
      throw refusal('cannot count the entries of the connection tracking', readErrno(buffer, start));
    return readEntries(buffer, { start, end });
  }
  return 0;
}

/** The number in an answer to a request for statistics. */
export function readEntries(bytes: Uint8Array, { start, end }: Pick<NetlinkMessage, 'start' | 'end'>): number {
  for (const attribute of readAttributes(bytes, start + 4, end)) {
    if (attribute.type === conntrack.globalEntries) return readUint32be(bytes, attribute.start);
  }
  return 0;
}

/** Number of deletions just sent that found no entry. Throws `NativeError` for any other answer. */
function receiveMissing(socket: NetlinkSocket, buffer: Uint8Array): number {
  let missing = 0;
  for (const [{ type, start }] of receiveAnswers(socket, buffer)) {
    const errno = type === NLMSG.ERROR ? readErrno(buffer, start) : 0;
    if (errno === ENOENT) missing += 1;
    else if (errno !== 0) throw refusal('cannot delete a UDP flow', errno);
  }
  return missing;
}
