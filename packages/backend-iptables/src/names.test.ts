import { type Protocol, serviceKey, servicePortKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { endpointChain, portNameOf, serviceChain } from './names.ts';

const key = (namespace: string, name: string, port: string, protocol: Protocol) =>
  servicePortKey(serviceKey(namespace, name), port, protocol);

test.each([
  ['default', 'kubernetes', 'https', 'TCP', 'KUBE-SVC-NPX46M4PTMTKRN6Y'],
  ['kube-system', 'kube-dns', 'dns', 'UDP', 'KUBE-SVC-TCOU7JCQXEZGVUNU'],
  ['kube-system', 'kube-dns', 'dns-tcp', 'TCP', 'KUBE-SVC-ERIFXISQEP7F7OF4'],
] as const)('%s/%s:%s over %s has the chain that every cluster has: %s', (namespace, name, port, protocol, chain) => {
  expect(serviceChain('SVC', key(namespace, name, port, protocol), protocol)).toBe(chain);
});

test('a port without a name is called by its Service alone', () => {
  expect(portNameOf(key('shop', 'cart', '', 'TCP'))).toBe('shop/cart');
  expect(portNameOf(key('shop', 'cart', 'http', 'TCP'))).toBe('shop/cart:http');
});

test('chains of a Service port differ by kind only, those of its endpoints by address and port', () => {
  const cart = key('shop', 'cart', 'http', 'TCP');
  const [svc, ext] = [serviceChain('SVC', cart, 'TCP'), serviceChain('EXT', cart, 'TCP')];
  expect(ext).toBe(svc.replace('SVC', 'EXT'));
  const names = ['10.0.0.1:80', '10.0.0.1:81', '10.0.0.2:80'].map((text) => endpointChain(cart, 'TCP', text));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^KUBE-SEP-[A-Z2-7]{16}$/);
});
