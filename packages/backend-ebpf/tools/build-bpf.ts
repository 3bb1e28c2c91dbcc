import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { layoutsToC } from './layouts-to-c.ts';

// Compiles bpf/*.bpf.c to build/*.bpf.o, with the header made from src/render/layouts.ts. One file serves all little-endian machines.
// Two arguments are other folders for both.

const folder = join(dirname(fileURLToPath(import.meta.url)), '..');
const [sources = join(folder, 'bpf'), build = join(folder, 'build')] = process.argv.slice(2);
mkdirSync(build, { recursive: true });
writeFileSync(join(build, 'layouts.gen.h'), layoutsToC());

/** Debian keeps <asm/types.h> in a folder of the machine's; what is taken from there is the same on all of them. */
const machineHeaders = execFileSync('cc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
const flags = [
  '-O2',
  '-g',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-target',
  'bpfel',
  '-mcpu=v3',
  // BTF names source files: the same on every machine.
  `-ffile-prefix-map=${sources}=/switchyard/bpf`,
  `-ffile-prefix-map=${build}=/switchyard/build`,
  '-ffile-compilation-dir=/switchyard',
  `-I${build}`,
  `-I/usr/include/${machineHeaders}`,
];

for (const source of globSync('*.bpf.c', { cwd: sources }).toSorted()) {
  const object = join(build, source.replace(/c$/, 'o'));
  run('clang', [...flags, '-c', join(sources, source), '-o', object]);
  run('llvm-strip', ['-g', object]); // BTF stays
}

/** Ends the program with the compiler's own words. */
function run(program: string, args: readonly string[]): void {
  try {
    execFileSync(program, args, { stdio: 'inherit' });
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    console.error(
      isMissing
        ? `build-bpf: ${program} is missing; ./dev setup installs it`
        : `build-bpf: ${program} failed, see above`,
    );
    process.exit(1);
  }
}
