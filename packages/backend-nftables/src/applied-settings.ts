import type { ForwardingTable } from '@switchyard/core';
import type { ElementGroup } from './change-writer.ts';
import type { ObjectName } from './names.ts';
import { renderSettings, settingChange } from './render-settings.ts';

/** The interval sets as they are in the kernel. */
export class AppliedSettings {
  readonly #content = new Map<ObjectName, string>();

  /** Takes over what was read from the kernel; what is not named is empty. */
  adopt(settings: ReadonlyMap<ObjectName, readonly string[]>): void {
    this.#content.clear();
    for (const [object, content] of settings) this.#content.set(object, content.join(', '));
  }

  /** What makes the settings those of the table; undefined when they are. */
  plan(table: ForwardingTable): ElementGroup | undefined {
    const changed = renderSettings(table).filter(
      ({ object, content }) => (this.#content.get(object) ?? '') !== content.join(', '),
    );
    if (changed.length === 0) return undefined;
    const settle = (isApplied: boolean): void => {
      if (!isApplied) return;
      for (const { object, content } of changed) this.#content.set(object, content.join(', '));
    };
    return { owner: { kind: 'settings' }, changes: changed.map(settingChange), settle };
  }
}
