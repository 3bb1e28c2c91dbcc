import { type Protocol, serviceKey, servicePortKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { endpointChain, portNameOf, serviceChains } from './service-chains.ts';

const key = (namespace: string, name: string, port: string, protocol: Protocol) =>
  servicePortKey(serviceKey(namespace, name), port, protocol);

test.each([
  ['default', 'kubernetes', 'https', 'TCP', 'KUBE-SVC-NPX46M4PTMTKRN6Y'],
  ['kube-system', 'kube-dns', 'dns', 'UDP', 'KUBE-SVC-TCOU7JCQXEZGVUNU'],
  ['kube-system', 'kube-dns', 'dns-tcp', 'TCP', 'KUBE-SVC-ERIFXISQEP7F7OF4'],
] as const)('%s/%s:%s over %s has the chain that every cluster has: %s', (namespace, name, port, protocol, chain) => {
  expect(serviceChains(key(namespace, name, port, protocol), protocol).SVC).toBe(chain);
});

test('a port without a name is called by its Service alone', () => {
  expect(portNameOf(key('shop', 'cart', '', 'TCP'))).toBe('shop/cart');
  expect(portNameOf(key('shop', 'cart', 'http', 'TCP'))).toBe('shop/cart:http');
});

test('chains of a Service port differ by kind only, those of its endpoints by address and port', () => {
  const cart = key('shop', 'cart', 'http', 'TCP');
  const { SVC: svc, EXT: ext } = serviceChains(cart, 'TCP');
  expect(ext).toBe(svc.replace('SVC', 'EXT'));
  const names = ['10.0.0.1:80', '10.0.0.1:81', '10.0.0.2:80'].map((text) => endpointChain(cart, 'TCP', text));
  expect(new Set(names).size).toBe(3);
  for (const name of names) expect(name).toMatch(/^KUBE-SEP-[A-Z2-7]{16}$/);
});

// Of kube-proxy's own tests.
test('names are those of kube-proxy for endpoints and all kinds of chains', () => {
  const key1 = key('ns1', 'svc1', 'p80', 'TCP');
  expect(endpointChain(key1, 'TCP', '10.180.0.1:80')).toBe('KUBE-SEP-SXIVWICOYRO3J4NJ');
  expect(serviceChains(key1, 'TCP').SVC).toBe('KUBE-SVC-XPGD46QRK7WJZT7O');
  expect(serviceChains(key('ns2', 'svc2', 'p80', 'TCP'), 'TCP')).toEqual({
    SVC: 'KUBE-SVC-GNZBNJ2PO5MGZ6GT',
    SVL: 'KUBE-SVL-GNZBNJ2PO5MGZ6GT',
    EXT: 'KUBE-EXT-GNZBNJ2PO5MGZ6GT',
    FW: 'KUBE-FW-GNZBNJ2PO5MGZ6GT',
  });
});
