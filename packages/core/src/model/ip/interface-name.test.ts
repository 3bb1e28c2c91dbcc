import { expect, test } from 'vitest';
import { interfaceNameFault } from './interface-name.ts';

test.each([
  ['cni0', undefined],
  ['eth0.100', undefined],
  ['a23456789012345', undefined],
  ['br-ä', undefined],
  ['', 'it is empty'],
  ['a234567890123456', 'it is longer than 15 bytes'],
  ['ääääääää', 'it is longer than 15 bytes'],
  ['..', 'no interface can be called so'],
  ['veth*', 'no interface can have "*" in its name'],
  ['a b', 'no interface can have " " in its name'],
  ['a/b', 'no interface can have "/" in its name'],
  ['eth0:1', 'no interface can have ":" in its name'],
  ['a"', 'no interface can have "\\"" in its name'],
  ['a\\', 'no interface can have "\\\\" in its name'],
  ['a\n', 'no interface can have "\\n" in its name'],
])('%j: %s', (name, fault) => {
  expect(interfaceNameFault(name)).toBe(fault);
});
