import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { writeReport } from '../report/read-report.ts';
import { aCase, aFailedCheck, aReport, aRun } from '../testing/report-builders.ts';
import { pagesCommand, publishCommand, type PublishIo, verifyCommand } from './commands.ts';

const about = [
  '--project=kube-proxy',
  '--project-version=v1.36.2',
  '--organization=Kubernetes',
  '--url=https://kubernetes.io',
];
let held: Map<string, string>;
let printed: string;
let io: PublishIo;

beforeEach(() => {
  const run = aRun({ cases: [aCase({ id: 'scenario/sctp/ipv4' })] });
  const wrong = aRun({ cases: [aCase({ id: 'scenario/sctp/ipv4', status: 'failed', checks: [aFailedCheck()] })] });
  held = new Map([
    ['run.json', writeReport(aReport(run))],
    ['wrong.json', writeReport(aReport(wrong))],
    ['both.json', writeReport(aReport(run, aRun({ proxy: 'ebpf-tc' })))],
  ]);
  printed = '';
  io = {
    readText: async (file) => {
      const text = held.get(file);
      if (text === undefined) throw new Error('ENOENT: no such file');
      return text;
    },
    writeText: async (file, text) => void held.set(file, text),
    listFolder: async (folder) =>
      [...held.keys()].filter((name) => name.startsWith(`${folder}/`)).map((name) => name.slice(folder.length + 1)),
    print: (text) => void (printed += text),
    colours: false,
  };
});

/** Private and public key as PEM. */
function newKeys(): readonly [string, string] {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return [
    privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  ];
}

test('publish writes a report that verify accepts', async () => {
  expect(await publishCommand(['run.json', ...about, '--contact=@sig-network', '--out=r/a.yaml'], io)).toBe(0);
  expect(printed).toBe('r/a.yaml: Core success\n');
  expect(held.get('r/a.yaml')).toMatch(
    /^apiVersion: conformance\.switchyard\.dev\/v1alpha1\nkind: ServiceProxyConformanceReport\n/,
  );
  expect(held.get('r/a.yaml')).toContain(
    'reproduce: sudo ./dev conformance --backend nftables --ip-family dual --seed 1',
  );
  printed = '';
  expect(await verifyCommand(['r/a.yaml'], io)).toBe(0);
  expect(printed).toBe('r/a.yaml: unchanged: Core success\n');
});

test('a report that someone edited is refused', async () => {
  await publishCommand(['wrong.json', ...about, '--out=r/a.yaml'], io);
  held.set('r/a.yaml', (held.get('r/a.yaml') ?? '').replace('result: failure', 'result: success'));
  await expect(verifyCommand(['r/a.yaml'], io)).rejects.toThrow(
    /r\/a\.yaml: was changed after it was written: its digest is sha256:\w+, not sha256:/,
  );
});

test('a signed report is of its key alone', async () => {
  const [[privateKey, publicKey], [, other]] = [newKeys(), newKeys()];
  held.set('key.pem', privateKey).set('own.pem', publicKey).set('other.pem', other);
  await publishCommand(['run.json', ...about, '--sign-key=key.pem', '--out=r/a.yaml'], io);
  await verifyCommand(['r/a.yaml', '--key=own.pem'], io);
  expect(printed).toMatch(/unchanged, signed: Core success\n$/);
  await expect(verifyCommand(['r/a.yaml', '--key=other.pem'], io)).rejects.toThrow(
    'its signature is not of the given key',
  );
  await publishCommand(['run.json', ...about, '--out=r/b.yaml'], io);
  await expect(verifyCommand(['r/b.yaml', '--key=own.pem'], io)).rejects.toThrow('has no signature');
  held.set(
    'r/a.yaml',
    (held.get('r/a.yaml') ?? '').replace(/value: "?[\w+/]{8}/, (found) => `${found.slice(0, -8)}AAAAAAAA`),
  );
  await expect(verifyCommand(['r/a.yaml'], io)).rejects.toThrow('its signature is not of the key that it names');
});

test('pages shows all reports of a folder, with a badge each', async () => {
  await publishCommand(['run.json', ...about, '--out=r/right.yaml'], io);
  await publishCommand(['wrong.json', ...about, '--mode=iptables', '--out=r/wrong.yaml'], io);
  expect(await pagesCommand(['r'], io)).toBe(0);
  const page = held.get('r/README.md') ?? '';
  expect(page).toMatch(/^\| \[kube-proxy v1\.36\.2, nftables\]\(right\.yaml\) \| 1\/1 \| not run \|/m);
  expect(page).toMatch(/^\| \[kube-proxy v1\.36\.2, iptables\]\(wrong\.yaml\) \| \*\*0\/1\*\* \|/m);
  expect(page).toMatch(/^\| `scenario\/sctp\/ipv4` \| Core, required \| .*saw drop \|$/m);
  expect(held.get('r/badges/right.svg')).toContain('aria-label="Service proxy conformance: Core"');
  expect(held.get('r/badges/wrong.svg')).toContain('Service proxy conformance: no whole profile');
});

test.each([
  [publishCommand, ['run.json'], /^publish: give --organization\n\nswitchyard-conformance publish FILE/],
  [publishCommand, [], /^publish takes one FILE\.json; got 0/],
  [publishCommand, ['both.json', ...about], /it holds runs of 2 proxies or cells/],
  [publishCommand, ['none.json', ...about], /^reading none\.json: ENOENT/],
  [
    publishCommand,
    ['run.json', ...about, '--sign-key=run.json'],
    /^the key to sign with is not the PEM text of an Ed25519 private key/,
  ],
  [verifyCommand, [], /^verify: no file given/],
  [verifyCommand, ['run.json'], /^run\.json: not a ServiceProxyConformanceReport: apiVersion: /],
  [pagesCommand, ['empty'], /^empty has no report/],
  [pagesCommand, ['--all'], /Unknown option '--all'/],
])('%o %j is refused with the reason', async (command, args, message) => {
  await expect(command(args, io)).rejects.toThrow(message);
});

test.each([publishCommand, verifyCommand, pagesCommand])('%o --help prints how it is used', async (command) => {
  expect(await command(['--help'], io)).toBe(0);
  expect(printed).toContain('switchyard-conformance pages FOLDER');
});
