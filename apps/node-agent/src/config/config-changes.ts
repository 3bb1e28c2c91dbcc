import type { EffectiveSettings } from './effective.ts';
import { isReadIn, type ProxyMode, proxyModeOf } from './proxy-mode.ts';
import type { ChangeClass } from './schema/field.ts';
import { asWritten, type Settings, valueText } from './settings.ts';

/** A setting that differs between two configurations. */
export interface SettingChange {
  readonly path: string;
  /** Both as written in a file. */
  readonly before: unknown;
  readonly now: unknown;
  readonly change: ChangeClass;
}

/** Every setting that differs, in the order of the schemas. */
export function settingChanges(before: EffectiveSettings, now: EffectiveSettings): readonly SettingChange[] {
  const mode = proxyModeOf(before.kubeProxy);
  return [...changes(before.kubeProxy, now.kubeProxy, mode), ...changes(before.switchyard, now.switchyard, mode)];
}

function changes(before: Settings, now: Settings, mode: ProxyMode): readonly SettingChange[] {
  return now.entries().flatMap(([field, setting]): readonly SettingChange[] => {
    const { path } = field;
    const change = isReadIn(mode, field) ? field.change : 'none';
    const old = before.at(path);
    if (valueText(old.value) === valueText(setting.value)) return [];
    return [{ path, before: asWritten(field, old.value), now: asWritten(field, setting.value), change }];
  });
}
