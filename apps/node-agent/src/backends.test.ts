import { InvariantError } from '@switchyard/core';
import { agentModes } from '@switchyard/lab';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
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

  test('a backend that is added is a mode of the configuration', async () => {
    vi.resetModules(); // a registry for this test alone; the next file of this worker gets a third one
    onTestFinished(() => void vi.resetModules());
    const [{ registerBackend: register }, { proxyModeNamed: named }] = await Promise.all([
      import('./backends.ts'),
      import('./config/proxy-mode.ts'),
    ]);
    expect(named('added')).toBe('iptables');
    register({ ...backendOf('nftables'), traits: { ...traitsOf('nftables'), name: 'added' } });
    expect(named('added')).toBe('added');
    expect(proxyModeNamed('added')).toBe('iptables');
  });
});
