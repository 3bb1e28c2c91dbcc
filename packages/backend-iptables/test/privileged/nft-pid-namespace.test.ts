import { fileURLToPath } from 'node:url';
import { seconds } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { expect, test } from 'vitest';
import { createNamespace, signal } from './support.ts';

const script = fileURLToPath(new URL('apply-and-watch.ts', import.meta.url));

test('in a pid namespace, as in a container, own writes are distinguished from foreign ones', async () => {
  await using namespace = await createNamespace();
  const node = [process.execPath, '--conditions=@switchyard/source', script, namespace.path];
  const result = await createCommandRunner().run('unshare', ['--pid', '--fork', '--mount-proc', ...node], {
    timeout: seconds(60),
    signal,
  });
  expect(result.stderr).toBe('');
  expect(JSON.parse(result.stdout)).toMatchObject({
    outcome: { status: 'applied' },
    pid: 1,
    before: [],
    after: [
      {
        kind: 'rule',
        changes: ['rule added to chain KUBE-SERVICES (table ip nat)'],
        process: { name: 'iptables-nft' },
      },
    ],
  });
});
