import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { millis } from '@switchyard/core';
import { destroyLab, listLabs } from '@switchyard/lab';
import { globPattern } from '../../src/engine/select-cases.ts';
import { Gate } from '../../src/engine/error-pace.ts';
import { type BackendName, backendNames } from '../../src/lab/proxy-program.ts';
import { checkout } from './apply-mutant.ts';
import { AgentBundler } from './bundle-agent.ts';
import { mutants } from './catalogue/index.ts';
import type { Mutant } from './mutant.ts';
import { type Judged, mutantsPage, scoreOf } from './report.ts';
import { digestOf, Results } from './results.ts';
import { StageEnvironment, type SuiteResult } from './run-suite.ts';
import { stageCount } from './stages.ts';

// ./dev mutants: runs the conformance suite against deliberate faults of our own and says which of them it notices.

const usage = `usage: ./dev mutants [--mutant GLOB]... [--backend NAME]... [--case GLOB] [--jobs N] [--fresh] [--list]
                    [--page FILE]

  --mutant GLOB   only these, for example 'core/**'; control/NAME is the agent as it is
  --backend NAME  only those that are run with ${backendNames.join(', ')}
  --case GLOB     only these cases of the suite
  --jobs N        labs side by side (2)
  --fresh         run again what is known from an earlier run; otherwise that is only told
  --page FILE     where the page goes, beside what is printed; results stay in apps/conformance/.test-results
`;

const measuring = new Gate(1);

/** Work for a lab. */
interface Job {
  readonly id: string;
  readonly mutant: Mutant | undefined;
  readonly backend: BackendName;
}

const options = {
  mutant: { type: 'string', multiple: true, default: [] as string[] },
  backend: { type: 'string', multiple: true, default: [] as string[] },
  case: { type: 'string' },
  jobs: { type: 'string', default: '2' },
  'lab-name': { type: 'string', default: 'mutant' },
  page: { type: 'string' },
  fresh: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Ends the process with what is wrong with its command line. */
function refuse(what: string): never {
  console.error(`mutants: ${what}; ./dev mutants --help shows what there is`);
  process.exit(2);
}

function commandLine() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return refuse((error as Error).message.split('. To specify')[0] ?? '');
  }
}

const values = commandLine();

function chosenJobs(): readonly Job[] {
  const patterns = values.mutant.map(globPattern);
  const used = new Set(mutants.map(({ backend }) => backend));
  const controls = [...used].map((backend): Job => ({ id: `control/${backend}`, mutant: undefined, backend }));
  const all = [...controls, ...mutants.map((mutant): Job => ({ id: mutant.id, mutant, backend: mutant.backend }))];
  return all.filter(
    ({ id, backend }) =>
      (patterns.length === 0 || patterns.some((pattern) => pattern.test(id))) &&
      (values.backend.length === 0 || values.backend.includes(backend)),
  );
}

/** A lane: a lab, exchanged when another backend or stage is due. */
class Lane implements AsyncDisposable {
  readonly #labName: string;
  readonly #bundler = new AgentBundler();
  #environment: StageEnvironment | undefined;

  constructor(labName: string) {
    this.#labName = labName;
  }

  /** Whether it can begin with this at once. */
  fits({ backend }: Job, stage: number): boolean {
    return this.#environment?.backend === backend && this.#environment.stage === stage;
  }

  async judge(job: Job, stage: number, signal: AbortSignal): Promise<SuiteResult> {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-mutant-'));
    try {
      const program = await this.#bundler.bundle(job.mutant, folder);
      const environment = this.fits(job, stage) ? this.#environment : await this.#open(job, stage, signal);
      const onProgress = process.stderr.isTTY
        ? (text: string) => process.stderr.write(`\r\u001b[K${job.id}: ${text}`)
        : () => undefined;
      const onFlake = (ids: readonly string[]): void =>
        console.log(`${job.id}  passed when run again: ${ids.join(', ')}`);
      const result = await environment?.run(program, { measuring, onProgress, onFlake }, signal);
      if (result === undefined) throw new Error('there is no lab');
      if (result.status === 'stalled') await this.#close(); // who knows what it left
      return result;
    } catch (error) {
      await this.#close();
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    await this.#bundler[Symbol.asyncDispose]();
  }

  async #open({ backend }: Job, stage: number, signal: AbortSignal): Promise<StageEnvironment> {
    await this.#close();
    const only = values.case === undefined ? undefined : globPattern(values.case);
    this.#environment = await StageEnvironment.open({ backend, stage, labName: this.#labName, only }, signal);
    return this.#environment;
  }

  async #close(): Promise<void> {
    await this.#environment?.[Symbol.asyncDispose]();
    this.#environment = undefined;
  }
}

function tell({ id }: Job, result: SuiteResult, note: string): void {
  const seconds = `${(result.duration / 1000).toFixed(1)} s`;
  const words =
    result.status === 'survived'
      ? `${id.startsWith('control/') ? 'all green' : 'SURVIVED'}: ${result.cases} cases`
      : result.status === 'stalled'
        ? `stalled: ${result.caseId}: ${result.because.split('\n')[0]}`
        : `caught: ${result.caseId} (${result.check}): expected ${result.expected}, observed ${result.observed}`;
  console.log(`${id}  ${words}  [${seconds}${note}]`);
}

/** Of a stage and those before it. */
function joined(before: SuiteResult | undefined, now: SuiteResult): SuiteResult {
  if (before?.status !== 'survived') return now;
  const duration = millis(before.duration + now.duration);
  return now.status === 'survived' ? { ...now, duration, cases: before.cases + now.cases } : { ...now, duration };
}

async function main(signal: AbortSignal): Promise<void> {
  if (values.help) return console.log(usage);
  const jobs = chosenJobs();
  if (jobs.length === 0) refuse('no mutant is called so, or is run with this backend');
  if (values.list) {
    for (const { id, mutant, backend } of jobs)
      console.log(`${id}  ${backend}  ${mutant?.breaks ?? 'the agent as it is'}`);
    return;
  }
  if (process.getuid?.() !== 0) throw new Error('labs are network namespaces and need root; run this with sudo');
  for (const { name, status } of await listLabs()) {
    if (status === 'dead' && new RegExp(`^${values['lab-name']}[a-z]$`).test(name)) await destroyLab(name);
  }
  const results = await Results.open(join(checkout, 'apps/conformance/.test-results/mutants.json'));
  const judged = new Map<Job, SuiteResult>();
  // All mutants pass a stage before any comes to the next: most of what is noticed is known early.
  const waiting = Array.from({ length: stageCount }, (_, stage) => (stage === 0 ? [...jobs] : []));
  const work = async (labName: string): Promise<void> => {
    await using lane = new Lane(labName);
    for (let stage = 0; stage < stageCount;) {
      const due = waiting[stage] ?? [];
      const [job] = due.splice(
        Math.max(
          0,
          due.findIndex((one) => lane.fits(one, stage)),
        ),
        1,
      );
      if (job === undefined) {
        stage += 1;
        continue;
      }
      signal.throwIfAborted();
      const digest = await digestOf(job.mutant, values.case);
      const known = values.fresh && stage === 0 ? undefined : results.get(job.id, digest);
      const isKnown = known !== undefined && known.stages > stage;
      const result = isKnown ? known.result : joined(known?.result, await lane.judge(job, stage, signal));
      const stages = isKnown ? known.stages : stage + 1;
      if (!isKnown) await results.add({ id: job.id, digest, stages, result });
      judged.set(job, result);
      if (result.status === 'survived' && stages < stageCount) waiting[stages]?.push(job);
      else tell(job, result, isKnown ? ', known' : '');
      stage = 0;
    }
  };
  const lanes = Math.max(1, Math.min(Number(values.jobs), 26));
  await Promise.all(
    Array.from({ length: lanes }, (_, lane) => work(`${values['lab-name']}${'abcdefghijklmnopqrstuvwxyz'[lane]}`)),
  );
  await conclude(jobs, judged);
}

async function conclude(jobs: readonly Job[], results: ReadonlyMap<Job, SuiteResult>): Promise<void> {
  const judged = jobs.flatMap((job): readonly Judged[] => {
    const result = results.get(job);
    return job.mutant === undefined || result === undefined ? [] : [{ mutant: job.mutant, result }];
  });
  const controls = jobs.filter(({ mutant }) => mutant === undefined);
  const broken = controls.filter((job) => results.get(job)?.status !== 'survived');
  const { caught, total, equivalent, percent } = scoreOf(judged);
  console.log(`${caught} of ${total} mutants noticed, ${equivalent} are equivalent (${percent} % of the others)`);
  if (broken.length > 0)
    console.log(`the agent as it is does not pass with ${broken.map(({ backend }) => backend).join(', ')}`);
  const page = mutantsPage(
    judged,
    controls.filter((job) => !broken.includes(job)).map(({ backend }) => backend),
  );
  if (values.page !== undefined) await writeFile(values.page, page);
  process.exitCode = broken.length > 0 || Number(percent) < 97 ? 1 : 0;
}

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
try {
  await main(stop.signal);
} catch (error) {
  console.error(`mutants: ${(error as Error).message}`);
  process.exitCode = 3;
}
