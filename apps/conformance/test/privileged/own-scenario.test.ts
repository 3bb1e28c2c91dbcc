import { listLabs } from '@switchyard/lab';
import { expect, test } from 'vitest';
import { runScenario } from '../../src/run-scenario.ts';

const text = `name: n
why: w
given: { services: [{ name: shop/cart, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }] }
steps: [{ from: pod, to: '10.96.0.10:80/TCP', expect: reject }]
`;

test('runScenario removes its lab when its signal aborts, and rejects with the reason', async () => {
  const stop = new AbortController();
  const reason = new Error('enough');
  const run = runScenario(
    {
      scenario: { name: 'cart', text },
      proxy: { backend: 'nftables' },
      labName: 'owns',
      onProgress: ({ kind }) => {
        if (kind === 'caseStarted') stop.abort(reason);
      },
    },
    stop.signal,
  );
  await expect(run).rejects.toBe(reason);
  expect((await listLabs()).filter(({ name }) => name.startsWith('owns'))).toEqual([]);
});
