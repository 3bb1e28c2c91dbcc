import { ipFromBytes } from '@switchyard/core';
import { type BpfMap, type BpfProgram, loadBpfObject, testRun } from '@switchyard/native';
import { affinityKinds } from '../../src/render/layouts.ts';
import { objectFile } from './socket-site.ts';
import { address16 } from './written-maps.ts';

/** Request to `bpf/pick.bpf.c`. */
export interface PickRequest {
  readonly destination: string;
  readonly port: number;
  readonly protocol: number;
  /** `sourceClassIndex`. */
  readonly class: number;
  /** A source address, or the cookie of a network namespace: then it is a socket that asks. */
  readonly client: string | bigint;
  /** Below 2 ** 32; default 0. */
  readonly random?: number;
  readonly kept?: { readonly endpoint: number; readonly generation: number };
  /** A write of the agent while the program reads. */
  readonly meanwhile?: PickWrite;
}

/** Point and map of a write: numbers of `bpf/pick.bpf.c`. */
const afterNumbers = { frontend: 1, set: 2, slot: 3, endpoint: 4 } as const;
const targetNumbers = { frontend: 0, service: 1, slot: 2, endpoint: 3 } as const;

/** One store of eight bytes. */
export interface PickWrite {
  readonly after: keyof typeof afterNumbers;
  /** `frontend`: the requested one. */
  readonly to: keyof typeof targetNumbers;
  readonly index?: number;
  /** Of the record, in eight bytes. */
  readonly word?: number;
  readonly value: bigint;
}

/** Verdicts by their numbers in `bpf/select.h`. */
export const pickVerdicts = ['pass', 'forward', 'reject', 'drop', 'again'] as const;

/** Its answer. */
export interface PickAnswer {
  readonly verdict: (typeof pickVerdicts)[number];
  /** The rest counts with the verdict `forward`. */
  readonly address: string;
  readonly port: number;
  readonly masquerade: boolean;
  readonly isKept: boolean;
  readonly endpoint: number;
  readonly generation: number;
  readonly service: number;
}

/** Offsets in `struct sy_exchange`. */
const at = {
  client: 16,
  kind: 32,
  random: 36,
  port: 40,
  protocol: 42,
  class: 43,
  kept: 44,
  verdict: 52,
  choice: 56,
  write: 88,
  end: 112,
};

/** The selection of the programs, without a socket or a packet. */
export class PickProgram implements Disposable {
  readonly maps: ReadonlyMap<string, BpfMap>;
  readonly #stack = new DisposableStack();
  readonly #program: BpfProgram;

  /** With maps of its own, or over these. */
  constructor(maps?: ReadonlyMap<string, BpfMap>) {
    const object = this.#stack.use(loadBpfObject(objectFile('pick'), maps === undefined ? {} : { maps }));
    const program = object.programs.get('pick');
    if (program === undefined) throw new Error('the object has no program pick');
    this.#program = program;
    this.maps = object.maps;
  }

  ask(request: PickRequest): PickAnswer {
    return decode(testRun(this.#program, { data: encode(request) }).data);
  }

  /** Nanoseconds of one run, over many. */
  measure(request: PickRequest, repeat: number): number {
    return testRun(this.#program, { data: encode(request), repeat }).duration;
  }

  [Symbol.dispose](): void {
    this.#stack.dispose();
  }
}

function encode(request: PickRequest): Uint8Array {
  const { destination, port, protocol, class: source, client, random = 0, kept, meanwhile } = request;
  const bytes = new Uint8Array(at.end);
  const view = new DataView(bytes.buffer);
  bytes.set(address16(destination));
  if (typeof client === 'string') bytes.set(address16(client), at.client);
  else view.setBigUint64(at.client + 8, client, true);
  view.setUint32(at.kind, typeof client === 'string' ? affinityKinds.address : affinityKinds.networkNamespace, true);
  view.setUint32(at.random, random, true);
  view.setUint16(at.port, port);
  view.setUint8(at.protocol, protocol);
  view.setUint8(at.class, source);
  view.setUint32(at.kept, kept?.endpoint ?? 0, true);
  view.setUint32(at.kept + 4, kept?.generation ?? 0, true);
  if (meanwhile === undefined) return bytes;
  const { after, to, index = 0, word = 0, value } = meanwhile;
  [afterNumbers[after], targetNumbers[to], index, word].forEach((number, position) => {
    view.setUint32(at.write + position * 4, number, true);
  });
  view.setBigUint64(at.write + 16, value, true);
  return bytes;
}

function decode(bytes: Uint8Array): PickAnswer {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const choice = new DataView(bytes.buffer, bytes.byteOffset + at.choice);
  const verdict = pickVerdicts[view.getUint32(at.verdict, true)];
  if (verdict === undefined) throw new Error(`pick answered ${view.getUint32(at.verdict, true)}`);
  const address = bytes.slice(at.choice, at.choice + 16);
  const isV4 = view.getBigUint64(at.choice) === 0n && view.getUint32(at.choice + 8) === 0xffff;
  return {
    verdict,
    address: ipFromBytes(isV4 ? address.subarray(12) : address),
    port: choice.getUint16(16),
    masquerade: choice.getUint8(18) !== 0,
    isKept: choice.getUint8(19) !== 0,
    endpoint: choice.getUint32(20, true),
    generation: choice.getUint32(24, true),
    service: choice.getUint32(28, true),
  };
}
