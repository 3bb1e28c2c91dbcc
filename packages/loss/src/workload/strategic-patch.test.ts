import { expect, test } from 'vitest';
import { applyPatch } from './strategic-patch.ts';

const object = {
  spec: {
    replicas: 2,
    containers: [
      { name: 'app', lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } }, args: ['a', 'b'] },
      { name: 'sidecar' },
    ],
  },
};

test.each<[what: string, patch: object, expected: object]>([
  ['a value', { replicas: 3 }, { ...object.spec, replicas: 3 }],
  ['a field with null', { replicas: null }, { containers: object.spec.containers }],
  [
    'an element by its name',
    { containers: [{ name: 'sidecar', image: 'x' }] },
    { ...object.spec, containers: [object.spec.containers[0], { name: 'sidecar', image: 'x' }] },
  ],
  [
    'an element that is not there',
    { containers: [{ name: 'new' }] },
    { ...object.spec, containers: [...object.spec.containers, { name: 'new' }] },
  ],
  [
    'the action of a hook, and a list without names',
    { containers: [{ name: 'app', lifecycle: { preStop: { exec: null, sleep: { seconds: 3 } } }, args: ['c'] }] },
    {
      ...object.spec,
      containers: [
        { name: 'app', lifecycle: { preStop: { sleep: { seconds: 3 } } }, args: ['c'] },
        object.spec.containers[1],
      ],
    },
  ],
])('a patch changes %s, and nothing else', (_, patch, expected) => {
  expect(applyPatch(object, { spec: patch })).toEqual({ spec: expected });
});
