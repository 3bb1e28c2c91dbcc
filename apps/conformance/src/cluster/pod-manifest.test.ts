import { expect, test } from 'vitest';
import { podManifest } from './start-pods.ts';

const settings = { run: 'r', namespace: 'ns', image: 'img', command: undefined, tokenDigest: 'abc' };

test.each([true, false])('a pod has no right, whether on the host network (%s) or not', (isOnHostNetwork) => {
  const { spec } = podManifest({ name: 'p', node: 'n', isOnHostNetwork, port: 21_000 }, settings);
  expect(spec).toMatchObject({
    hostNetwork: isOnHostNetwork,
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  });
  expect(spec?.containers[0]?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  expect(spec?.containers[0]?.args).toEqual('--pod p --node n --port 21000 --token-digest abc'.split(' '));
  expect(spec?.containers[0]).not.toHaveProperty('command');
});

test("a command stands in the place of the image's own", () => {
  const { spec } = podManifest(
    { name: 'p', node: 'n', isOnHostNetwork: false, port: 1 },
    { ...settings, command: ['node', 'pod.js'] },
  );
  expect(spec?.containers[0]?.command).toEqual(['node', 'pod.js']);
});
