import { readFileSync } from 'node:fs';
import { loadScenario, runOnTable } from '@switchyard/scenarios';
import { expect, test } from 'vitest';

const text = readFileSync(new URL('../cart-drains.yaml', import.meta.url), 'utf8');

test.each(loadScenario('cart-drains', text))(
  'the forwarding table does what the scenario says: $ipFamily',
  (scenario) => {
    const { steps } = runOnTable(scenario);
    expect(steps.filter(({ isAsExpected }) => !isAsExpected)).toEqual([]);
    expect(steps).toHaveLength(4);
  },
);

test('without the draining pod the table disagrees with the scenario, in the lines that need it', () => {
  const [scenario] = loadScenario('cart-drains', text.replace('serving: true', 'serving: false'));
  const wrong = runOnTable(scenario!).steps.filter(({ isAsExpected }) => !isAsExpected);
  expect(wrong.map(({ line, observed }) => `line ${line}: ${observed}`)).toEqual(['line 17: drop']);
});
