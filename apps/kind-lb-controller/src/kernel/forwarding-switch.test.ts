import { describe, expect, test } from 'vitest';
import { ensureForwarding } from './forwarding-switch.ts';
import type { KernelSettings } from './kernel-settings.ts';

const { signal } = new AbortController();
const ipForward = '/proc/sys/net/ipv4/ip_forward';
const redirects = '/proc/sys/net/ipv4/conf/all/send_redirects';
const ownRedirects = '/proc/sys/net/ipv4/conf/eth0/send_redirects';

/** Settings in memory; `writes` are those that were written. */
function memorySettings(values: Readonly<Record<string, string>>): KernelSettings & { readonly writes: string[] } {
  const writes: string[] = [];
  return {
    writes,
    read: (path) => Promise.resolve(values[path]),
    write: (path, value) => {
      writes.push(`${path} ${value}`);
      return Promise.resolve();
    },
  };
}

describe('set', () => {
  const options = { ipFamily: 'IPv4', mode: 'set', interfaceName: 'eth0' } as const;

  test('forwarding that is off is switched on, and redirects past the load balancer are off', async () => {
    const settings = memorySettings({ [ipForward]: '0', [redirects]: '1', [ownRedirects]: '1' });
    await ensureForwarding(settings, options, signal);
    expect(settings.writes).toEqual([`${ipForward} 1`, `${redirects} 0`, `${ownRedirects} 0`]);
  });

  test('nothing is written where all is right', async () => {
    const settings = memorySettings({ [ipForward]: '1', [redirects]: '0', [ownRedirects]: '0' });
    await ensureForwarding(settings, options, signal);
    expect(settings.writes).toEqual([]);
  });
});

describe('check', () => {
  test.each([
    { ipFamily: 'IPv4', path: ipForward, setting: 'net.ipv4.ip_forward' },
    { ipFamily: 'IPv6', path: '/proc/sys/net/ipv6/conf/all/forwarding', setting: 'net.ipv6.conf.all.forwarding' },
  ] as const)('$setting has to be on, and is never written', async ({ ipFamily, path, setting }) => {
    const options = { ipFamily, mode: 'check', interfaceName: 'eth0' } as const;
    const off = memorySettings({ [path]: '0' });
    await expect(ensureForwarding(off, options, signal)).rejects.toThrow(`need ${setting}, which is off`);
    const on = memorySettings({ [path]: '1' });
    await ensureForwarding(on, options, signal);
    expect([...off.writes, ...on.writes]).toEqual([]);
  });
});
