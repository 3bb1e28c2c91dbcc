import { closeSync, readFileSync } from 'node:fs';
import { NativeError } from '../native-error.ts';
import { type EmbeddedObject, type LoadedObject, loadBpfAddon, type ObjectOptions } from './bpf-addon.ts';
import { fdOf, KernelProgram } from './kernel-program.ts';
import { asMap } from './open-map.ts';
import type { BpfLoadOptions, BpfMap, BpfObject, BpfProgram } from './types.ts';

/** The kernel or libbpf refused an object; `log` has the output of libbpf and the verifier. */
export class BpfLoadFailure extends NativeError {
  override readonly name: string = 'BpfLoadFailure';
  readonly log: string;

  constructor(attempt: string, failure: { readonly errno: number; readonly log: string }) {
    super(attempt, { errno: failure.errno, syscall: 'bpf' }, lastWords(failure.log));
    this.log = failure.log;
  }
}

/** The verifier's reason precedes its statistics and libbpf's summary. The whole log can have thousands of lines. */
function lastWords(log: string): string {
  const lines = log
    .split('\n')
    .filter((line) => line !== '' && !/^(libbpf: (?!extern)|processed |-- |verification )/.test(line));
  const said = (lines.length > 0 ? lines : log.split('\n').filter((line) => line !== '')).slice(-2);
  return said.length === 0 ? '' : `it said: ${said.join(' / ')}`;
}

/** Loads an object file: its maps are made (unless given), its programs verified. Throws `BpfLoadFailure` with what the verifier said. */
export function loadBpfObject(path: string, options: BpfLoadOptions = {}): BpfObject {
  return loadBpfBytes(readFileSync(path), path, options);
}

/** As `loadBpfObject`, of a file that is in memory; `name` is for errors. */
export function loadBpfBytes(bytes: Uint8Array, name: string, options: BpfLoadOptions = {}): BpfObject {
  const loaded = loadBpfAddon().loadObject(bytes, addonOptions(options));
  if (loaded.error !== 0) {
    closeAll(loaded);
    const { error: errno, log } = loaded;
    throw new BpfLoadFailure(`cannot load the BPF object ${name}: could not ${loaded.attempt}`, { errno, log });
  }
  const own: Disposable[] = [];
  const maps = new Map<string, BpfMap>(options.maps);
  for (const [map, fd] of loaded.maps) {
    const opened = asMap(fd, `the BPF map ${map}`);
    own.push(opened);
    maps.set(map, opened);
  }
  const programs = new Map<string, BpfProgram>();
  for (const [program, fd] of loaded.programs) {
    const opened = new KernelProgram(fd, program);
    own.push(opened);
    programs.set(program, opened);
  }
  return {
    maps,
    programs,
    [Symbol.dispose]: () => {
      for (const one of own) one[Symbol.dispose]();
    },
  };
}

/** As `loadBpfObject`, of an object file that is part of the addon. */
export function loadEmbedded(name: EmbeddedObject, options: BpfLoadOptions = {}): BpfObject {
  return loadBpfBytes(loadBpfAddon().embeddedObject(name), name, options);
}

function addonOptions({ maps, constants = {}, skip = [] }: BpfLoadOptions): ObjectOptions {
  return {
    maps: [...(maps ?? [])].map(([name, map]) => [name, BigInt(fdOf(map))]),
    constants: Object.entries(constants).map(([name, value]) => [name, BigInt(value)]),
    skip,
  };
}

function closeAll({ maps, programs }: LoadedObject): void {
  for (const [, fd] of [...maps, ...programs]) closeSync(fd);
}
