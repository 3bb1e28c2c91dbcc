import { parseArgs } from 'node:util';
import { debianRoot } from './debian-root.ts';

// `node tools/debian/unpack.ts [--exclude PACKAGE...] PACKAGE...` unpacks Debian packages, unless they are already, and prints the folder
// they are in: for programs that are no tools and so may not import this one. Progress is on stderr.

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
try {
  const { values, positionals } = parseArgs({
    options: { exclude: { type: 'string', multiple: true, default: [] } },
    allowPositionals: true,
  });
  if (positionals.length === 0) throw new Error('which packages? node tools/debian/unpack.ts PACKAGE...');
  console.log(await debianRoot({ packages: positionals, exclude: values.exclude, signal: stop.signal }));
} catch (error) {
  console.error(`debian: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
