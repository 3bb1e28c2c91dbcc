import { expect, test } from 'vitest';
import { rolloutCases } from '../../src/cases/rollouts/run-rollout-case.ts';
import { chooseCases } from '../../src/engine/select-cases.ts';
import { ownProxy, type ProxyProgram } from '../../src/lab/proxy-program.ts';
import type { CaseResult } from '../../src/model/report-file.ts';
import { safeSvg } from '../../src/report/html/safe-svg.ts';
import { runCases } from '../run-cases.ts';

const { signal } = new AbortController();

/** As Kubernetes <= 1.25 was: a node drops what comes when its last endpoint terminates. */
async function withoutFallback(): Promise<ProxyProgram> {
  const own = await ownProxy('nftables');
  return {
    ...own,
    about: { ...own.about, name: 'without the fallback' },
    command: (place, agent) => own.command(place, { ...agent, terminatingFallback: 'off' }),
  };
}

async function resultsOf(
  program: ProxyProgram,
  globs: readonly string[],
  name: string,
): Promise<readonly CaseResult[]> {
  const { dataplane } = program.about;
  const cases = chooseCases(rolloutCases({ dataplane, cell: 'dual' }), { globs, tags: [] });
  return runCases({ name, program, cases }, signal);
}

const failed = ({ checks }: CaseResult): readonly string[] =>
  checks.filter(({ isAsExpected }) => !isAsExpected).map(({ id, observed }) => `${id}: ${observed}`);

test.concurrent('a proxy without the terminating fallback fails: requests are lost as predicted, for the right cause; open connections live', async () => {
  const globs = ['rollout/deployment/*/ipv4', 'rollout/daemonset/Local/ipv6'];
  const results = await resultsOf(await withoutFallback(), globs, 'crolloff');
  expect(results.map(({ id, status, because }) => [id, status, because])).toEqual([
    ['rollout/deployment/Local/ipv4', 'failed', undefined],
    ['rollout/deployment/Cluster/ipv4', 'failed', undefined],
    ['rollout/daemonset/Local/ipv6', 'failed', undefined],
  ]);
  for (const result of results) {
    // On a busy machine one request may lie beside the times at which events were observed.
    expect(
      failed(result).every((text) => /: requests: \d+ lost$|: prediction: .*, 1 unexplained$/.test(text)),
      failed(result).join('\n'),
    ).toBe(true);
    const lost = result.rollouts.filter((rollout) => rollout.lost > 0);
    expect(lost.length).toBeGreaterThan(0);
    for (const { lostByCause, predictedLost } of lost) {
      const { unexplained = 0, ...explained } = lostByCause;
      expect(unexplained).toBeLessThanOrEqual(1);
      expect(Object.keys(explained).filter((cause) => !cause.startsWith('droppedByNode'))).toEqual([]);
      expect(predictedLost.most).toBeGreaterThan(0);
    }
  }
  const first = results[0]?.checks.find(({ isAsExpected }) => !isAsExpected);
  expect(first?.because.at(-1)).toMatch(/^verdict on node\d: drop$/);
});

test.concurrent('with the fallback the same rollout loses nothing, and the report has its picture', async () => {
  const [result] = await resultsOf(await ownProxy('nftables'), ['rollout/deployment/Local/ipv6'], 'crollon');
  expect(result?.because).toBeUndefined();
  expect(failed(result!)).toEqual([]);
  expect(result?.rollouts.map(({ title, lost }) => [title, lost])).toEqual([
    ['load balancer', 0],
    ['outside to the node of the first pod', 0],
  ]);
  const [balanced] = result?.rollouts ?? [];
  expect(balanced?.outcomes.length).toBeGreaterThan(50);
  expect(new Set(balanced?.events.map(({ lane }) => lane))).toEqual(
    new Set(['pods', 'slices', 'health', 'load balancer']),
  );
  expect(safeSvg(balanced?.svg ?? '')).toBe(balanced?.svg);
});
