import type { ForwardingTable } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { Driven } from './support.ts';

// The text of a whole Service and of settings, for readers; every-flow.test.ts of packages/scenarios looks at all others.
// Regenerate with `vitest run -u`; in CI a difference, or a golden that is not there, fails.
const situations: Readonly<Record<string, ForwardingTable>> = {
  'external-local': situation({
    cart: {
      ports: [{ port: 80, nodePort: 30080 }],
      external: 'Local',
      loadBalancerIps: ['198.51.100.7'],
      externalIps: ['198.51.100.8'],
      endpoints: [here('10.244.1.5'), there('10.244.2.5')],
    },
  }),
  settings: situation(
    {},
    {
      podCidr: '10.200.0.0/14',
      nodePortCidrs: ['192.0.2.0/24', '10.0.0.0/8', '10.1.0.0/16'],
      serviceCidrs: ['10.96.0.0/12'],
    },
  ),
};

test.each(Object.entries(situations))('%s', async (name, table) => {
  const driven = await Driven.open(undefined, table.ipFamily);
  await driven.full(table);
  const dump = (await driven.dump()).replace(/^/gm, '# ').trimEnd();
  const text = `# What switchyard-agent --switchyard-dump says:\n#\n${dump}\n\n${driven.script}`;
  await expect(text).toMatchFileSnapshot(`../golden/${name}.nft`);
});
