import { resolve } from 'node:path';
import { runScript } from '../script.ts';
import { megabytes } from '../images/describe.ts';
import { packPackage, publicPackages } from './pack.ts';

// `node --conditions=@switchyard/source tools/packages/build.ts FOLDER` packs every public package into FOLDER, as npm would publish it.
// The packages must be built (`./dev build`).

await runScript(async (signal) => {
  const [folder, ...surplus] = process.argv.slice(2);
  if (folder === undefined || surplus.length > 0) throw new Error('give one argument, the folder for the packs');
  for (const { folder: path } of publicPackages()) {
    const { name, tarball, size } = await packPackage(path, resolve(folder), signal);
    console.log(`${name}: ${tarball}, ${megabytes(size)}`);
  }
}, 'packages: ');
