import type { ForwardingTable } from '@switchyard/core';
import type { ElementGroup } from './service-elements.ts';
import type { ObjectName } from '../render/names.ts';
import { renderSettings } from '../render/render-settings.ts';

/** The interval sets as they are in the kernel. */
export class AppliedSettings {
  readonly #content = new Map<ObjectName, string>();

  /** Adopts what was read from the kernel; what is not named is empty. */
  adopt(settings: ReadonlyMap<ObjectName, readonly string[]>): void {
    this.#content.clear();
    for (const [object, content] of settings) this.#content.set(object, content.join(', '));
  }

  /** The changes to the settings of the table. */
  groups(table: ForwardingTable): readonly ElementGroup[] {
    const changes = renderSettings(table).filter(
      ({ object, content }) => (this.#content.get(object) ?? '') !== content.join(', '),
    );
    const settle = (isApplied: boolean): void => {
      if (!isApplied) return;
      for (const { object, content } of changes) this.#content.set(object, content.join(', '));
    };
    return [{ owner: { kind: 'settings' }, plan: () => changes, settle }];
  }
}
