import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { HostError } from '@switchyard/core';

/** Compiled programs, by the name of their source. */
export type ObjectName = 'socket' | 'wire';

/** The path of a compiled object: beside an app's bundle, else where `build-bpf` leaves it. Throws `HostError`. */
export function objectFile(name: ObjectName): string {
  const file = `${name}.bpf.o`;
  const places = [`./${file}`, `../build/${file}`, `../../../build/${file}`].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const found = places.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new HostError('ebpf.object', `the compiled programs ${file} are missing: build them with ./dev build`);
}
