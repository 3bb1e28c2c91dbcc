import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mirrorIn, parseSimulation } from './apt.ts';

test('what apt would install is read from its simulation, upgrades and foreign architectures too', () => {
  const text = [
    'The following NEW packages will be installed:',
    'Inst libc6 (2.36-9+deb12u14 Debian:12.12/oldstable [arm64]) []',
    'Inst ca-certificates [1] (20230311 Debian:12/stable, Debian-Security [all])',
    'Inst libfoo:amd64 (2:1.0 Debian:12/stable [amd64])',
    'Conf libc6 (2.36-9+deb12u14 Debian:12/stable [arm64])',
  ].join('\n');
  assert.deepEqual(parseSimulation(text), [
    { name: 'ca-certificates', version: '20230311', architecture: 'all' },
    { name: 'libc6', version: '2.36-9+deb12u14', architecture: 'arm64' },
    { name: 'libfoo', version: '2:1.0', architecture: 'amd64' },
  ]);
});

test("this machine's mirror of Debian is read out of apt's sources", () => {
  const deb822 =
    'Types: deb\n# http://snapshot.debian.org/archive/debian/2025\nURIs: http://mirror.example/debian\nSuites: bookworm\n';
  assert.equal(
    mirrorIn(`deb https://deb.nodesource.com/node_20.x nodistro main\n${deb822}`),
    'http://mirror.example/debian',
  );
  assert.equal(
    mirrorIn('# deb http://old/debian x\ndeb [arch=amd64] https://new.example/debian/ bookworm main'),
    'https://new.example/debian/',
  );
  assert.equal(mirrorIn('URIs: http://security.debian.org/debian-security\n'), undefined);
});
