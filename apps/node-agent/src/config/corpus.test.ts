import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig, type RunConfig } from '../config.ts';
import { proxyModes } from './proxy-mode.ts';
import { kubeProxySchema } from './schema/kube-proxy-fields.ts';
import { ConfigFolder } from './testing/config-folder.ts';
import { corpus, type CorpusEntry, withMode } from './testing/corpus.ts';
import { kubeadmFileOf, kubeadmMinors } from './testing/kubeadm-file.ts';
import { fileOfTexts, legalValuesOf, pathsWithTexts } from './testing/legal-values.ts';

let folder: ConfigFolder;

beforeAll(async () => {
  folder = await ConfigFolder.create();
});

afterAll(() => folder[Symbol.asyncDispose]());

async function load(file: string | undefined, flags: readonly string[]): Promise<RunConfig> {
  const args = file === undefined ? [] : [`--config=${await folder.write('config.conf', file)}`];
  const config = await loadConfig([...args, ...flags], {});
  if (config.kind !== 'run') throw new Error(`not a run: ${config.kind}`);
  return config;
}

/** An entry with another mode than its own. */
function inMode({ file, flags = [] }: CorpusEntry, mode: string): readonly [string | undefined, readonly string[]] {
  return file === undefined ? [file, [...flags, `--proxy-mode=${mode}`]] : [withMode(file, mode), flags];
}

function warningsOf({ notes }: RunConfig): readonly string[] {
  return notes.filter(({ level }) => level === 'warn').map(({ message }) => message);
}

const modeIsNotSet = 'Using iptables proxy';

describe.each(corpus.map((entry) => [entry.name, entry] as const))('%s', (_, entry) => {
  const warnings = entry.warnings ?? [];

  test('loads as it is', async () => {
    const config = await load(entry.file, entry.flags ?? []);
    expect(warningsOf(config).filter((message) => message !== modeIsNotSet)).toEqual(warnings);
  });

  test.each(proxyModes())('loads with mode %s, which is in force', async (mode) => {
    const config = await load(...inMode(entry, mode));
    expect(config.mode).toBe(mode);
    expect(warningsOf(config)).toEqual(warnings);
  });
});

describe("kubeadm's files", () => {
  test.each(kubeadmMinors)('1.%d warns of a missing mode before 1.37 only', async (minor) => {
    const config = await load(kubeadmFileOf(minor), []);
    expect(warningsOf(config)).toEqual(minor < 37 ? [modeIsNotSet] : []);
  });

  test.each([
    [26, /^logging:|^nftables:|udpTimeout.*\n +udpStreamTimeout|tcpBeLiberal|text:/m, false],
    [
      28,
      /^logging:\n {2}flushFrequency: 0\n {2}options:\n {4}json:\n {6}infoBufferSize: "0"\n {2}verbosity: 0$/m,
      true,
    ],
    [29, /^nftables:\n/m, true],
    [30, /^ {4}text:\n {6}infoBufferSize: "0"\n {2}verbosity: 0$/m, true],
    [36, /^mode: ""$/m, true],
    [37, /^mode: iptables$/m, true],
  ])('1.%d and what it writes: %s', (minor, pattern, isThere) => {
    expect(pattern.test(kubeadmFileOf(minor))).toBe(isThere);
  });
});

describe('legal values', () => {
  test('every field has at least one besides null, and no row is without a field', () => {
    const rowless = kubeProxySchema.fields.filter((field) => legalValuesOf(field).length < 2);
    expect(rowless.map(({ path }) => path)).toEqual([]);
    const paths = new Set(kubeProxySchema.fields.map(({ path }) => path));
    expect(pathsWithTexts.filter((path) => !paths.has(path))).toEqual([]);
  });

  test('octets with leading zeros are decimal, as kube-proxy reads them', async () => {
    const texts = {
      mode: 'nftables',
      bindAddress: '010.000.0.010',
      healthzBindAddress: '010.0.0.100:10256',
      clusterCIDR: '010.020.0.0/16',
      nodePortAddresses: '[192.000.002.0/24]',
    };
    expect(await load(fileOfTexts(kubeProxySchema, texts), [])).toMatchObject({
      bindAddress: '10.0.0.10',
      healthz: { address: '10.0.0.100', port: 10_256 },
      detectLocal: { kind: 'clusterCIDR', cidrs: { IPv4: '10.20.0.0/16' } },
      nodePortAddresses: { cidrs: ['192.0.2.0/24'] },
    });
  });

  describe.each(proxyModes())('in mode %s', (mode) => {
    const rows = kubeProxySchema.fields.flatMap((field) => legalValuesOf(field));
    test.each(rows.map((row) => [row.path, row.text, row] as const))('%s: %s', async (path, text, { beside }) => {
      const base = { mode, 'clientConnection.kubeconfig': '/k', ...beside };
      await expect(load(fileOfTexts(kubeProxySchema, { ...base, [path]: text }), [])).resolves.toMatchObject({
        kind: 'run',
      });
    });
  });
});
