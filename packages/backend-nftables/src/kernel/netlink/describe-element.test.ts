import { readMessages } from '@switchyard/native';
import { NFT_MSG } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import type { Change } from '../../render/elements.ts';
import { describeElement } from './describe-element.ts';
import { BatchEncoder } from './encode-batch.ts';

test.each<[Change, string, string]>([
  [{ kind: 'replace', object: 'pod-interfaces4', content: ['"cni0"'] }, 'pod-interfaces4', ''],
  [{ kind: 'replace', object: 'pod-cidrs6', content: ['fd00::/8'] }, 'pod-cidrs6', '::'],
  [{ kind: 'add', id: 'cluster-ips4 10.96.0.1', data: '' }, 'cluster-ips4', '10.96.0.1'],
])('%j, of %s', (change, set, text) => {
  expect(describeElement(set, attributesOf(change))).toBe(text);
});

test('the name of an interface ends at its first zero', () => {
  const bytes = Buffer.from(attributesOf({ kind: 'replace', object: 'pod-interfaces4', content: ['"cni0"'] }));
  // The first boundary is that of the stretch below: give it the name of the second.
  const name = bytes.indexOf('cni0');
  const header = Buffer.of(20, 0, 1, 0); // of a value of 16 bytes
  const first = bytes.indexOf(header) + header.length;
  bytes.copy(bytes, first, name, name + 16);
  expect(describeElement('pod-interfaces4', bytes)).toBe('cni0');
});

/** Notices of the kernel have the attributes of the request. */
function attributesOf(change: Change): Uint8Array {
  const { bytes } = new BatchEncoder().changes({ table: 'switchyard', changes: [change] });
  const message = [...readMessages(bytes)].find(({ type }) => type === NFT_MSG.NEWSETELEM);
  if (message === undefined) throw new Error('nothing is added');
  return bytes.slice(message.start + 4, message.end);
}
