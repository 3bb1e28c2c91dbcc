import { expect, test } from 'vitest';
import { mountBpffs } from './mounts.ts';

test.each([
  ['/sys/none', '/sys/none'],
  ['/proc/none/bpf', '/proc/none'],
])('where no folder can be made, %s, that is said at once', (path, folder) => {
  expect(() => mountBpffs(path)).toThrow(
    new RegExp(`^cannot make the folder ${folder}, to mount a bpffs: mkdir failed with E[A-Z]+; name a folder where`),
  );
});
