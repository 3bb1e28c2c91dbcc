import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hostIpFamilies } from './ip-families.ts';

test('a kernel without IPv6 has no list of IPv6 addresses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(hostIpFamilies(folder)).toEqual(['IPv4']);
  writeFileSync(join(folder, 'if_inet6'), '');
  expect(hostIpFamilies(folder)).toEqual(['IPv4', 'IPv6']);
});
