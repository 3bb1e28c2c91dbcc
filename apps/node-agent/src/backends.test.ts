import { InvariantError } from '@switchyard/core';
import { agentModes } from '@switchyard/lab';
import { describe, expect, test } from 'vitest';
import { backendOf, registerBackend, registeredBackends, traitsOf } from './backends.ts';
import { proxyModeNamed } from './config/proxy-mode.ts';

describe('the registry of backends', () => {
  test('has the modes that the lab starts agents with', () => {
    expect(registeredBackends().map(({ traits }) => traits.name)).toEqual(agentModes);
  });

  test.each(registeredBackends())('loads the backend of $traits.name', async ({ traits, load }) => {
    expect((await load()).name).toBe(traits.name);
    expect(traitsOf(traits.name)).toBe(traits);
  });

  test('refuses a second backend of a name, and knows no other names', () => {
    const [first] = registeredBackends();
    expect(() => registerBackend({ ...backendOf('nftables') })).toThrow(InvariantError);
    expect(() => backendOf('ipvs')).toThrow('there is no backend for --proxy-mode ipvs');
    expect(registeredBackends()[0]).toBe(first);
  });

  test('a backend that is added is a mode of the configuration', () => {
    expect(proxyModeNamed('added')).toBe('iptables');
    registerBackend({ ...backendOf('nftables'), traits: { ...traitsOf('nftables'), name: 'added' } });
    expect(proxyModeNamed('added')).toBe('added');
  });
});
