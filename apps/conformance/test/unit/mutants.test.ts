import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { transform } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { backendNames } from '../../src/lab/proxy-program.ts';
import { checkout, isBpf, mutatedText } from '../mutants/apply-mutant.ts';
import { mutants } from '../mutants/catalogue/index.ts';
import type { Mutant } from '../mutants/mutant.ts';
import { mutantsPage, scoreOf } from '../mutants/report.ts';
import { isEquivalent, survivors } from '../mutants/survivors.ts';

const bpf = mutants.filter(isBpf);
const typescript = mutants.filter((mutant) => !isBpf(mutant));

describe('every mutant still applies', () => {
  test.each(typescript)('$id: $breaks', async (mutant) => {
    const { warnings } = await transform(await mutatedText(mutant), { loader: 'ts' });
    expect(warnings).toEqual([]);
  });

  test.each(bpf)('$id: $breaks', { timeout: 60_000 }, async (mutant) => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-mutant-'));
    try {
      cpSync(join(checkout, 'packages/backend-ebpf/bpf'), folder, { recursive: true });
      writeFileSync(join(folder, basename(mutant.file)), await mutatedText(mutant));
      const programs = ['socket.bpf.c', 'wire.bpf.c'];
      const name = basename(mutant.file); // a header is part of both
      for (const source of programs.includes(name) ? [name] : programs) check(join(folder, source));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** Of the flags of packages/backend-ebpf/tools/build-bpf.ts, those that decide whether it compiles. */
function check(source: string): void {
  const machine = execFileSync('cc', ['-print-multiarch'], { encoding: 'utf8' }).trim();
  const includes = [`-I${join(checkout, 'packages/backend-ebpf/build')}`, `-I/usr/include/${machine}`];
  const flags = ['-fsyntax-only', '-O2', '-Wall', '-Wextra', '-Werror', '-target', 'bpfel', '-mcpu=v3'];
  execFileSync('clang', [...flags, ...includes, source], { stdio: 'pipe' });
}

test('ids are unique, and every backend has mutants', () => {
  expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length);
  expect(new Set(mutants.map(({ backend }) => backend))).toEqual(new Set(backendNames));
});

test('what explains a survivor explains a mutant that there is', () => {
  const ids = new Set(mutants.map(({ id }) => id));
  expect([...survivors.keys()].filter((id) => !ids.has(id))).toEqual([]);
});

describe('docs/reference/mutants.md; else run: ./dev mutants --page docs/reference/mutants.md', () => {
  const page = readFileSync(join(checkout, 'docs/reference/mutants.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(.*?)` \|(.*)$/gm)].map(([, id = '', cells = '']) => ({ id, cells }));
  const unnoticed = rows.filter(({ cells }) => cells.includes('| **nothing** |')).map(({ id }) => id);

  test('has a row for each mutant and no other', () => {
    expect(rows.map(({ id }) => id)).toEqual(mutants.map(({ id }) => id));
  });

  test('counts its rows, in all and by part', () => {
    const [total, noticed] = [rows.length, rows.length - unnoticed.length];
    const equivalent = unnoticed.filter((id) => isEquivalent(id)).length;
    const percent = ((noticed / (total - equivalent)) * 100).toFixed(1);
    const counts = `${noticed} of ${total} noticed; ${equivalent} others send the same packets as the original. Of the rest: ${percent} %.`;
    expect(page).toContain(`\n**${counts}** `);
    for (const [part, all] of Map.groupBy(rows, ({ id }) => id.split('/')[0])) {
      const left = all.filter(({ id }) => unnoticed.includes(id)).length;
      expect(page).toContain(`\n| ${part} | ${all.length} | ${all.length - left} |\n`);
    }
  });

  test('explains what nothing noticed', () => {
    expect(unnoticed.filter((id) => !page.includes(`\n- \`${id}\` (`))).toEqual([]);
    expect(unnoticed.filter((id) => !survivors.has(id))).toEqual([]);
  });
});

test('a text that is missing, or there twice, is named', async () => {
  const [one] = mutants as readonly [Mutant];
  await expect(mutatedText({ ...one, find: 'no such text' })).rejects.toThrow(
    `mutant ${one.id}: in ${one.file} does not`,
  );
  await expect(mutatedText({ ...one, find: 'return' })).rejects.toThrow(/occurs \d+ times/);
});

test('a stalled mutant counts as noticed, a survivor does not, and the page says why it lives', () => {
  const [first, second, third] = mutants as readonly [Mutant, Mutant, Mutant];
  const judged = [
    {
      mutant: first,
      result: { status: 'caught', caseId: 'a/b', check: 'x', expected: 'drop', observed: 'a | b', duration: 1 },
    },
    { mutant: second, result: { status: 'stalled', caseId: 'a/c', because: 'one\ntwo', duration: 1 } },
    { mutant: third, result: { status: 'survived', cases: 9, duration: 1 } },
  ] as unknown as Parameters<typeof mutantsPage>[0];
  expect(scoreOf(judged)).toEqual({ caught: 2, total: 3, equivalent: 0, percent: '66.7' });
  const equivalent = mutants.find(({ id }) => id === 'core/etp-leftover-counts') ?? third;
  const withEquivalent = [...judged, { mutant: equivalent, result: { status: 'survived', cases: 9, duration: 1 } }];
  expect(scoreOf(withEquivalent as typeof judged)).toEqual({ caught: 2, total: 4, equivalent: 1, percent: '66.7' });
  const page = mutantsPage(judged, ['nftables']);
  expect(page).toContain(`- \`${third.id}\` (${third.breaks}): `);
  expect(page).toContain(String.raw`a \| b`);
  expect(page).not.toContain('two |');
});
