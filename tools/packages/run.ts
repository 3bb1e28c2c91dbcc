import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runProgram } from '../debian/run-program.ts';
import { runScript } from '../script.ts';
import { root } from '../workspace.ts';
import { packPackage, withDependencies } from './pack.ts';

const usage = `usage: ./dev pack [FOLDER] [--package NAME]...

Builds the packages and writes them as npm would publish them. Install them with: npm install FOLDER/*.tgz

  FOLDER          folder of the tarballs (packs); it is created, and tarballs of the same version are replaced
  --package NAME  only this package and those of this repository that it depends on (all); NAME is core, scenarios, ...`;

async function main(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      package: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const [folder = 'packs', ...surplus] = positionals;
  if (surplus.length > 0)
    throw new Error(`one folder at a time, not also ${surplus.join(', ')}; see ./dev pack --help`);
  const packages = withDependencies(values.package);
  const projects = packages.map((one) => one.folder).join(',');
  const build = ['run-many', '-t', 'build', '--output-style=static', `--projects=${projects}`];
  await runProgram('nx', build, { cwd: root, signal });
  for (const one of packages) {
    const { tarball, size } = await packPackage(one.folder, resolve(folder), signal);
    console.log(`${join(folder, basename(tarball))}  ${Math.ceil(size / 1000)} kB`);
  }
  console.log(`install them in the folder of your package.json: npm install ${resolve(folder)}/*.tgz`);
}

await runScript(main, 'pack: ');
