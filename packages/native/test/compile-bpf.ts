import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Compiles `test/NAME.bpf.c` into a folder; returns the object's path. */
export function compileBpf(name: string, folder: string): string {
  const source = fileURLToPath(new URL(`${name}.bpf.c`, import.meta.url));
  const object = `${folder}/${name}.bpf.o`;
  const machineHeaders = execFileSync('cc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
  const flags = ['-O2', '-g', '-Wall', '-Wextra', '-Werror', '-target', 'bpfel', '-mcpu=v3'];
  execFileSync('clang', [...flags, `-I/usr/include/${machineHeaders}`, '-c', source, '-o', object]);
  return object;
}
