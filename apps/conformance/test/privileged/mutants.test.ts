import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Gate } from '../../src/engine/error-pace.ts';
import type { BackendName } from '../../src/lab/proxy-program.ts';
import { AgentBundler } from '../mutants/bundle-agent.ts';
import { mutants } from '../mutants/catalogue/index.ts';
import { StageEnvironment, type SuiteResult } from '../mutants/run-suite.ts';

const { signal } = new AbortController();
const quiet = { onProgress: () => undefined, onFlake: () => undefined };
/** Few cases: what is shown here is that faults are noticed where they should be, not how many. */
const only = /^scenario\/(etp-local|terminating-fallback-local)\/ipv4$/;

async function judged(id: string | undefined, backend: BackendName, labName: string): Promise<SuiteResult> {
  const mutant = mutants.find((one) => one.id === id);
  if (id !== undefined && mutant === undefined) throw new Error(`there is no mutant ${id}`);
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-mutant-'));
  try {
    await using bundler = new AgentBundler();
    const program = await bundler.bundle(mutant, folder);
    await using environment = await StageEnvironment.open({ backend, stage: 0, labName, only }, signal);
    return await environment.run(program, { measuring: new Gate(1), ...quiet }, signal);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test.each([
  ['nftables', 'core/no-terminating-fallback', 'terminating-fallback-local'],
  ['iptables-nft', 'iptables/jump-order', 'etp-local'],
  ['ebpf-tc', 'bpf/class-ignored', 'etp-local'],
] as const)('%s: the agent as it is passes, with %s it fails in %s', async (backend, id, scenario) => {
  const [control, mutant] = await Promise.all([judged(undefined, backend, 'cmuta'), judged(id, backend, 'cmutb')]);
  expect(control).toMatchObject({ status: 'survived', cases: 2 });
  expect(mutant).toMatchObject({ status: 'caught', caseId: expect.stringContaining(scenario) as string });
});
