import { expect, test } from 'vitest';
import { apiResources } from '@switchyard/core/kubernetes';
import { until } from '../../privileged/agent-log.ts';
import { staleRules } from './injection.ts';
import { observedProxy, openLossSite } from './loss-site.ts';

// A proxy that is behind leads connections to a deleted pod. Its address leads out of the node, so that no kernel here drops a packet.

const { signal } = new AbortController();

test('why names a deleted endpoint although nothing was dropped, and nothing after the proxy caught up', async () => {
  await using site = await openLossSite(observedProxy('nftables'), signal);
  const stale = staleRules('', 'staleRule', ['TCP'], 'leadsAway');
  const injection = await stale.inject(site, { ipFamily: 'IPv4', service: 'waits', targetPort: 8100 });
  const place = { namespace: 'default', name: 'waits' };
  const service = await site.cluster.api.get(apiResources.services, place, signal);
  const to = `${service.spec?.clusterIP}:80/TCP`;

  const lost = await site.why(site.callerPod, to, 3);
  expect(lost).toMatchObject({ verdict: 'lost', certainty: 'likely', losses: [{ cause: 'staleRule', count: 3 }] });
  expect(lost.why).toMatch(/^a connection waits for an answer from .*, which is no endpoint of default\/waits/);

  await injection.undo?.();
  await until(async () => (await site.why(site.callerPod, to, 3)).verdict === 'works');
  expect(await site.why(site.callerPod, to, 3)).toMatchObject({ verdict: 'works', losses: [] });
});
