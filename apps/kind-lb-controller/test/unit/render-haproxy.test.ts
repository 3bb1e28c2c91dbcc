import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seconds } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleClusters, renderExample, twoNodes } from '../../src/testing/example-cluster.ts';

const examples = Object.entries(exampleClusters);
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(examples)('%s', (name, cluster) => {
  test('renders the golden configuration', async () => {
    await expect(renderExample(cluster).text).toMatchFileSnapshot(`../golden/${name}.cfg`);
  });

  test('is accepted by the real HAProxy', async () => {
    const file = join(folder, `${name}.cfg`);
    writeFileSync(file, renderExample(cluster).text);
    const options = { timeout: seconds(9), signal: new AbortController().signal };
    const env = { PATH: `${process.env['PATH']}:/usr/sbin` };
    const result = await createCommandRunner().run('haproxy', ['-c', '-f', file], { ...options, env });
    expect(result.stderr.replace(/.*state file.*No such file.*\n/, '')).not.toMatch(/ALERT|WARNING/);
    expect(result.exitCode).toBe(0);
  });

  test('does not depend on the order of the input', () => {
    const reversed = {
      ...cluster,
      services: [...cluster.services].reverse(),
      nodes: [...(cluster.nodes ?? twoNodes)].reverse(),
    };
    expect(renderExample(reversed)).toEqual(renderExample(cluster));
  });
});

test('servers tell what health may be carried over a reload', () => {
  const [, localPolicy] = examples.find(([name]) => name === 'local-policy')!;
  expect(renderExample(localPolicy).servers).toEqual([
    { backend: 'default:zeroapp:80:ipv4', name: 'node1', address: '172.18.0.11', port: 30080, checkPort: 32080 },
    { backend: 'default:zeroapp:80:ipv4', name: 'node2', address: '172.18.0.12', port: 30080, checkPort: 32080 },
  ]);
});
