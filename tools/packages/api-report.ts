import { mkdir } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { root } from '../workspace.ts';
import { publicPackages } from './pack.ts';

// `node --conditions=@switchyard/source tools/packages/api-report.ts` writes docs/reference/api: every exported name of every entry point,
// with its type. Made of what `tsc -b` has built. A test fails when the pages are not what this would write.

export interface EntryPoint {
  /** `core`, `core-kubernetes`: name of the page. */
  readonly page: string;
  readonly folder: string;
  /** Its declarations, below the folder. */
  readonly types: string;
}

/** Public entry points: all except those for tests. */
export function entryPoints(): readonly EntryPoint[] {
  return publicPackages().flatMap(({ folder, name }) => {
    const { exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, { readonly types: string }>>;
    };
    return Object.entries(exports)
      .filter(([path]) => path !== './testing')
      .map(([path, { types }]) => ({
        page: `${name.replace('@switchyard/', '')}${path.slice(1).replace('/', '-')}`,
        folder,
        types,
      }));
  });
}

/**
 * Returns a function that writes a page, or compares it with what is there; true when it is as it should be. The compiler reads the
 * declarations of all entry points once.
 */
export function apiReports(
  entries: readonly EntryPoint[],
  mode: 'write' | 'compare',
  temporary: string,
): (entry: EntryPoint) => boolean {
  const additionalEntryPoints = entries.map(({ folder, types }) => join(root, folder, types));
  let compilerState: CompilerState | undefined;
  return (entry) => {
    const config = configOf(entry, temporary);
    compilerState ??= CompilerState.create(config, { additionalEntryPoints });
    const result = Extractor.invoke(config, {
      compilerState,
      localBuild: mode === 'write',
      messageCallback: (message) => {
        message.handled = message.category !== 'console' || !message.text.includes('rror');
      },
    });
    return mode === 'write' ? result.succeeded : !result.apiReportChanged;
  };
}

function configOf({ page, folder, types }: EntryPoint, temporary: string): ExtractorConfig {
  const project = join(root, folder);
  return ExtractorConfig.prepare({
    packageJsonFullPath: join(project, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: project,
      mainEntryPointFilePath: join(project, types),
      compiler: { overrideTsconfig: { compilerOptions: compilerOptions } },
      apiReport: {
        enabled: true,
        reportFileName: `${page}.api.md`,
        reportFolder: join(root, 'docs/reference/api'),
        reportTempFolder: temporary,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: 'none' as never } },
        extractorMessageReporting: { default: { logLevel: 'none' as never } },
        tsdocMessageReporting: { default: { logLevel: 'none' as never } },
      },
    },
  });
}

const compilerOptions = {
  target: 'es2023',
  lib: ['ESNext'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  types: ['node'],
  skipLibCheck: true,
  strict: true,
};

if (process.argv[1] === import.meta.filename) {
  await mkdir(join(root, 'docs/reference/api'), { recursive: true });
  const write = apiReports(entryPoints(), 'write', join(root, 'node_modules/.cache/switchyard-api'));
  for (const entry of entryPoints()) {
    if (!write(entry)) process.exitCode = 1;
    console.log(`docs/reference/api/${entry.page}.api.md`);
  }
}
