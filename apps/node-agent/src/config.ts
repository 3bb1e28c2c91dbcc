import { ConfigError } from '@switchyard/core';
import { type ConfigFiles, effectiveSettings, noFiles } from './config/effective.ts';
import { type FlagValues, parseFlags } from './config/flags/parse-flags.ts';
import { modeNotes, notesOf } from './config/notes.ts';
import { isModeSaid } from './config/proxy-mode.ts';
import { readConfigFiles } from './config/decode-file.ts';
import type { ClusterPlace, Config, DataplaneConfig, RunConfig, SourceConfig } from './config/run-config.ts';
import { problemText } from './config/settings.ts';
import { dataplaneOf, type Environment, logConfigOf, placeOf, toRunConfig } from './config/to-run-config.ts';
import { problemsOf } from './config/validate.ts';

export type { ClusterPlace, Config, DataplaneConfig, RunConfig, SourceConfig };

/**
 * Loads the configuration from the command line and the files it names. Rejects with one `ConfigError` that lists all
 * faults.
 */
export async function loadConfig(args: readonly string[], env: Environment = process.env): Promise<Config> {
  const flags = parseFlags(args);
  const isAnswerOnly = flags.get('help')?.setting.value === true || flags.has('version');
  if (isAnswerOnly) return resolve(flags, noFiles, { env, texts: new Map() });
  const { files, texts } = await readConfigFiles(flags);
  return resolve(flags, files, { env, texts });
}

/** As `loadConfig`, for a command line that names no files. */
export function parseConfig(args: readonly string[], env: Environment = process.env): Config {
  return resolve(parseFlags(args), noFiles, { env, texts: new Map() });
}

/**
 * Finds the cluster and Node of a command line that `loadConfig` refuses. Leaves out files that cannot be read, then flags that
 * are wrong. Undefined if the rest does not name a cluster.
 */
export async function findPlace(
  args: readonly string[],
  env: Environment = process.env,
): Promise<ClusterPlace | undefined> {
  const simple = args.filter((arg) => placeFlags.test(arg));
  for (const words of [args, simple]) {
    const flags = attempt(() => parseFlags(words));
    if (flags === undefined) continue;
    const { files } = await readConfigFiles(flags).catch(() => ({ files: noFiles }));
    const place = attempt(() => placeOf({ settings: effectiveSettings(flags, files), flags, env }));
    if (place !== undefined) return place;
  }
  return undefined;
}

/** Whether these flags make the process end after one task. */
export function asksForCommand(args: readonly string[]): boolean {
  return args.some((arg) => commandFlags.test(arg));
}

const commandFlags = /^--?(cleanup|switchyard[-_]dump|write[-_]config[-_]to|help|h|version)\b/;
/** Flags that name the cluster and the Node, with their values. */
const placeFlags = /^--(config|kubeconfig|hostname[-_]override|master)=/;

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined; // `loadConfig` has given the reason
  }
}

function resolve(
  flags: FlagValues,
  files: ConfigFiles,
  { env, texts }: { readonly env: Environment; readonly texts: ReadonlyMap<string, string> },
): Config {
  const isOn = (name: string): boolean => flags.get(name)?.setting.value === true;
  if (isOn('help')) return { kind: 'help' };
  const form = flags.get('version')?.texts.at(-1);
  if (form !== undefined) {
    if (form === 'raw') return { kind: 'version', form };
    if (['true', '1', 't'].includes(form.toLowerCase())) return { kind: 'version', form: 'line' };
    throw new ConfigError('flags.invalid', `--version ${JSON.stringify(form)}: must be true or raw; see --help`);
  }
  const settings = effectiveSettings(flags, files);
  const writeTo = flags.get('write-config-to')?.texts.at(-1) ?? '';
  const isRun = writeTo === '' && !isOn('switchyard-dump') && !isOn('cleanup');
  const inFiles = [files.kubeProxy, files.switchyard].flatMap((file) => file?.problems ?? []);
  const isReadable = inFiles.every(({ value }) => value !== undefined); // otherwise the rest would only follow from that
  const problems = [...inFiles, ...(isReadable ? problemsOf(settings, isRun ? 'run' : 'other') : [])].map(problemText);
  if (isOn('switchyard-dump') && isOn('cleanup'))
    problems.push('--switchyard-dump and --cleanup exclude each other; give one');
  if (isOn('switchyard-cleanup-kube-proxy') && !isOn('cleanup'))
    problems.push('--switchyard-cleanup-kube-proxy needs --cleanup; give both');
  if (problems.length > 0) throw new ConfigError('config.invalid', problems.join('\n'));
  const notes = notesOf(flags, files, settings, isRun ? 'run' : 'other');
  const shared = { ...dataplaneOf(settings), ...logConfigOf(settings.kubeProxy), notes };
  if (writeTo !== '') return { kind: 'write', file: writeTo, settings: settings.kubeProxy, ...shared };
  if (isOn('switchyard-dump')) {
    return { kind: 'dump', ofEveryMode: !isModeSaid(settings.kubeProxy), ...shared };
  }
  if (isOn('cleanup')) return { kind: 'cleanup', ofKubeProxyToo: isOn('switchyard-cleanup-kube-proxy'), ...shared };
  return { ...toRunConfig({ settings, flags, env }), notes: [...modeNotes(settings), ...notes], files: texts };
}
