import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot } from '../debian/debian-root.ts';
import { cachedFolder, runGo, runProgram } from '../debian/run-program.ts';
import { runScript } from '../script.ts';

// `node tools/kube-proxy/build.ts` compiles the real kube-proxy and prints where it is. No Debian package has the program, but one has
// its source: Kubernetes 1.20.2 of Debian 12, older than the terminating fallback (KEP-1669), so that it shows what was mended in 1.26.
// It takes about five minutes once, and 1 GB of disk meanwhile. Progress is on stderr.

/** The release whose source package still has all of Kubernetes; later ones have kubectl only. */
const suite = 'bookworm';
const version = 'v1.20.2';

function report(line: string): void {
  process.stderr.write(`kube-proxy: ${line}\n`);
}

async function main(signal: AbortSignal): Promise<void> {
  const build = async (folder: string): Promise<void> => {
    // Where a GOPATH of before modules has it: the source package's go.mod and its vendored packages do not agree.
    const work = join(folder, 'work');
    const source = join(work, 'go/src/k8s.io/kubernetes');
    await mkdir(source, { recursive: true });
    await unpackSource(work, source, signal);
    await compile(work, source, signal);
    await rename(join(work, 'kube-proxy'), join(folder, 'kube-proxy'));
    await rm(work, { recursive: true, force: true });
  };
  console.log(join(await cachedFolder('switchyard-kube-proxy', version, build, signal), 'kube-proxy'));
}

/** apt checks the signature of what it fetches. The machine's own sources may name no source packages, so this list does. */
async function unpackSource(work: string, source: string, signal: AbortSignal): Promise<void> {
  const targets = await runProgram('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages'], {
    signal,
  });
  const mirrors = [...new Set(targets.stdout.split('\n').filter((uri) => uri !== '' && !uri.includes('security')))];
  if (mirrors.length === 0) throw new Error('apt names no Debian mirror here; see /etc/apt/sources.list');
  const [lists, list] = [join(work, 'lists'), join(work, 'sources.list')];
  await mkdir(join(lists, 'partial'), { recursive: true });
  await writeFile(list, mirrors.map((uri) => `deb-src ${uri} ${suite} main\n`).join(''));
  const own = [`Dir::State::lists=${lists}`, `Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=/dev/null'];
  const apt = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram('apt-get', [...[...own, 'APT::Sandbox::User=root'].flatMap((one) => ['-o', one]), '-q', ...args], {
      cwd: work,
      signal,
    });
  report(`fetching the source package of kubernetes, of Debian's ${suite} (34 MB)`);
  await apt('update');
  await apt('source', '--download-only', 'kubernetes');
  const archive = (await readdir(work)).find((name) => name.startsWith('kubernetes_') && name.includes('.orig.tar.'));
  if (archive?.includes(version.slice(1)) !== true)
    throw new Error(`expected the source of ${version} in ${suite}, found ${archive ?? 'none'}`);
  await runProgram('tar', ['-xf', join(work, archive), '-C', source, '--strip-components=1'], { signal });
}

async function compile(work: string, source: string, signal: AbortSignal): Promise<void> {
  const debian = await debianRoot({ packages: ['golang-go'], exclude: ['libc6', 'perl'], signal });
  report('compiling; this takes about five minutes');
  const flags = `-X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=${version}`;
  const args = ['build', '-ldflags', flags, '-o', join(work, 'kube-proxy'), './cmd/kube-proxy'];
  await runGo(debian, args, { cwd: source, gopath: join(work, 'go'), cache: join(work, 'cache'), signal });
}

await runScript(main, 'kube-proxy: ');
