import { parseArgs } from 'node:util';
import { runScript } from '../script.ts';
import { debianRoot, machineArchitecture } from './debian-root.ts';

const usage = `usage: node tools/debian/fetch.ts [--arch amd64|arm64] [--exclude PACKAGE]... PACKAGE...

Unpacks Debian packages and what they depend on into a folder of this checkout, and prints the folder.
Nothing is installed on this machine.`;

async function main(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      arch: { type: 'string' },
      exclude: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return console.log(usage);
  const architecture = values.arch ?? machineArchitecture();
  if (architecture !== 'amd64' && architecture !== 'arm64')
    throw new Error(`--arch is amd64 or arm64, not '${architecture}'`);
  if (positionals.length === 0) throw new Error(`no packages given\n${usage}`);
  const exclude = values.exclude ?? [];
  console.log(await debianRoot({ packages: positionals, exclude, architecture, signal }));
}

await runScript(main);
