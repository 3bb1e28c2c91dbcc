import { expect, test } from 'vitest';
import { refuseBesideUnreadyProxy } from './kube-proxy.ts';

const help =
  '# HELP kubeproxy_sync_proxy_rules_last_timestamp_seconds The last time proxy rules were successfully synced\n';
const queued = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds 1.7e+09\n';
const synced = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds';

test.each([
  ['has synced no family', `${help}${queued}`],
  ['has synced no family and has one metric for both', `${queued}${synced} 0\n`],
  ['has synced neither family', `${queued}${synced}{ip_family="IPv4"} 0\n${synced}{ip_family="IPv6"} 0\n`],
])('a clean-up is refused beside a kube-proxy that %s', async (_, page) => {
  await expect(refuseBesideUnreadyProxy(async () => page)).rejects.toThrow(/^cannot clean up: .* nothing was removed/);
});

test.each([
  ['nothing answers', undefined],
  ['another program answers', 'go_goroutines 5\n'],
  ['kube-proxy has synced', `${queued}${synced} 1.7e+09\n`],
  ['kube-proxy has synced a family', `${help}${queued}${synced}{ip_family="IPv4"} 1.763e+09\n`],
])('a clean-up goes on where %s', async (_, page) => {
  await expect(refuseBesideUnreadyProxy(async () => page)).resolves.toBeUndefined();
});
