import { HostError, seconds } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';

/** Burns 0.1 s of processor time, and prints what share of the time since its start that was. `console.log` may colour a number. */
const burner = `
const used = () => process.threadCpuUsage().user + process.threadCpuUsage().system;
const [start, before] = [performance.now(), used()];
while (used() - before < 100_000);
process.stdout.write(String(100 / (performance.now() - start)))`;

/** As `TestEnvironment.processorShare`. `by`: a command that starts the program given to it. Rejects with `HostError`. */
export async function processorShare(signal: AbortSignal, by: readonly string[] = []): Promise<number> {
  const [file = '', ...args] = [...by, process.execPath, '-e', burner];
  const { stdout, stderr } = await createCommandRunner().run(file, args, { timeout: seconds(60), signal });
  const share = Number(stdout);
  if (share > 0) return share;
  throw new HostError('conformance.share', `cannot measure how fast programs run: ${stderr.trim()}`);
}
