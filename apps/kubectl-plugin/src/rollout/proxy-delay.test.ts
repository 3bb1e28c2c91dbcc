import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { measureDelay } from './proxy-delay.ts';

const { signal } = new AbortController();

/** A metrics page with these counts: up to 0.5 s, 1 s, 2 s, and all. */
function page(counts: readonly number[], family = 'IPv4'): string {
  const name = 'kubeproxy_network_programming_duration_seconds';
  const bounds = ['0.5', '1', '2', '+Inf'];
  const lines = bounds.map((bound, index) => `${name}_bucket{ip_family="${family}",le="${bound}"} ${counts[index]}`);
  return ['# TYPE other counter', 'other{le="1"} 7', `# TYPE ${name} histogram`, ...lines, `${name}_sum 1`, ''].join(
    '\n',
  );
}

async function measure(...answers: readonly (string | number)[]): ReturnType<typeof measureDelay> {
  const server = createServer(({ url }, response) => {
    const answer = answers[Number(url?.split('/')[1])] ?? 404;
    if (typeof answer === 'number') response.statusCode = answer;
    response.end(url?.endsWith('/metrics') === true ? String(answer) : '');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const proxies = answers.map((_, index) => ({
      pod: `kube-proxy-${index}`,
      url: `http://127.0.0.1:${port}/${index}`,
    }));
    return await measureDelay(proxies, signal);
  } finally {
    server.close();
  }
}

test('99 of 100 changes of all nodes and families were applied after the delay', async () => {
  expect(await measure(page([0, 10, 20, 20]), page([0, 40, 80, 80]))).toEqual({
    longest: 1980,
    changes: 100,
    nodes: 2,
  });
  const both = `${page([0, 50, 50, 50])}${page([0, 0, 50, 50], 'IPv6')}`;
  expect(await measure(both)).toEqual({ longest: 1980, changes: 100, nodes: 1 });
});

test('changes that took longer than the last bound count as that', async () => {
  expect(await measure(page([0, 0, 90, 100]))).toMatchObject({ longest: 2000 });
});

test.each<[what: string, answer: string | number, why: string]>([
  ['with few changes', page([19, 19, 19, 19]), 'it has counted 19 changes of endpoints'],
  ['without the metric', 'up 1\n', 'it has counted 0 changes of endpoints'],
  ['that refuses', 403, 'metrics of kube-proxy-0: HTTP status 403'],
])('a kube-proxy %s says nothing', async (_, answer, why) => {
  await expect(measure(answer)).rejects.toThrow(why);
});
