import type { LogFields, Logger } from '@switchyard/core';
import type { ConfigFiles, EffectiveSettings } from './effective.ts';
import { gateWarnings, idleGates } from './feature-gates.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import { isReadIn, type ProxyMode, isModeSaid, proxyModeOf, unreadReason } from './proxy-mode.ts';
import type { Purpose } from './validate.ts';
import { asWritten, type Settings, valueText } from './settings.ts';

/** A note about a valid configuration for the operator. */
export interface ConfigNote {
  readonly level: 'info' | 'warn';
  readonly message: string;
  readonly fields: LogFields;
  /** Reason and note of a Warning Event on the Node, recorded once the agent runs. Default: none. */
  readonly event?: { readonly reason: string; readonly note: string };
}

/** Returns notes on lenient decoding, on flags, settings and feature gates without effect, and on deprecated flags. */
export function notesOf(
  flags: FlagValues,
  files: ConfigFiles,
  settings: EffectiveSettings,
  purpose: Purpose,
): readonly ConfigNote[] {
  // Commands such as --cleanup concern every mode unless one is set.
  const mode = purpose === 'run' || isModeSaid(settings.kubeProxy) ? proxyModeOf(settings.kubeProxy) : undefined;
  return [
    ...fileNotes(flags, files),
    ...flagNotes(flags),
    ...ignoredSettings(settings.kubeProxy, mode),
    ...ignoredSettings(settings.switchyard, mode),
    ...gateNotes(settings.kubeProxy),
  ];
}

/** Logs notes, each on a line. */
export function logNotes(notes: readonly ConfigNote[], logger: Logger): void {
  for (const { level, message, fields } of notes) logger[level](message, fields);
}

function fileNotes(flags: FlagValues, files: ConfigFiles): readonly ConfigNote[] {
  const notes: ConfigNote[] = [];
  const file = flags.get('config')?.texts.at(-1);
  const ignored = [...flags.values()].filter(({ flag }) => !flag.isKeptWithFile).map(({ flag }) => `--${flag.name}`);
  if (files.kubeProxy !== undefined && ignored.length > 0) {
    notes.push({ level: 'warn', message: 'flags have no effect beside --config', fields: { flags: ignored, file } });
  }
  for (const [name, decoded] of [
    [file, files.kubeProxy],
    [flags.get('switchyard-config')?.texts.at(-1), files.switchyard],
  ] as const) {
    if (decoded === undefined || decoded.leniencies.length === 0) continue;
    const fields = { file: name, findings: decoded.leniencies };
    notes.push({ level: 'warn', message: 'using lenient decoding as strict decoding failed', fields });
  }
  return notes;
}

function flagNotes(flags: FlagValues): readonly ConfigNote[] {
  return [...flags.values()].flatMap(({ flag }): readonly ConfigNote[] => {
    const name = `--${flag.name}`;
    if (flag.deprecated !== undefined) {
      return [{ level: 'warn', message: 'flag is deprecated', fields: { flag: name, instead: flag.deprecated } }];
    }
    if (flag.target.kind !== 'nothing' || flag.target.meaning.kind !== 'ignored') return [];
    return [{ level: 'info', message: 'flag has no effect', fields: { flag: name, why: flag.target.meaning.why } }];
  });
}

/** Warns when no mode is set: Kubernetes 1.40 changes the default (KEP-5343, kubernetes/kubernetes#139957). */
export function modeNotes({ kubeProxy }: EffectiveSettings): readonly ConfigNote[] {
  if (isModeSaid(kubeProxy)) return [];
  const advice =
    'no mode is set, so iptables is used; the default becomes nftables in Kubernetes 1.40 (KEP-5343): set mode (--proxy-mode) to keep iptables';
  const event = { reason: 'ProxyModeNotSet', note: advice };
  return [{ level: 'warn', message: 'Using iptables proxy', fields: { advice }, event }];
}

function ignoredSettings(settings: Settings, mode: ProxyMode | undefined): readonly ConfigNote[] {
  return settings.entries().flatMap(([field, { value, origin }]): readonly ConfigNote[] => {
    const { meaning } = field;
    const isUnread = mode !== undefined && !isReadIn(mode, field);
    const why = isUnread ? unreadReason(mode, field) : meaning.kind === 'ignored' ? meaning.why : undefined;
    if (why === undefined || origin.kind === 'default' || valueText(value) === valueText(field.default)) return [];
    const fields = { setting: field.path, value: asWritten(field, value), why };
    return [{ level: 'info', message: 'setting has no effect', fields }];
  });
}

function gateNotes(settings: Settings): readonly ConfigNote[] {
  const set = settings.gates('featureGates');
  return [
    ...gateWarnings(set).map((why): ConfigNote => ({
      level: 'warn',
      message: 'ignoring feature gate',
      fields: { why },
      event: { reason: 'FeatureGateIgnored', note: why },
    })),
    ...[...idleGates(set)].map(([why, gates]): ConfigNote => {
      return { level: 'info', message: 'feature gates have no effect', fields: { gates, why } };
    }),
  ];
}
