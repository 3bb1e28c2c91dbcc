import { parseCidr, type PodDetector, type SourceClass } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { matchesOf, matchOf, type SourceMatch } from './source-match.ts';

/** A sender as the kernel sees it, and its class where pods are distinguished. */
const senders = [
  { name: 'a pod', isPod: true, isLocal: false, source: 'pod' },
  { name: 'a pod with an address of the node', isPod: true, isLocal: true, source: 'pod' },
  { name: 'the node', isPod: false, isLocal: true, source: 'node' },
  { name: 'a sender outside', isPod: false, isLocal: false, source: 'outside' },
] as const;

const detectors: readonly PodDetector[] = [
  { kind: 'none' },
  { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') },
  { kind: 'interface', name: 'cni0' },
  { kind: 'interfacePrefix', prefix: 'veth' },
];

const subsets: readonly (readonly SourceClass[])[] = [
  [],
  ['pod'],
  ['node'],
  ['outside'],
  ['pod', 'node'],
  ['pod', 'outside'],
  ['node', 'outside'],
  ['pod', 'node', 'outside'],
];

/** Evaluates a match as iptables does. */
function holds(match: SourceMatch, sender: (typeof senders)[number]): boolean {
  return [match.address, match.incoming, match.type]
    .filter((text) => text !== '')
    .every((text) => (text.includes('--src-type') ? sender.isLocal : sender.isPod) !== text.includes('!'));
}

describe.each(detectors)('pods told by $kind', (detector) => {
  test.each(subsets.map((classes) => ({ classes, words: classes.join(' and ') || 'no class' })))(
    'rules for $words match no other sender',
    ({ classes }) => {
      const matches = matchesOf(new Set(classes), detector);
      for (const sender of senders) {
        const source = detector.kind === 'none' && sender.isPod ? (sender.isLocal ? 'node' : 'outside') : sender.source;
        expect(
          matches.some((match) => holds(match, sender)),
          sender.name,
        ).toBe(classes.includes(source));
      }
    },
  );
});

test.each([
  [{ kind: 'cidr', cidr: parseCidr('fd00::/64') }, '-s fd00::/64', ''],
  [{ kind: 'interface', name: 'cni0' }, '', '-i cni0'],
  [{ kind: 'interfacePrefix', prefix: 'veth' }, '', '-i veth+'],
  [{ kind: 'interfacePrefix', prefix: 'a23456789012345' }, '', '-i a23456789012345'],
] as const)('pods told by %o', (detector, address, incoming) => {
  expect(matchOf('pod', detector)).toEqual({ address, incoming, type: '' });
});
