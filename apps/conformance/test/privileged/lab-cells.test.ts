import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest';
import { catalogue } from '../../src/cases/catalogue.ts';
import { type BackendName, backendNames, ownProxy } from '../../src/lab/proxy-program.ts';
import { type LabRun, runLabs } from '../../src/lab/run-labs.ts';
import type { ConformanceCase, FamilyCell, ProgressEvent } from '../../src/model/case.ts';
import type { CaseResult } from '../../src/model/report-file.ts';
import { failedChecks } from '../../src/report/failures.ts';
import { expectPassed } from '../expect-passed.ts';
import { runCases } from '../run-cases.ts';

const dataplanes = {
  nftables: 'nftables',
  'iptables-nft': 'iptables',
  'iptables-legacy': 'iptables',
  'ebpf-tc': 'ebpf',
  'ebpf-nftables': 'ebpf',
} as const satisfies Record<BackendName, ConformanceDataplane>;
type ConformanceDataplane = Parameters<typeof catalogue>[0]['dataplane'];

/** One backend in a cluster with these families. */
interface Cell {
  readonly name: string;
  readonly backend: BackendName;
  readonly cell: FamilyCell;
  readonly cases: readonly ConformanceCase[];
}

const known = new Map<string, readonly ConformanceCase[]>();

/** Reading all scenarios takes its time. */
function chosen(dataplane: ConformanceDataplane, cell: FamilyCell): readonly ConformanceCase[] {
  const key = `${dataplane} ${cell}`;
  const cases = known.get(key) ?? catalogue({ dataplane, cell });
  known.set(key, cases);
  return cases;
}

/** Modes with the rules or the programs of another one: of these two, most is shown by iptables-nft and ebpf-tc. */
const siblings: ReadonlySet<BackendName> = new Set(['iptables-legacy', 'ebpf-nftables']);

// Rolling updates (`slow`) and `agent-down`, which bounds the time of a start, are below test/quiet. A cluster of one family has nothing
// that one of both has not, but for how the proxy comes up.
const cells = (['dual', 'ipv4', 'ipv6'] as const)
  .flatMap((cell) =>
    backendNames.map((backend): Cell => {
      const all = chosen(dataplanes[backend], cell);
      const cases = all.filter(
        ({ id, tags }) =>
          !id.startsWith('sequence/agent-down/') && (cell === 'dual' ? !tags.includes('slow') : tags.includes('smoke')),
      );
      return { name: `${backend} in a cluster with ${cell === 'dual' ? 'both families' : cell}`, backend, cell, cases };
    }),
  )
  .toSorted((a, b) => Number(isLast(a)) - Number(isLast(b)));

function isLast({ backend, cell }: Cell): boolean {
  return cell === 'dual' && siblings.has(backend);
}

/**
 * Time for all of them; a quick machine needs less. What has not ended by then is skipped. `./dev test` is to end within 55 minutes, and its
 * checks and unit tests, which are over when this begins, take about a seventh of what it needs without these labs.
 */
const minutes = 15;
const fewestMinutes = 5;
const minutesOfAll = 50;
const shareBefore = 1 / 7;

/** `began`: when `./dev test` did, in milliseconds; undefined if it does not run this. */
function minutesFor(began: string | undefined): number {
  if (began === undefined) return minutes;
  const before = (Date.now() - Number(began)) / 60_000;
  return Math.round(Math.min(minutes, Math.max(fewestMinutes, minutesOfAll - before / shareBefore)));
}

const given = minutesFor(process.env['SWITCHYARD_TEST_BEGAN']);
const outOfTime = new Error(`not run: ${given} minutes were over; ./dev conformance --backend=all runs all cases`);

const stop = new AbortController();
const results = new Map<string, PromiseWithResolvers<CaseResult>>();
let running: Promise<unknown> | undefined;

// oxlint-disable-next-line no-empty-pattern -- vitest takes nothing but a pattern there
beforeAll(async ({}, file) => {
  const runs: LabRun[] = [];
  for (const { name, backend, cell, cases } of cells) {
    // Those that were named, if any were.
    const suite = file.tasks.find((one) => one.type === 'suite' && one.name === name);
    const asked = new Set(suite?.type === 'suite' ? suite.tasks.filter(isAsked).map((one) => one.name) : []);
    const wanted = cases.filter((one) => asked.has(titleOf(one)));
    if (wanted.length > 0)
      runs.push({ program: await ownProxy(backend), cell, cases: wanted, labs: cell === 'dual' ? 2 : 1 });
    for (const { id } of wanted) {
      const due = Promise.withResolvers<CaseResult>();
      due.promise.catch(() => undefined); // told to the test
      results.set(keyOf(backend, cell, id), due);
    }
  }
  setTimeout(() => stop.abort(outOfTime), given * 60_000).unref();
  const options = { labName: 'cell', jobs: 4, seed: 1, rounds: 1, isFailFast: false } as const;
  running = runLabs({ ...options, runs, onProgress: take }, stop.signal).catch((error: unknown) => {
    for (const due of results.values()) due.reject(stop.signal.aborted ? stop.signal.reason : error);
  });
});

afterAll(async () => {
  stop.abort(new Error('the tests are over'));
  await running;
});

// In loops, because names in `each` are shortened, and cases are chosen by name.
for (const { name, backend, cell, cases } of cells) {
  describe(name, () => {
    for (const one of cases) {
      test(titleOf(one), { timeout: 2_400_000 }, (context) => checked({ backend, cell, one }, context));
    }
  });
}

interface Place {
  readonly backend: BackendName;
  readonly cell: FamilyCell;
  readonly one: ConformanceCase;
}

async function checked(place: Place, { skip, task }: TestContext): Promise<void> {
  const skipFor = (because: string): void => {
    Object.assign(task.meta, { because }); // for the summary of ./dev test
    skip(because);
  };
  const due = results.get(keyOf(place.backend, place.cell, place.one.id))?.promise;
  const result = await due?.catch((error: unknown) =>
    error === outOfTime ? skipFor(outOfTime.message) : Promise.reject(error),
  );
  expect(result, 'a case that was not run').toBeDefined();
  if (result === undefined) return;
  if (result.status === 'skipped' && result.because !== undefined && result.because !== '') skipFor(result.because);
  if (result.status === 'failed' && (await passesAlone(place))) {
    skipFor(`flaky: failed in 1 of ${repeats + 1} runs, ${faultText(result)}`);
  }
  expectPassed(result);
}

/** Further runs of a case that failed beside three other labs on a busy machine. */
const repeats = 3;

/** Whether a case passes each time on a lab of its own, after all others: then its failure is a flake, which the summary names. */
async function passesAlone({ backend, cell, one }: Place): Promise<boolean> {
  await running;
  const cases = Array.from({ length: repeats }, () => one);
  const { signal } = new AbortController(); // also when the time of the others is over
  const again = await runCases({ name: 'cagain', program: await ownProxy(backend), cell, cases }, signal);
  return again.length >= repeats && again.every(({ status }) => status === 'passed');
}

function faultText(result: CaseResult): string {
  const faults = failedChecks([result]).map(
    ({ what, observed, because }) => `${what}: ${[observed, ...because].join('; ')}`,
  );
  return faults.join(' | ');
}

function take(event: ProgressEvent): void {
  if (event.kind !== 'caseEnded') return;
  const { proxy, cell } = event.run;
  results.get(keyOf(proxy, cell, event.result.id))?.resolve(event.result);
}

function keyOf(proxy: string, cell: FamilyCell, id: string): string {
  return `${proxy} ${cell} ${id}`;
}

function titleOf({ id, title }: ConformanceCase): string {
  return `${id}: ${title}`;
}

function isAsked({ mode }: { readonly mode: string }): boolean {
  return mode === 'run' || mode === 'queued';
}
