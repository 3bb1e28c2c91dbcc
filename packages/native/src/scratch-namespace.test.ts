import { constants } from 'node:os';
import { expect, test } from 'vitest';
import type { OpenedFile } from './addon.ts';
import { openScratchNamespace } from './scratch-namespace.ts';

/** An addon whose namespace comes when the test resolves it. */
class ScriptedAddon {
  readonly made = Promise.withResolvers<OpenedFile>();
  readonly closed: number[] = [];

  makeNamespace(): Promise<OpenedFile> {
    return this.made.promise;
  }

  close(fd: number): void {
    this.closed.push(fd);
  }
}

const { signal } = new AbortController();

test('a namespace is closed once', async () => {
  const addon = new ScriptedAddon();
  addon.made.resolve({ fd: 7, error: 0, syscall: '' });
  const namespace = await openScratchNamespace(signal, addon);
  expect(namespace.path).toBe('/proc/self/fd/7');
  namespace[Symbol.dispose]();
  namespace[Symbol.dispose]();
  expect(addon.closed).toEqual([7]);
});

test('a refusal names the call and the errno', async () => {
  const addon = new ScriptedAddon();
  addon.made.resolve({ fd: -1, error: constants.errno.EPERM, syscall: 'unshare' });
  await expect(openScratchNamespace(signal, addon)).rejects.toThrow('unshare failed with EPERM');
});

test('an abort ends the wait, and a namespace that comes later is closed', async () => {
  const addon = new ScriptedAddon();
  const controller = new AbortController();
  const opening = openScratchNamespace(controller.signal, addon);
  controller.abort(new Error('enough'));
  await expect(opening).rejects.toThrow('enough');
  addon.made.resolve({ fd: 9, error: 0, syscall: '' });
  await addon.made.promise;
  await Promise.resolve();
  expect(addon.closed).toEqual([9]);
});
