import { expect, test } from 'vitest';
import { aCase, aCheck, aFailedCheck, aReport, aRun } from '../testing/report-builders.ts';
import { diffCommand, reportCommand, writeReports } from './commands.ts';
import { readReport, writeReport } from './read-report.ts';

const a = aReport(aRun(), aRun({ proxy: 'ebpf-tc' }));
const b = aReport(aRun({ cases: [aCase({ checks: [aFailedCheck()] })] }));

/** Files in memory, and what was printed. */
function files(over: Readonly<Record<string, string>> = {}) {
  const held = new Map(Object.entries({ 'a.json': writeReport(a), 'b.json': writeReport(b), ...over }));
  const printed: string[] = [];
  const io = {
    readText: (file: string) => {
      const text = held.get(file);
      return text === undefined ? Promise.reject(new Error('ENOENT: no such file')) : Promise.resolve(text);
    },
    writeText: (file: string, text: string) =>
      file.startsWith('/')
        ? Promise.reject(new Error('EROFS: read-only file system'))
        : Promise.resolve(void held.set(file, text)),
    print: (text: string) => void printed.push(text),
    colours: false,
  };
  return { io, held, printed };
}

test('report: several files become one, and all requested kinds of pages are written', async () => {
  const { io, held, printed } = files();
  expect(
    await reportCommand(['a.json', 'b.json', '--html', 'all.html', '--junit=all.xml', '--json', 'all.json'], io),
  ).toBe(0);
  expect(printed).toEqual([]);
  expect(held.get('all.html')).toMatch(/^<!doctype html>/);
  expect(held.get('all.xml')).toMatch(/^<\?xml /);
  const merged = readReport('all.json', held.get('all.json') ?? '');
  expect(merged.runs.map(({ proxy, round }) => `${proxy.name} ${round}`)).toEqual([
    'nftables 1',
    'ebpf-tc 1',
    'nftables 2',
  ]);
});

test.each([
  { args: ['a.json'], prints: true },
  { args: ['a.json', '--text', '--html', 'x.html'], prints: true },
  { args: ['a.json', '--html', 'x.html'], prints: false },
])('report $args prints a summary: $prints', async ({ args, prints }) => {
  const { io, printed } = files();
  await reportCommand(args, io);
  expect(printed.join('')).toMatch(prints ? /2 passed, 0 failed, 0 skipped, 0 errors in 1 min 05 s\n$/ : /^$/);
});

test('diff: exit status 1 and the matrix when something differs, and the same in files', async () => {
  const { io, held, printed } = files();
  expect(await diffCommand(['a.json#nftables', 'b.json', '--json', 'd.json', '--html', 'd.html'], io)).toBe(1);
  expect(printed.join('')).toContain('outside to 198.51.100.7:80/TCP  forward to 10.244.1.5  drop !');
  expect(held.get('d.json')).toContain('"switchyard-conformance-diff/1"');
  expect(held.get('d.html')).toMatch(/^<!doctype html>/);
});

test('diff: two runs of the same file, and exit status 0 when nothing differs', async () => {
  const { io, printed } = files();
  expect(await diffCommand(['a.json#nftables', 'a.json#ebpf-tc'], io)).toBe(0);
  expect(printed).toEqual(['1 checks of 1 cases are equal, 0 differ\n']);
});

test.each([
  { command: reportCommand, args: [], message: /^report: no file given\n\nswitchyard-conformance report FILE/ },
  { command: reportCommand, args: ['a.json', '--pdf', 'x'], message: /Unknown option '--pdf'/ },
  { command: reportCommand, args: ['c.json'], message: /^reading c\.json: ENOENT/ },
  { command: reportCommand, args: ['a.json', '--html', '/x.html'], message: /^writing \/x\.html: EROFS/ },
  { command: diffCommand, args: ['b.json'], message: /^diff: compares two runs, and 1 given/ },
  { command: diffCommand, args: ['b.json', 'b.json', 'b.json'], message: /and 3 given/ },
  {
    command: diffCommand,
    args: ['b.json', 'a.json'],
    message: /^comparing a\.json: it holds runs of 2 proxies or cells/,
  },
])('$args is refused in words', async ({ command, args, message }) => {
  await expect(command(args, files().io)).rejects.toThrow(message);
});

test.each([reportCommand, diffCommand])('$name --help prints how both are used', async (command) => {
  const { io, printed } = files();
  expect(await command(['--help'], io)).toBe(0);
  expect(printed.join('')).toContain('switchyard-conformance diff A.json B.json');
});

test('a run writes JSON as one line of standard output, if the file is -', async () => {
  const { io, held, printed } = files();
  await writeReports(a, { json: '-', junit: undefined, html: undefined }, io);
  expect(printed).toHaveLength(1);
  expect(printed[0]).toMatch(/^\{.*\}\n$/);
  expect(readReport('x', printed[0] ?? '')).toEqual(readReport('a.json', held.get('a.json') ?? ''));
});

test('a run writes the requested files', async () => {
  const { io, held } = files();
  await writeReports(
    aReport(aRun({ cases: [aCase({ checks: [aCheck()] })] })),
    { json: 'r.json', junit: undefined, html: undefined },
    io,
  );
  expect([...held.keys()]).toEqual(['a.json', 'b.json', 'r.json']);
});
