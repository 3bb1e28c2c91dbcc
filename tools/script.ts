/**
 * Runs a program of this folder: aborts it at SIGINT and SIGTERM, and ends with exit code 1 and the message on stderr, after `prefix`,
 * when `main` rejects.
 */
export async function runScript(main: (signal: AbortSignal) => Promise<void>, prefix = ''): Promise<void> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  try {
    await main(stop.signal);
  } catch (error) {
    console.error(`${prefix}${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
