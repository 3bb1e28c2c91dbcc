import { parseYaml } from '@switchyard/core/manifests';
import { expect, test } from 'vitest';
import { yamlText } from './yaml-text.ts';

const value = {
  spec: {
    minReadySeconds: 3,
    template: {
      spec: {
        containers: [
          { name: 'app', lifecycle: { preStop: { exec: null, sleep: { seconds: 17 } } }, env: [] },
          { name: 'on', command: ['sh', '-c', 'sleep 2; exec "$@"', 'null', '5', 'a: b', '- x', ''] },
        ],
      },
    },
  },
};

test('is read as the same value', () => {
  expect(parseYaml(yamlText(value))).toMatchObject([{ value, errors: [] }]);
});

test('has a line for each value', () => {
  expect(yamlText({ a: [{ name: 'x', b: { c: 1 } }, 'z'], d: 'two words' })).toBe(
    'a:\n  - name: x\n    b:\n      c: 1\n  - z\nd: "two words"\n',
  );
});
