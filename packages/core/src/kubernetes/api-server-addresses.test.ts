import { expect, test } from 'vitest';
import { ScriptedApiServer } from '../testing/scripted-api-server.ts';
import { systemClock } from '../base/time.ts';
import { newApiClient } from './api-client.ts';
import { anonymousConnection, ApiServerAddresses } from './api-server-connection.ts';

const spelled = (addresses: ApiServerAddresses): readonly string[] =>
  addresses.current.map(({ address, port }) => `${address} ${port}`);

test.each([
  ['https://192.0.2.1:6443', ['192.0.2.1 6443']],
  ['https://192.0.2.1', ['192.0.2.1 443']],
  ['http://192.0.2.1/prefix', ['192.0.2.1 80']],
  ['https://[2001:db8::1]:6443', ['2001:db8::1 6443']],
  ['https://api.example.com:6443', []],
])('%s is known before a connection as %j', (url, expected) => {
  expect(spelled(new ApiServerAddresses(new URL(url)))).toEqual(expected);
});

test('a name is known by the addresses it was resolved to; a change calls the listener, a repetition does not', () => {
  const addresses = new ApiServerAddresses(new URL('https://api.example.com:6443'));
  let changes = 0;
  addresses.onChange(() => void changes++);
  for (const text of ['192.0.2.1', '2001:db8::1', '192.0.2.1', 'api.example.com']) addresses.note(text);
  expect(spelled(addresses)).toEqual(['192.0.2.1 6443', '2001:db8::1 6443']);
  expect(changes).toBe(2);
  const { current } = addresses;
  addresses.note('192.0.2.1');
  expect(addresses.current).toBe(current);
});

test('of a name that changes all the time the last 16 addresses are known', () => {
  const addresses = new ApiServerAddresses(new URL('https://api.example.com'));
  for (let index = 0; index < 100; index++) addresses.note(`192.0.2.${index}`);
  expect(spelled(addresses)).toHaveLength(16);
  expect(spelled(addresses).at(-1)).toBe('192.0.2.99 443');
});

test('a connection by name notes the address before it stands', async () => {
  await using server = await ScriptedApiServer.listen();
  server.serve('/x', (exchange) => exchange.answer(200, {}));
  const url = new URL(server.url);
  url.hostname = 'localhost';
  const addresses = new ApiServerAddresses(url);
  const onAddress = (address: string): void => addresses.note(address);
  await using client = newApiClient(anonymousConnection(url), { clock: systemClock, userAgent: 'test', onAddress });
  const request = { path: '/x', query: new URLSearchParams() };
  await client.get(request, async () => undefined, new AbortController().signal);
  expect(spelled(addresses)).toContain(`127.0.0.1 ${url.port}`);
});
