import { closeSync, readFileSync } from 'node:fs';
import { type LoadedObject, loadBpfAddon, type ObjectOptions } from './bpf-addon.ts';
import { fdOf, KernelProgram } from './kernel-program.ts';
import { BpfLoadFailure } from './load-failure.ts';
import { asMap } from './open-map.ts';
import type { BpfLoadOptions, BpfMap, BpfObject, BpfProgram } from './types.ts';

/**
 * Loads an object file that clang compiled: its maps are made (unless given), its programs verified. Given maps that the object does
 * not name are left alone, so that one set serves several objects. Throws `BpfLoadFailure` with what the verifier said.
 */
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
