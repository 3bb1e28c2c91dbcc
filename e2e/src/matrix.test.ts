import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { expandMatrix, nodeImageOf, readMatrix } from './matrix.ts';

const text = readFileSync(new URL('../matrix.json', import.meta.url), 'utf8');
const valid = JSON.parse(text) as Record<string, unknown>;

/** The matrix of the checkout with one field replaced. */
function withField(name: string, value: unknown): string {
  return JSON.stringify({ ...valid, [name]: value }, null, 2);
}

const release = (valid['kubernetes'] as readonly Record<string, unknown>[])[0]!;

const faults: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  ['no JSON', '{ "backends": [', /^m\.json:1:\d+: /],
  [
    'another field',
    withField('backend', []),
    /^m\.json:\d+:\d+: backend: there is no such field, only backends, ipFamilies/,
  ],
  [
    'an unknown backend',
    withField('backends', ['nftables', 'ipvs']),
    /^m\.json:\d+:\d+: backends\[1\]: expected one of nftables, iptables, ebpf, found "ipvs"$/,
  ],
  ['no backend', withField('backends', []), /: backends: expected at least one, found \[\]$/],
  [
    'a family twice',
    withField('ipFamilies', ['ipv4', 'ipv4']),
    /: ipFamilies\[1\]: expected something that does not stand here already/,
  ],
  ['no list', withField('loadBalancers', 'none'), /: loadBalancers: expected a list, found "none"$/],
  [
    'a version as a number',
    withField('kubernetes', [{ ...release, version: 1.35 }]),
    /: kubernetes\[0\]\.version: expected a version such as "1\.36", as a text, found 1\.35$/,
  ],
  [
    'a release of another version',
    withField('kubernetes', [{ ...release, release: '1.34.1' }]),
    /: kubernetes\[0\]\.release: expected a release of 1\.35, found "1\.34\.1"$/,
  ],
  [
    'a digest that is cut off',
    withField('kubernetes', [{ ...release, digest: 'sha256:12' }]),
    /: kubernetes\[0\]\.digest: expected "" or "sha256:" and 64 hexadecimal digits/,
  ],
  [
    'an image with its digest',
    withField('kubernetes', [{ ...release, nodeImage: 'a/b:v1@sha256:12' }]),
    /nodeImage: expected an image with a tag, without digest/,
  ],
  [
    'a version twice',
    withField('kubernetes', [release, { ...release, release: '1.35.1' }]),
    /: kubernetes\[1\]: expected something that does not stand here already/,
  ],
  [
    'an exclusion without a reason',
    withField('exclude', [{ backend: ['ebpf'] }]),
    /: exclude\[0\]\.reason: expected a reason, in words, found nothing$/,
  ],
  [
    'a reason of one word',
    withField('exclude', [{ backend: ['ebpf'], reason: 'broken' }]),
    /: exclude\[0\]\.reason: expected a reason, in words/,
  ],
  [
    'an exclusion of everything',
    withField('exclude', [{ reason: 'because of this' }]),
    /: exclude\[0\]: names no cell, which would exclude all of them$/,
  ],
  [
    'a focus that is no name',
    withField('upstreamFocus', ['Services']),
    /: upstreamFocus\[0\]: expected the beginning of a test's name/,
  ],
];

describe('the matrix', () => {
  test.each(faults)('is refused with the place: %s', (_, wrong, message) => {
    expect(() => readMatrix('m.json', wrong)).toThrow(message);
  });

  test('names line and column', () => {
    const wrong = '{\n  "backends": ["nftables"],\n  "ipFamilies": ["ipv5"]\n}';
    expect(() => readMatrix('m.json', wrong)).toThrow(
      /^m\.json:3:18: ipFamilies\[0\]: expected one of ipv4, ipv6, dual, found "ipv5"$/,
    );
  });

  test('has all backends with all families and versions, and a reason for what is left out', () => {
    const { cells, excluded } = expandMatrix(readMatrix('e2e/matrix.json', text));
    const points = new Set(cells.map(({ backend, ipFamily, kubernetes }) => `${backend} ${ipFamily} ${kubernetes}`));
    expect(points.size).toBe(3 * 3 * 3);
    expect(cells.length + excluded.length).toBe(3 * 3 * 3 * 2);
    expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length);
    expect(cells.map(({ id }) => id)).toContain('ebpf-ipv6-1.36-switchyard');
  });

  test('an exclusion that excludes nothing is refused', () => {
    const exclude = [
      { backend: ['ebpf'], reason: 'not this one' },
      { backend: ['ebpf'], ipFamily: ['ipv6'], reason: 'has gone already' },
    ];
    const matrix = readMatrix('m.json', withField('exclude', exclude));
    expect(() => expandMatrix(matrix)).toThrow('exclude[1] of the e2e matrix excludes no cell that is left; remove it');
  });

  test.each([
    ['sha256:'.padEnd(71, '0'), `kindest/node:v1.35.8@sha256:${'0'.repeat(64)}`],
    ['', 'kindest/node:v1.35.8'],
  ])('a digest %j makes the image %s', (digest, image) => {
    const { kubernetes } = readMatrix('m.json', withField('kubernetes', [{ ...release, digest }]));
    expect(nodeImageOf(kubernetes[0]!)).toBe(image);
  });
});
