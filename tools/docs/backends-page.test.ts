import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { allScenarios } from '@switchyard/scenarios';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Rows of the tables of differences: what stands in their last cell. */
function pins(): readonly string[] {
  const [, ...tables] = readFileSync(`${root}/docs/design/backends.md`, 'utf8').split('| pinned by |\n');
  const rows = tables.flatMap((table) => table.split('\n\n')[0]?.split('\n').slice(1) ?? []);
  return rows.map((row) => row.split('|').at(-2) ?? '');
}

const named = (pin: string): readonly string[] => [...pin.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

test(
  'every difference between the backends names a scenario or a test, and each of these is there',
  { timeout: 60_000 },
  () => {
    const ids = new Set(allScenarios().map(({ id }) => id));
    const tests = globSync('{packages,apps}/*/{src,test}/**/*.test.ts', { cwd: root });
    const isThere = (name: string): boolean => ids.has(name) || tests.some((path) => path.endsWith(name));
    expect(pins().length).toBeGreaterThan(20);
    expect(pins().filter((pin) => named(pin).length === 0 && !/contract suite|goldens/.test(pin))).toEqual([]);
    const missing = pins()
      .flatMap(named)
      .filter((name) => !isThere(name) && !name.startsWith('./dev '));
    expect(missing).toEqual([]);
  },
);

test('a scenario with an expectation for each dataplane stands in the page', () => {
  const page = readFileSync(`${root}/docs/design/backends.md`, 'utf8');
  const folder = `${root}/packages/scenarios/scenarios`;
  const different = globSync('*.yaml', { cwd: folder }).filter((file) =>
    /nftables: .*iptables: /.test(readFileSync(`${folder}/${file}`, 'utf8')),
  );
  expect(different.length).toBeGreaterThan(5);
  const ids = different.map((file) => file.replace('.yaml', ''));
  expect(ids.filter((id) => !page.includes(`\`${id}\``))).toEqual([]);
});
