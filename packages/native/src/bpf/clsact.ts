import { constants } from 'node:os';
import { ENOTSUPP, NativeError } from '../native-error.ts';
import { NLM_F } from '../netlink/constants.ts';
import type { MessageWriter } from '../netlink/message-writer.ts';
import { NetlinkAsker, type WriteBody } from '../netlink/netlink-asker.ts';
import type { VisitMessage } from '../netlink/netlink-exchange.ts';
import { readAttributes, readUint32 } from '../netlink/read-messages.ts';
import { openNetlinkSocket } from '../netlink-socket.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfLink, BpfProgram } from './types.ts';
import { Attribute, bpfError, tryBpf } from './call.ts';
import { KernelLink } from './kernel-link.ts';

const { EEXIST, EINVAL, ENODEV, ENOENT, EOPNOTSUPP } = constants.errno;

/** Message types of linux/rtnetlink.h. */
const messages = { newQdisc: 36, newFilter: 44, delFilter: 45, getFilter: 46 } as const;
/** Attributes of queueing disciplines and filters, and those of a filter of kind bpf. */
const attributes = { kind: 1, options: 2, fd: 6, name: 7, flags: 8, id: 11 } as const;
/** The program's return value is the verdict. */
const directAction = 1;
/** Where a filter hangs: the hook of clsact for incoming packets, and the discipline itself. */
const parents = { ingress: 0xff_ff_ff_f2, discipline: 0xff_ff_ff_f1 } as const;
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
    writer.nested(attributes.options, () => {
      writer.attributeUint32(attributes.fd, fd);
      writer.attributeText(attributes.name, filter.name);
      writer.attributeUint32(attributes.flags, directAction);
    });
  });
  if (errno !== 0) throw refusal(`cannot attach the program ${program.name} to ${where(place)}`, errno);
}

function writeFilter(writer: MessageWriter, place: TcPlace): void {
  const info = (((place.priority ?? filter.priority) << 16) | allProtocols) >>> 0;
  writeHeader(writer, place, { handle: filter.handle, parent: parents.ingress, info });
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

function where({ ifindex, netns }: TcPlace): string {
  return `ingress of the interface ${ifindex}${netns === undefined ? '' : ` in ${netns}`}`;
}

function refusal(attempt: string, errno: number): NativeError {
  const next =
    errno === ENOENT || errno === EINVAL ? 'the kernel needs CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS' : '';
  return new NativeError(attempt, { errno, syscall: 'rtnetlink' }, next);
}

/** BPF_TCX_INGRESS: incoming packets of an interface. */
export const tcxIngress = 46;

/** Place of a program at an interface. */
export interface TcPlace {
  /** The interface's number in its namespace. */
  readonly ifindex: number;
  /** Path of the interface's network namespace; default: the process's own. */
  readonly netns?: string | undefined;
  /** Priority of a clsact filter, 1 to 65535, lowest first. Programs at one interface need one each. Default: 0x5377. */
  readonly priority?: number;
}

/** How programs are attached to interfaces: by links (Linux 6.6), or as filters of the clsact queueing discipline. */
export type TcMechanism = 'tcx' | 'clsact';

/** How a program is attached to an interface. */
export interface TcOptions {
  /** Default: tcx where the kernel has it, else clsact. */
  readonly mechanism?: TcMechanism;
}

/** A program at an interface. With `clsact` it stays until `detach`, even after disposal, and cannot be pinned; attaching again replaces it. */
export interface TcLink extends BpfLink {
  readonly mechanism: TcMechanism;
}

class TcxLink extends KernelLink implements TcLink {
  readonly mechanism = 'tcx';
}

/** Attaches a program of type tc to an interface. Throws `NativeError`. */
export function attachTc(program: BpfProgram, place: TcPlace, { mechanism }: TcOptions = {}): TcLink {
  if (mechanism === 'clsact') return attachClsact(program, place);
  const { ifindex, netns } = place;
  const attribute = new Attribute(48).u32(0, fdOf(program)).u32(4, ifindex).u32(8, tcxIngress);
  const attempt = `cannot attach the program ${program.name} to ${where(place)}`;
  const fd = tryBpf('LINK_CREATE', { attempt, attribute, netns });
  if (fd >= 0) return new TcxLink(fd, `the BPF link at ${where(place)}`);
  if (mechanism === undefined && lacksTcx(-fd)) return attachClsact(program, place);
  throw bpfError('LINK_CREATE', attempt, -fd);
}

/** Whether a kernel without tcx answers so. */
function lacksTcx(errno: number): boolean {
  return errno === EINVAL || errno === ENOTSUPP || errno === EOPNOTSUPP;
}
