import type { EffectiveSettings } from './effective.ts';
import type { ChangeClass, FieldValue } from './schema/field.ts';
import { type Settings, valueText } from './settings.ts';

/** A setting that differs between two configurations. */
export interface SettingChange {
  readonly path: string;
  readonly before: FieldValue;
  readonly now: FieldValue;
  readonly change: ChangeClass;
}

/** Every setting that differs, in the order of the schemas. */
export function settingChanges(before: EffectiveSettings, now: EffectiveSettings): readonly SettingChange[] {
  return [...changes(before.kubeProxy, now.kubeProxy), ...changes(before.switchyard, now.switchyard)];
}

function changes(before: Settings, now: Settings): readonly SettingChange[] {
  return now.entries().flatMap(([{ path, change }, setting]): readonly SettingChange[] => {
    const old = before.at(path);
    if (valueText(old.value) === valueText(setting.value)) return [];
    return [{ path, before: old.value, now: setting.value, change }];
  });
}
