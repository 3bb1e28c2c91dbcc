import { expect, test } from 'vitest';
import { kubeProxyPort } from './kube-proxy.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, state: string): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n`;
const any6 = '00000000000000000000000000000000';

test.each([
  [
    'on the health port, of any address',
    { '/proc/net/tcp6': line(`${any6}:2810`, '0A').replace(' 00000000:0000 ', ` ${any6}:0000 `) },
    10_256,
  ],
  ['on the metrics port, of loopback', { '/proc/net/tcp': line('0100007F:2809', '0A') }, 10_249],
  ['not where a connection only uses the port', { '/proc/net/tcp': line('0100007F:2810', '01') }, undefined],
  ['not on other ports', { '/proc/net/tcp': line('0100007F:0050', '0A') }, undefined],
  ['not on a machine without these files', {}, undefined],
])('a kube-proxy listens %s', (_, tables: Readonly<Record<string, string>>, expected) => {
  const read = (path: string): string | undefined => (tables[path] === undefined ? undefined : head + tables[path]);
  expect(kubeProxyPort({ read, write: () => undefined })).toBe(expected);
});
