import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** A place in a file that names the project's version. */
export interface VersionPlace {
  /** Relative to the checkout. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly version: string;
}

const number = String.raw`(?<version>\d+\.\d+\.\d+(?:-[\w.]+)?)`;
/** Texts that name the version, by the name of the file. The last entry is for every file: the tag of an image. */
const patterns: readonly (readonly [file: RegExp, text: RegExp])[] = [
  [/^package\.json$/, new RegExp(`^  "version": "${number}"`, 'gm')],
  [/^package\.json$/, new RegExp(String.raw`^ +"@switchyard/[\w-]+": "${number}"`, 'gm')],
  [/^Chart\.yaml$/, new RegExp(`^(?:version|appVersion): ${number}$`, 'gm')],
  [/^kustomization\.yaml$/, new RegExp(`^ +newTag: ${number}$`, 'gm')],
  [/^(?:version|report-file)\.ts$/, new RegExp(`^(?:export )?const version = '${number}'`, 'gm')],
  [/./, new RegExp(String.raw`\bswitchyard/[\w{}$-]+:${number}`, 'g')],
];

/** Every place that names the version of the project, in the files that git tracks. Throws if git cannot list them. */
export function versionPlaces(checkout: string): readonly VersionPlace[] {
  return trackedFiles(checkout).flatMap((path) => {
    const text = readFileSync(join(checkout, path), 'utf8');
    const matches = patternsOf(path).flatMap((pattern) => [...text.matchAll(pattern)]);
    return matches.map(({ index, groups }) => {
      const line = text.slice(0, index).split('\n').length;
      return { path, line, version: groups?.['version'] ?? '' };
    });
  });
}

/** Replaces the version in every place that names `from`. Returns the paths of the changed files. Throws as `versionPlaces`. */
export function replaceVersion(checkout: string, from: string, to: string): readonly string[] {
  return trackedFiles(checkout).filter((path) => {
    const file = join(checkout, path);
    const before = readFileSync(file, 'utf8');
    let after = before;
    for (const pattern of patternsOf(path)) {
      after = after.replaceAll(pattern, (place, version: string) =>
        version === from ? place.replace(from, () => to) : place,
      );
    }
    if (after !== before) writeFileSync(file, after);
    return after !== before;
  });
}

function patternsOf(path: string): readonly RegExp[] {
  return patterns.filter(([file]) => file.test(basename(path))).map(([, text]) => text);
}

/** Text files that may name the version. The lockfile is written by npm. */
function trackedFiles(checkout: string): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: checkout, encoding: 'utf8' });
  const isText = /(?:^|\/)[^/.]+$|\.(?:ts|json|ya?ml|md|sh|tpl)$/;
  const isWanted = (path: string): boolean => isText.test(path) && !path.endsWith('package-lock.json');
  return listed.split('\0').filter((path) => isWanted(path) && existsSync(join(checkout, path)));
}
