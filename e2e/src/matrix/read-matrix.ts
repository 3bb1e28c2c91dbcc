import { ConfigError } from '@switchyard/core';
import { dataplaneNames } from '@switchyard/scenarios';
import { cellFamilies, cellLoadBalancers } from '../cell.ts';
import { type Field, parseFields } from '../document/field.ts';
import {
  fieldFault,
  readList,
  readObject,
  readOneOf,
  readOptional,
  readText,
  refuseDoubles,
} from '../document/read-field.ts';
import type { Exclusion, KubernetesRelease, Matrix } from './matrix.ts';
import { readSelector, readVersion, selectorFields } from './selector.ts';

/** Reads `e2e/matrix.json`; `file` is its name in messages. Throws `ConfigError` with the place of the first fault. */
export function readMatrix(file: string, text: string): Matrix {
  const fields = readObject(parseFields(file, text), [
    'backends',
    'ipFamilies',
    'loadBalancers',
    'kubernetes',
    'kind',
    'exclude',
    'upstreamFocus',
  ]);
  return {
    backends: readWords(fields.backends, dataplaneNames),
    ipFamilies: readWords(fields.ipFamilies, cellFamilies),
    loadBalancers: readWords(fields.loadBalancers, cellLoadBalancers),
    kubernetes: readReleases(fields.kubernetes),
    kind: readText(fields.kind, /^\d+\.\d+\.\d+$/, 'a release of kind such as "0.33.0"'),
    exclude: readList(fields.exclude, readExclusion),
    upstreamFocus: readSome(fields.upstreamFocus, (item) =>
      readText(item, /^\[sig-/, "the beginning of a test's name, such as '[sig-network] Services'"),
    ),
  };
}

function readSome<Item>(field: Field, read: (item: Field) => Item): readonly Item[] {
  const items = readList(field, read);
  if (items.length === 0) throw fieldFault(field, 'at least one');
  refuseDoubles(
    field,
    items.map((item) => JSON.stringify(item)),
  );
  return items;
}

function readWords<Word extends string>(field: Field, words: readonly Word[]): readonly Word[] {
  return readSome(field, (item) => readOneOf(item, words));
}

function readReleases(field: Field): readonly KubernetesRelease[] {
  const releases = readSome(field, readRelease);
  refuseDoubles(
    field,
    releases.map(({ version }) => version),
  );
  return releases;
}

function readRelease(field: Field): KubernetesRelease {
  const fields = readObject(field, ['version', 'release', 'nodeImage', 'digest']);
  const version = readVersion(fields.version);
  const release = readText(fields.release, /^1\.\d+\.\d+$/, 'a release such as "1.36.4"');
  const nodeImage = readText(fields.nodeImage, /^[^\s@]+:[^\s@:/]+$/, 'an image with a tag, without digest');
  if (!release.startsWith(`${version}.`)) throw fieldFault(fields.release, `a release of ${version}`);
  const digest = readOptional(fields.digest, (text) =>
    text.value === ''
      ? undefined
      : readText(text, /^sha256:[0-9a-f]{64}$/, '"" or "sha256:" and 64 hexadecimal digits'),
  );
  return { version, release, nodeImage, digest };
}

function readExclusion(field: Field): Exclusion {
  const fields = readObject(field, [...selectorFields, 'reason']);
  const selector = readSelector(fields);
  if (Object.values(selector).every((words) => words === undefined)) {
    throw new ConfigError('e2e.field', `${field.place}: names no cell, which would exclude all of them`);
  }
  return { ...selector, reason: readText(fields.reason, /\S+\s+\S+/, 'a reason, in words') };
}
