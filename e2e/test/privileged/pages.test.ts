import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { checkout } from '../scripted/scripted-machine.ts';

// The commands of pages on real clusters. test/unit/pages.test.ts plays them where none can be had.

const cell = 'nftables-dual-1.36-switchyard';

function e2e(...args: readonly string[]): { readonly status: number | null; readonly stdout: string } {
  const program = ['--conditions=@switchyard/source', `${checkout}/e2e/src/main.ts`];
  return spawnSync(process.execPath, [...program, ...args], { encoding: 'utf8', maxBuffer: 1 << 26 });
}

test('the commands of the pages run on a cell', { timeout: 4 * 3600 * 1000 }, ({ skip }) => {
  const { cells } = JSON.parse(e2e('--list', '--json', '--no-upstream', cell).stdout) as {
    readonly cells: readonly { readonly obstacles: readonly string[] }[];
  };
  const obstacles = cells.flatMap((one) => one.obstacles);
  skip(obstacles.length > 0, `no cluster can be had here: ${obstacles.join('; ')}`);
  const { status, stdout } = e2e('docs', cell);
  expect(stdout).toContain('passed ');
  expect(status, stdout).toBe(0);
});
