import { describe, expect, test } from 'vitest';
import { scenarioCase } from '../testing/cases.ts';
import { chooseCases, globPattern } from './select-cases.ts';

const cases = [
  scenarioCase('scenario/etp-local/ipv4', { tags: ['scenario', 'smoke'] }),
  scenarioCase('scenario/etp-local/ipv6', { tags: ['scenario', 'slow'] }),
  scenarioCase('matrix/nodePort/Local/none/ipv6', { tags: ['matrix', 'udp'] }),
];
const ids = (globs: readonly string[], tags: readonly string[] = []): readonly string[] =>
  chooseCases(cases, { globs, tags }).map(({ id }) => id);

describe('globs', () => {
  test.each([
    { glob: 'scenario/*', id: 'scenario/etp-local/ipv4', isMatch: false },
    { glob: 'scenario/*/ipv4', id: 'scenario/etp-local/ipv4', isMatch: true },
    { glob: 'scenario/**', id: 'scenario/etp-local/ipv4', isMatch: true },
    { glob: '**/ipv4', id: 'scenario/etp-local/ipv4', isMatch: true },
    { glob: 'etp-local', id: 'scenario/etp-local/ipv4', isMatch: false },
    { glob: 'scenario/etp?local/ipv4', id: 'scenario/etp-local/ipv4', isMatch: true },
    { glob: 'scenario?etp-local/ipv4', id: 'scenario/etp-local/ipv4', isMatch: false },
    { glob: 'a.b', id: 'axb', isMatch: false },
    { glob: 'scenario/{sctp,etp-*}/ipv4', id: 'scenario/etp-local/ipv4', isMatch: true },
    { glob: 'scenario/{sctp,etp-*}/ipv4', id: 'scenario/cluster-ip/ipv4', isMatch: false },
    { glob: 'a,b', id: 'a,b', isMatch: true },
  ])('$glob for $id: $isMatch', ({ glob, id, isMatch }) => {
    expect(globPattern(glob).test(id)).toBe(isMatch);
  });
});

describe('chooseCases', () => {
  test.each([
    { globs: [], tags: [], count: 3 },
    { globs: ['scenario/**'], tags: [], count: 2 },
    { globs: ['scenario/**', 'matrix/**'], tags: ['!slow'], count: 2 },
    { globs: [], tags: ['smoke', 'udp'], count: 2 },
  ])('globs $globs with tags $tags: $count', ({ globs, tags, count }) => {
    expect(ids(globs, tags)).toHaveLength(count);
  });

  test('nothing that has all of it is no choice: it would be a run that passes without a case', () => {
    expect(() => ids(['scenario/**'], ['udp'])).toThrow('no case matches all of --case and --tag together');
  });

  test('a glob or a tag that fits nothing is a slip of the pen', () => {
    expect(() => ids(['scenaro/**'])).toThrow('no case is called scenaro/**');
    expect(() => ids([], ['slwo'])).toThrow('no case has the tag slwo; there are matrix, scenario, slow, smoke, udp');
    expect(() => ids([], ['!slwo'])).toThrow('no case has the tag slwo');
  });
});
