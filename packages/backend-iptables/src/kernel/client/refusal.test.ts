import { describe, expect, test } from 'vitest';
import { parseRefusal, type RefusalKind } from './refusal.ts';

/** Real output of the programs. */
const texts: readonly (readonly [string, string, RefusalKind, number | undefined])[] = [
  [
    'nft, a chain to jump to that does not exist',
    `iptables-nft-restore v1.8.9 (nf_tables): Chain 'B' does not exist
Error occurred at line: 4
Try \`iptables-nft-restore -h' or 'iptables-nft-restore --help' for more information.
`,
    'rules',
    4,
  ],
  [
    'nft, a rule for a chain that does not exist',
    'iptables-nft-restore: line 4 failed: No chain/target/match by that name.\n',
    'rules',
    4,
  ],
  [
    'nft, an option that does not exist',
    `iptables-nft-restore v1.8.9 (nf_tables): unknown option "--dportx"
Error occurred at line: 3
Try \`iptables-nft-restore -h' or 'iptables-nft-restore --help' for more information.
`,
    'rules',
    3,
  ],
  [
    'nft, a match that does not exist',
    `iptables-nft-restore v1.8.9 (nf_tables): Couldn't load match \`nosuch':No such file or directory

Error occurred at line: 3
Try \`iptables-nft-restore -h' or 'iptables-nft-restore --help' for more information.
`,
    'rules',
    3,
  ],
  [
    'nft, a rule that the kernel refuses',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (Invalid argument): rule in chain A\n',
    'rules',
    3,
  ],
  [
    'nft, several that it refuses: the first counts',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_APPEND failed (No such file or directory): rule in chain A\n' +
      'line 9: RULE_APPEND failed (Invalid argument): rule in chain B\n',
    'rules',
    3,
  ],
  [
    'nft, a loop of chains',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 6: RULE_APPEND failed (Too many links): rule in chain PREROUTING\n',
    'rules',
    6,
  ],
  [
    'nft, a chain to delete that is in use: it will be at the next try',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 5: CHAIN_DEL failed (Device or resource busy): chain B\n',
    'rules',
    5,
  ],
  [
    'nft before 1.8.8, a chain to delete that is in use',
    'iptables-restore v1.8.7 (nf_tables): \nline 5: CHAIN_USER_DEL failed (Device or resource busy): chain B\n',
    'rules',
    5,
  ],
  [
    'nft, another process writing',
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: RULE_REPLACE failed (Resource temporarily unavailable): rule in chain A\n',
    'changed',
    3,
  ],
  [
    'nft, not root',
    'iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)\n',
    'permission',
    undefined,
  ],
  [
    'nft, a kernel without it',
    'iptables-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Invalid argument\n',
    'tables',
    undefined,
  ],
  ['nft, no end of a table', 'iptables-nft-restore: COMMIT expected at line 4\n', 'rules', undefined],
  [
    'nft, with remarks before the reason',
    '# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n' +
      'Warning: Extension nfacct revision 0 not supported, missing kernel module?\n' +
      'iptables-restore v1.8.8 (nf_tables): \nline 3: RULE_APPEND failed (No such file or directory): rule in chain KUBE-FORWARD\n',
    'rules',
    3,
  ],
  ['legacy, every refusal of the kernel: COMMIT', 'iptables-restore: line 7 failed\n', 'rules', 7],
  [
    'legacy, a chain to jump to that does not exist',
    `Ignoring deprecated --wait-interval option.
iptables-restore v1.8.9 (legacy): Couldn't load target \`B':No such file or directory

Error occurred at line: 3
Try \`iptables-restore -h' or 'iptables-restore --help' for more information.
`,
    'rules',
    3,
  ],
  [
    'legacy, the lock held by another',
    "Can't lock /run/xtables.lock: Resource temporarily unavailable\n" +
      'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n',
    'locked',
    undefined,
  ],
  [
    'legacy before 1.8.8, the lock held by another',
    'Another app is currently holding the xtables lock; still 1s 0us time ahead to have a chance to grab the lock...\n' +
      'Another app is currently holding the xtables lock. Stopped waiting after 5s.\n',
    'locked',
    undefined,
  ],
  [
    'legacy, a right or a module missing',
    `iptables-restore v1.8.9 (legacy): iptables-restore: unable to initialize table 'nat'
Error occurred at line: 1
Try \`iptables-restore -h' or 'iptables-restore --help' for more information.
`,
    'tables',
    1,
  ],
  ['legacy, not root', "Fatal: can't open lock file /run/xtables.lock: Permission denied\n", 'permission', undefined],
  [
    'legacy, a file system that is not written',
    "Fatal: can't open lock file /run/xtables.lock: Read-only file system\n",
    'tables',
    undefined,
  ],
  [
    'legacy, not root, reading',
    'iptables-save v1.8.9 (legacy): Cannot initialize: Permission denied (you must be root)\n',
    'permission',
    undefined,
  ],
  ['nothing', '', 'rules', undefined],
];

test.each(texts)('%s', (_, stderr, kind, line) => {
  const refusal = parseRefusal(stderr);
  expect({ kind: refusal.kind, line: refusal.line }).toEqual({ kind, line });
});

describe('what was said', () => {
  test('is one line without remarks', () => {
    const [, stderr] = texts[15] as (typeof texts)[number];
    expect(parseRefusal(stderr).said).toBe(
      "iptables-restore v1.8.9 (legacy): Couldn't load target `B':No such file or directory | Error occurred at line: 3",
    );
  });

  test.each([
    [
      'a module',
      'Warning: Extension nfacct revision 0 not supported, missing kernel module?\nline 3 failed\n',
      'the kernel lacks the module for nfacct (xt_nfacct)',
    ],
    [
      'a right',
      'Cannot initialize: Permission denied (you must be root)',
      'run with CAP_NET_ADMIN, for the legacy variant with CAP_NET_RAW too',
    ],
    [
      'the lock file',
      "Fatal: can't open lock file /run/xtables.lock: Read-only file system",
      'mount /run/xtables.lock of the host so that it can be written',
    ],
    ['nothing', 'iptables-restore: line 7 failed', ''],
  ])('comes with advice where %s is missing', (_, stderr, advice) => {
    expect(parseRefusal(stderr).advice).toBe(advice);
  });
});
