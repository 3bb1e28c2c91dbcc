import { execFileSync } from 'node:child_process';
import { chmod, cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DockerEngine } from '@switchyard/lab';
import { expect } from 'vitest';

/** Images made here that play what no registry is needed for then. */
export interface PlayedImages {
  /** Of a node; kind finds in it what it calls. */
  readonly node: string;
  /** Of a node whose first process ends at once. */
  readonly broken: string;
}

/** Plays a node for kind, our controller, or anything that runs until it is stopped. */
const entry = `#!/bin/sh
trap 'exit 0' TERM INT
case "$1" in
  --cluster) echo '{"level":"info","msg":"serving the cluster"}' >&2 ;;
  *) echo 'systemd[1]: Reached target Multi-User System.' ;;
esac
while :; do sleep 1 & wait $!; done
`;

/** Programs that kind calls in a node; each of them logs its call. */
const nodePrograms: Readonly<Record<string, string>> = {
  kubeadm: `echo "kubeadm $1" >>/var/log/calls
[ "$1" != init ] || cat >/etc/kubernetes/admin.conf <<CONFIG
apiVersion: v1
kind: Config
clusters: [{ name: $(hostname), cluster: { server: "https://$(hostname):6443" } }]
users: [{ name: admin, user: { token: played } }]
contexts: [{ name: admin, context: { cluster: $(hostname), user: admin } }]
current-context: admin
CONFIG`,
  kubectl: 'echo "kubectl $1" >>/var/log/calls',
  containerd: `cat <<'TOML'
version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".containerd]
      snapshotter = "overlayfs"
TOML`,
  ctr: 'echo "ctr $*" >>/var/log/calls; cat >/dev/null',
  crictl: 'exit 1',
  journalctl: 'echo "a journal of $(hostname)"',
};

/** Upstream's programs: the list of tests, and a run that writes its report. */
function upstreamPrograms(tests: readonly string[]): Readonly<Record<string, string>> {
  const list = tests.map((name, index) => `    test/e2e/network/service.go:${index + 1}: ${name}`).join('\n');
  const cases = tests.map((name) => `<testcase name="[It] ${name}" status="passed"></testcase>`).join('\n');
  return {
    'e2e.test': `cat <<'LIST'\n${list}\nLIST`,
    ginkgo: `test -s /kubeconfig || exit 2\ncat >/results/junit_01.xml <<'XML'\n<testsuite>\n${cases}\n</testsuite>\nXML`,
  };
}

/** Contents of the images. */
export interface PlayedImagesOptions {
  readonly engine: DockerEngine;
  /** Folder in which `busybox-static` is unpacked. */
  readonly busybox: string;
  /** An empty folder. */
  readonly context: string;
  /** Names of tests that upstream's image has. */
  readonly upstreamTests: readonly string[];
  /** More names for the image that plays. */
  readonly tags: readonly string[];
}

/** Builds the images in the engine. */
export async function buildPlayedImages(options: PlayedImagesOptions): Promise<PlayedImages> {
  const { engine, busybox, context, upstreamTests, tags } = options;
  const root = join(context, 'root');
  await writePrograms(`${root}/bin`, { ...nodePrograms });
  await writePrograms(`${root}/usr/local/bin`, upstreamPrograms(upstreamTests));
  await writeFiles(root, {
    entry,
    'kind/version': 'v1.36.4\n',
    'kind/manifests/default-cni.yaml': 'kind: List\n',
    'kind/manifests/default-storage.yaml': 'kind: List\n',
    'etc/kubernetes/.keep': '',
    'var/log/.keep': '',
  });
  await chmod(`${root}/entry`, 0o755);
  await cp(`${busybox}/bin/busybox`, `${root}/bin/busybox`);
  const applets = execFileSync(`${busybox}/bin/busybox`, ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean);
  for (const applet of applets.filter((name) => name !== 'busybox')) await symlink('busybox', `${root}/bin/${applet}`);
  const images = { node: 'kindest/played:v1.36.4', broken: 'kindest/broken:v1.36.4' };
  await build(engine, context, images.node, 'FROM scratch\nCOPY root/ /\nENTRYPOINT ["/entry"]\n');
  await build(engine, context, images.broken, `FROM ${images.node}\nENTRYPOINT ["/bin/false"]\n`);
  for (const tag of tags) expect(await engine.cli(['tag', images.node, tag])).toMatchObject({ exitCode: 0 });
  return images;
}

async function build(engine: DockerEngine, context: string, tag: string, dockerfile: string): Promise<void> {
  await writeFile(join(context, 'Dockerfile'), dockerfile);
  expect(await engine.cli(['build', '--tag', tag, context])).toMatchObject({ exitCode: 0 });
}

async function writePrograms(folder: string, programs: Readonly<Record<string, string>>): Promise<void> {
  const texts = Object.entries(programs).map(([name, text]) => [name, `#!/bin/sh\n${text}\n`] as const);
  await writeFiles(folder, Object.fromEntries(texts));
  for (const [name] of texts) await chmod(join(folder, name), 0o755);
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}
