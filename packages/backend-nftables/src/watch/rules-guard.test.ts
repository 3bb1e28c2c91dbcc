import { noopLogger } from '@switchyard/core';
import { MessageWriter, type NetlinkSocket } from '@switchyard/native';
import { expect, test } from 'vitest';
import { RulesGuard } from './rules-guard.ts';

/** Answers that there is no table; a silent one answers nothing. */
class Socket implements NetlinkSocket {
  readonly portId = 7;
  isOpen = true;
  readonly #isSilent: boolean;
  #isAsked = false;

  constructor(isSilent: boolean) {
    this.#isSilent = isSilent;
  }

  send(): void {
    this.#isAsked = !this.#isSilent;
  }

  receive(buffer: Uint8Array): number | undefined {
    if (!this.#isAsked) return undefined;
    this.#isAsked = false;
    const writer = new MessageWriter();
    writer.beginMessage({ type: 2, flags: 0, sequence: 1 });
    writer.uint32(-2 >>> 0); // ENOENT
    writer.endMessage();
    buffer.set(writer.bytes());
    return writer.length;
  }

  async readable(): Promise<void> {
    // it has answered when `send` returns
  }

  [Symbol.dispose](): void {
    this.isOpen = false;
  }
}

test('after an answer that broke off it goes on with a new socket: what is left of the answer counts for nothing', () => {
  const sockets = [new Socket(true), new Socket(false)];
  let next = 0;
  using guard = new RulesGuard({ logger: noopLogger, open: () => sockets[next++]! });
  expect(() => guard.areRight('switchyard')).toThrow(/the kernel ended an answer in the middle; will be tried again/);
  expect(sockets[0]!.isOpen).toBe(false);
  expect(guard.areRight('switchyard')).toBe(false);
  expect(next).toBe(2);
});
