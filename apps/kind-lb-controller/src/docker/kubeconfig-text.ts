import { HostError, tryParseIp } from '@switchyard/core';

/**
 * The text of kubeadm's `admin.conf` with another server: its certificate is still checked for the name that it had, which is always among the
 * certificate's. `server` is such as `https://127.0.0.1:41231`. Throws `HostError` if there is not exactly one server in the text.
 */
export function withServer(kubeconfig: string, server: string): string {
  const lines = [...kubeconfig.matchAll(/^(?<indent>[ \t]*)server:[ \t]*["']?(?<url>[^\s"']+)["']?[ \t]*$/gm)];
  const [line] = lines;
  const original = URL.parse(line?.groups?.['url'] ?? '');
  if (line === undefined || lines.length > 1 || original === null) {
    throw new HostError('docker.kubeconfig', `admin.conf has ${lines.length} lines 'server: URL' instead of one`);
  }
  const indent = line.groups?.['indent'] ?? '';
  const host = original.hostname.replace(/^\[|\]$/g, '');
  const name = tryParseIp(host) === undefined ? `\n${indent}tls-server-name: ${host}` : '';
  return kubeconfig.replace(line[0], `${indent}server: ${server}${name}`);
}
