import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { millis, parseIp, seconds } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderBase } from '../../src/haproxy/render-base.ts';
import { type HaproxyConfiguration, renderHaproxy } from '../../src/haproxy/render-haproxy.ts';
import type { LoadBalancerSpec, PortSpec } from '../../src/spec/load-balancer-spec.ts';
import { exampleSpec, exampleSpecs, nodeTargets, portSpec } from '../../src/testing/example-specs.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const render = (specs: readonly LoadBalancerSpec[]): HaproxyConfiguration =>
  renderHaproxy({ specs, ownAddresses: [], weightsPrefix: '/run/switchyard-lb/weights-' });

/** All lines that there are, each in one of them at least. */
const goldens = Object.entries(exampleSpecs).filter(([name]) => !['last-up', 'two-ports', 'weighted'].includes(name));

test.each(goldens)('%s renders as its golden', async (name, specs) => {
  const { text, weights } = render(specs);
  await expect(text).toMatchFileSnapshot(`../golden/${name}.cfg`);
  if (weights !== undefined) await expect(weights.text).toMatchFileSnapshot(`../golden/${name}.lua`);
});

describe.each(Object.entries(exampleSpecs))('%s', (name, specs) => {
  const rendered = render(specs);

  test('is accepted by the real HAProxy', async () => {
    const [base, file] = [join(folder, 'base.cfg'), join(folder, `${name}.cfg`)];
    const serverState = join(folder, 'servers');
    writeFileSync(serverState, '1\n');
    writeFileSync(base, renderBase({ adminSocket: join(folder, 'admin.sock'), serverState }));
    const { text, weights } = renderHaproxy({ specs, ownAddresses: [], weightsPrefix: join(folder, 'weights-') });
    writeFileSync(file, text);
    if (weights !== undefined) writeFileSync(weights.path, weights.text);
    const options = { timeout: seconds(9), signal: new AbortController().signal };
    const env = { PATH: `${process.env['PATH']}:/usr/sbin` };
    const result = await createCommandRunner().run('haproxy', ['-c', '-f', base, '-f', file], { ...options, env });
    expect(result.stderr).not.toMatch(/ALERT|WARNING/);
    expect(result.exitCode).toBe(0);
  });

  test('does not depend on the order of the input', () => {
    expect(render([...specs].reverse())).toEqual(rendered);
  });
});

test('nodes that are DOWN are checked soon after a reload, where the profile checks them often', () => {
  const textOf = (downInterval: number): string => {
    const spec = exampleSpec('web');
    const profile = { ...spec.profile, interval: seconds(5), downInterval: millis(downInterval) };
    return renderHaproxy({ specs: [{ ...spec, profile }], ownAddresses: [], weightsPrefix: '/w-' }).text;
  };
  expect(textOf(250)).toContain('\nglobal\n    max-spread-checks 250ms\n');
  expect(textOf(5000)).not.toContain('max-spread-checks');
});

test('published ports are served on the own addresses of their family too', () => {
  const ownAddresses = ['172.18.0.7', 'fc00::7'].map(parseIp);
  const { text } = renderHaproxy({ specs: [exampleSpec('web')], ownAddresses, weightsPrefix: '' });
  expect(text.match(/bind .*/g)).toEqual(['bind 172.18.255.1:80', 'bind 172.18.0.7:80']);
});

test('announcements are for load balancers all of whose traffic goes through HAProxy', () => {
  const programOf = (ports: readonly PortSpec[]): string | undefined => {
    const specs = [exampleSpec('web', { ports, isWeighted: true })];
    return renderHaproxy({ specs, ownAddresses: [], weightsPrefix: '' }).weights?.text;
  };
  const tcp = portSpec(53, nodeTargets(30053));
  expect(programOf([tcp])).toContain('announcing = { { "kind:default:web:53:ipv4" } }');
  expect(programOf([tcp, portSpec(53, nodeTargets(30053), 'UDP')])).toContain('announcing = {  }');
});
