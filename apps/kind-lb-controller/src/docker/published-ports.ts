import type { PublishedPort } from './container-inspect.ts';

/** For people: `127.0.0.1:32768 -> 80/TCP`, by port, then protocol. */
export function publishedTexts(published: readonly PublishedPort[]): readonly string[] {
  return [...published]
    .sort((a, b) => Number.parseInt(a.port, 10) - Number.parseInt(b.port, 10) || (a.port < b.port ? -1 : 1))
    .map(({ port, hostAddress, hostPort }) => {
      const host = hostAddress.includes(':') ? `[${hostAddress}]` : hostAddress;
      return `${host}:${hostPort} -> ${port.toUpperCase()}`;
    });
}
