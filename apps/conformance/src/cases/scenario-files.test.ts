import { describe, expect, test } from 'vitest';
import { readScenarioFiles } from './scenario-files.ts';

const good = `name: n
why: w
given:
  services:
    - { name: shop/cart, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
steps:
  - { from: pod, to: '10.96.0.10:80/TCP', expect: reject }
`;
const files = new Map([
  ['dir/cart.yaml', good],
  ['other/cart.yml', good],
  ['Cart_1.yaml', good],
  ['matrix-cart.yaml', good],
  ['no-yaml.yaml', 'name: [n'],
  ['typo.yaml', good.replace('why: w', 'why: w\nwhat: x')],
]);

async function readText(file: string): Promise<string> {
  const text = files.get(file);
  if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${file}'`);
  return text;
}

describe('readScenarioFiles', () => {
  test('names a scenario after its file', async () => {
    const found = await readScenarioFiles(['dir/cart.yaml'], readText);
    expect(found.map(({ id, source }) => ({ id, source }))).toEqual([{ id: 'cart', source: 'dir/cart.yaml' }]);
  });

  test.each([
    [['none.yaml'], /^cannot read the scenario none\.yaml: ENOENT.*; give the path of a YAML file$/],
    [['dir/cart.yaml', 'other/cart.yml'], /^dir\/cart\.yaml and other\/cart\.yml are both called cart; rename one$/],
    [['Cart_1.yaml'], /^Cart_1\.yaml: the name of a scenario consists of a-z, 0-9 and -/],
    [['matrix-cart.yaml'], /^matrix-cart\.yaml: names that begin with matrix-/],
    [['no-yaml.yaml'], /^no-yaml\.yaml:\d+: /],
    [['typo.yaml'], /^typo\.yaml:3: what: /],
  ])('refuses %j with what to do', async (names, message) => {
    await expect(readScenarioFiles(names, readText)).rejects.toThrow(message);
    await expect(readScenarioFiles(names, readText)).rejects.toMatchObject({ name: 'ConfigError' });
  });
});
