import { constants } from 'node:os';
import { NativeError } from '../native-error.ts';
import { NLM_F } from '../netlink/constants.ts';
import type { MessageWriter } from '../netlink/message-writer.ts';
import { NetlinkAsker, type WriteBody } from '../netlink/netlink-asker.ts';
import type { VisitMessage } from '../netlink/netlink-exchange.ts';
import { readAttributes, readUint32 } from '../netlink/read-messages.ts';
import { openNetlinkSocket } from '../netlink-socket.ts';
import { fdOf } from './kernel-program.ts';
import type { TcLink, TcPlace } from './tc-links.ts';
import type { BpfProgram } from './types.ts';

const { EEXIST, EINVAL, ENODEV, ENOENT } = constants.errno;

/** Message types of linux/rtnetlink.h. */
const messages = { newQdisc: 36, newFilter: 44, delFilter: 45, getFilter: 46 } as const;
/** Attributes of queueing disciplines and filters, and those of a filter of kind bpf. */
const attributes = { kind: 1, options: 2, fd: 6, name: 7, flags: 8, id: 11 } as const;
/** The program's return value is the verdict. */
const directAction = 1;
/** Where a filter hangs: the two hooks of clsact, and the discipline itself. */
const parents = { ingress: 0xff_ff_ff_f2, egress: 0xff_ff_ff_f3, discipline: 0xff_ff_ff_f1 } as const;
const disciplineHandle = 0xff_ff_00_00;
/** Handle and priority by which the filter is found again. Filters of lower priority numbers run first. */
const filter = { handle: 0x5377, priority: 0x5377, name: 'switchyard' } as const;
/** ETH_P_ALL in network order. */
const allProtocols = 0x0300;
const replaceFlag = 0x100;

/** Attaches a program as filter of clsact; replaces our filter at once. Throws `NativeError`. */
export function attachClsact(program: BpfProgram, place: TcPlace): TcLink {
  ensureDiscipline(place);
  putFilter(program, place);
  return new ClsactLink(place);
}

class ClsactLink implements TcLink {
  readonly mechanism = 'clsact';
  /** Filters have no number of their own. */
  readonly id = 0;
  readonly #place: TcPlace;

  constructor(place: TcPlace) {
    this.#place = place;
  }

  /** Asks the kernel each time; 0 when the filter is gone. */
  get programId(): number {
    return findClsact(this.#place) ?? 0;
  }

  update(program: BpfProgram): void {
    putFilter(program, this.#place);
  }

  detach(): void {
    detachClsact(this.#place);
  }

  [Symbol.dispose](): void {
    // A filter has no descriptor.
  }
}

/** Removes our filter and returns whether there was one. Also removes a filter of an earlier process. Throws `NativeError`. */
export function detachClsact(place: TcPlace): boolean {
  const errno = ask(place, messages.delFilter, (writer) => writeFilter(writer, place));
  if (errno === 0) return true;
  if (isAbsence(errno)) return false;
  throw refusal(`cannot detach the program from ${where(place)}`, errno);
}

/** The id of the program that our filter has there; undefined when there is no such filter. Throws `NativeError`. */
export function findClsact(place: TcPlace): number | undefined {
  let id: number | undefined;
  const read: VisitMessage = (bytes, { start, end }) => {
    for (const option of readAttributes(bytes, start + 20, end)) {
      if (option.type !== attributes.options) continue;
      for (const inner of readAttributes(bytes, option.start, option.end)) {
        if (inner.type === attributes.id) id = readUint32(bytes, inner.start);
      }
    }
  };
  const errno = ask(place, messages.getFilter, (writer) => writeFilter(writer, place), read);
  if (errno === 0) return id;
  if (isAbsence(errno)) return undefined;
  throw refusal(`cannot look for the program at ${where(place)}`, errno);
}

/** No filter, no discipline, or no interface. */
function isAbsence(errno: number): boolean {
  return errno === ENOENT || errno === EINVAL || errno === ENODEV;
}

function ensureDiscipline(place: TcPlace): void {
  const errno = ask(place, messages.newQdisc, (writer) => {
    writeHeader(writer, place, { handle: disciplineHandle, parent: parents.discipline, info: 0 });
    writer.attributeText(attributes.kind, 'clsact');
  });
  if (errno !== 0 && errno !== EEXIST) throw refusal(`cannot make clsact for ${where(place)}`, errno);
}

function putFilter(program: BpfProgram, place: TcPlace): void {
  const fd = fdOf(program);
  const errno = ask(place, messages.newFilter, (writer) => {
    writeFilter(writer, place);
    const options = writer.beginNested(attributes.options);
    writer.attributeUint32(attributes.fd, fd);
    writer.attributeText(attributes.name, filter.name);
    writer.attributeUint32(attributes.flags, directAction);
    writer.endAttribute(options);
  });
  if (errno !== 0) throw refusal(`cannot attach the program ${program.name} to ${where(place)}`, errno);
}

function writeFilter(writer: MessageWriter, place: TcPlace): void {
  const parent = parents[place.direction ?? 'ingress'];
  const { priority = filter.priority } = place;
  writeHeader(writer, place, { handle: filter.handle, parent, info: ((priority << 16) | allProtocols) >>> 0 });
  writer.attributeText(attributes.kind, 'bpf');
}

/** `struct tcmsg`. */
function writeHeader(
  writer: MessageWriter,
  { ifindex }: TcPlace,
  { handle, parent, info }: { readonly handle: number; readonly parent: number; readonly info: number },
): void {
  writer.uint32(0); // family and padding
  for (const word of [ifindex, handle, parent, info]) writer.uint32(word);
}

const flagsOf: Readonly<Record<number, number>> = {
  [messages.newQdisc]: NLM_F.CREATE | NLM_F.EXCL,
  [messages.newFilter]: NLM_F.CREATE | replaceFlag,
};

function ask({ netns }: TcPlace, type: number, write: WriteBody, read?: VisitMessage): number {
  using socket = openNetlinkSocket({ protocol: 'route', netns });
  return new NetlinkAsker(socket, { attempt: 'cannot change filters', code: 'tc' }).acknowledge(
    type,
    flagsOf[type] ?? 0,
    write,
    read,
  );
}

function where({ ifindex, netns, direction = 'ingress' }: TcPlace): string {
  return `${direction} of the interface ${ifindex}${netns === undefined ? '' : ` in ${netns}`}`;
}

function refusal(attempt: string, errno: number): NativeError {
  const next =
    errno === ENOENT || errno === EINVAL ? 'the kernel needs CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS' : '';
  return new NativeError(attempt, { errno, syscall: 'rtnetlink' }, next);
}
