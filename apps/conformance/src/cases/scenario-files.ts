import { basename } from 'node:path';
import { ConfigError, messageOf } from '@switchyard/core';
import { isOfMatrix, parseScenario, type ParsedScenario } from '@switchyard/scenarios';

/**
 * Reads scenario files of the user. The name of a file without `.yaml` or `.yml` is the scenario's id. Rejects with `ConfigError` for
 * a file that cannot be read, a name that is no id or occurs twice, broken YAML, an unknown field, and a wrong value (with its line).
 */
export async function readScenarioFiles(
  files: readonly string[],
  readText: (file: string) => Promise<string>,
): Promise<readonly ParsedScenario[]> {
  const fileById = new Map<string, string>();
  const scenarios: ParsedScenario[] = [];
  for (const file of files) {
    const id = idOf(file);
    const other = fileById.get(id);
    if (other !== undefined) throw wrong(`${other} and ${file} are both called ${id}; rename one`);
    fileById.set(id, file);
    scenarios.push(parseScenario(id, await read(file, readText), file));
  }
  return scenarios;
}

function idOf(file: string): string {
  const id = basename(file).replace(/\.ya?ml$/, '');
  checkScenarioId(id, file);
  return id;
}

/** Throws `ConfigError` unless a scenario can have this id. */
export function checkScenarioId(id: string, from: string): void {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(id)) {
    throw wrong(`${from}: the name of a scenario consists of a-z, 0-9 and -, for example cart-drains.yaml; rename it`);
  }
  if (isOfMatrix({ id })) throw wrong(`${from}: names that begin with matrix- are the runner's own; rename it`);
}

async function read(file: string, readText: (file: string) => Promise<string>): Promise<string> {
  try {
    return await readText(file);
  } catch (cause) {
    throw wrong(`cannot read the scenario ${file}: ${messageOf(cause)}; give the path of a YAML file`, cause);
  }
}

function wrong(what: string, cause?: unknown): ConfigError {
  return new ConfigError('conformance.scenario', what, { cause });
}
