import type { EventRecorder, RecordedEvent } from '@switchyard/core';

/** More events than this before there is a recorder help nobody. */
const maxKept = 100;

/** Keeps what is recorded before the real recorder is there, and hands it over then. */
export class EarlyEvents implements EventRecorder {
  #kept: RecordedEvent[] = [];
  #recorder: EventRecorder | undefined;

  record(event: RecordedEvent): void {
    if (this.#recorder !== undefined) this.#recorder.record(event);
    else if (this.#kept.length < maxKept) this.#kept.push(event);
  }

  /** From now on everything goes to `recorder`, beginning with what was kept. */
  connect(recorder: EventRecorder): void {
    this.#recorder = recorder;
    for (const event of this.#kept.splice(0)) recorder.record(event);
  }
}
