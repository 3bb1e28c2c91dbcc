import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startHarness } from './harness.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const title = hasOpenssl ? 'HTTPS' : 'HTTPS (skipped: no openssl in PATH to make a certificate with)';

test.skipIf(!hasOpenssl)(title, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-tls-'));
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=lab', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const how = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  execFileSync('openssl', [...how, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  const [key, cert] = [readFileSync(keyFile, 'utf8'), readFileSync(certFile, 'utf8')];
  rmSync(folder, { recursive: true });
  await using api = await startHarness({ tls: { key, cert } });
  expect(api.url).toMatch(/^https:/);
  const protocol = await new Promise((resolve, reject) => {
    const outgoing = request(new URL('/readyz', api.url), { ca: cert }, (response) => {
      const { socket } = response;
      resolve('getProtocol' in socket && typeof socket.getProtocol === 'function' ? socket.getProtocol() : 'none');
      response.resume();
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
  expect(protocol).toBe('TLSv1.3');
});
