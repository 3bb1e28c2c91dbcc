import assert from 'node:assert/strict';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { version as controllerVersion } from '../../apps/kind-lb-controller/src/version.ts';
import {
  containerBaseFile,
  containerFiles,
  containerRunDirectory,
} from '../../apps/kind-lb-controller/src/worker/container-files.ts';
import { defaultImage as conformanceImage } from '../../apps/conformance/src/cluster/open-cluster-environment.ts';
import { root } from '../workspace.ts';
import { describeImage, nameLayers, withBaseHint } from './docker.ts';
import { appVersion, defaultTag } from './build-image.ts';
import { agentBackends, type ImageDefinition, type ImageName, images } from './definitions.ts';
import { bundledPackages, copyNpmLicences } from './app-layer.ts';

test("the images' launcher gives Node the flags, the setting and the bundle of the checkout's launchers", () => {
  const native = readFileSync(join(root, 'packages/native/cpp/image_launcher.cc'), 'utf8');
  const launchers = [...native.matchAll(/\{"([\w-]+)",\s*"([^"]+)",\s*\{([^}]*)\}\}/g)];
  assert.deepEqual(
    launchers.map(([, program]) => program),
    ['switchyard-agent', 'kube-proxy', 'switchyard-lb', 'switchyard-lb-worker'],
  );
  for (const [, program = '', bundle = '', flags = ''] of launchers) {
    const isLoadBalancer = program.startsWith('switchyard-lb');
    const script = isLoadBalancer ? 'kind-lb-controller/bin/switchyard-lb' : 'node-agent/bin/switchyard-agent';
    const shell = readFileSync(join(root, 'apps', script), 'utf8');
    const wanted = /exec "\$node" (--.*) "\$bundle" "\$@"/.exec(shell)?.[1]?.split(' ');
    assert.ok(wanted !== undefined && wanted.length > 0);
    assert.deepEqual(flags.match(/--[\w=-]+/g), wanted, program);
    assert.match(shell, /MALLOC_ARENA_MAX=1/);
    const folder = isLoadBalancer ? 'switchyard-lb' : 'switchyard';
    const file = program === 'switchyard-lb-worker' ? 'worker.mjs' : 'main.mjs';
    assert.equal(bundle, `/usr/local/lib/${folder}/${file}`);
  }
  assert.match(native, /"MALLOC_ARENA_MAX", "1"/);
});

test('HAProxy is started in a container with the files that the worker knows', () => {
  const native = readFileSync(join(root, 'packages/native/cpp/haproxy_launcher.cc'), 'utf8');
  const command = [...(/kCommand\[\] = \{([^}]*)\}/.exec(native)?.[1] ?? '').matchAll(/"([^"]*)"/g)].map(
    ([, part]) => part,
  );
  const master = ['-W', '-S', `${containerFiles.masterSocket},mode,660`];
  assert.deepEqual(command, ['/usr/sbin/haproxy', ...master, '-f', containerBaseFile, '-f', containerRunDirectory]);
  assert.equal(/kRunDirectory = "([^"]*)"/.exec(native)?.[1], containerRunDirectory);
  assert.ok(containerFiles.configuration.startsWith(`${containerRunDirectory}/`));
  for (const dockerfile of ['load-balancer', 'kind-lb-controller']) {
    const text = readFileSync(join(root, 'images', dockerfile, 'Dockerfile'), 'utf8');
    assert.ok(text.includes(`COPY --chown=65532:0 run/ ${containerRunDirectory}/\n`));
  }
});

test('every Dockerfile copies exactly the folders that its image has, and what images share comes first', () => {
  for (const [name, image] of Object.entries(images) as [string, ImageDefinition][]) {
    const dockerfile = readFileSync(join(root, 'images', image.dockerfile, 'Dockerfile'), 'utf8');
    const copied = [...dockerfile.matchAll(/^COPY (?:--\S+ )*(\w+)\//gm)].map(([, folder]) => folder);
    assert.deepEqual(copied, Object.keys(image.layers), name);
  }
  const sharing = Object.keys(images['kind-lb-controller'].layers).slice(0, -1);
  assert.deepEqual(sharing, Object.keys(images['load-balancer'].layers));
  assert.deepEqual(new Set(Object.values(images).map(({ layers }) => Object.keys(layers)[0])), new Set(['node']));
});

test("the agent's images carry no nft, and no manifest of it brings one", () => {
  for (const backend of agentBackends) {
    const image: ImageDefinition = images[`agent-${backend}`];
    for (const content of Object.values(image.layers)) {
      if (content.kind !== 'debian') continue;
      assert.ok(!content.of.packages.includes('nftables'), backend);
      for (const name of ['nft', 'nftables']) assert.doesNotMatch(name, content.of.programs, backend);
    }
    const dockerfile = readFileSync(join(root, 'images', image.dockerfile, 'Dockerfile'), 'utf8');
    assert.doesNotMatch(dockerfile, /apt-get|\bnft\b(?!ables)/, backend);
  }
  const manifests = globSync('deploy/**/*.{yaml,tpl}', { cwd: root });
  assert.ok(manifests.length > 5);
  for (const path of manifests) assert.doesNotMatch(readFileSync(join(root, path), 'utf8'), /\/s?bin\/nft\b/, path);
});

test('the manifests, the chart and the pages name what ./dev image builds by default', () => {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  const overlays = globSync('deploy/kustomize/overlays/*/kustomization.yaml', { cwd: root });
  const named = overlays.flatMap((path) => [...read(path).matchAll(/newName: (.*)\n +newTag: (.*)/g)]);
  assert.ok(named.length >= 4);
  const tags = agentBackends.map((backend) => defaultTag(`agent-${backend}`));
  assert.deepEqual(new Set(named.map(([, name, tag]) => `${name}:${tag}`)), new Set(tags));
  assert.match(read('deploy/helm/switchyard/Chart.yaml'), new RegExp(`^appVersion: ${appVersion('node-agent')}$`, 'm'));
  for (const page of ['docs/operate/migrate.md', 'deploy/README.md']) {
    const names = read(page).match(/switchyard\/agent-[\w.:-]*\w/g) ?? [];
    assert.deepEqual(new Set(names), new Set(tags), page);
  }
  const names = Object.keys(images) as ImageName[];
  const everyTag = new Set(names.filter((name) => name !== 'conformance').map((name) => defaultTag(name)));
  const inGuide = read('docs/operate/kind.md').match(/switchyard\/[a-z-]+:\d+\.\d+\.\d+/g) ?? [];
  // One name there is of an image that is not there.
  assert.deepEqual(new Set(inGuide.filter((name) => name !== 'switchyard/load-balancer:9.9.9')), everyTag);
  assert.equal(defaultTag('conformance'), conformanceImage);
  assert.equal(defaultTag('load-balancer'), `switchyard/load-balancer:${controllerVersion}`);
  assert.equal(defaultTag('agent-nftables', 'arm64'), `${defaultTag('agent-nftables')}-arm64`);
});

test('layers are named from the top, and what lies below is the base', () => {
  const history = [
    '0 /bin/sh -c #(nop) ENTRYPOINT',
    '0 COPY dir:1 in /run',
    '30 COPY agent/ / # buildkit',
    '0 ENV A=1',
  ];
  assert.deepEqual(
    nameLayers([...history, '20 COPY dir:2 in /', '0 CMD', '10 COPY dir:3 in /', '5 ADD x'], ['node', 'agent', 'run']),
    [
      { name: 'base', size: 5 },
      { name: 'base', size: 10 },
      { name: 'node', size: 20 },
      { name: 'agent', size: 30 },
      { name: 'run', size: 0 },
    ],
  );
});

test('a base that cannot be pulled leads to --local-base, another failure does not', () => {
  const base = 'gcr.io/distroless/cc-debian12';
  for (const said of [
    'Get "https://gcr.io/v2/": dial tcp 142.250.27.82:443: connect: network is unreachable',
    'Get "https://gcr.io/v2/": dial tcp: lookup gcr.io on 127.0.0.11:53: no such host',
    'Get "https://gcr.io/v2/": net/http: TLS handshake timeout',
    `ERROR: failed to solve: ${base}: failed to resolve source metadata for ${base}:latest: failed to do request`,
    'pull access denied for base, repository does not exist or may require docker login',
  ]) {
    const cause = new Error(`docker build exited with 1\n${said}`);
    const hinted = withBaseHint(cause, base);
    assert.ok(hinted instanceof Error);
    assert.equal(hinted.cause, cause);
    assert.ok(hinted.message.startsWith(`${cause.message}\nthe base ${base} cannot be pulled; --local-base builds`));
  }
  for (const said of [
    'COPY failed: file not found in build context: stat agent/: file does not exist',
    'Cannot connect to the Docker daemon at tcp://10.0.0.1:2375. Is the docker daemon running?',
    'error during connect: Get "http://10.0.0.1:2375": dial tcp 10.0.0.1:2375: i/o timeout',
    'no space left on device',
  ]) {
    const error = new Error(said);
    assert.equal(withBaseHint(error, base), error);
  }
});

test('an image is described by its size and its layers', () => {
  const layers = nameLayers(['1500000 COPY b', '126000000 COPY a'], ['node', 'agent']);
  assert.equal(
    describeImage({ tag: 'a:1', id: `sha256:${'0'.repeat(64)}`, size: 127_500_000, layers }),
    'a:1 (sha256:000000000000): 127.5 MB, unpacked\n   126.0 MB  node\n     1.5 MB  agent',
  );
});

test('the terms of every npm package in the bundle come along', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'swy-licences-'));
  try {
    const write = (path: string, text: string): void => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    const sources = ['../src/main.ts', '../node_modules/@a/b/x.js', '../node_modules/c/node_modules/d/y/z.js'];
    write('bundle/main.mjs.map', JSON.stringify({ sources }));
    write('node_modules/@a/b/package.json', JSON.stringify({ name: '@a/b', version: '1.0.0', license: 'MIT' }));
    write('node_modules/@a/b/LICENSE.md', 'as you like');
    write('node_modules/@a/b/NOTICE', 'by a');
    write(
      'node_modules/c/node_modules/d/package.json',
      JSON.stringify({ name: 'd', version: '2.0.0', license: 'ISC' }),
    );
    const packages = await bundledPackages(join(folder, 'bundle'));
    await copyNpmLicences(packages, join(folder, 'doc'));
    assert.equal(readFileSync(join(folder, 'doc/@a/b-1.0.0/copyright'), 'utf8'), 'as you like\nby a');
    assert.equal(readFileSync(join(folder, 'doc/d-2.0.0/copyright'), 'utf8'), 'ISC\n');
    assert.equal(packages.length, 2);
    write('node_modules/c/node_modules/d/package.json', JSON.stringify({ name: 'd', version: '2.0.0' }));
    await assert.rejects(copyNpmLicences(packages, join(folder, 'doc')), /no file and no field names a licence/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
